-- rows.lua: what the family and its text share: what a spec of append says.
local rows = {
  turns = spec.rotary ~= "none", is_interleaved = spec.rotary == "interleaved",
  is_packed = spec.q_layout == "packed", is_paged = spec.kv_layout == "paged",
  is_quantized = types.k.is_byte, -- k and v of the cache are e4m3: new rows are divided by descales and rounded
  pairs = (spec.rotary_dim == "0" and spec.d or math.tointeger(tonumber(spec.rotary_dim))) // 2, -- of columns that turn
  ahead = 4, -- heads whose loads are under way together
}

-- Lanes that have the columns of a head, 8 at a time, a power of two, a warp at most.
function rows.lanes(width)
  local lanes = 1
  while lanes < 32 and lanes * 8 < width do lanes = 2 * lanes end
  return lanes
end

-- Do they have all at once? Else they take turns of columns.
function rows.are_at_once(width) return rows.lanes(width) * 8 >= width end

-- Is the partner of a chunk of 8 columns, with which it turns, a chunk too?
rows.partner_is_chunk = not rows.is_interleaved and rows.pairs % 8 == 0

-- What numbers of a tensor of e4m3 are multiplied with, of key/value head `head`.
-- spot "append.descale"
function rows.descale(tensor, head)
  return string.format("(p.%s_descale ? ldg_f32(p.%s_descale + ((i64)b * p.%s_descale_b + (i64)%s * p.%s_descale_h)) : 1.0f)", tensor, tensor, tensor,
                       head, tensor)
end

return rows
