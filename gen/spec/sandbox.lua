-- sandbox.lua: what both Lua states start from. Order must not depend on hashes, so `pairs` goes by
-- key; the spec state then loses all that can run on without Lua's step count (patterns run in C,
-- finalizers run unhooked, coroutines have hooks of their own) or reach outside.
-- Arguments: is this the spec state? a function that prints to the log.
local spec, log = ...
local next, type, sort, select, error = next, type, table.sort, select, error
local math, getmetatable, raw_setmetatable = math, getmetatable, setmetatable
local tostring, rawget = tostring, rawget

local function before(a, b)
  if type(a) ~= type(b) then return type(a) < type(b) end
  if type(a) == "number" or type(a) == "string" then return a < b end
  return tostring(a) < tostring(b)
end

function pairs(t)
  local keys, i, kind, mixed = {}, 0, nil, false
  for k in next, t do
    i = i + 1
    keys[i] = k
    kind = kind or type(k)
    mixed = mixed or type(k) ~= kind
  end
  if mixed or kind ~= "string" and kind ~= "number" then sort(keys, before) else sort(keys) end -- a call less for each two
  i = 0
  return function()
    i = i + 1
    local k = keys[i]
    if k ~= nil then return k, t[k] end
  end
end

if not spec then return end

local function keep(from, names)
  local kept = {}
  for name in names:gmatch("%S+") do kept[name] = from[name] end
  return kept
end

local globals = keep(_G, "assert error ipairs pairs pcall rawequal rawget rawlen select tonumber tostring type _VERSION")
globals.math = keep(math, "abs ceil floor fmod huge log max maxinteger min mininteger modf pi sqrt tointeger type ult")
globals.string = keep(string, "byte char format len lower rep reverse sub upper")
globals.table = {}

-- What these do is bounded by their arguments' size, and by numbers only up to a limit.
local rep, concat, unpack = string.rep, table.concat, table.unpack

function globals.string.rep(text, n, separator)
  if text == "" and (separator or "") == "" then return "" end
  return rep(text, n, separator)
end

function globals.table.unpack(t, first, last)
  first, last = first or 1, last or #t
  if math.type(first) ~= "integer" or math.type(last) ~= "integer" then
    error("table.unpack: expected a table and two integers", 2)
  end
  if first < last and math.ult(999, last - first) then error("table.unpack: more than 1000 values", 2) end
  return unpack(t, first, last)
end

-- These walk whole tables: in Lua, the walk counts as steps.
function globals.table.concat(t, separator, first, last)
  local words, n = {}, 0
  for i = first or 1, last or #t do
    n = n + 1
    words[n] = t[i]
  end
  return concat(words, separator, 1, n)
end

function globals.table.sort(t, less) sort(t, less or function(a, b) return a < b end) end

function globals.table.insert(t, ...)
  if type(t) ~= "table" then error("table.insert: expected a table", 2) end
  local n, last = select("#", ...), #t + 1
  if n ~= 1 and n ~= 2 then error("table.insert: expected a table, a place or none, and a value", 2) end
  local place, value = ...
  if n == 1 then place, value = last, place end
  if math.type(place) ~= "integer" or place < 1 or place > last then
    error("table.insert: there is no such place", 2)
  end
  for i = last, place + 1, -1 do t[i] = t[i - 1] end
  t[place] = value
end

function globals.table.remove(t, place)
  if type(t) ~= "table" then error("table.remove: expected a table", 2) end
  local last = #t
  place = place or last
  if last == 0 and place == 0 then return nil end
  if math.type(place) ~= "integer" or place < 1 or place > last + 1 then
    error("table.remove: there is no such place", 2)
  end
  local value = t[place]
  for i = place, last - 1 do t[i] = t[i + 1] end
  t[last] = nil
  return value
end

function globals.setmetatable(t, meta)
  if type(meta) == "table" and (rawget(meta, "__gc") ~= nil or rawget(meta, "__close") ~= nil) then
    error("setmetatable: __gc and __close are not allowed in a spec file", 2)
  end
  return raw_setmetatable(t, meta)
end

function globals.print(...)
  local words = {}
  for i = 1, select("#", ...) do words[i] = tostring((select(i, ...))) end
  log(table.concat(words, "\t"))
end

local strings = getmetatable("")
strings.__index, strings.__metatable = globals.string, false
local environment = _G
globals._G = environment
for name in next, environment do environment[name] = nil end
for name, value in next, globals do environment[name] = value end

-- A text that lacks its quotes, mask = causal, would be nil: no field at all, and the default's kernel.
raw_setmetatable(environment, { __index = function(_, name)
  error(tostring(name) .. " is no variable (a text stands in quotes)", 2)
end })
