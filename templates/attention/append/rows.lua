-- rows.lua: what the family and its text share: what a spec of append says.
local rows = {
  turns = spec.rotary ~= "none", is_interleaved = spec.rotary == "interleaved",
  is_packed = spec.q_layout == "packed", is_paged = spec.kv_layout == "paged",
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

return rows
