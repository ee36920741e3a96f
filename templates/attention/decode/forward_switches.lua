-- forward_switches.lua: the decisions of decode_forward and what they gained. gen/expand/switches.lua says
-- what the columns are.
local mma = run("attention/mma/mma.lua")

return {
  { name = "starts_early",
    why = "A launch starts beside the end of the one before, and waits before it touches memory.",
    possible = mma.can_start_early,
    when = function() return true end },
}
