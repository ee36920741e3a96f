-- backward.lua: the gradients of layer and RMS norm, on any arch. As many blocks as there is room for take rows in turn, the next ones of
-- which are under way meanwhile, and add up what they give for each column; a second step adds these sums in their order, so that
-- equal launches give equal bits, whatever runs beside them.
local shared_rows, norm, sums = run("tile/shared_rows.lua"), run("layernorm/simt/norm.lua"), run("layernorm/simt/sums.lua")

local SUM_WARPS = machine.engine and 2 or 16 -- of a block that adds sums; of the host device so few that each adds some

-- Multiprocessors of a GPU of the arch; of the host device so few that a block has many rows of those in tests.
local MULTIPROCESSORS = {
  host = 2, sm_75 = 40, sm_80 = 108, sm_86 = 84, sm_87 = 16, sm_89 = 128, sm_90a = 132, sm_100a = 148, sm_103a = 148, sm_110a = 20,
  sm_120a = 188, sm_121a = 48,
}

local function describe(spec, plan)
  local inputs, outputs = { "dout", "gamma", "rstd" }, { "dx", "dgamma" }
  if not norm.is_rms then
    table.insert(inputs, "mean")
    table.insert(outputs, "dbeta?")
  end
  if norm.has_z then
    table.insert(inputs, "z?")
    table.insert(inputs, "x|z")
    if norm.has_bias then table.insert(inputs, "bias|z") end
    if norm.has_residual then table.insert(inputs, "residual|z") end
  else
    table.insert(inputs, "x")
  end
  table.insert(inputs, "dz?")
  if spec.bias == "grad" then table.insert(outputs, "dbias") end
  local blocks, parts = sums.blocks(plan), sums.parts(plan)
  local ranges = cdiv(MULTIPROCESSORS[arch] * blocks, parts)
  local own_ranges = string.format("min(cdiv(rows, %d), %d)", plan.block_q, ranges)
  local constants = shared_rows.constants(plan, sums.chunks(plan))
  table.insert(constants, 1, { "WIDTH", spec.width, "columns of a row" })
  table.insert(constants, { "PARTIALS", 2, "numbers that a warp adds up at a time" })
  table.insert(constants, { "PARTS", parts, "blocks that share the columns of a row" })
  table.insert(constants, { "THREADS", 32 * plan.warps, "threads of a block" })
  table.insert(constants, { "RESIDENT", blocks, "blocks that a multiprocessor has room for" })
  table.insert(constants, { "STAGES", plan.stages, "rows that are there or under way" })
  table.insert(constants, { "SLOT_BYTES", sums.slot_bytes(plan), "of a row of z, dout and dz [3][CHUNKS][RAW / 4][THREADS], 16 each" })
  table.insert(constants, { "RANGES", ranges, "of rows, each a block's, at most" })
  table.insert(constants, { "SUM_WARPS", SUM_WARPS, "that share the sums of 32 columns" })
  table.insert(constants, { "WARP_RANGES", cdiv(ranges, SUM_WARPS), "ranges of a warp of them" })
  local shared = shared_rows.partials(plan, 2)
  local bytes = sums.rows_bytes(plan)
  if bytes > 0 then
    table.insert(shared, { "SM_ROWS", bytes, "rows under way [STAGES][SLOT_BYTES]; then the sums of places [tensor][ROWS][WIDTH], float32" })
  end
  return {
    about = "the gradients of rows, and of what all of them share, from the gradient of out.",
    align = types.x.bytes,
    inputs = inputs, outputs = outputs, numbers = { "eps" }, -- which is in rstd: a launch may have it as its forward has
    regions = { { name = "sums", count = string.format("%d * %s", #sums.names * spec.width, own_ranges) } },
    steps = {
      { entry = "layernorm_bwd", grid = { own_ranges, tostring(parts), "1" }, threads = 32 * plan.warps, registers = sums.registers(plan),
        work = string.format("cdiv(rows, %d) * %d", ranges, spec.width), shared = shared },
      { entry = "layernorm_bwd_sums", grid = { tostring(cdiv(spec.width, 32)), tostring(#sums.names), "1" }, threads = 32 * SUM_WARPS,
        registers = 40, work = string.format("%s * 32", own_ranges), early = machine.pdl or nil,
        shared = { { "SM_SUMS", SUM_WARPS * 32 * 4, "a sum of each column by each warp [SUM_WARPS][32], float32" } } },
    },
    constants = constants,
    shared = {},
  }
end

-- Chunks of a thread and warps of a block; so many chunks as the last ones are for rows that a block has one of.
local SIZES = { { 2, 8 }, { 4, 8 }, { 1, 8 }, { 2, 16 }, { 4, 4 }, { 8, 8 } }
local OF_MANY_ROWS = 4

local function candidates()
  local plans, most = {}, math.max(1, cdiv(norm.chunks, 32))
  for _, size in ipairs(SIZES) do
    for _, plan in ipairs(sums.plans(math.min(size[1], most), size[2])) do
      if size[1] <= OF_MANY_ROWS or plan.block_q == 1 then shared_rows.add(plans, plan) end
    end
  end
  return plans
end

return {
  template = "layernorm/simt/backward.cut", library = { "tile/columns.cut", "tile/shared_rows.cut" },
  applies = norm.applies, candidates = candidates, describe = describe, generation = 2,
}
