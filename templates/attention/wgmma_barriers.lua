-- wgmma_barriers.lua: the mbarriers of wgmma_forward, one behind the other at SM_BARRIERS: in pairs, of a slot
-- that is full and one that is empty; "job", of a tile of rows; "claim", when the next one may be claimed.
local barriers, place = {}, 0

-- In order: kind, how many, and how many arrivals each waits for: a mover, a warp, or all readers of a job.
local WARPS = 4 * GROUPS
barriers.kinds = {
  { "q_full", Q_STAGES * GROUPS, 1 }, { "q_empty", Q_STAGES * GROUPS, 1 }, { "o_full", Q_STAGES * GROUPS, 4 },
  { "k_full", STAGES, 1 }, { "k_empty", STAGES, WARPS }, { "v_full", STAGES, 1 }, { "v_empty", STAGES, WARPS },
  { "job_full", 2, 1 }, { "job_empty", 2, 3 + WARPS }, { "claim", 1, 1 }, { "input_full", INPUT_STAGES * WARPS, 1 },
}

local first = {}
for _, kind in ipairs(barriers.kinds) do
  first[kind[1]] = place
  place = place + kind[2]
end

-- The address of a kind's barrier for slot `index`, an expression.
function barriers.at(kind, index) return string.format("sm + SM_BARRIERS + 8 * (%d + %s)", first[kind], index) end

-- The phase's parity of the use that is number `count` of so many slots in turn.
function barriers.parity(count, stages)
  return stages == 1 and "(" .. count .. " & 1)" or string.format("(%s / %s & 1)", count, stages)
end

return barriers
