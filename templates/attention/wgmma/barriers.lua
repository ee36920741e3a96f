-- barriers.lua: the mbarriers of wgmma_forward: in pairs, of a slot that is full and one that is empty, but Q is full
-- for a warpgroup in its turn, whatever its slot; "record", of a tile of slices; "turned", of V where warps turn it (transpose.cut); "job", of a tile of rows; "claim", when the next one may be claimed.

-- What arrives: a mover, a warp, or all readers of a job.
local WARPS, turns = 4 * GROUPS, run("attention/wgmma/shape.lua").turns_values
local ahead = seq.slices and use.slices_walked_ahead and RECORDS or 0
local barriers = run("tile/barriers.lua").of {
  { "q_full", 2 * GROUPS, 1 }, { "q_empty", Q_SLOTS, 1 }, { "o_full", Q_SLOTS, 4 },
  { "k_full", STAGES, 1 }, { "k_empty", STAGES, WARPS }, { "v_full", STAGES, 1 }, { "v_empty", STAGES, turns and 2 or WARPS },
  -- spot "wgmma.barriers.turned"
  { "turned_full", turns and STAGES or 0, 2 }, { "turned_empty", turns and STAGES or 0, WARPS },
  { "job_full", 2, 1 }, { "job_empty", 2, (turns and 2 or 3) + WARPS }, { "claim", 1, 1 }, { "input_full", INPUT_STAGES * WARPS, 1 },
  { "record_full", ahead, 1 }, { "record_empty", ahead, 1 },
}

-- The slot that warpgroup `group` has for its rows of a job, by default number `turn`, and its phase's parity: slots go round.
local rounds = Q_SLOTS % GROUPS == 0 and Q_SLOTS // GROUPS
function barriers.q_slot(group, job)
  return string.format(rounds and "%s %% " .. rounds .. " * GROUPS + %s" or "(%s * GROUPS + %s) %% Q_SLOTS", job or "turn", group)
end
function barriers.q_parity(group, job)
  -- spot "wgmma.barriers.slots_of_q"
  return rounds and barriers.parity(job or "turn", rounds) or string.format("((%s * GROUPS + %s) / Q_SLOTS & 1)", job or "turn", group)
end
-- A warpgroup sees each phase of these, two jobs are listed at most: of a slot that it has in turn with others it would
-- take the phase before one that it has not seen for its own.
function barriers.q_full(group) return barriers.at("q_full", "turn % 2 * GROUPS + " .. group) end

return barriers
