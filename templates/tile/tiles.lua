-- tiles.lua: sizes of the tiles of tiles.cut.
local tiles = {}

-- Chunks of 16 bytes in a row of `width` 16-bit numbers: an even number, for steps of 16.
function tiles.chunks(width) return 2 * cdiv(width, 16) end

-- Bytes of a tile.
function tiles.bytes(rows, width) return rows * 16 * tiles.chunks(width) end

return tiles
