-- layout.lua: how a variant's text looks: its header, indentation and line breaks.
--
-- Lines are { text =, file =, line = }, the last two of the template that they came from.
local layout = {}

-- A line without its strings and its comment.
function layout.code_of(text) return (text:gsub('"[^"\n]*"', '""'):gsub("//[^\n]*", "")) end

local WIDTH = 99 -- columns
layout.WIDTH = WIDTH

-- A comment; words that do not fit go on under the first one behind the label ("spec:   ").
local function comment(out, text, label)
  label = label or text:match("^%l+:%s+") or ""
  local line = "//"
  for word in text:gmatch("%s*%S+") do
    if #line + #word > WIDTH then
      out[#out + 1] = { text = line }
      word = word:match("%S+")
      line, word = "//", (" "):rep(#word + #label + 3 > WIDTH and 1 or #label + 1) .. word
    elseif line == "//" then
      word = " " .. word
    end
    line = line .. word
  end
  out[#out + 1] = { text = line }
end

local function launch_words(step)
  local text = string.format("launch: %s, grid %s, %d threads, %d shared bytes",
                             step.entry, table.concat(step.grid, " x "), step.threads, step.shared)
  if step.cluster then text = string.format("%s, clusters of %d", text, step.cluster) end
  if step.resident then text = string.format("%s, %d a multiprocessor", text, step.resident) end
  return text .. (step.early and ", early" or "")
end

-- What the text can be made by again: its name, or, where that has hashes of expressions, words.
local function again(job)
  if not job.name:find("_" .. ("%x"):rep(16)) then return job.name end
  local words = { job.spec_words, "family=" .. job.family }
  for _, field in ipairs(job.plan_fields) do
    words[#words + 1] = field .. "=" .. math.max(1, job.plan[field] or 0)
  end
  return table.concat(words, " ") .. " --arch " .. job.arch
end

-- What it is, how it is launched and made again: job's name and words; its recipe, `d`; its map of shared
-- memory.
function layout.header(out, job, d, shared)
  comment(out, job.name)
  comment(out, "")
  comment(out, d.about)
  comment(out, "spec:   " .. job.spec_words)
  comment(out, "again:  " .. (job.switches ~= "" and "FLASHGEN_SWITCH=" .. job.switches .. " " or "") .. "flashgen emit " .. again(job))
  if d.switches then comment(out, "switches: " .. (#d.switches > 0 and table.concat(d.switches, ", ") or "none")) end
  comment(out, "made by flashgen " .. job.version)
  comment(out, "")
  for _, step in ipairs(d.steps) do
    comment(out, step.entry and launch_words(step) or "zero:   " .. step.zero)
  end
  for _, region in ipairs(d.regions) do
    comment(out, string.format("scratch: %s, %s floats", region.name, region.count))
  end
  if #shared == 0 then return end
  comment(out, "")
  comment(out, "shared memory:")
  local width = 0
  for _, block in ipairs(shared) do width = math.max(width, #block.name) end
  for _, block in ipairs(shared) do
    local label = string.format("  %-" .. width .. "s %6d  ", block.name, block.offset)
    comment(out, label .. block.about, label)
  end
end

local function place(line) return line.file and string.format("%s:%d: ", line.file, line.line) or "" end

-- Keeps the stack of lines whose `open` is not closed yet.
local function match_pairs(stack, line, code, open, close)
  for c in code:gmatch("[%" .. open .. "%" .. close .. "]") do
    if c == open then stack[#stack + 1] = line
    elseif #stack == 0 then error(string.format("%s'%s' closes nothing", place(line), close), 0)
    else stack[#stack] = nil
    end
  end
end

-- What shows that a value is missing in code: Lua's word for none, a name that nothing was put in place
-- of, an operator without an operand. A deref, a cast, ++ and -- end and begin like operators and are none.
local NO_OPERAND = "there is no value in '%s'"
local MISSING = {
  { "%f[%w_]nil%f[^%w_]", "'%s' stands where a value belongs" },
  { "%$[%w_]*", "'%s' has no value" },
  { "[=<>/%%&|?!~%^]%s*[;,%)%]}]", NO_OPERAND },
  { "[^%+]%+%s*[;,%)%]}]", NO_OPERAND },
  { "[^%-]%-%s*[;,%)%]}]", NO_OPERAND },
  { "%*%s*[;%]}]", NO_OPERAND },
  { ",%s*[,;%)%]]", NO_OPERAND },
  { "[%(%[,]%s*[=<>/%%|%?%^,]", NO_OPERAND },
  { "[=%?]%s+[=<>/%%|%?%^:]", NO_OPERAND },
  { "%f[%w_]if %(%s*%)", NO_OPERAND },
  { "%f[%w_]while %(%s*%)", NO_OPERAND },
}

-- What is wrong with text that has values of a template, if anything. Most text has nothing that begins like it.
local SUSPECT = "[%+%-=<>/%%&|?!~%^%*,%(%[]%s*[;,%)%]}=<>/%%|%?%^:]"
function layout.missing(text)
  if not (text:find(SUSPECT) or text:find("nil", 1, true) or text:find("$", 1, true)) then return nil end
  local code = layout.code_of(text)
  for _, row in ipairs(MISSING) do
    local found = code:match(row[1])
    if found then return string.format(row[2], found) end
  end
end

-- Where to break a line that is too long: behind a comma, before one of these operators or the comment, else before
-- a factor; as little nested as can be, and there as late as can be; never in a string, nor in a comment but between
-- words. nil: nowhere.
local OPERATORS = { ["&&"] = true, ["||"] = true, ["?"] = true, [":"] = true, ["+"] = true, ["//"] = true }
local FACTORS = { ["*"] = true, ["//"] = true }
local function break_before(operators, text, limit)
  if text:find("^//") then return text:sub(1, limit + 1):match("^// .*() ") end
  local depth, best, least, quoted = 0, nil, math.huge, false
  for i = 1, math.min(limit, #text) do
    local c = text:sub(i, i)
    if c == '"' then quoted = not quoted end
    if c:find("[%(%[]") then depth = depth + 1 elseif c:find("[%)%]]") then depth = depth - 1 end
    local word = c == " " and text:match("^ (%S+) ", i)
    local good = word and (operators[word] or text:sub(i - 1, i - 1) == ",")
    local behind = word == "//" and not quoted
    if good and not quoted and (i > limit // 3 or behind) and depth <= least then best, least = i, depth end
    if behind then break end
  end
  return best
end
local function break_at(text, limit) return break_before(OPERATORS, text, limit) or break_before(FACTORS, text, limit) end

-- A line of a macro goes on behind a backslash.
local function wrap(out, line, lead, in_macro)
  local text, indent = line.text, lead
  local width, mark_of_break = in_macro and WIDTH - 2 or WIDTH, in_macro and " \\" or ""
  local goes_on = in_macro and text:find("\\$")
  if goes_on then text = text:match("^(.-)%s*\\$") end
  while #text + indent > width do
    local at = break_at(text, width - indent)
    if not at then break end
    local mark = text:match("^// ") or ""
    out[#out + 1] = { text = (" "):rep(indent) .. text:sub(1, at - 1) .. mark_of_break, file = line.file, line = line.line }
    text, indent = mark .. text:sub(at + 1), mark ~= "" and indent or lead + 4
  end
  out[#out + 1] = { text = (" "):rep(indent) .. text .. (goes_on and " \\" or ""), file = line.file, line = line.line }
end

-- The constants that a line declares, if it does nothing else: the text before them, and a list of { name =, text = "name =
-- value" }.
local function constants_of(code)
  local head, rest = code:match("^%s*(const [%w_]+ )(%*?[%a_][%w_]* = .*);%s*$")
  if not head or rest:find('[;{}"]') then return nil end
  local list, depth, from = {}, 0, 1
  for at, c in rest:gmatch("()([%(%),])") do
    depth = depth + (c == "(" and 1 or c == ")" and -1 or 0)
    if c == "," and depth == 0 then
      list[#list + 1], from = rest:sub(from, at - 1), at + 1
    end
  end
  list[#list + 1] = rest:sub(from)
  for i, text in ipairs(list) do
    local name = text:match("^%s*%*?([%a_][%w_]*) = ")
    if not name then return nil end
    list[i] = { name = name, text = text:match("^%s*(.*)$") }
  end
  return head, list
end

-- Does a value do nothing but be one? is_pure(name): a call of that function only gives a value.
local function is_value(text, is_pure)
  for call in text:gmatch("([%a_][%w_]*)%s*%(") do
    if not is_pure(call) then return false end
  end
  return true
end

-- The lines without constants that nothing behind them in their block uses: NVRTC warns of these, and its warnings
-- are errors. What a mask or score needs of a head or row follows from its text; which of it a family takes does not: a
-- family declares all that may be needed.
-- words_of(name): the words of a macro of that name, or nil; a use of it uses them.
function layout.without_unused(lines, words_of, is_pure)
  local scopes, kept = { {} }, {}
  local reached = {} -- by a word: itself, and all words of what it stands for
  local function reach(word, list, seen)
    if seen[word] then return end
    seen[word], list[#list + 1] = true, word
    for _, inner in ipairs(words_of(word) or {}) do reach(inner, list, seen) end
  end
  local function use(word)
    if not reached[word] then
      reached[word] = {}
      reach(word, reached[word], {})
    end
    for _, each in ipairs(reached[word]) do scopes[#scopes][each] = true end
  end
  local function use_words(code, but)
    for word in code:gmatch("[%a_][%w_]*") do
      if word ~= but then use(word) end
    end
  end
  -- The line with the constants that are used, looked at from the last one to the first; nil: none is.
  local function keep_used(line, code, head, constants)
    local used, texts = scopes[#scopes], {}
    for i = #constants, 1, -1 do
      local constant = constants[i]
      if used[constant.name] or not is_value(constant.text, is_pure) then
        table.insert(texts, 1, constant.text)
        used[constant.name] = nil
        use_words(constant.text, constant.name)
      end
    end
    if #texts == #constants or #texts == 0 then return #texts > 0 and line or nil end
    local comment = line.text:sub(#code + 1)
    return { text = head .. table.concat(texts, ", ") .. ";" .. (comment ~= "" and " " .. comment or ""), file = line.file, line = line.line }
  end
  for i = #lines, 1, -1 do
    local code = layout.code_of(lines[i].text)
    local head, constants = constants_of(code)
    if head then
      kept[#kept + 1] = keep_used(lines[i], code, head, constants)
    else
      kept[#kept + 1] = lines[i]
      for brace in code:reverse():gmatch("[{}]") do
        if brace == "}" then
          scopes[#scopes + 1] = {}
        elseif #scopes > 1 then
          local inner = table.remove(scopes)
          for word in pairs(inner) do scopes[#scopes][word] = true end
        end
      end
      use_words(code)
    end
  end
  for i = 1, #kept // 2 do kept[i], kept[#kept + 1 - i] = kept[#kept + 1 - i], kept[i] end
  return kept
end

-- Lines are indented by their brace depth, and in a macro; an open parenthesis continues a line; long lines break;
-- runs of blank lines shrink to one.
function layout.indent(lines)
  local out, braces, parens, in_macro = {}, {}, {}, false
  for _, l in ipairs(lines) do
    local text = l.text:match("^%s*(.-)%s*$")
    local code = layout.code_of(text)
    local level = #braces - (code:find("^}") and 1 or 0)
    if text ~= "" then
      local defines = text:find("^#define")
      local lead = defines and 0 or 2 * level + (in_macro and 2 or 0) + (#parens > 0 and 4 or 0)
      wrap(out, { text = text, file = l.file, line = l.line }, lead, defines or in_macro)
      in_macro = text:find("\\$") ~= nil
    elseif out[#out].text ~= "" then
      out[#out + 1] = { text = "" }
    end
    match_pairs(braces, l, code, "{", "}")
    match_pairs(parens, l, code, "(", ")")
  end
  local open = braces[1] or parens[1]
  if open then
    error(string.format("%s'%s' is not closed", place(open), braces[1] and "{" or "("), 0)
  end
  while out[#out].text == "" do out[#out] = nil end
  return out
end

return layout
