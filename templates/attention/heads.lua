-- heads.lua: which heads are wide. O of a row of NARROW columns is the most that the threads of a warp, or of a warpgroup, hold
-- beside its S, and products of as many columns the longest that one sum in float32 takes. Families take wider heads in parts.
local heads = { NARROW = 256 }

function heads.is_wide(spec) return math.max(spec.d, spec.dv) > heads.NARROW end

return heads
