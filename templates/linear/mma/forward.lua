-- forward.lua: y = act(x W^T + b) + residual on the tensor cores of sm_80 and newer.
local mma, linear = run("linear/mma/mma.lua"), run("linear/linear.lua")

return {
  template = "linear/mma/forward.cut", library = { "tile/tiles.cut", "linear/mma/halves.cut", "linear/epilogue.cut", "tile/columns.cut" },
  applies = mma.applies, candidates = mma.candidates, registers = mma.registers,
  describe = function(spec, plan)
    local d = linear.forward(16)
    linear.add(d.steps, mma.step(spec, plan, "linear_fwd", "rows", tostring(hooks.rows_of_w), tostring(spec.width_in)))
    linear.add(d.constants, { "ROWS_OF_W", hooks.rows_of_w, "columns of h" }, { "WIDTH_IN", spec.width_in, "columns of x" },
               { "WIDTH_OUT", spec.width_out, "columns of y" })
    return mma.finish(linear.add_norm(d, 16), plan)
  end,
}
