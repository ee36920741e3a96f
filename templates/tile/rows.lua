-- rows.lua: sizes of the tiles of rows.cut.
local rows = {}

-- Bytes from a row of `width` 16-bit numbers to the next: an odd number of 16-byte chunks.
function rows.pitch(width) return (width // 8 | 1) * 16 end

return rows
