-- tiles.lua: sizes of the tiles of tiles.cut.
local tiles = {}

-- Chunks of 16 bytes in a row of `width` numbers of a type, by default of operands: an even number, for steps of 32 bytes.
function tiles.chunks(width, type) return 2 * cdiv(width, (type or types.operand).k_step) end

-- The same of 16-bit numbers that a product with such a row gives: as many columns.
function tiles.chunks_of_sums(width, type) return tiles.chunks(width, type) * 2 // (type or types.operand).bytes end

-- Bytes of a tile.
function tiles.bytes(rows, width, type) return rows * 16 * tiles.chunks(width, type) end

-- What copies to tiles are made of: operands, or e4m3 beside operands of 16 bits; `ending` of the functions' names; numbers of a chunk.
function tiles.copies()
  local operand = types.operand
  return { { ending = "", ctype = operand.ctype, of_chunk = 16 // operand.bytes }, { ending = "_e4m3", ctype = "u8", of_chunk = 16 } }
end

return tiles
