-- text.lua: small pieces of C text that families share.
local text = {}

-- The conjunction of C conditions, without those that are known to hold.
function text.all_of(...)
  local terms = {}
  for _, term in ipairs({ ... }) do
    if term == "0" then return "0" end
    local loose = term:find("||", 1, true) or term:find("?", 1, true)
    if term ~= "1" then terms[#terms + 1] = loose and "(" .. term .. ")" or term end
  end
  return #terms > 0 and table.concat(terms, " && ") or "1"
end

-- The start of the tile of `size` that a range's first index, which may be below 0, lies in.
function text.first_tile(first, size)
  return first == "0" and "0" or string.format("imax(0, %s) / %s * %s", first, size, size)
end

-- The smaller of a length and the end that a hook gives for a range.
function text.least(length, last) return last == length and last or string.format("imin(%s, %s)", length, last) end

-- The bits of a lane's columns of an accumulator that are keys [first, last), as tiles.cut's columns_below has them: the
-- lane's first column is key `from`, and there are nk keys.
function text.columns_of(first, last, from, nk)
  local function below(key) return string.format("columns_below(%s - %s)", key:find("?", 1, true) and "(" .. key .. ")" or key, from) end
  -- spot "expr.text.seen_columns"
  return below(text.least(nk, last)) .. (first == "0" and "" or " & ~" .. below(first))
end

-- The texts of a list, those that are nil or false left out.
function text.joined(list, separator)
  local kept = {}
  for i = 1, #list do
    if list[i] then kept[#kept + 1] = list[i] end
  end
  return table.concat(kept, separator)
end

-- Pieces of text side by side, in lines of at most so many columns.
function text.filled(pieces, columns)
  local lines = { "" }
  for _, piece in ipairs(pieces) do
    if lines[#lines] ~= "" and #lines[#lines] + 1 + #piece > columns then lines[#lines + 1] = "" end
    lines[#lines] = lines[#lines] .. (lines[#lines] == "" and "" or " ") .. piece
  end
  return table.concat(lines, "\n")
end

-- Those of declarations, a line each, whose name code has as a word, or one that has.
local function used_by(code, declarations)
  local lines, kept = {}, {}
  for line in declarations:gmatch("[^\n]+") do lines[#lines + 1] = line end
  for i = #lines, 1, -1 do
    local name = lines[i]:match("^const %w+ %*?([%w_]+)")
    if code:find("%f[%w_]" .. name .. "%f[^%w_]") then
      table.insert(kept, 1, lines[i])
      code = code .. "\n" .. lines[i]
    end
  end
  return table.concat(kept, "\n")
end

-- The declarations of what a head has, for a loop over heads: { declared = before it, set = in it, where h is another
-- one than before }. What takes no function stays in the loop. These are no constants, of which those that nothing uses
-- are no lines of the text: pair, and the list of texts that are taken of it, say which are used.
function text.by_head(pair, taken)
  local values = table.concat(taken, " ")
  local declarations = used_by(values .. " " .. used_by(values, pair.row), pair.head)
  if not declarations:find("_%w+%(") then return { declared = "", set = declarations } end
  local declared, set = { "int h_known = -1;" }, { "if (h != h_known) {", "h_known = h;" }
  for line in declarations:gmatch("[^\n]+") do
    local kind, name, value = line:match("^const (%w+ %*?)([%w_]+) = (.*)$")
    declared[#declared + 1] = (kind:find("*", 1, true) and "const " or "") .. kind .. name .. " = 0;"
    set[#set + 1] = name .. " = " .. value
  end
  set[#set + 1] = "}"
  return { declared = table.concat(declared, "\n"), set = table.concat(set, "\n") }
end

-- Loops over a thread's pairs where expressions are large, else `body` alone: before and behind it the
-- statements that move the arrays, of `size` each, to memory, where a loop can index them, and back.
function text.rolled(large, arrays, size)
  local before, behind = {}, {}
  for _, name in ipairs(large and arrays or {}) do
    local copy = string.format("#pragma unroll\nfor (int i = 0; i < %s; i++) { %%s[i] = %%s[i]; }", size)
    before[#before + 1] = string.format("float %s_pairs[%s];\n", name, size) .. copy:format(name .. "_pairs", name)
    behind[#behind + 1] = copy:format(name, name .. "_pairs")
  end
  if not large then return { before = "", inside = "", behind = "", pragma = "#pragma unroll" } end
  local inside = {}
  for i, name in ipairs(arrays) do inside[i] = string.format("float *%s = %s_pairs;", name, name) end
  return { before = table.concat(before, "\n") .. "\n{", inside = table.concat(inside, "\n"),
           behind = "}\n" .. table.concat(behind, "\n"), pragma = "#pragma unroll 1" }
end

-- The one of a list whose number, from 0 on, an expression has: "n == 1 ? b : a".
function text.choice(number, all)
  local chosen = all[1]
  for i = 2, #all do chosen = string.format("%s == %d ? %s : %s", number, i - 1, all[i], chosen) end
  return chosen
end

-- The declaration of floats, "" where there are none.
function text.floats(names) return #names > 0 and "float " .. table.concat(names, ", ") .. ";" or "" end

-- "a $x b" with the values of names: { x = "p[r]" }.
function text.substituted(line, names) return (line:gsub("%$(%w+)", names)) end

return text
