-- simt.lua: what the passes of the simt family share.
local simt = {}

-- Work of a block that goes over `length` rows of the other side: multiply-adds of a head dim's column,
-- and the loads that rows of a warp share, which cost as much as two rows.
function simt.work(length, plan)
  return string.format("%s * %d", length, plan.block_q + 2 * plan.warps)
end

return simt
