-- rows.lua: sizes of the tiles of rows.cut, and how rows leave.
local rows = {}

-- Bytes from a row of `width` 16-bit numbers to the next: an odd number of 16-byte chunks.
function rows.pitch(width) return (width // 8 | 1) * 16 end

-- The function of rows.cut that stores a row of sums in the tensor's type.
function rows.store(tensor) return types[tensor].name == "f32" and "store_f32_row" or "store_row" end

return rows
