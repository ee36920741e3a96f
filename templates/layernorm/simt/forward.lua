-- forward.lua: layer and RMS norm of rows, on any arch. A row is held in registers, so that each value is read once.
local shared_rows, norm = run("tile/shared_rows.lua"), run("layernorm/simt/norm.lua")

local CHUNKS, WARPS = types.x.bytes > 2 and 2 or 4, 4 -- of a thread and of a block, where the row has so many

-- A chunk has its columns, and before or behind these the words of what is added.
local function registers(plan) return math.min(255, 48 + norm.chunks_of(plan) * (types.x.bytes > 2 and 20 or 16)) end

-- Numbers of a warp that a row's are made of: squares, two of the mean, and the count of columns.
local function partials(plan) return norm.is_rms and 1 or norm.has_equal_parts(plan) and 3 or 4 end

local function describe(spec, plan)
  local inputs, outputs = { "x", "gamma" }, { "out", "rstd?" }
  if not norm.is_rms then table.insert(inputs, "beta?") end
  if norm.has_bias then table.insert(inputs, "bias") end
  if norm.has_residual then table.insert(inputs, "residual") end
  if not norm.is_rms then table.insert(outputs, "mean?") end
  if norm.has_z then table.insert(outputs, "z?") end
  local constants = shared_rows.constants(plan, norm.chunks_of(plan))
  table.insert(constants, 1, { "WIDTH", spec.width, "columns of a row" })
  table.insert(constants, { "RESIDENT", shared_rows.resident(plan.warps, registers(plan)), "blocks that a multiprocessor has room for" })
  table.insert(constants, { "PARTIALS", partials(plan), "numbers of a warp" })
  return {
    about = norm.is_rms and "z times gamma over the root of its mean square, of each row." or
      "z less its mean, over its deviation, times gamma, and beta, of each row.",
    align = types.x.bytes,
    inputs = inputs, outputs = outputs, numbers = { "eps" },
    regions = {},
    steps = {
      { entry = "layernorm_fwd", grid = { string.format("cdiv(rows, %d)", plan.block_q), "1", "1" }, threads = 32 * plan.warps,
        registers = registers(plan), work = tostring(plan.block_q * spec.width) },
    },
    constants = constants,
    shared = shared_rows.partials(plan, partials(plan)),
  }
end

-- The first one has as many chunks as can be while a row has whole warps.
local function candidates()
  local plans, first = {}, math.min(CHUNKS, cdiv(norm.chunks, 32))
  for _, chunks in ipairs({ first, 4, 2, 1, 8 }) do
    local plan = shared_rows.plan(norm.chunks, chunks, WARPS)
    if plan and shared_rows.resident(plan.warps, registers(plan)) > 0 then shared_rows.add(plans, plan) end
  end
  return plans
end

return {
  template = "layernorm/simt/forward.cut", library = { "tile/columns.cut", "tile/shared_rows.cut", "layernorm/simt/moments.cut" },
  applies = norm.applies,
  candidates = candidates,
  describe = describe,
}
