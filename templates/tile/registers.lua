-- registers.lua: registers by name or in arrays, as instances with scalars = true take them: s0, s1, ...
-- where NVRTC compiles, s[0], s[1], ... on the host device.
local registers = {}

function registers.at(name, i) return target == "ptx" and name .. i or string.format("%s[%d]", name, i) end

function registers.declare(kind, name, n)
  if target ~= "ptx" then return string.format("%s %s[%d];", kind, name, n) end
  local list = {}
  for i = 0, n - 1 do list[#list + 1] = name .. i end
  return string.format("%s %s;", kind, table.concat(list, ", "))
end

return registers
