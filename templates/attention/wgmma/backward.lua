-- backward.lua: the gradients of attention on the warpgroup products and TMA of sm_90a. A block owns block_kv keys of a
-- key/value head, 64 for each warpgroup, whose dK and dV stay in registers, and goes over the query rows in tiles of block_q;
-- dQ is summed in float32 in memory, in whatever order blocks come. Heads wider than 128: backward_wide.lua.
local family = { template = "attention/wgmma/backward.cut", library = { "tile/tiles.cut", "tile/claims.cut" } }

local mma, shape, tiles = run("attention/mma/mma.lua"), run("attention/wgmma/shape.lua"), run("tile/tiles.lua")
local grads, passes = run("attention/backward/input_grads.lua"), run("attention/backward/passes.lua")
local wide = run("attention/wgmma/backward_wide.lua")
local columns, rows_bytes = shape.columns, shape.rows_bytes

function family.applies(spec, arch)
  if not machine.wgmma then return false, "needs sm_90a, not " .. arch end
  if spec.deterministic == "true" then return false, "leaves deterministic=true to mma" end
  local why = wide.is_for(spec) and wide.refusal()
  if why then return false, why end
  return true
end

grads.sum_in_tiles(false)
family.refused = run("attention/wgmma/backward_refused.lua")

-- Threads of a block of the passes beside.
local PASS_THREADS = 256
-- Tiles of dS in flight: one more than tiles of rows, so that one which is free for rows is free for their dS.
local function ds_stages(plan) return plan.stages + 1 end
-- Columns of dQ that a warpgroup makes at a time: all of 64 rows, or its share of them.
local function dq_columns(spec, plan)
  if plan.block_q == plan.block_kv then return columns(spec.d) end
  return spec.d > 64 and 64 or 32
end
-- Bytes of K's rows from the columns of one warpgroup's dQ to those of the next: a block of columns, or half of one.
local function dq_step(spec, plan) return spec.d > 64 and rows_bytes(plan.block_kv, 64) or 2 * dq_columns(spec, plan) end

function family.shared(spec, plan)
  if wide.is_for(spec) then return wide.shared(spec, plan) end
  local q, kv, stages = plan.block_q, plan.block_kv, plan.stages
  return {
    { "SM_K", rows_bytes(kv, spec.d), "K [D / 64][BLOCK_KV][64], then dK" },
    { "SM_V", rows_bytes(kv, spec.dv), "V [DV / 64][BLOCK_KV][64], then dV" },
    { "SM_Q", stages * rows_bytes(q, spec.d), "Q [STAGES][D / 64][BLOCK_Q][64]" },
    { "SM_DO", stages * rows_bytes(q, spec.dv), "dO [STAGES][DV / 64][BLOCK_Q][64]" },
    { "SM_DS", ds_stages(plan) * rows_bytes(q, kv), "dS [DS_STAGES][BLOCK_KV / 64][BLOCK_Q][64]" },
    { "SM_KEPT", stages * q * 8, "what is kept of a row, and delta [STAGES][BLOCK_Q][2], float32" },
    { "SM_BARRIERS", 8 * (5 + 3 * stages + ds_stages(plan)), "K, V full; Q, dO full, rows empty [STAGES]; dS full [DS_STAGES]; keys empty; job full [2]" },
    { "SM_JOBS", 2 * 16, "first key, g, b, whether rows see the keys [2]" },
    { "SM_TILES", stages * 16, "q0, h, whether it is the last tile, - [STAGES]" },
    { "SM_END", 1008, "what rounding the base to 1024 bytes may take" },
  }
end

-- Registers that each thread of a block is launched with; of the thread that moves data, which needs more where it claims jobs,
-- and of the others.
local function launched(plan) return 65536 // (32 * plan.warps) // 8 * 8 end
local function split(plan, claims)
  local few, groups = claims and 40 or 24, plan.block_kv // 64
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
  local blocks = string.format("cdiv(nk, %d) * hk * b", kv)
  local list = {
    passes.kept(padded, PASS_THREADS, starts_early),
    { entry = "attn_bwd_dk_dv", threads = 32 * plan.warps, early = starts_early, grid = { cluster > 1 and string.format("%s * %d", blocks, cluster) or blocks, "1", "1" },
      cluster = cluster, resident = use.stays and 1 or nil,
      registers = launched(plan),
      work = string.format("(%s + %d) * h / max(hk, 1) * %d", hooks.mask.rows_seen, hooks.mask.edge_count * (q + kv) // 2, kv // cluster * work_of_row(spec, plan)) },
    passes.dq(padded, PASS_THREADS, starts_early),
  }
  for _, x in ipairs(hooks.input.grads) do
    if x.stored and grads.leaves_tiles() then table.insert(list, 1, grads.zero_step(x, PASS_THREADS)) end
    if x.summed then
      list[#list + 1] = grads.finish_step(x, PASS_THREADS, x.stored and string.format("%s * %s / 8", grads.heads_of(x), padded))
    end
  end
  return list
end

function family.describe(spec, plan)
  local is_wide = wide.is_for(spec)
  local q, kv, padded = plan.block_q, plan.block_kv, string.format("roundup(nq, %d)", plan.block_q)
  local regions = passes.regions(padded, true)
  if use.stays then regions[#regions + 1] = { name = "claims", count = "2" } end
  grads.count_by_tiles(padded, kv)
  local list = steps(spec, plan, padded)
  grads.add_regions(regions, list)
  local function map(name, tensor, rows) return { name = name, tensor = tensor, columns = 64, rows = rows, swizzle = shape.ROW } end
  local keys = is_wide and wide.KEYS or kv -- of a block
  local all_constants = {
    { "D", spec.d, "head dim of q and k" },
    { "DV", spec.dv, "head dim of v and o" },
    { "CHUNKS_D", tiles.chunks(spec.d), "16-byte chunks in a row of dQ" },
    { "CHUNKS_Q", q // 8, "in a row of dS^T" },
    { "BLOCK_Q", q, "query rows of a tile" },
    { "BLOCK_KV", kv, is_wide and "keys of a cluster" or "keys of a block" },
    { "STAGES", plan.stages, is_wide and "tiles of Q, of P and of dS in flight" or "tiles of Q and of dO in flight" },
    { "THREADS", PASS_THREADS, "of a block of the passes before and behind" },
    { "SECTION_HEADS", 8, "in a section, at most" },
    { "SECTION_ROWS", 16384, "of all heads of a section" },
    { "M_KV", 1, "tiles of 16 keys of a warp" },
    { "ROWS", 2, "keys that a lane has a part of" },
    { "N_Q", use.queries_in_turns and 4 or q // 8, "tiles of 8 queries of S^T and dP^T at a time" },
    { "KEPT_BYTES", 8 * q, "of a tile" },
  }
  local own = is_wide and wide.constants(spec, plan) or constants(spec, plan)
  table.move(own, 1, #own, #all_constants + 1, all_constants)
  return {
    about = string.format("Gradients of O = %s(score(scale Q K^T)) V, from dO.", hooks.norm.about),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }, hooks.norm.backward_inputs),
    outputs = passes.outputs(),
    regions = regions,
    maps = { map("q_map", "q", q), map("k_map", "k", keys), map("v_map", "v", keys), map("do_map", "do", q), map("dk_map", "dk", 64), map("dv_map", "dv", 64) },
    steps = list,
    constants = all_constants,
    shared = family.shared(spec, plan),
    template = is_wide and wide.template or nil,
  }
end

return family
