-- backward.lua: the gradients of attention on the tensor cores of sm_80 and newer. A block owns
-- block_kv keys of a key/value head, whose dK and dV stay in registers, and goes over the query rows in
-- tiles of block_q; dQ is summed in float32 in memory, in whatever order blocks come. A deterministic
-- kernel makes dQ, and each gradient of an input, in a pass of its own instead, which computes S and dP
-- again: 7 products, not 5.
local family = { template = "attention/mma/backward.cut", library = { "tile/tiles.cut", "tile/diagonals.cut", "tile/sequences.cut", "tile/slices.cut", "tile/dropout.cut" } }
family.generation = 2

local tiles, mma = run("tile/tiles.lua"), run("attention/mma/mma.lua")
local grads, passes = run("attention/backward/input_grads.lua"), run("attention/backward/passes.lua")

function family.applies(spec, arch)
  local good, why = mma.applies(spec, arch)
  why = why or grads.refused(true)
  return good and not why, why
end

local deterministic = spec.deterministic == "true"
local is_f32 = types.dk.name == "f32" -- gradients leave from registers, not by shared memory

grads.sum_in_tiles(deterministic)

function family.candidates(spec, arch)
  local list = run("attention/mma/backward_plans.lua").plans
  return mma.that_fit(family, spec, arch, mma.candidates(list, spec))
end

-- Registers of a thread, coarsely: dK, dV, then S and dP or a part of dQ; a step's operands, addresses
-- and the loop. Sums of dQ go one by one where the machine does not add four at once. What spills all the
-- same stands in backward_refused.lua.
function family.registers(spec, plan)
  local split = mma.division(plan)
  local scores = split.warp_kv * split.queries // 32
  local dq = split.dq_tiles * mma.columns(spec.d, plan.warps // split.warps_q) // 2
  local adds_one_by_one = split.warps_share_keys and not machine.red_v4
  local held = mma.gradients(spec, plan) + math.max(2 * scores, deterministic and 0 or dq)
  return held + 4 * (split.warp_kv // 16) + 48 + (adds_one_by_one and 12 or 0) +
    (split.dq_in_turns and 10 or mma.registers_of_score(spec, plan))
end
family.refused = run("attention/mma/backward_refused.lua")

function family.shared(spec, plan)
  local q, kv, keys_are_shared = plan.block_q, plan.block_kv, mma.division(plan).warps_share_keys
  local blocks = {
    { "SM_K", tiles.bytes(kv, spec.d), "K [BLOCK_KV][D]" .. (is_f32 and "" or ", then dK") },
    { "SM_V", tiles.bytes(kv, spec.dv), "V [BLOCK_KV][DV]" .. (is_f32 and "" or ", then dV") },
    { "SM_Q", plan.stages * tiles.bytes(q, spec.d), "Q [stages][BLOCK_Q][D]" },
    { "SM_DO", plan.stages * tiles.bytes(q, spec.dv), "dO [stages][BLOCK_Q][DV]" },
  }
  if keys_are_shared or not deterministic then
    blocks[#blocks + 1] = { "SM_DS", tiles.bytes(kv, q), "dS^T [BLOCK_KV][BLOCK_Q]" }
  end
  if keys_are_shared then blocks[#blocks + 1] = { "SM_P", tiles.bytes(kv, q), "P^T [BLOCK_KV][BLOCK_Q]" } end
  mma.add_input_tile(blocks, q, kv, "[BLOCK_Q][BLOCK_KV]")
  blocks[#blocks + 1] = { "SM_KEPT", plan.stages * q * 8, "what is kept of a row, and delta [stages][BLOCK_Q][2], float32" }
  blocks[#blocks + 1] = mma.rounding
  return blocks
end

-- A gradient by distance is indexed by the distance of key and row. Where it has a pass of its own, a block
-- owns BAND of its elements, a multiple of every plan's threads, and the pass makes (TILE_Q + BAND) / BAND
-- of the pairs' S and dP. Elsewhere the diagonals of each tile are summed.
local BAND, banded, diagonal = 256, false, false
for _, x in ipairs(hooks.input.grads) do
  x.banded = deterministic and x.kind == "indexed"
  x.diagonal = not deterministic and x.kind == "indexed" and hooks.input.is_by_distance(x)
  banded, diagonal = banded or x.banded, diagonal or x.diagonal
end

-- The passes whose blocks own rows of queries, 16 a warp, and take tiles of keys as large as fit. Warps share rows, of whose dQ
-- each has a part of the columns, where one has no registers for all of them or a block no shared memory for more rows.
local function row_tiles(spec, rows, keys)
  local blocks = {
    { "SM_ROWS_Q", tiles.bytes(rows, spec.d), "Q [TILE_Q][D]" .. (is_f32 and "" or ", then dQ") },
    { "SM_ROWS_DO", tiles.bytes(rows, spec.dv), "dO [TILE_Q][DV]" },
    { "SM_ROWS_K", tiles.bytes(keys, spec.d), "K [TILE_KV][D], then sums" },
    { "SM_ROWS_V", tiles.bytes(keys, spec.dv), "V [TILE_KV][DV]" },
  }
  if banded then
    blocks[#blocks + 1] = { "SM_ROWS_TERMS", rows * (keys + 1) * 4, "dS [TILE_Q][TILE_KV + 1], float32" }
  end
  blocks[#blocks + 1] = { "SM_ROWS_END", mma.rounding[2], mma.rounding[3] }
  return blocks
end

-- How a plan divides them: warps that share rows, rows of a block, keys of a tile.
local MOST_DQ, LEAST_KEYS = 288, 16 -- columns that a warp holds
local function row_division(spec, plan)
  local split = { shares = 1, rows = 16 * plan.warps, keys = spec.d + spec.dv > 256 and 32 or 64 }
  local function fits(keys) return mma.bytes(row_tiles(spec, split.rows, keys)) <= mma.shared_limit() end
  while mma.columns(spec.d, split.shares) > MOST_DQ or not fits(LEAST_KEYS) do
    split.shares, split.rows = 2 * split.shares, split.rows // 2
  end
  while not fits(split.keys) do split.keys = split.keys // 2 end
  return split
end

-- How many blocks make an input's gradient in its pass: one for each tile of the gradient's own extents.
local function gradient_grid(extents, rows, keys)
  local axes = { b = "b", h = "h", q = seq.count_tiles("q", rows), k = seq.count_tiles("k", keys) }
  local factors = {}
  for axis in extents:gmatch("[bhqk]") do factors[#factors + 1] = axes[axis] end
  return #factors > 0 and table.concat(factors, " * ") or "1"
end

-- Work of a block for a row: hundredths of a clock in which shared memory feeds an mma, on average over the
-- five products (4 for each 16 x 16 tile of an operand, which a warp uses for all tiles of the other one),
-- the softmax, for each key; and what the row's sum of dQ takes in memory. It ranks the plans as
-- backward_plans.lua's measurements do.
local function work_of_row(spec, plan)
  local split = mma.division(plan)
  local function product(m, n, a_too) return 400 * ((a_too and m or 0) + n / 2) / (m * n) end
  local keys, shared = split.warp_kv / 16, split.warps_share_keys
  local reads = 2 * product(keys, split.queries / 8, true) + product(keys, spec.d / 8 / split.warps_per_key, shared) +
    product(keys, spec.dv / 8 / split.warps_per_key, shared) + product(2, spec.d / 8 * split.warps_q / plan.warps, true)
  return math.floor((reads / 5 + 30) * (plan.stages > 1 and 1 or 1.08) * plan.block_kv + 20 * spec.d)
end

-- The launches, in their order.
local function steps(spec, plan, padded)
  local threads, q, kv = 32 * plan.warps, plan.block_q, plan.block_kv
  local own, key_tiles = row_division(spec, plan), seq.count_tiles("k", kv)
  local rows, keys = own.rows, own.keys
  local list = {
    passes.kept(padded, threads, use.starts_early),
    { entry = "attn_bwd_dk_dv", threads = threads, early = use.starts_early,
      grid = seq.is_packed("k") and { key_tiles, "hk", "1" } or use.batches_side_by_side and { key_tiles .. " * b", "hk", "1" } or
        use.heads_side_by_side and { "hk", key_tiles, "b" } or { key_tiles, "hk", "b" },
      registers = math.min(255, family.registers(spec, plan)),
      work = string.format("(%s + %d) * h / max(hk, 1) * %d / %d", hooks.mask.rows_seen, hooks.mask.edge_count * (q + kv) // 2,
                           work_of_row(spec, plan) * (q + 8), q) },
  }
  if deterministic then
    list[#list + 1] = { entry = "attn_bwd_dq", grid = { seq.count_tiles("q", rows), "h", seq.batches("q") },
      threads = threads, registers = 200, work = "nk * " .. rows, shared = row_tiles(spec, rows, keys) }
  else
    list[#list + 1] = passes.dq(padded, threads, use.starts_early)
  end
  for _, x in ipairs(hooks.input.grads) do
    if x.stored and grads.leaves_tiles() then table.insert(list, 1, grads.zero_step(x, threads)) end
    if x.summed then
      list[#list + 1] = grads.finish_step(x, threads, x.stored and string.format("%s * %s / 8", grads.heads_of(x), padded))
    elseif not x.stored then
      local blocks = x.banded and hooks.input.blocks(x, BAND) or gradient_grid(x.extents, rows, keys)
      list[#list + 1] = { entry = "attn_bwd_" .. x.output, grid = { blocks, "1", "1" },
        threads = threads, registers = 160, work = "b * h * nk * " .. rows, shared = row_tiles(spec, rows, keys) }
    end
  end
  passes.add_heads(list, threads, use.starts_early)
  return list
end

function family.describe(spec, plan)
  local split, threads, own = mma.division(plan), 32 * plan.warps, row_division(spec, plan)
  local chunks_d, chunks_dv = tiles.chunks(spec.d), tiles.chunks(spec.dv)
  local padded = seq.count_rows_of("q", plan.block_q)
  local regions = passes.regions(padded, not deterministic)
  grads.count_by_tiles(padded, plan.block_kv)
  local list = steps(spec, plan, padded)
  grads.add_regions(regions, list)
  local description = {
    about = string.format("Gradients of O = %s(score(scale Q K^T)) V, from dO.", hooks.norm.about),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }, hooks.norm.backward_inputs),
    outputs = passes.outputs(),
    regions = regions,
    steps = list,
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", spec.dv, "head dim of v and o" },
      { "CHUNKS_D", chunks_d, "16-byte chunks in a row of Q and K" },
      { "CHUNKS_DV", chunks_dv, "in a row of V and dO" },
      { "CHUNKS_Q", plan.block_q // 8, "in a row of dS^T" },
      { "BLOCK_Q", plan.block_q, "query rows of a tile" },
      { "BLOCK_KV", plan.block_kv, "keys of a block" },
      { "THREADS", threads },
      { "UNROLL", mma.unroll(spec, 2), "steps of a product in a straight line" },
      { "WARP_KV", split.warp_kv, "keys of a warp" },
      { "WARPS_PER_KEY", split.warps_per_key, "warps that share them" },
      { "M_MAX", math.max(2, split.warp_kv // 16), "tiles of 16 rows of a warp, at most" },
      { "M_KV", split.warp_kv // 16, "tiles of 16 keys of a warp" },
      { "M_STEP", use.tiles_in_halves and plan.block_kv // 2 or 16, "keys from one of them to the next" },
      { "ROWS", split.warp_kv // 8, "keys that a lane has a part of" },
      { "N_Q", split.queries // 8, "tiles of 8 queries of S^T and dP^T at a time" },
      { "N_DK", 2 * cdiv(chunks_d, 2 * split.warps_per_key), "tiles of 8 columns of a warp's dK" },
      { "N_DV", 2 * cdiv(chunks_dv, 2 * split.warps_per_key), "of its dV" },
      { "M_DQ", split.dq_tiles, "tiles of 16 rows of dQ at a time" },
      { "WARPS_Q", split.warps_q, "warps along the rows of dQ" },
      { "WARPS_D", plan.warps // split.warps_q, "warps along its columns" },
      { "N_DQ", 2 * cdiv(chunks_d, 2 * plan.warps // split.warps_q), "tiles of 8 columns of a warp's dQ" },
      { "Q_BYTES", tiles.bytes(plan.block_q, spec.d), "of a tile" },
      { "DO_BYTES", tiles.bytes(plan.block_q, spec.dv), "of a tile" },
      { "KEPT_BYTES", 8 * plan.block_q, "of a tile" },
      { "TILE_Q", own.rows, "query rows of a block that owns rows" },
      { "TILE_KV", own.keys, "keys of its tiles" },
      { "N_KV", own.keys // 8, "tiles of 8 keys of its S" },
      banded and { "BAND", BAND, "elements of a gradient by distance that a block owns" } or
        diagonal and { "N_DIAGONAL", split.diagonal_blocks, "blocks of 8 keys in which a warp's diagonals of dS begin" } or nil,
    },
    shared = family.shared(spec, plan),
  }
  local function constant(...) table.insert(description.constants, { ... }) end
  if split.some_make_no_scores then constant("QUERY_PARTS", split.query_parts, "parts of the queries that warps which share keys have of S") end
  if own.shares > 1 then
    constant("ROW_SHARES", own.shares, "warps that share rows")
    constant("N_ROWS_DQ", mma.columns(spec.d, own.shares) // 8, "tiles of 8 columns of a warp's dQ there")
    constant("ROW_WARPS", plan.warps // own.shares, "warps whose rows are not those of an earlier one")
  end
  if seq.slices then
    seq.slices.add_list(description, "k", plan.block_kv, "key_slices", use.starts_early)
    if deterministic then seq.slices.add_list(description, "q", own.rows, "row_slices", use.starts_early) end
  end
  return description
end

return family
