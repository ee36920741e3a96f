-- backward.lua: the gradient of y = x - LSE(x), from y and its gradient.
local simt = run("logsoftmax/simt/simt.lua")

return {
  template = "logsoftmax/simt/backward.cut", library = { "tile/warp.cut", "logsoftmax/simt/rows.cut" },
  applies = simt.applies, candidates = simt.candidates,
  describe = function()
    return simt.describe("logsoftmax_bwd", "dx = dy - exp(y) sum(dy) of each row.", { "y", "dy" }, { "dx" })
  end,
}
