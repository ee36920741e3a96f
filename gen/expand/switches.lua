-- switches.lua: the decisions of a family as data. `attention/<family>/<pass>_switches.lua` returns a list
-- of rows:
--
--   name      what is true of a kernel whose switch is on: "begin_at_mask"
--   why       one sentence that says what the decision is good for
--   possible  function(spec, plan, traits, use): can the kernel be made so at all? Without it every kernel can.
--   when      function(spec, plan, traits, use): is the kernel made so? false: tried and lost, no template has it
--   gain      what was measured, a list of { shape =, without =, with =, unit =, card = or compiler =,
--             date = }; `without` is absent where it was not measured
--
-- traits is what hooks.lua says of the mask, the score and the inputs; use has the rows before.
-- Templates and the family's describe() read `use`: use.begin_at_mask.
-- FLASHGEN_SWITCH, "begin_at_mask=0,other=1", forces switches on where they are possible, or off.
-- gen: expand.c's table; failf(level, format, ...) raises.
local gen, failf = ...
local switches = {}

local UNITS = { ms = true, us = true, ["TFLOP/s"] = true, ["bytes spilled"] = true, ["% of the time"] = true }

-- What is wrong with a measurement, if anything.
local function fault_of_gain(g)
  if type(g) ~= "table" then return "a row of gain is no table" end
  for key, value in pairs(g) do
    local number = key == "without" or key == "with"
    if not (number or key == "shape" or key == "unit" or key == "card" or key == "compiler" or key == "date") then
      return string.format("gain has no column '%s'", tostring(key))
    end
    if number and type(value) ~= "number" then return key .. " must be a number" end
    if not number and type(value) ~= "string" then return key .. " must be a text" end
  end
  for _, key in ipairs({ "shape", "with", "unit" }) do
    if not g[key] then return "a row of gain has no " .. key end
  end
  if not UNITS[g.unit] then return string.format("there is no unit '%s'", g.unit) end
  if not g.card == not g.compiler then return "a row of gain needs a card or a compiler" end
  if not g.date and not g.compiler then return "a row of gain has no date" end
  if g.date and not g.date:find("^%d%d%d%d%-%d%d%-%d%d$") then return string.format("'%s' is no date", g.date) end
end

-- What is wrong with a row of a family's list, if anything.
local function fault_of_row(row)
  for key in pairs(row) do
    if not (key == "name" or key == "why" or key == "possible" or key == "when" or key == "gain") then
      return string.format("has no column '%s'", tostring(key))
    end
  end
  if row.when ~= false and type(row.when) ~= "function" then return "needs a function as when, or false" end
  if row.possible ~= nil and type(row.possible) ~= "function" then return "needs a function as possible, or none" end
  if type(row.why) ~= "string" or not row.why:find("%.$") then return "needs a sentence as why" end
  for _, g in ipairs(row.gain or {}) do
    local fault = fault_of_gain(g)
    if fault then return ": " .. fault end
  end
end

-- The rows of a file, checked. file: its name.
function switches.checked(file, rows)
  local known = {}
  for i, row in ipairs(rows) do
    if type(row.name) ~= "string" or not row.name:find("^%l[%l%d_]*$") then
      failf(0, "%s: row %d needs a name of small letters", file, i)
    end
    if known[row.name] then failf(0, "%s: the switch '%s' has two rows", file, row.name) end
    known[row.name] = true
    local fault = fault_of_row(row)
    if fault then failf(0, "%s: the switch '%s'%s%s", file, row.name, fault:find("^:") and "" or " ", fault) end
  end
  return rows
end

local function did_you_mean(name, names)
  local near = gen.nearest(name, names)
  return near and string.format("; did you mean '%s'?", near) or ""
end

-- What FLASHGEN_SWITCH forces: by name, true or false. lists: the rows of every family, one of which must
-- have each name with a `when` of its own.
function switches.forced(text, lists)
  local forced, names, is_known, is_lost = {}, {}, {}, {}
  for _, rows in ipairs(lists) do
    for _, row in ipairs(rows) do
      if row.when and not is_known[row.name] then names[#names + 1] = row.name end
      if row.when then is_known[row.name] = true else is_lost[row.name] = true end
    end
  end
  table.sort(names)
  for name, value in text:gmatch("([%w_]+)=([01])") do
    if not is_known[name] and is_lost[name] then
      gen.refuse(string.format("FLASHGEN_SWITCH: '%s' was tried and lost: no template has it any more", name))
    elseif not is_known[name] then
      gen.refuse(string.format("FLASHGEN_SWITCH: there is no switch '%s'%s; there are: %s", name,
                               did_you_mean(name, names), table.concat(names, ", ")))
    end
    forced[name] = value == "1"
  end
  return forced
end

local function ask(row, which, ...)
  local answer = row[which](...)
  if type(answer) ~= "boolean" then
    failf(0, "the switch '%s': %s must give true or false, not a %s", row.name, which, type(answer))
  end
  return answer
end

-- The table `use` of a plan, in which a name that no row has is an error of the line that reads it; and the
-- names of the switches that are on, in the order of the rows.
function switches.evaluate(rows, forced, spec, plan, traits)
  local on, names = {}, {}
  local use = setmetatable({}, { __index = function(_, name)
    failf(2, "there is no switch '%s'%s", tostring(name), did_you_mean(tostring(name), names))
  end })
  for _, row in ipairs(rows) do
    if row.when then
      local is_on = forced[row.name]
      if is_on == nil then is_on = ask(row, "when", spec, plan, traits, use) end
      use[row.name] = is_on and (not row.possible or ask(row, "possible", spec, plan, traits, use))
      names[#names + 1] = row.name
      on[#on + 1] = use[row.name] and row.name or nil
    end
  end
  return use, on
end

return switches
