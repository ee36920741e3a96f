-- backward.lua: dx and dw of a linear layer on the tensor cores of sm_80 and newer, from dp, which gradient.cut makes. Where dw has
-- too few tiles for a device blocks share its sums: its parts are added in their order.
local mma, linear = run("linear/mma/mma.lua"), run("linear/linear.lua")

local BLOCKS, LEAST_ROWS = 256, 1024 -- what fills a device; what a part is worth

return {
  template = "linear/mma/backward.cut", library = { "tile/tiles.cut", "tile/columns.cut", "linear/epilogue.cut" },
  applies = mma.applies, candidates = mma.candidates, registers = mma.registers,
  describe = function(spec, plan)
    local d = linear.backward(16)
    local tiles = cdiv(hooks.rows_of_w, plan.block_q) * cdiv(spec.width_in, plan.block_kv)
    local most = math.max(1, math.min(16, BLOCKS // tiles))
    local parts = linear.split(d, { few = most, most = most, long = LEAST_ROWS, least = LEAST_ROWS })
    local rows_of_w, width = tostring(hooks.rows_of_w), tostring(spec.width_in)
    linear.add(d.steps, mma.step(spec, plan, "linear_bwd_dx", "rows", width, rows_of_w),
               mma.step(spec, plan, "linear_bwd_dw", rows_of_w, width, string.format("cdiv(rows, %s)", parts), parts))
    linear.add_parts(d, most)
    return mma.finish(d, plan)
  end,
}
