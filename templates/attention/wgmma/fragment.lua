-- fragment.lua: a thread's scores of a tile of keys in wgmma_forward, and macros that go over them.
-- s[4 * n + 2 * r + c] is of the thread's row r, which is row lane / 4 + 8 * r of its warp, and of column
-- 8 * n + 2 * (lane % 4) + c. Macros take neighbours together: F(x, a, b, sum, column) is used for each pair, whose
-- weights go to x, the place of P that the product takes them from, and to one of the row's sums; a is `column` behind
-- k_lane. Where there is a second accumulator it is F(x, y, a, b, sum, column), whose weights go to y. Given tiles of an input (input.cut), of which there may be none, it gives
--
--   pair                       the parameters of such a macro
--   each(r, F)                 the text that uses macro F for the pairs of row r
--   weigh(F, G), weigh_row(r, F)  the same for macros that make weights, of both rows or of one
--   of_score(name, bodies, reads_input)   declares a macro for pairs of each row; gives the names. bodies[r]: statements
--                              of one `score`, which may use `column`; reads_input: and `staged`, the input's number
--   of_weight(name, bodies, reads_input)  the same with statements that make `weight`, and may add to `sum`
--   sums(r)                    the names of the row's sums
local text, at = run("expr/text.lua"), run("tile/registers.lua").at
local PAIRS, NEAR = BLOCK_KV // 4, 64 // 4 -- those of 64 columns are near
local SUMS = use.two_sums_a_row and 2 or 1
local beside = hooks.norm.beside
-- The weights of a pair that go into the product: those that dropout keeps.
local function kept(pair, r) return hooks.norm.drop and hooks.norm.drop.pair(pair, "keeps" .. r, "column / 8") or pair end
-- P of 8-bit numbers: two neighbours of 8 columns and two of the next 8 go to one of its registers.
local has_quads = types.p.is_byte
local PAIR = beside and "x, y, a, b, sum, column" or "x, a, b, sum, column"

-- What macros do with a score.
local ABOUT = {
  MAKE_SCORE = "The score of a product.", MAKE_SEEN_SCORE = "The score of a product, where the mask shows it.",
  MOST_SEEN = "A row's largest product, where the mask shows it.",
  HIDE = "A score that the mask hides.", REWEIGH = "A weight by the row's new reference.",
  WEIGH = "A weight by the row's reference, which is known before the score.", WEIGH_FIRST = "A weight of the first tile.",
  WEIGH_SEEN = "A weight, 0 where the mask hides the score.", WEIGH_CAPPED = "A weight by the cap's polynomial.",
  SCORE_AND_WEIGH = "A weight, right from the product.",
}

-- The macro `name` of pairs first to last, of one row or of both in turn.
local function use_of(e, row, place)
  local r = e % 2
  local f = r == 1 and not row and "G" or "F"
  return string.format("%s(%s, %s, %s, sum%d%d, %d)", f, place, at("s", 2 * e), at("s", 2 * e + 1), r, e // 2 % SUMS, e // 2 * 8)
end
local function list(name, first, last, row, about)
  local uses = {}
  for e = first, last do
    local place = at("x", has_quads and e // 4 * 2 + e % 2 or e) .. (beside and ", " .. at("y", e) or "")
    if e % 2 == (row or e % 2) then uses[#uses + 1] = use_of(e, row, place) end
  end
  macro(name, row and "F" or "F, G", text.filled(uses, 90), about)
end

-- The same of weights, which are joined in fours.
local function list_of_quads(name, row)
  local lines = {}
  for e = 0, PAIRS - 1, 4 do
    local uses, joins = {}, {}
    for pair = e, e + 3 do
      if pair % 2 == (row or pair % 2) then uses[#uses + 1] = use_of(pair, row, string.format("%s%d", pair < e + 2 and "low" or "high", pair % 2)) end
    end
    -- spot "wgmma.fragment.join"
    for r = row or 0, row or 1 do joins[#joins + 1] = string.format("%s = join_u16(low%d, high%d);", at("x", e // 2 + r), r, r) end
    local names = row and string.format("low%d, high%d", row, row) or "low0, low1, high0, high1"
    lines[#lines + 1] = "{\nu32 " .. names .. ";\n" .. text.filled(uses, 90) .. "\n" .. table.concat(joins, "\n") .. "\n}"
  end
  macro(name, row and "F" or "F, G", table.concat(lines, "\n"), "The same of macros that make weights, which are joined in fours.")
end

return function(input)
  local fragment = { pair = PAIR }
  list("PAIRS", 0, PAIRS - 1, nil,
       "F of row 0's pairs of scores, G of row 1's, in turn: x of P, the scores, a sum, the first one's column.")
  list("FAR_PAIRS", NEAR, PAIRS - 1)
  for r = 0, 1 do
    list("ROW" .. r .. "_PAIRS", 0, PAIRS - 1, r, "F of each of row " .. r .. "'s pairs of scores.")
    list("ROW" .. r .. "_NEAR_PAIRS", 0, NEAR - 1, r)
    list("ROW" .. r .. "_FAR_PAIRS", NEAR, PAIRS - 1, r)
  end

  if has_quads then
    list_of_quads("WEIGHTS")
    for r = 0, 1 do list_of_quads("ROW" .. r .. "_WEIGHTS", r) end
  end

  function fragment.weigh(f, g) return string.format("%s(%s, %s)", has_quads and "WEIGHTS" or "PAIRS", f, g) end
  function fragment.weigh_row(r, name) return string.format("ROW%d_%s(%s)", r, has_quads and "WEIGHTS" or "PAIRS", name) end
  function fragment.each(r, name) return string.format("ROW%d_PAIRS(%s)", r, name) end

  function fragment.sums(r)
    local names = {}
    for i = 1, SUMS do names[i] = string.format("sum%d%d", r, i - 1) end
    return names
  end

  local function of_pair(what, name, r, body, weighs, reads_input)
    local parameters = { "score, column", reads_input and "staged", weighs and "weight, sum" }
    macro(name .. "_ONE", text.joined(parameters, ", "), body, ABOUT[what])
    local lines = { "{", weighs and "float w0, w1;", reads_input and input.read_pair("column", r) }
    for c = 0, 1 do
      local given = { c == 0 and "a, column" or "b, (column + 1)", reads_input and input.staged(c),
                      weighs and string.format("w%d, sum", c) }
      lines[#lines + 1] = string.format("%s_ONE(%s)", name, text.joined(given, ", "))
    end
    if weighs and beside then
      lines[#lines + 1] = string.format("x = %s(%s, %s);", types.p.pack, beside.value("w0"), beside.value("w1"))
      lines[#lines + 1] = string.format("y = %s(%s, %s);", types.p.pack, beside.weight("w0"), beside.weight("w1"))
    elseif weighs then
      lines[#lines + 1] = "x = " .. kept((hooks.norm.clips and types.p.pack_clipped or types.p.pack) .. "(w0, w1)", r) .. ";"
    end
    lines[#lines + 1] = "}"
    macro(name, PAIR, text.joined(lines, "\n"))
  end

  -- One macro of the same statements for both rows has no row in its name; each row has its place in an input's tile.
  local function of_pairs(name, bodies, weighs, reads_input)
    local names = {}
    reads_input = reads_input and input.tiled
    for r = 0, 1 do
      names[r] = (reads_input or bodies[0] ~= bodies[1] or weighs and hooks.norm.drop) and name .. "_ROW" .. r or name
      of_pair(name, names[r], r, bodies[r], weighs, reads_input)
    end
    return names
  end
  function fragment.of_score(name, bodies, reads_input) return of_pairs(name, bodies, false, reads_input) end
  function fragment.of_weight(name, bodies, reads_input) return of_pairs(name, bodies, true, reads_input) end
  return fragment
end
