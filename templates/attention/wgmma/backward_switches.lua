-- backward_switches.lua: the decisions of wgmma_backward, and what they gained (gen/expand/switches.lua says what the columns
-- are). Rows with when = false were tried and lost.
local function always() return true end

return {
  { name = "starts_early",
    why = "A step starts beside the end of the one before, the first one too, and waits before it touches memory.",
    when = always },

  { name = "heads_side_by_side",
    why = "The longest tiles of all heads come first, then the next ones; else head by head.",
    when = function() return false end },

  { name = "dq_by_rows",
    why = "Warpgroups share dQ of a tile by its rows, where it has 64 for each; else by its columns.",
    when = function(_, plan) return plan.block_q == plan.block_kv end },
}
