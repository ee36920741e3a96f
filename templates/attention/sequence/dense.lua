-- dense.lua: sequences that all have the same lengths, [b, n, h, d] with any strides. What each file of a layout gives is in
-- sequence.lua.
return function(x)
  local length = "p.n" .. x
  return {
    length = length, rows = length, extent = "n" .. x, inputs = {}, declare = "",
    -- spot "sequence.dense.head"
    head = function(t, head) return string.format("b * p.%s_b + %s * p.%s_h", t, head, t) end,
    -- spot "sequence.dense.row"
    row = function(t, head, i) return string.format("b * p.%s_b + %s * p.%s_h + %s * p.%s_n", t, head, t, i, t) end,
  }
end
