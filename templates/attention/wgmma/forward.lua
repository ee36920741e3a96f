-- forward.lua: attention on the warpgroup products and TMA of sm_90a. A block stays on its
-- multiprocessor and takes tiles of block_q query rows in turn. One warpgroup moves data; each of the
-- others owns 64 rows, whose O, S and P stay in registers.
local family = { template = "attention/wgmma/forward.cut", library = { "tile/tiles.cut", "tile/claims.cut", "tile/sequences.cut", "tile/slices.cut", "tile/warp.cut", "tile/dropout.cut", "tile/pair.cut", "tile/sums.cut" } }
family.generation = 3

local mma, shape, records = run("attention/mma/mma.lua"), run("attention/wgmma/shape.lua"), run("attention/wgmma/records.lua")
local wide, latent = run("attention/wgmma/forward_wide.lua"), run("attention/wgmma/forward_latent.lua")
local columns, rows_bytes, tiled_input, has_parts = shape.columns, shape.rows_bytes, shape.tiled_input, shape.has_parts

-- Why it leaves numbers of e4m3 to others, or nil.
local function refusal_of_e4m3(spec)
  if not types.q.is_byte then return "takes no e4m3 beside a query of 16 bits" end
  if not hooks.norm.trial or hooks.norm.drop then return "takes e4m3 with softmax alone, without dropout" end
  if wide.is_for(spec) then return "takes no e4m3 wider than 256" end
end

function family.applies(spec, arch)
  if not machine.wgmma then return false, "needs sm_90a, not " .. arch end
  local refused = hooks.descale and refusal_of_e4m3(spec)
  if refused then return false, refused end
  if hooks.norm.refused then return false, hooks.norm.refused end
  -- 2 terms of tanh spill 32 bytes, 4 of them 8 to 812 at any d
  local curved = hooks.score.tanh_count > 1 and not hooks.score.tanhs_are_of_scaled_s
  if hooks.pairs_are_looped or curved or hooks.score_is_long and math.max(spec.d, spec.dv) > 128 then return false, "leaves large expressions to mma" end
  local why = wide.is_for(spec) and wide.refusal()
  if why and not latent.is_for(spec) then return false, why end
  return true
end

-- A plan with parts takes the last tiles of rows, where they are fewer than blocks, in parts (parts.cut); all rows
-- must see as many keys. PART_PLACES: places in the workspace, two for each multiprocessor. PART_TILES: the least tiles of
-- keys that a block takes of them, and the least that it is spared, thought to take as long as joining parts.
local PART_PLACES, PART_TILES = 264, 8
-- Floats of a warpgroup's part: of each thread O, what is accumulated beside it, and its rows' states.
local function part_floats(spec) return 128 * (shape.accumulators() * columns(spec.dv) // 2 + 4 * shape.state_chunks()) end

-- Bytes of a slot.
local function slot_bytes(spec)
  local of_q = rows_bytes(64, spec.d)
  return shape.o_leaves_by_registers and of_q or math.max(of_q, 64 * shape.ROW * cdiv(spec.dv, shape.row_columns("o")))
end
-- Bytes of a tile's V, turned.
local function turned_bytes(spec, plan) return shape.turns_values and columns(spec.dv) * plan.block_kv or 0 end

-- Slots for Q of 64 rows, which a 16-bit O leaves by, two for each warpgroup where they fit, then for a warp's part of an
-- input, two where they fit; what is left of a block's memory goes to Q.
local function slots(spec, plan)
  local groups, q, input = plan.block_q // 64, slot_bytes(spec), tiled_input() and 2 * plan.block_q * plan.block_kv or 0
  local kv = plan.stages * (rows_bytes(plan.block_kv, spec.d) + rows_bytes(plan.block_kv, spec.dv) + turned_bytes(spec, plan))
  local free = mma.shared_limit() - 2560 - groups * q - kv - input
  local all = free >= groups * q
  local more_input = free - (all and groups * q or 0) >= input
  local more_q = all and groups or math.max(0, (free - (more_input and input or 0)) // q)
  return { q = groups + more_q, input = more_input and 2 or 1 }
end

-- Bytes of a job: its words, and what says where its sequence is.
local function job_bytes() return 32 + 16 * cdiv(#seq.locals, 4) end

-- What takes the plan's heads, where they are wide: forward_wide.lua or forward_latent.lua.
local function wide_of(plan) return latent.is_for(spec) and latent.has(plan) and latent or wide end

function family.shared(spec, plan)
  if wide.is_for(spec) then return wide_of(plan).shared(spec, plan) end
  local groups, stages, slots = plan.block_q // 64, plan.stages, slots(spec, plan)
  local q, input = slots.q, tiled_input() and slots.input or 0
  local blocks = {
    { "SM_Q", q * slot_bytes(spec), "Q [Q_SLOTS][D / 64][64][64]" .. (shape.o_leaves_by_registers and "" or ", then O") },
    { "SM_K", stages * rows_bytes(plan.block_kv, spec.d), "K [stages][D / 64][BLOCK_KV][64]" },
    { "SM_V", stages * rows_bytes(plan.block_kv, spec.dv), "V [stages][DV / 64][BLOCK_KV][64]" },
    { "SM_BARRIERS", 8 * (2 * groups + 2 * q + 4 * stages + 5 + (shape.turns_values and 2 * stages or 0) + 4 * groups * input + (seq.slices and 2 * records.count(stages) or 0)), "Q full [2][GROUPS], Q empty, O full [Q_SLOTS]; K full, empty, V full, empty [stages]; job full, empty [2]; claim" .. (input > 0 and "; input full [INPUT_STAGES][GROUPS][4]" or "") .. (seq.slices and "; record full, empty [RECORDS]" or "") },
    { "SM_JOBS", 2 * job_bytes(), "q0, h, b, g, first and last k0, " .. (has_parts(plan) and "shares of the keys, number of this one << 16 and its place [2]" or "-, - [2]") },
    { "SM_END", 1008, "what rounding the base to 1024 bytes may take" },
  }
  if shape.turns_values then
    table.insert(blocks, 4, { "SM_TURNED", stages * turned_bytes(spec, plan), "V, keys side by side [stages][DV][keys of a row]" })
    table.insert(blocks, 5, { "SM_ENDS", cdiv(stages, 4) * 16, "whether a slot of V stands for the end [stages]" })
  end
  if shape.scale_has_a_place(hooks) then table.insert(blocks, #blocks, { "SM_SCALE", 128, "the scale, for each lane" }) end
  if seq.slices then table.insert(blocks, #blocks, { "SM_RECORDS", records.BYTES * records.count(stages), "slice, k0, head, and who sees it and the next one, of each tile of keys [RECORDS]" }) end
  if hooks.norm.drop then table.insert(blocks, #blocks, { "SM_SEED", 16, "seed and offset of dropout" }) end
  if has_parts(plan) then
    table.insert(blocks, #blocks, { "SM_PARTS", 3 * 32, "the block's jobs that are parts, and none [3]" })
    table.insert(blocks, #blocks, { "SM_WHOLE", 16, "how many tiles of rows are whole" })
    table.insert(blocks, #blocks, { "SM_LAST", cdiv(q, 4) * 16, "whether the slot has O, not a part of it [Q_SLOTS]" })
  end
  if input > 0 then
    local of_input = { "SM_INPUT", input * 2 * plan.block_q * plan.block_kv, tiled_input().name .. " [INPUT_STAGES][GROUPS][4][BLOCK_KV / INPUT_COLUMNS][16][INPUT_COLUMNS]" }
    table.insert(blocks, 4, of_input)
  end
  return blocks
end

-- Registers of a thread that multiplies, coarsely: S, O, P, the same two of a second accumulator, sums apart from O unless they have those of S, the rows' state and
-- addresses. What spills all the same stands in forward_refused.lua.
function family.registers(spec, plan)
  if wide.is_for(spec) then return wide_of(plan).registers(spec, plan) end
  local scores = plan.block_kv // 2
  local parts = shape.values_come_first() and 0 or (shape.part_columns(plan) or 0) // 2
  return scores + shape.accumulators() * (columns(spec.dv) // 2 + shape.p_registers(plan)) + parts + 28
end
family.refused = wide.is_for(spec) and wide.refused or run("attention/wgmma/forward_refused.lua")
if latent.is_for(spec) then table.move(latent.refused.rows, 1, #latent.refused.rows, #wide.refused.rows + 1, wide.refused.rows) end

-- Plans of latent keys come before those that take them as others.
local function plans_of_wide()
  local plans = {}
  if latent.is_for(spec) then table.move(latent.plans, 1, #latent.plans, 1, plans) end
  if not wide.refusal() then table.move(wide.plans, 1, #wide.plans, #plans + 1, plans) end
  return plans
end
local rows = wide.is_for(spec) and plans_of_wide() or run("attention/wgmma/forward_plans" .. (types.p.is_byte and "_e4m3" or "") .. ".lua")

-- Registers that each thread of a block is launched with.
local function launched(plan) return 65536 // (32 * plan.warps) // 8 * 8 end

-- Registers of the threads that move data, and of the others, who have what is left. Movers that look for keys no row
-- sees, or know lengths, need 40. The others of many rows leave 32, which is too few for both where a warp finds pages. One that turns V,
-- or walks over slices besides loading tiles of them, needs 56.
local function split(plan, walks_beside)
  local many_rows = plan.block_q > 128 or has_parts(plan) and columns(spec.dv) > 192
  local looks_for_keys, groups = hooks.mask.has_gaps.keys, plan.block_q // 64
  local few = (looks_for_keys or not seq.is_dense) and 40 or 24
  if walks_beside or shape.turns_values then
    few = 56
  elseif many_rows and not (looks_for_keys and seq.is_paged()) then
    few = 32
  end
  return few, (launched(plan) * (groups + 1) - few) // groups // 8 * 8
end

-- Dropout is drawn best by two warpgroups, whose threads have registers for calls beside each other.
local function is_for(row)
  return not (hooks.norm.drop and row.block_q > 128) and (not row.when or row.when(spec, hooks))
end

-- The plans that fit, in order of preference, with the first one in parts behind them where it may be: without a mask,
-- and for scores beside which parts do not spill.
function family.candidates(spec, arch)
  local function most(plan) return select(2, split(plan)) end
  local function that_fit(plans) return mma.that_fit(family, spec, arch, mma.with_one_descale(plans), wide.is_for(spec) and function(plan) return wide_of(plan).most() end or most) end
  local plans = {}
  for _, row in ipairs(rows) do
    if is_for(row) then plans[#plans + 1] = { block_q = row.block_q, block_kv = row.block_kv, stages = row.stages, warps = row.warps } end
  end
  local fit, unfit = that_fit(plans)
  local score, first = hooks.score, fit[1]
  local parts_fit = score.is_s or score.cap_of_ranges or columns(spec.dv) <= 160 and (score.rows_share_terms or hooks.input.differs_by_distance)
  local shows_all = hooks.mask.tile("q0", "q1", "k0", "k1", "h").always == "1"
  if first and not wide.is_for(spec) and parts_fit and shows_all and spec.batch_invariant ~= "true" and seq.is_dense and not hooks.input.tiled then
    local parted = that_fit({ { block_q = first.block_q, block_kv = first.block_kv, stages = first.stages, warps = first.warps, key_parts = 16 } })
    table.move(parted, 1, #parted, #fit + 1, fit)
  end
  return fit, unfit
end

-- Work of a block for a key, in forward.lua's units. An input that differs from pair to pair is loaded element by
-- element, or in tiles where it can be; a table of distances is read from the first cache. The host device runs 3 to 4
-- times the threads.
local function work_of_key(plan)
  local row
  for _, x in ipairs(rows) do
    row = row or x.block_q == plan.block_q and x.block_kv == plan.block_kv and x.stages == plan.stages and x or nil
  end
  local work = type(row.work) == "function" and row.work(spec, hooks) or row.work
  local read = hooks.input.differs_by_pair and (hooks.input.differs_by_distance and "3" or "6") or "2"
  local input = tiled_input() and "(3 + 3 * min(nk % 8, 1))" or read
  local own_rows = wide.is_for(spec) and wide.ROWS or plan.block_q -- of a block
  return string.format("%d * %s", own_rows * work * (machine.engine and 8 or 1) // 16, input)
end

-- Words of a record of the list of tiles of packed rows (list.cut): the tile's first row, its batch, and where its sequence is.
local LIST_THREADS, LIST_MOST = 128, 1024
local function list_words() return 2 + #seq.locals end

local function describe_narrow(spec, plan)
  local few, many = split(plan, seq.slices and not use.slices_walked_ahead)
  local slots, tiled, columns_of_box = slots(spec, plan), tiled_input(), plan.block_kv % 64 == 0 and 64 or 32
  local groups, claimed = plan.block_q // 64, use.claims
  local tiles, regions, share = string.format("%s * h * %s", seq.count_tiles("q", plan.block_q), seq.batches("q")), {}, nil
  if claimed then regions[1] = { name = "claims", count = "2" } end
  if seq.is_packed("q") then
    regions[#regions + 1] = { name = "list", count = string.format("%d * (%s + 1)", list_words(), seq.count_tiles("q", plan.block_q)) }
  end
  local seen_together = hooks.mask.has_gaps.keys and plan.block_q or 64 -- rows that go over the same keys
  local work = string.format("(%s + %d) * %s / 10", hooks.mask.keys_seen, hooks.mask.edge_count * (seen_together + plan.block_kv) // 2, work_of_key(plan))
  -- the warp that sends boxes of pages keeps pace with the others from boxes of 8 rows on
  if seq.is_paged() then work = work .. " * (1 + 3 * min(1, page % 8))" end
  if has_parts(plan) then -- places for as many as the kernel may make; for the model, as if each tile had so many or three
    local by_keys = string.format("nk / %d", PART_TILES * plan.block_kv)
    local by_tiles = string.format("%d / max(1, %s)", PART_PLACES // 2, tiles)
    local places = string.format("min(%d, %s * %d) * min(1, nk / %d)", PART_PLACES, tiles, plan.key_parts + 1, (2 * PART_TILES - 1) * plan.block_kv) -- parts, and one that a tile may leave out
    regions[1] = { name = "claims", count = string.format("%s * %d", places, 2 * groups) }
    regions[2] = { name = "parts", count = string.format("%s * %d", places, groups * part_floats(spec)) }
    share = string.format("max(max(1, min(min(%d, %s), %s)), 3 * min(1, %s / 3))", plan.key_parts, by_tiles, by_keys, by_keys)
    work = string.format("nk * %s / 10 / %s + min(1, %s) * %d", work_of_key(plan), share, by_tiles, PART_TILES * plan.block_kv * plan.block_q)
  end
  local function map(name, tensor, rows)
    return { name = name, tensor = tensor, columns = shape.row_columns(tensor), rows = rows, swizzle = shape.ROW, ragged = seq.is_ragged(tensor) }
  end
  local maps = { map("q_map", "q", 64), map("k_map", "k", plan.block_kv), map("v_map", "v", plan.block_kv) }
  if not shape.o_leaves_by_registers then maps[#maps + 1] = map("o_map", "o", 64) end
  if seq.is_paged() then table.move({ map("k_row_map", "k", 1), map("v_row_map", "v", 1) }, 1, 2, #maps + 1, maps) end
  local description = {
    about = string.format("O = %s(score(scale Q K^T)) V%s.", hooks.norm.about, hooks.norm.second_in_words),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }),
    outputs = hooks.norm.outputs,
    regions = regions,
    maps = maps,
    steps = {
      { entry = "attn_fwd", grid = { tiles .. (share and " * " .. share or ""), "1", "1" },
        threads = 32 * plan.warps, registers = launched(plan), resident = 1, early = true,
        work = work },
    },
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", spec.dv, "head dim of v and o" },
      { "BLOCK_Q", plan.block_q, "query rows of a block" },
      { "BLOCK_KV", plan.block_kv, "keys of a tile" },
      { "GROUPS", groups, "warpgroups that multiply, of 64 rows each" },
      { "STAGES", plan.stages, "tiles of K and of V in flight" },
      { "Q_SLOTS", slots.q, "of 64 rows of Q" },
      { "INPUT_STAGES", tiled and slots.input or 0, "of an input of the score" },
      { "CLAIMED", claimed and 1 or 0, "0: blocks take tiles of rows in turn" },
      { "INPUT_COLUMNS", columns_of_box, "side by side of it" },
      { "JOB_BYTES", job_bytes(), "of what is known of a tile of rows" },
      { "MOVER_REGISTERS", few },
      { "REGISTERS", many },
      { "D_STEPS", columns(spec.d), "columns of Q and K that are multiplied" },
      { "DV_COLUMNS", columns(spec.dv), "columns of O" },
      { "Q_BYTES", slot_bytes(spec), "of a warpgroup's Q" },
      { "K_BYTES", rows_bytes(plan.block_kv, spec.d), "of a tile" },
      { "V_BYTES", rows_bytes(plan.block_kv, spec.dv), "of a tile" },
    },
    shared = family.shared(spec, plan),
  }
  if seq.slices then
    table.insert(description.constants, { "RECORDS", records.count(plan.stages), "of tiles of keys that slices show" })
  end
  if shape.turns_values then table.insert(description.constants, { "TURNED_BYTES", turned_bytes(spec, plan), "of a tile's V, turned" }) end
  if has_parts(plan) then
    local of_parts = {
      { "PARTS_MAX", plan.key_parts, "of each of few tiles of rows" },
      { "PART_PLACES", PART_PLACES, "of them, in the workspace" },
      { "PART_TILES", PART_TILES, "of keys that a block takes of them, and is spared, at least" },
      { "PART_FLOATS", part_floats(spec), "of a warpgroup's" },
    }
    table.move(of_parts, 1, #of_parts, #description.constants + 1, description.constants)
  end
  if seq.is_packed("q") then
    table.insert(description.steps, 1, { entry = "attn_list", grid = { string.format("cdiv(b + 2, %d)", LIST_THREADS), "1", "1" },
                                         threads = LIST_THREADS, registers = 40, work = "1", early = true, shared = {} })
    local of_list = { { "LIST_THREADS", LIST_THREADS }, { "LIST_MOST", LIST_MOST, "sequences that are put in order" },
                      { "LIST_WORDS", list_words(), "of what is known of a tile" } }
    table.move(of_list, 1, #of_list, #description.constants + 1, description.constants)
  end
  if tiled then
    local input_map = { name = "input_map", tensor = tiled.name, columns = columns_of_box, rows = 16, swizzle = 2 * columns_of_box }
    table.insert(description.maps, input_map)
  end
  if seq.slices then seq.slices.add_list(description, "q", plan.block_q, "row_slices", true) end
  return description
end

function family.describe(spec, plan)
  local description = wide.is_for(spec) and wide_of(plan).describe(spec, plan, work_of_key(plan)) or describe_narrow(spec, plan)
  run("attention/max_logit.lua").add_step(description.steps)
  return description
end

return family
