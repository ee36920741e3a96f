-- forward.lua: y = act(x W^T + b) + residual on any arch.
local simt, linear = run("linear/simt/simt.lua"), run("linear/linear.lua")

return {
  template = "linear/simt/forward.cut", library = { "linear/epilogue.cut", "tile/columns.cut" },
  applies = simt.applies, candidates = simt.candidates,
  describe = function(spec, plan)
    local d = linear.forward(2)
    linear.add(d.steps, simt.step(plan, "linear_fwd", "rows", tostring(hooks.rows_of_w), tostring(spec.width_in)))
    linear.add(d.constants, { "ROWS_OF_W", hooks.rows_of_w, "columns of h" }, { "WIDTH_IN", spec.width_in, "columns of x" },
               { "WIDTH_OUT", spec.width_out, "columns of y" })
    return simt.finish(linear.add_norm(d, 2), plan)
  end,
}
