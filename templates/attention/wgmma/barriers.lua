-- barriers.lua: the mbarriers of wgmma_forward, one behind the other at SM_BARRIERS: in pairs, of a slot
-- that is full and one that is empty, but Q is full for a warpgroup in its turn, whatever its slot; "job", of a
-- tile of rows; "claim", when the next one may be claimed.
local barriers, place = {}, 0

-- In order: kind, how many, and how many arrivals each waits for: a mover, a warp, or all readers of a job.
local WARPS = 4 * GROUPS
barriers.kinds = {
  { "q_full", 2 * GROUPS, 1 }, { "q_empty", Q_SLOTS, 1 }, { "o_full", Q_SLOTS, 4 },
  { "k_full", STAGES, 1 }, { "k_empty", STAGES, WARPS }, { "v_full", STAGES, 1 }, { "v_empty", STAGES, WARPS },
  { "job_full", 2, 1 }, { "job_empty", 2, 3 + WARPS }, { "claim", 1, 1 }, { "input_full", INPUT_STAGES * WARPS, 1 },
}

-- The number of each kind's first one: { constant, number, how many, arrivals }.
barriers.first = {}
for _, kind in ipairs(barriers.kinds) do
  if kind[2] > 0 then table.insert(barriers.first, { kind[1]:upper(), place, kind[2], kind[3] }) end
  place = place + kind[2]
end

-- The address of a kind's barrier for slot `index`, an expression.
function barriers.at(kind, index) return string.format("BARRIER(%s%s)", kind:upper(), index == "0" and "" or " + " .. index) end

-- Before the kernel: their numbers, as constants.
function barriers.declarations()
  local lines = { "enum { // the first barrier of each kind" }
  for _, kind in ipairs(barriers.first) do lines[#lines + 1] = string.format("%s = %d,", kind[1], kind[2]) end
  macro("BARRIER", "number", "(sm + SM_BARRIERS + 8 * (number))")
  return lines[1] .. "\n" .. run("expr/text.lua").filled(table.move(lines, 2, #lines, 1, {}), 80) .. "\n};"
end

-- What one thread does to make them.
function barriers.initialisations()
  local lines = {}
  for i, kind in ipairs(barriers.first) do
    lines[i] = string.format("for (int i = 0; i < %d; i++) { mbarrier_init(BARRIER(%s + i), %d); }", kind[3], kind[1], kind[4])
  end
  return table.concat(lines, "\n") .. "\nfence_barrier_init();"
end

-- The phase's parity of the use that is number `count` of so many slots in turn.
function barriers.parity(count, stages)
  return stages == 1 and "(" .. count .. " & 1)" or string.format("(%s / %s & 1)", count, stages)
end

-- The slot that warpgroup `group` has for its rows of job `turn`, and its phase's parity: slots go round.
local rounds = Q_SLOTS % GROUPS == 0 and Q_SLOTS // GROUPS
function barriers.q_slot(group)
  return rounds and string.format("turn %% %d * GROUPS + %s", rounds, group) or string.format("(turn * GROUPS + %s) %% Q_SLOTS", group)
end
function barriers.q_parity(group)
  -- spot "wgmma.barriers.slots_of_q"
  return rounds and barriers.parity("turn", rounds) or string.format("((turn * GROUPS + %s) / Q_SLOTS & 1)", group)
end
-- A warpgroup sees each phase of these, two jobs are listed at most: of a slot that it has in turn with others it would
-- take the phase before one that it has not seen for its own.
function barriers.q_full(group) return barriers.at("q_full", "turn % 2 * GROUPS + " .. group) end

return barriers
