-- backward.lua: the gradient of y = x - LSE(x) from y and its gradient, or that of a target's loss from x and LSE, on any arch.
local rows = run("logsoftmax/simt/rows.lua")

local tensors = rows.has_target and 1 or 2

return {
  template = rows.has_target and "logsoftmax/simt/backward_target.cut" or "logsoftmax/simt/backward.cut", library = rows.library,
  applies = rows.applies,
  candidates = function() return rows.candidates(tensors) end,
  describe = function(spec, plan)
    return rows.describe({
      entry = "logsoftmax_bwd",
      about = rows.has_target and "dx = dloss w (exp(x - LSE) - [column is the target]) of each row." or "dx = dy - exp(y) sum(dy) of each row.",
      inputs = rows.has_target and { "x", "target", "weight?", "lse", "dloss" } or { "y", "dy" },
      outputs = { "dx" },
    }, plan, tensors, 1)
  end,
}
