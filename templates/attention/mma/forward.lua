-- forward.lua: attention on the tensor cores of sm_80 and newer. A block owns block_q query rows,
-- a warp block_q / warps of them, whose P stays in registers; K and V pass through shared memory in
-- tiles of block_kv keys, `stages` of them in flight.
local family = { template = "attention/mma/forward.cut", library = { "tile/tiles.cut", "tile/bytes.cut", "tile/widened.cut", "tile/descaled.cut", "tile/sequences.cut", "tile/slices.cut", "tile/warp.cut", "tile/dropout.cut" } }
family.generation = 2

local tiles, mma = run("tile/tiles.lua"), run("attention/mma/mma.lua")
function family.applies(spec, arch)
  local fits, why = mma.applies(spec, arch)
  if fits and mma.is_widened and hooks.norm.beside then
    return false, string.format("takes no k and v of e4m3 with normalizer=%s, which has a second accumulator", spec.normalizer)
  end
  return fits, why
end

function family.candidates(spec, arch)
  local list = run("attention/mma/forward_plans.lua").plans
  local plans = {}
  for _, plan in ipairs(mma.candidates(list, spec)) do
    if plan.block_kv % types.p.k_step == 0 then plans[#plans + 1] = plan end
  end
  return mma.that_fit(family, spec, arch, mma.with_one_descale(plans))
end

-- Registers of a thread, coarsely: O and S, a step's operands, the rows' state, addresses and the ring of
-- stages. What spills all the same stands in forward_refused.lua.
function family.registers(spec, plan)
  local rows = plan.block_q // plan.warps
  local scores = rows * plan.block_kv // 32
  local accumulators = hooks.norm.beside and 2 or 1
  local of_blocks = mma.is_widened and hooks.descale.is_of_blocks
  -- weights as operands, and sums of a tile; words and what they become
  local of_tile = (types.p.is_byte or of_blocks) and rows // 16 * (plan.block_kv * types.p.bytes // 8 + 16) or 0
  local of_words = mma.is_widened and 16 or 0
  local held = of_tile + of_words + accumulators * rows * 16 * cdiv(mma.columns_of_block(spec), 16) // 32 + scores
  return held + 4 * rows // 16 + 4 + rows // 2 + 24 + (plan.stages > 1 and 12 or 0) +
    mma.registers_of_inputs(scores) + (mma.is_ragged(spec) and 16 or 0)
end
family.refused = run("attention/mma/forward_refused.lua")

-- Chunks of a row of Q: as many columns as one of K has.
local function chunks_of_q(spec) return tiles.chunks(spec.d, types.k) * types.q.bytes // types.k.bytes end

function family.shared(spec, plan)
  local rows, keys, dv = plan.block_q, plan.block_kv * plan.stages, mma.columns_of_block(spec)
  local blocks = {
    { "SM_Q", rows * 16 * math.max(chunks_of_q(spec), tiles.chunks_of_sums(dv, types.v)), "Q [BLOCK_Q][D], then O [BLOCK_Q][DV]" },
    { "SM_K", tiles.bytes(keys, spec.d, types.k), "K [stages][BLOCK_KV][D]" },
    { "SM_V", tiles.bytes(keys, dv, types.v), "V [stages][BLOCK_KV][DV]" },
  }
  mma.add_input_tile(blocks, plan.stages * rows, plan.block_kv, "[stages][BLOCK_Q][BLOCK_KV]")
  blocks[#blocks + 1] = mma.rounding
  return blocks
end

function family.describe(spec, plan)
  local rows, tiled = plan.block_q // plan.warps, hooks.input.tiled
  local late = tiled and rows <= 16 and plan.stages == 1 and plan.block_kv // 12 or 0
  local dv = mma.columns_of_block(spec)
  local column_blocks = cdiv(spec.dv, dv)
  local row_tiles = seq.count_tiles("q", plan.block_q) .. (column_blocks > 1 and " * " .. column_blocks or "")
  local grid = seq.is_packed("q") and { row_tiles, "h", "1" } or use.batches_side_by_side and { "b", row_tiles, "h" } or
    use.heads_side_by_side and { "h", row_tiles, "b" } or { row_tiles, "h", "b" }
  local description = {
    about = string.format("O = %s(score(scale Q K^T)) V%s.", hooks.norm.about, hooks.norm.second_in_words),
    align = 16,
    inputs = mma.arguments({ "q", "k", "v" }),
    outputs = hooks.norm.outputs,
    regions = {},
    steps = {
      { entry = "attn_fwd", grid = grid,
        threads = 32 * plan.warps, registers = math.min(255, family.registers(spec, plan)), early = use.starts_early,
        -- operands that a warp's rows share, the barriers of a tile, and loads that nothing hides: with one stage
        -- an input's tile too, where K's would come early
        work = string.format("(%s + %d) * %d / %d", hooks.mask.keys_seen, hooks.mask.edge_count * (plan.block_q + plan.block_kv) // 2,
                             (plan.block_q + 16 * plan.warps) * (plan.block_kv + 4 + 8 // plan.stages + late), plan.block_kv) },
    },
    constants = {
      { "D", spec.d, "head dim of q and k" },
      { "DV", dv, column_blocks > 1 and "columns of v and o that a block makes" or "head dim of v and o" },
      { "CHUNKS_D", tiles.chunks(spec.d, types.k), mma.is_widened and "16-byte chunks in a row of K" or "16-byte chunks in a row of Q and K" },
      { "CHUNKS_DV", tiles.chunks(dv, types.v), mma.is_widened and "in a row of V" or "in a row of V and O: tiles of 8 columns of O" },
      { "BLOCK_Q", plan.block_q, "query rows of a block" },
      { "BLOCK_KV", plan.block_kv, "keys of a tile" },
      { "THREADS", 32 * plan.warps },
      { "UNROLL", mma.unroll({ d = spec.d, dv = dv }, 4), "steps of a product in a straight line" },
      { "WARP_Q", rows, "query rows of a warp" },
      { "M_MAX", rows // 16, "tiles of 16 rows of a warp" },
      { "M_STEP", 16, "rows from one of them to the next" },
      { "ROWS", rows // 8, "rows that a lane has a part of" },
      { "N_KV", plan.block_kv // 8, "tiles of 8 columns of S" },
      { "K_BYTES", tiles.bytes(plan.block_kv, spec.d, types.k), "of a tile" },
      { "V_BYTES", tiles.bytes(plan.block_kv, dv, types.v), "of a tile" },
      { "INPUT_BYTES", 2 * plan.block_q * plan.block_kv, "of a tile of an input of the score" },
      mma.page_lookups(16),
    },
    shared = family.shared(spec, plan),
  }
  if types.v.is_byte then
    table.insert(description.constants, { "N_DV", tiles.chunks_of_sums(dv, types.v), "tiles of 8 columns of O, and chunks of its rows" })
  end
  if mma.is_widened then table.insert(description.constants, { "CHUNKS_Q", chunks_of_q(spec), "16-byte chunks in a row of Q" }) end
  local chunks = tiles.chunks(spec.d, types.k)
  if mma.chunks_of_sum(chunks) < chunks then
    table.insert(description.constants, { "CHUNKS_OF_SUM", mma.chunks_of_sum(chunks), "of a row of Q and K, that one sum in float32 takes" })
  end
  run("attention/max_logit.lua").add_step(description.steps)
  if seq.slices then seq.slices.add_list(description, "q", plan.block_q, "row_slices", use.starts_early) end
  if column_blocks > 1 then
    table.insert(description.constants, { "V_COLUMNS", spec.dv, "head dim of v and o" })
    table.insert(description.constants, { "COLUMN_BLOCKS", column_blocks, "that make the columns of the same rows" })
  end
  return description
end

return family
