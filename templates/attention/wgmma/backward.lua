-- backward.lua: the gradients of attention on the warpgroup products and TMA of sm_90a. A block owns block_kv keys of a
-- key/value head, 64 for each warpgroup, whose dK and dV stay in registers, and goes over the query rows in tiles of block_q;
-- dQ is summed in float32 in memory, in whatever order blocks come, or of a deterministic kernel in that of backward_order.cut.
-- Heads wider than 128: backward_wide.lua; than 256: backward_columns.lua.
local family = { template = "attention/wgmma/backward.cut", library = { "tile/tiles.cut", "tile/claims.cut", "tile/diagonals.cut", "tile/sequences.cut", "tile/slices.cut", "tile/dropout.cut" } }

local mma, shape, tiles = run("attention/mma/mma.lua"), run("attention/wgmma/shape.lua"), run("tile/tiles.lua")
local grads, passes = run("attention/backward/input_grads.lua"), run("attention/backward/passes.lua")
local barriers, kinds_of_barriers = run("tile/barriers.lua"), run("attention/wgmma/backward_barriers.lua")
local wide = run(shape.is_wide and "attention/wgmma/backward_columns.lua" or "attention/wgmma/backward_wide.lua")
local columns, rows_bytes = shape.columns, shape.rows_bytes

-- Does the sum of dQ have an order?
local is_ordered = spec.deterministic == "true"

-- Why a kernel with that order is left to another family, nil: it is not.
local function order_refusal()
  if #hooks.input.grads > 0 then return "leaves deterministic=true to mma where an input has a gradient" end
end

-- The same of layouts.
local function layout_refusal()
  if seq.is_dense then return nil end
  return is_ordered and "leaves deterministic=true to mma where sequences are packed, parts or slices" or grads.refused(true)
end

function family.applies(spec, arch)
  if not machine.wgmma then return false, "needs sm_90a, not " .. arch end
  local why = hooks.norm.refused or is_ordered and order_refusal() or wide.is_for(spec) and wide.refusal() or layout_refusal()
  if why then return false, why end
  return true
end

family.generation = wide.is_for(spec) and 1 or 2
grads.sum_in_tiles(false)
family.refused = wide.refused or run("attention/wgmma/backward_refused.lua")

-- Threads of a block of the passes beside; rows that a warp takes at a time where these are made in the background: a multiple
-- of 64.
local PASS_THREADS, UNIT_ROWS = 256, 64
local WORKERS = 3 -- warps of a block that work in the background
local MULTIPROCESSORS = 160 -- no card with these products has more
-- Tiles of dS in flight: one more than tiles of rows, so that one which is free for rows is free for their dS.
local function ds_stages(plan) return plan.stages + 1 end
-- Columns of dQ that a warpgroup makes at a time: all of 64 rows, or its share of them.
local function dq_columns(spec, plan)
  if plan.block_q == plan.block_kv then return columns(spec.d) end
  return spec.d > 64 and 64 or 32
end
-- Parts of dQ of a tile of rows, each of which one warp of a block adds to.
local function dq_parts(plan) return plan.block_kv // 16 end
-- Bytes of K's rows from the columns of one warpgroup's dQ to those of the next: a block of columns, or half of one.
local function dq_step(spec, plan) return spec.d > 64 and rows_bytes(plan.block_kv, 64) or 2 * dq_columns(spec, plan) end

-- Bytes of 16 rows of O and of dO, or of their sums of dQ. The 16-bit numbers of a block of 64 columns of sums lie where the block
-- begins: those of the last one may end behind the sums.
local function piece_bytes(spec)
  local last_block = 64 * 64 * (cdiv(spec.d, 64) - 1)
  return math.max(2 * rows_bytes(16, spec.dv), cdiv(512 * tiles.chunks(spec.d), 1024) * 1024, last_block + rows_bytes(16, 64))
end

-- Pieces that a block's background has at hand: two for each of its warps.
local function pieces(background) return background and 2 * WORKERS or 0 end

-- background: has the kernel warps that work there? Plans that have none are no larger than those that fit. input: false where
-- the plan leaves the score's dense input to lanes that read it element by element.
function family.shared(spec, plan, background, input)
  if wide.is_for(spec) then return wide.shared(spec, plan) end
  local q, kv, stages = plan.block_q, plan.block_kv, plan.stages
  local blocks = {
    { "SM_K", rows_bytes(kv, spec.d), "K [D / 64][BLOCK_KV][64]" .. (types.dk.name == "f32" and "" or ", then dK") },
    { "SM_V", rows_bytes(kv, spec.dv), "V [DV / 64][BLOCK_KV][64]" .. (types.dv.name == "f32" and "" or ", then dV") },
    { "SM_Q", stages * rows_bytes(q, spec.d), "Q [STAGES][D / 64][BLOCK_Q][64]" },
    { "SM_DO", stages * rows_bytes(q, spec.dv), "dO [STAGES][DV / 64][BLOCK_Q][64]" },
    { "SM_DS", ds_stages(plan) * rows_bytes(q, kv), "dS [DS_STAGES][BLOCK_KV / 64][BLOCK_Q][64]" },
    { "SM_PIECES", pieces(background) * piece_bytes(spec), "of rows and sums of dQ [PIECES][PIECE_BYTES]" },
    { "SM_KEPT", stages * q * 8, "what is kept of a row, and delta [STAGES][BLOCK_Q][2], float32" },
    barriers.row(kinds_of_barriers { stages = stages, ds_stages = ds_stages(plan), groups = kv // 64, pieces = pieces(background) }),
    { "SM_JOBS", 2 * (16 + 16 * cdiv(#seq.locals, 4)), "first key, g, b, whether rows see the keys [2]" },
    { "SM_TILES", stages * (seq.slices and 48 or 16), "q0, h, whether it is the last tile, - [STAGES]" },
    { "SM_END", 1008, "what rounding the base to 1024 bytes may take" },
  }
  if hooks.input.tiled and input ~= false then
    table.insert(blocks, 6, { "SM_INPUT", stages * 2 * q * kv, hooks.input.tiled.name .. " [STAGES][BLOCK_KV / 64][BLOCK_Q][64]" })
  end
  return blocks
end

-- Registers that each thread of a block is launched with; of the warps that move data, which need more where one of them claims
-- jobs, and where the others work in the background, and more where it looks for those that add to dQ before; and of the warps
-- that multiply.
local function launched(plan) return 65536 // (32 * plan.warps) // 8 * 8 end
local function split(plan, claims)
  local few, groups = is_ordered and 56 or (claims or not seq.is_dense) and 40 or 24, plan.block_kv // 64
  return few, math.min(240, (launched(plan) * (groups + 1) - few) // groups // 8 * 8)
end

-- Registers of a thread that multiplies, coarsely: dK, dV, S and dP, and addresses.
function family.registers(spec, plan)
  if wide.is_for(spec) then return wide.registers(spec, plan) end
  return (columns(spec.d) + columns(spec.dv)) // 2 + plan.block_q + 28
end

local rows = run("attention/wgmma/backward_plans.lua")

function family.candidates(spec, arch)
  local plans = {}
  for _, row in ipairs(rows) do
    if not row.when or row.when(spec, hooks) then plans[#plans + 1] = { block_q = row.block_q, block_kv = row.block_kv, stages = row.stages, warps = row.warps } end
  end
  return mma.that_fit(family, spec, arch, plans, wide.is_for(spec) and wide.most or function(plan) return select(2, split(plan)) end)
end

-- What a plan has of its own where a block has all of its keys.
local function constants(spec, plan)
  local q, kv = plan.block_q, plan.block_kv
  local few, many = split(plan, use.stays)
  return {
    { "GROUPS", kv // 64, "warpgroups that multiply, of 64 keys each" },
    { "DS_STAGES", ds_stages(plan), "tiles of dS" },
    { "MOVER_REGISTERS", few },
    { "REGISTERS", many },
    { "D_COLUMNS", columns(spec.d), "columns of Q and K that are multiplied" },
    { "DV_COLUMNS", columns(spec.dv), "of V and dO" },
    { "DQ_COLUMNS", dq_columns(spec, plan), "of dQ that a warpgroup makes" },
    { "DQ_STEP", dq_step(spec, plan), "bytes from K's columns of one warpgroup's dQ to those of the next one" },
    { "K_BYTES", rows_bytes(kv, spec.d), "of a tile" },
    { "V_BYTES", rows_bytes(kv, spec.dv), "of a tile" },
    { "Q_BYTES", rows_bytes(q, spec.d), "of a tile" },
    { "DO_BYTES", rows_bytes(q, spec.dv), "of a tile" },
    { "DS_BYTES", rows_bytes(q, kv), "of a tile" },
    { "UNIT_ROWS", UNIT_ROWS, "that a warp of the background takes at a time" },
    { "PIECE_BYTES", piece_bytes(spec), "of 16 of them, at most" },
    { "PIECES", pieces(use.background), "two for each warp of the background" },
    { "LEAD", 9, "units for each block that what is kept of rows is ahead of dQ, beside a section" },
    use.brings_input and { "INPUT_BYTES", 2 * q * kv, "of a tile" } or nil,
  }
end

-- Work of a block for a row and a key, in the units of mma's backward.
local function work_of_row(spec, plan)
  for _, row in ipairs(rows) do
    if row.block_q == plan.block_q and row.block_kv == plan.block_kv and row.warps == plan.warps then
      return type(row.work) == "function" and row.work(spec) or row.work
    end
  end
end

-- The launches, in their order.
local function steps(spec, plan, padded)
  local q, kv, starts_early = plan.block_q, plan.block_kv, use.starts_early
  local cluster = wide.is_for(spec) and wide.CLUSTER or 1
  local blocks = string.format("%s * hk * %s", seq.count_tiles("k", kv), seq.batches("k"))
  -- Fewer jobs than multiprocessors leave some with nothing but units of rows, one for each of their warps.
  if use.background then blocks = string.format("max(%s, min(%d, b * h * cdiv(%s, %d)))", blocks, MULTIPROCESSORS, padded, WORKERS * UNIT_ROWS) end
  local list = {
    passes.kept(padded, PASS_THREADS, starts_early),
    { entry = "attn_bwd_dk_dv", threads = 32 * plan.warps, early = starts_early, grid = { cluster > 1 and string.format("%s * %d", blocks, cluster) or blocks, "1", "1" },
      cluster = cluster, resident = use.stays and 1 or nil,
      registers = launched(plan),
      work = string.format("(%s + %d) * h / max(hk, 1) * %d", hooks.mask.rows_seen, hooks.mask.edge_count * (q + kv) // 2, kv // cluster * work_of_row(spec, plan)) },
    passes.dq(padded, PASS_THREADS, starts_early),
  }
  if use.background then list = { { zero = "flags" }, list[2] } end
  for _, x in ipairs(hooks.input.grads) do
    if x.stored and grads.leaves_tiles() then table.insert(list, 1, grads.zero_step(x, PASS_THREADS)) end
    if x.summed then
      list[#list + 1] = grads.finish_step(x, PASS_THREADS, x.stored and string.format("%s * %s / 8", grads.heads_of(x), padded))
    end
  end
  passes.add_heads(list, PASS_THREADS, starts_early)
  return list
end

function family.describe(spec, plan)
  local is_wide = wide.is_for(spec)
  local q, kv, padded = plan.block_q, plan.block_kv, seq.count_rows_of("q", plan.block_q)
  local regions = passes.regions(padded, true)
  if use.background then regions[#regions + 1] = { name = "flags", count = "2 + b * h + b * hk" }
  elseif use.stays or is_ordered then regions[#regions + 1] = { name = "claims", count = "2" } end
  if is_ordered then regions[#regions + 1] = { name = "added", count = string.format("b * h * %s / %d * %d", padded, q, dq_parts(plan)) } end
  grads.count_by_tiles(padded, kv)
  for _, x in ipairs(hooks.input.grads) do x.diagonal = use.sums_distances and x.kind == "indexed" and hooks.input.is_by_distance(x) end
  local list = steps(spec, plan, padded)
  grads.add_regions(regions, list)
  if is_ordered then table.insert(list, 1, { zero = "added" }) end
  local function map(name, tensor, rows)
    return { name = name, tensor = tensor, columns = 64, rows = rows, swizzle = shape.ROW, ragged = seq.is_ragged(tensor) }
  end
  local keys = is_wide and wide.KEYS or kv -- of a block
  local maps = { map("q_map", "q", q), map("k_map", "k", keys), map("v_map", "v", keys), map("do_map", "do", q) }
  if types.dk.name ~= "f32" then table.move({ map("dk_map", "dk", 64), map("dv_map", "dv", 64) }, 1, 2, #maps + 1, maps) end
  if use.background then
    if hooks.norm.delta and not hooks.norm.beside then maps[#maps + 1] = map("o_map", "o", 16) end
    if hooks.norm.delta then maps[#maps + 1] = map("do_rows_map", "do", 16) end
    maps[#maps + 1] = map("dq_map", "dq", 16)
  end
  local all_constants = {
    { "D", spec.d, "head dim of q and k" },
    { "DV", spec.dv, "head dim of v and o" },
    { "CHUNKS_D", tiles.chunks(spec.d), "16-byte chunks in a row of dQ" },
    { "CHUNKS_Q", q // 8, "in a row of dS^T" },
    { "BLOCK_Q", q, "query rows of a tile" },
    { "BLOCK_KV", kv, is_wide and "keys of a cluster" or "keys of a block" },
    { "STAGES", plan.stages, is_wide and "tiles of Q and of P in flight" or "tiles of Q and of dO in flight" },
    { "THREADS", PASS_THREADS, "of a block of the passes before and behind" },
    { "SECTION_HEADS", 8, "in a section, at most" },
    { "SECTION_ROWS", 16384, "of all heads of a section" },
    { "M_KV", 1, "tiles of 16 keys of a warp" },
    { "ROWS", 2, "keys that a lane has a part of" },
    { "N_Q", use.queries_in_turns and 4 or q // 8, "tiles of 8 queries of S^T and dP^T at a time" },
    { "KEPT_BYTES", 8 * q, "of a tile" },
  }
  if is_ordered then all_constants[#all_constants + 1] = { "DQ_PARTS", dq_parts(plan), "of a tile, each added to by one warp of a block" } end
  local own = is_wide and wide.constants(spec, plan) or constants(spec, plan)
  table.move(own, 1, #own, #all_constants + 1, all_constants)
  local whole
  for _, x in ipairs(hooks.input.grads) do
    x.leaves_whole = use.gradient_leaves_whole and not whole and hooks.input.is_ds(x)
    whole = whole or x.leaves_whole and x
  end
  if whole then maps[#maps + 1] = map("gradient_map", "d" .. whole.name, q) end
  if use.brings_input then maps[#maps + 1] = map("input_map", hooks.input.tiled.name, q) end
  local description = {
    about = string.format("Gradients of O = %s(score(scale Q K^T)) V, from dO.", hooks.norm.about),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }, hooks.norm.backward_inputs),
    outputs = passes.outputs(),
    regions = regions,
    maps = maps,
    steps = list,
    constants = all_constants,
    shared = is_wide and wide.shared(spec, plan, use) or family.shared(spec, plan, use.background, use.brings_input),
    template = is_wide and wide.template or nil,
  }
  if seq.slices then seq.slices.add_list(description, "k", kv, "key_slices", use.starts_early) end
  return description
end

return family
