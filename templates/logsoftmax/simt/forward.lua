-- forward.lua: y = x - LSE(x) of each row, or the loss of a target, on any arch.
local rows = run("logsoftmax/simt/rows.lua")

return {
  template = "logsoftmax/simt/forward.cut", library = rows.library,
  applies = rows.applies,
  candidates = function() return rows.candidates(1) end,
  describe = function(spec, plan)
    return rows.describe({
      entry = "logsoftmax_fwd",
      about = rows.has_target and "LSE(x) less x of the target, times its weight, of each row." or "y = x - LSE(x) of each row.",
      inputs = rows.has_target and { "x", "target", "weight?" } or { "x" },
      outputs = rows.has_target and { "loss", "lse?" } or { "y" },
    }, plan, 1, 2)
  end,
}
