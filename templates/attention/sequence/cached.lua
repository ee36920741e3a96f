-- cached.lua: keys of caches that all have p.nk rows, [caches, p.nk, hk, d], of which a sequence has those from first_k[b] to
-- used_k[b] of cache rows[b]. What each file of a layout gives is in sequence.lua.
return function()
  -- A tile of packed rows that no sequence covers has none of these.
  local function of_sequence(name)
    local read = string.format("(int)ldg_u32(p.%s + b)", name)
    return spec.q_layout == "packed" and string.format("(b >= 0 && b < p.b ? %s : 0)", read) or read
  end
  return {
    first = "row_k", is_ragged = true, locals = { "nk", "row_k", "cache" },
    place = function(t, i) return string.format("cache * p.%s_cache + row_k + (%s)", t, i) end,
    length = "nk", rows = "nk", extent = "nk", inputs = { "used_k", "first_k?", "rows?" },
    -- spot "sequence.cached.declare"
    declare = string.format([[
const int cache = p.rows ? %s : b;
const int row_k = p.first_k ? imax(0, imin(%s, p.nk)) : 0;
const int nk = imax(0, imin(imax(%s, 0), p.nk) - row_k);]], of_sequence("rows"), of_sequence("first_k"), of_sequence("used_k")),
    -- spot "sequence.cached.head"
    head = function(t, head) return string.format("cache * p.%s_b + %s * p.%s_h + row_k * p.%s_n", t, head, t, t) end,
  }
end
