-- measured.lua: rows of `gain` (gen/expand/switches.lua), as switches write them.
local measured = {}

-- A time on a card; of the unit, or ms.
local function on(card)
  return function(date, shape, without, with, unit)
    return { shape = shape, without = without, with = with, unit = unit or "ms", card = card, date = date }
  end
end
measured.h100, measured.h200 = on("H100"), on("H200")

-- Bytes that a thread spills.
function measured.spills(shape, without, with)
  return { shape = shape, without = without, with = with, unit = "bytes spilled", compiler = "NVRTC 13.0" }
end

return measured
