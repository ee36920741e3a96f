-- backward.lua: the gradients of layer and RMS norm, on any arch. Each block has a range of rows one after the other, and adds up
-- what they give for each column; a second step adds these sums in their order, so that equal launches give equal bits,
-- whatever runs beside them.
local shared_rows, norm, sums = run("tile/shared_rows.lua"), run("layernorm/simt/norm.lua"), run("layernorm/simt/sums.lua")

local WARPS, SUM_WARPS = 16, 16 -- of a block; of one that adds sums

-- Ranges of rows: one for each multiprocessor of a GPU of the arch, or of the host device.
local MULTIPROCESSORS = {
  host = 6, sm_75 = 40, sm_80 = 108, sm_86 = 84, sm_87 = 16, sm_89 = 128, sm_90a = 132, sm_100a = 148, sm_103a = 148, sm_110a = 20,
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
  local chunks, parts = sums.chunks(plan), sums.parts(plan)
  local ranges = MULTIPROCESSORS[arch] * WARPS // (parts * math.min(plan.warps, WARPS))
  local constants = shared_rows.constants(plan, chunks)
  table.insert(constants, 1, { "WIDTH", spec.width, "columns of a row" })
  table.insert(constants, { "PARTIALS", 2, "numbers that a warp adds up at a time" })
  table.insert(constants, { "PARTS", parts, "blocks that share the columns of a row" })
  table.insert(constants, { "THREADS", 32 * plan.warps, "threads of a block" })
  table.insert(constants, { "RANGES", ranges, "of rows, at most" })
  table.insert(constants, { "SUM_WARPS", SUM_WARPS, "that share the sums of 32 columns" })
  local shared = shared_rows.partials(plan, 2)
  if plan.block_q > 1 then
    table.insert(shared, { "SM_COLUMNS", plan.block_q * spec.width * 4, "a sum of the rows of each place in a block [ROWS][WIDTH], float32" })
  end
  return {
    about = "the gradients of rows, and of what all of them share, from the gradient of out.",
    align = types.x.bytes,
    inputs = inputs, outputs = outputs, numbers = { "eps" }, -- which is in rstd: a launch may have it as its forward has
    regions = { { name = "sums", count = string.format("%d * min(rows, %d)", #sums.names * spec.width, ranges) } },
    steps = {
      { entry = "layernorm_bwd", grid = { string.format("min(rows, %d)", ranges), tostring(parts), "1" }, threads = 32 * plan.warps,
        registers = sums.registers(chunks, sums.is_held(plan), sums.is_ahead(plan)),
        work = string.format("cdiv(rows, %d) * %d", ranges, spec.width), shared = shared },
      { entry = "layernorm_bwd_sums", grid = { tostring(cdiv(spec.width, 32)), tostring(#sums.names), "1" }, threads = 32 * SUM_WARPS,
        registers = 32, work = string.format("min(rows, %d) * 32", ranges), early = machine.pdl or nil,
        shared = { { "SM_SUMS", SUM_WARPS * 32 * 4, "a sum of each column by each warp [SUM_WARPS][32], float32" } } },
    },
    constants = constants,
    shared = {},
  }
end

local function shared_bytes(plan) return plan.block_q > 1 and plan.block_q * spec.width * 4 or 0 end

-- The first one is as large as can be while a row has whole warps. Of float32 a thread has room for half as much.
local function candidates()
  local plans, most = {}, types.x.bytes > 2 and 1 or 2
  local first = math.min(most, cdiv(norm.chunks, 32))
  for _, each in ipairs({ { first, WARPS }, { first, WARPS // 2 }, { 3 - first, WARPS }, { 4, WARPS // 2 }, { 4, WARPS } }) do
    local plan = shared_rows.plan(norm.chunks, each[1], each[2])
    local parts = plan and sums.parts(plan)
    if parts and (parts == 1 or plan.block_q == 1 and plan.warps == WARPS) and shared_bytes(plan) <= machine.block_kb * 1024 - 4096 then
      shared_rows.add(plans, plan)
    end
  end
  return plans
end

return {
  template = "layernorm/simt/backward.cut", library = { "tile/columns.cut", "tile/shared_rows.cut" },
  applies = norm.applies, candidates = candidates, describe = describe,
}
