-- barriers.lua: the mbarriers of a kernel, one behind the other at SM_BARRIERS. A kernel lists them in order: { kind, how
-- many, how many arrivals each waits for }; a kind of none is left out. Gives
--
--   row(kinds)         their row of a kernel's table of shared memory
--   of(kinds)          what the kernel's text needs of them:
--     at(kind, index)    text: the address of a kind's barrier for slot `index`, an expression
--     declarations()     before the kernel: their numbers, as constants
--     initialisations()  what one thread does to make them
--     parity(count, stages)  text: the phase's parity of the use that is number `count` of so many slots in turn
local text = run("expr/text.lua")
local tile = {}

function tile.row(kinds)
  local all, names = 0, {}
  for _, kind in ipairs(kinds) do
    all = all + kind[2]
    if kind[2] > 0 then names[#names + 1] = kind[1] .. (kind[2] > 1 and string.format(" [%d]", kind[2]) or "") end
  end
  return { "SM_BARRIERS", 8 * all, "mbarriers: " .. table.concat(names, ", ") }
end

function tile.of(kinds)
  local barriers, first, place = {}, {}, 0 -- first: { constant, number, how many, arrivals }
  for _, kind in ipairs(kinds) do
    if kind[2] > 0 then first[#first + 1] = { kind[1]:upper(), place, kind[2], kind[3] } end
    place = place + kind[2]
  end

  function barriers.at(kind, index) return string.format("BARRIER(%s%s)", kind:upper(), index == "0" and "" or " + " .. index) end

  function barriers.declarations()
    local numbers = {}
    for i, kind in ipairs(first) do numbers[i] = string.format("%s = %d,", kind[1], kind[2]) end
    macro("BARRIER", "number", "(sm + SM_BARRIERS + 8 * (number))")
    return "enum { // the first barrier of each kind\n" .. text.filled(numbers, 80) .. "\n};"
  end

  function barriers.initialisations()
    local lines = {}
    for i, kind in ipairs(first) do
      lines[i] = string.format("for (int i = 0; i < %d; i++) { mbarrier_init(BARRIER(%s + i), %d); }", kind[3], kind[1], kind[4])
    end
    return table.concat(lines, "\n") .. "\nfence_barrier_init();"
  end

  function barriers.parity(count, stages)
    return stages == 1 and "(" .. count .. " & 1)" or string.format("(%s / %s & 1)", count, stages)
  end

  return barriers
end

return tile
