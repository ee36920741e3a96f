-- backward.lua: dx and dw of a linear layer on any arch, from dp, which gradient.cut makes.
local simt, linear = run("linear/simt/simt.lua"), run("linear/linear.lua")

return {
  template = "linear/simt/backward.cut", library = { "tile/columns.cut", "linear/epilogue.cut" },
  applies = simt.applies, candidates = simt.candidates,
  describe = function(spec, plan)
    local d = linear.backward(2)
    linear.split(d, { most = 1 })
    local rows_of_w, width = tostring(hooks.rows_of_w), tostring(spec.width_in)
    linear.add(d.steps, simt.step(plan, "linear_bwd_dx", "rows", width, rows_of_w), simt.step(plan, "linear_bwd_dw", rows_of_w, width, "rows"))
    return simt.finish(d, plan)
  end,
}
