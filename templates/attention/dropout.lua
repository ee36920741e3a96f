-- dropout.lua: which weights dropout keeps (mathematics.md section 3), as text; tile/dropout.cut has the functions. They depend on the pair
-- and the launch's seed and offset alone, not on tiles: backward drops what forward dropped.
--
--   declare             what the other texts take of a launch: drop_seed, drop_most, and drop_scale, which makes up for what is dropped
--   declare_numbers     the same without drop_seed, a family that has it in shared memory says so itself
--   declare_draw, declare_scale  what the bits take, and drop_scale, where they are made and used apart
--   of_row(tiles, key, row)  bits of the lane's columns in a row of that many tiles of 8 keys, from `key` on, a multiple of 8: of
--                       column c of the lane's two in tile n, of fragments whose rows lie in quads; all lanes of the warp ask
--   of_key(tiles, key, row)  bits of the lane's rows, 8 n + c behind `row`, in the column of its key, of fragments whose keys lie in
--                       every fourth lane; `key` is its own
--   bit(bits, n, c)     the test of one of these bits
--   pair(pair, bits, n) of the two columns in tile n, as one word of 16-bit numbers: 0 in the place of what is not kept
--   keeps(row, key)     the test of one pair

-- The call of a function of tile/dropout.cut; `tiles`: of those that take some. Of parts of sequences, whose first key may be any
-- of a group, those that take tiles are told the key.
-- spot "attention.dropout.call"
local function call(name, tiles, key, row)
  local group = string.format(seq.shard and tiles and "(u32)(%s)" or "(u32)(%s) / 8", key)
  return string.format("%s(%s%s, (u32)(%s), (u32)(b * p.h + h), drop_seed, drop_most)", name, tiles and tiles .. ", " or "", group, row)
end

-- A row or key as the whole sequence has it.
-- spot "attention.dropout.place"
local function place(x, i) return seq.shard and string.format("%s + pos_%s", i, x) or i end

-- spot "attention.dropout.declare"
local below = "const u32 drop_below = (u32)(65536.0f * p.keep + 0.5f)"
local most = ", drop_most = 0x10001u * (drop_below == 0 ? 0 : drop_below - 1);"
local scale = "\nconst float drop_scale = drop_below == 0 ? 0.0f : 65536.0f * inverse_f32((float)drop_below);"
local seed = [[
u32 drop_seed[4];
#pragma unroll
for (int i = 0; i < 4; i++) { drop_seed[i] = ldg_u32(p.seed + i); }
]]

return {
  declare = seed .. below .. most .. scale,
  declare_numbers = below .. most .. scale,
  declare_draw = seed .. below .. most,
  declare_scale = below .. ";" .. scale,
  of_row = function(tiles, key, row) return call("keeps_of_row", tiles, place("k", key), place("q", row)) end,
  of_key = function(tiles, key, row)
    return call("keeps_of_key", tiles, place("k", seq.shard and key .. " - (int)threadIdx.x % 32 / 4" or key), place("q", row))
  end,
  bit = function(bits, n, c) return string.format("is_kept(%s, %s, %s)", bits, n, c) end,
  pair = function(pair, bits, n) return string.format("keep_pair(%s, %s, %s)", pair, bits, n) end,
  keeps = function(row, key)
    local at = seq.shard and "(" .. place("k", key) .. ")" or key
    return string.format("is_kept(%s, %s %% 8 / 2, %s %% 2)", call("keeps_of_call", nil, at, place("q", row)), at, at)
  end,
}
