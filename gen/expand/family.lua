-- family.lua: what a family of kernels must provide, checked where it is loaded and where it describes a plan, so that a
-- mistake is a sentence with the file's name. templates/family.md explains the members to authors; what stands in a
-- description is checked when C reads it.
-- gen: expand.c's table; failf(level, format, ...) raises.
local gen, failf = ...
local contract = {}

-- member = its type, "?" where it may be missing
local FAMILY = {
  template = "string", library = "table", applies = "function", candidates = "function", describe = "function",
  generation = "number?", shared = "function?", registers = "function?", refused = "table?",
}
local DESCRIPTION = { "about", "align", "widths", "elems", "inputs", "outputs", "numbers", "regions", "maps", "steps", "constants", "shared", "template" }
local STEP = { "entry", "zero", "grid", "threads", "registers", "work", "cluster", "resident", "early", "shared" }

-- given has no other names than these.
local function check_names(file, what, given, names)
  local known = {}
  for _, name in ipairs(names) do known[name] = true end
  for name in pairs(given) do
    local near = not known[name] and gen.nearest(tostring(name), names)
    if not known[name] then
      failf(0, "%s: %s has no '%s'%s", file, what, tostring(name), near and string.format("; did you mean '%s'?", near) or "")
    end
  end
end

-- The family that a file returned.
function contract.family(file, family)
  if type(family) ~= "table" then failf(0, "%s: it returns a %s, not a family", file, type(family)) end
  local names = {}
  for name, kind in pairs(FAMILY) do
    names[#names + 1] = name
    local is, wanted = type(family[name]), kind:match("%a+")
    if is ~= wanted and not (is == "nil" and kind:find("?", 1, true)) then
      failf(0, "%s: a family needs a %s as '%s', not a %s", file, wanted, name, is)
    end
  end
  check_names(file, "a family", family, names)
  return family
end

-- What it says of a plan.
function contract.description(file, description)
  if type(description) ~= "table" then failf(0, "%s: describe gives a %s, not a description", file, type(description)) end
  check_names(file, "a description", description, DESCRIPTION)
  for i, step in ipairs(type(description.steps) == "table" and description.steps or {}) do
    check_names(file, string.format("step %d", i), step, STEP)
  end
  return description
end

return contract
