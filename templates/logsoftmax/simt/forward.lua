-- forward.lua: y = x - LSE(x) of each row.
local simt = run("logsoftmax/simt/simt.lua")

return {
  template = "logsoftmax/simt/forward.cut", library = { "tile/warp.cut", "logsoftmax/simt/rows.cut" },
  applies = simt.applies, candidates = simt.candidates,
  describe = function() return simt.describe("logsoftmax_fwd", "y = x - LSE(x) of each row.", { "x" }, { "y" }) end,
}
