-- tiles.lua: sizes of the tiles of tiles.cut.
local tiles = {}

-- Chunks of 16 bytes in a row of `width` numbers: an even number, for steps of 32 bytes.
function tiles.chunks(width) return 2 * cdiv(width, types.operand.k_step) end

-- The same of 16-bit numbers that a product with such a row gives: as many columns.
function tiles.chunks_of_sums(width) return tiles.chunks(width) * 2 // types.operand.bytes end

-- Bytes of a tile.
function tiles.bytes(rows, width) return rows * 16 * tiles.chunks(width) end

return tiles
