-- parts.lua: the parts of an expansion, pieces of text that are emitted where something uses their names: functions,
-- constants and macros.
--
-- s: a session of expand.lua. s.parts: by name, lists of lines { text, file, line } with their name; s.order: as they
-- were declared; s.signatures: the rows of primitives.lua and of instances.
local layout = ...
local parts = {}

local function identifiers(lines, found)
  for _, l in ipairs(lines) do
    for word in layout.code_of(l.text):gmatch("[%a_][%w_]*") do found(word) end
  end
end

-- The parts that the kernels' text and Params use, directly or through one another: each behind those
-- that it uses itself, else in the order of their declaration. The types come first and use nothing.
function parts.used(s, body, params)
  local types = s.parts.types
  local used, done, list = { [types] = true }, { [types] = true }, { types }
  local function mark(word)
    local part = s.parts[word]
    if not part or used[part] then return end
    used[part] = true
    identifiers(part, mark)
    local row = s.signatures[part.name]
    for kind in (row and row[3] or ""):gmatch("([%a_][%w_]*) %*") do mark(kind) end
  end
  local function place(part)
    if not used[part] or done[part] then return end
    done[part] = true
    identifiers(part, function(word) if s.parts[word] then place(s.parts[word]) end end)
    list[#list + 1] = part
  end
  identifiers(body, mark)
  identifiers(params, mark)
  for _, part in ipairs(s.order) do place(part) end
  return list
end

-- A primitive's part is its body; the head comes from the table of signatures. A body of one short
-- line goes on one line.
function parts.text(s, part)
  local row = s.signatures[part.name]
  if not row then return part end
  if row.macro then -- parameters have no types, and the use brings the semicolon
    local names, body = {}, {}
    for parameter in row[3]:gmatch("[^,]+") do names[#names + 1] = parameter:match("[%w_]+$") end
    for i, l in ipairs(part) do body[i] = { text = i < #part and l.text or l.text:match("^(.*);$"), file = l.file, line = l.line } end
    return parts.macro(row[1], table.concat(names, ", "), body)
  end
  local class = s.env.target == "host" and "PRIMITIVE" or "DEV"
  local head = string.format("%s %s %s(%s) {", class, row[2], row[1], row[3])
  local first = part[1]
  local short = string.format("%s %s }", head, first.text:match("^%s*(.*)"))
  if #part == 1 and #short < 100 then return { { text = short, file = first.file, line = first.line } } end
  local lines = { { text = head, file = first.file, line = first.line } }
  table.move(part, 1, #part, 2, lines)
  lines[#lines + 1] = { text = "}", file = first.file, line = first.line }
  return lines
end

-- Is the part a macro? The names in its text are the ones of where it is used; a function has its own.
local function is_macro(s, part)
  local row = s.signatures[part.name]
  if row then return row.macro == true end
  for _, l in ipairs(part) do
    if layout.code_of(l.text):find("^%s*#define") then return true end
  end
  return false
end

-- The words of a macro's text, which a use of its name uses, without its parameters; nil where no macro has that name.
function parts.words(s, name)
  local part = s.parts[name]
  if not (part and is_macro(s, part)) then return nil end
  if not part.words then
    local row, own = s.signatures[part.name], {}
    local parameters = row and row[3] or ""
    for _, l in ipairs(part) do parameters = parameters .. "," .. (l.text:match("^%s*#define [%w_]+(%b())") or "") end
    for word in parameters:gmatch("[%a_][%w_]*") do own[word] = true end
    part.words = {}
    identifiers(part, function(word)
      if not own[word] then part.words[#part.words + 1] = word end
    end)
  end
  return part.words
end

-- Whether a call of this function, or a cast of that name, does nothing but give a value: a primitive says so of itself, any other
-- function calls pure ones alone.
local CASTS = { int = true, float = true, i64 = true, u32 = true }
function parts.is_pure(s, name)
  local row, part = s.signatures[name], s.parts[name]
  if CASTS[name] then return true end
  if row then return row.pure == true end
  if not part then return false end
  if part.pure == nil then
    part.pure = true -- while it is looked at, for what calls itself
    local text = {}
    for i, l in ipairs(part) do text[i] = layout.code_of(l.text) end
    text = table.concat(text, "\n")
    local head, body = text:match("^%s*DEV (%w+ [%w_]+%b()) (%b{})%s*$")
    local pure = head ~= nil and not head:find("^void ") and not body:find("asm", 1, true)
    for call in (body or ""):gmatch("([%a_][%w_]*)%s*%(") do
      pure = pure and (call == "if" or call == "for" or call == "while" or call == "return" or parts.is_pure(s, call))
    end
    part.pure = pure
  end
  return part.pure
end

-- The lines of a macro: its head, then those of its body. All but the last are continued.
function parts.macro(name, parameters, body)
  local head = string.format("#define %s(%s)", name, parameters)
  local lines = { { text = head, file = body[1].file, line = body[1].line } }
  table.move(body, 1, #body, 2, lines)
  for i = 1, #lines - 1 do lines[i] = { text = lines[i].text .. " \\", file = lines[i].file, line = lines[i].line } end
  if #body == 1 and #head + #body[1].text < layout.WIDTH then
    return { { text = head .. " " .. body[1].text, file = body[1].file, line = body[1].line } }
  end
  return lines
end

return parts
