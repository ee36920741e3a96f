-- simt.lua: what the passes of the simt family share.
local simt, mma, heads = {}, run("attention/mma/mma.lua"), run("attention/heads.lua")

-- Work of a block that goes over `length` rows of the other side: multiply-adds of a head dim's column,
-- and the loads that rows of a warp share, which cost as much as two rows.
function simt.work(length, plan)
  return string.format("%s * %d", length, plan.block_q + 2 * plan.warps)
end

-- Columns that a lane holds of a row of sums.
function simt.lane_columns(width) return 2 * cdiv(width, 64) end

-- Do the two tiles that rows of a block meet pass through one place in turn? A plan of two stages, which are
-- these turns, is for heads of which both do not fit a block's shared memory.
function simt.takes_turns(plan) return plan.stages == 2 end

-- The plans that fit, of all that the family has for the spec; the others with a reason.
function simt.candidates(family, spec, arch, plans)
  if heads.is_wide(spec) then plans[#plans + 1] = { block_q = 4, block_kv = 32, stages = 2, warps = 4 } end
  return mma.that_fit(family, spec, arch, plans)
end

-- Registers of a thread, coarsely: sums of so many columns of each row of a warp, and the rest.
function simt.registers(columns, plan) return math.max(80, plan.block_q // plan.warps * columns + 16) end

return simt
