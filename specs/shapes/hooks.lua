-- hooks.lua: two of llm.lua's shapes for each width of heads, 16384 tokens in rows of 4096 and 1024.
-- A dense bias of longer rows would be most of a GPU's memory.
local shapes = {}
for _, n in ipairs { 4096, 1024 } do
  for _, d in ipairs { 64, 128 } do
    local h = 2048 // d
    shapes[#shapes + 1] = { b = 16384 // n, h = h, nq = n,
      when = function(s) return s.head_dim == d end }
  end
end
return shapes
