-- packed.lua: sequences one behind the other, [tokens, h, d]. Sequence b has the tokens from starts[b] on, of which the first
-- `used` count; what no sequence has is of one more at each end, -1 and p.b, of which no token counts. So every token has
-- one sequence, and a tile that is counted from a sequence's first token one number: see packed_sequence.
-- What each file of a layout gives is in sequence.lua.
return function(x)
  local first, rows, length = "token_" .. x, "span_" .. x, "n" .. x
  local starts = string.format("p.starts_%s, p.b, p.tokens_%s", x, x)
  local tokens = "tokens_" .. x
  return {
    length = length, rows = rows, extent = tokens, first = first, is_packed = true,
    is_ragged = true, place = function(_, i) return string.format("%s + (%s)", first, i) end, locals = { length, first, rows },
    inputs = { "starts_" .. x, "used_" .. x .. "?" },
    -- spot "sequence.packed.declare"
    declare = string.format([[
const int %s = packed_start(%s, b);
const int %s = imax(0, packed_start(%s, b + 1) - %s);
const int %s = packed_used(p.used_%s, p.b, b, %s);]], first, starts, rows, starts, first, length, x, rows),
    tiles = function(size) return string.format("p.%s / %s + p.b + 2", tokens, size) end,
    count_tiles = function(size) return string.format("(%s / %s + b + 2)", tokens, size) end,
    -- spot "sequence.packed.find"
    find = function(tile, size) return string.format("packed_sequence(%s, %s, %s)", starts, tile, size) end,
    -- spot "sequence.packed.base"
    base = function(size) return string.format("(%s / %s + b + 1) * %s", first, size, size) end,
    -- spot "sequence.packed.head"
    head = function(t, head) return string.format("%s * p.%s_h + %s * p.%s_n", head, t, first, t) end,
    -- spot "sequence.packed.row"
    row = function(t, head, i) return string.format("%s * p.%s_h + (%s + %s) * p.%s_n", head, t, first, i, t) end,
  }
end
