-- measured.lua: rows of `gain` (gen/expand/switches.lua), as switches write them.
local measured = {}

-- A time on an H200; of the unit, or ms.
function measured.h200(date, shape, without, with, unit)
  return { shape = shape, without = without, with = with, unit = unit or "ms", card = "H200", date = date }
end

-- Bytes that a thread spills.
function measured.spills(shape, without, with)
  return { shape = shape, without = without, with = with, unit = "bytes spilled", compiler = "NVRTC 13.0" }
end

return measured
