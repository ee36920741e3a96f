-- hooks.lua: what a kernel computes, as text for the families: the plug-in contract.
-- Families know no mask, score or normaliser by name: they call these hooks with the names of their
-- own variables and emit what comes back. In every text the kernel's `p` (Params), `b` (batch), `h`
-- (query head) and `g` (its key/value head) are in scope, and so are q and k where the hook is given
-- them: global row and key. All text comes from the trees of the spec's expressions (`formula`).
--
--   pair(names)               the texts of a pair: { head =, row =, test =, score = }; head and row are declarations for
--                             where b and h, and q, are known; names: q, k, s and what formula.emit takes. With
--                             names.backward also slope, d score / ds, and terms: { name =, read =, slope = } for each
--                             read of an input with a gradient
--                             with names.exponent log2: the score times log2 e less names.origin, which is the same for a row; names.reach:
--                             tanh is that of numbers up to TANH_SMALL, and the largest goes to that variable; a sloped
--                             one with names.apart: what does not depend on s is one term
--   score.bends, tanhs        there is a tanh in it, how many; bends_scaled: of the product, scaled, and of nothing else
--   small_reach(names)        of bends_scaled: the test that no number is larger than TANH_SMALL, where `reach` is
--                             the largest |s_raw|
--   score.cap                 nil, or how weights of a capped product are taken: cap.lua, and declare = the text of cap_unit,
--                             what the product is multiplied with before, and of cap1, cap3, cap5: the polynomial's
--                             factors with it; ranged_cap: the same where a mask shows a row one range of keys
--   score.linear              true: the score is s itself; families may leave its scale to the normaliser
--   score.additive            true: it is s and terms that do not depend on s
--   score.uneven, chooses     more of it than inputs and a multiple of k differs from key to key: |k - p|; k < n ? s : 0
--   score.sloped              a multiple of s and one of k, the same for a head, and terms of the row: of one key the scores
--                             of two rows differ by the rows alone. In bfloat16, in which rows may share a reference
--   score.above(q, other)     of sloped ones: how much larger row q's are than those of `other`: { head =, row =, value = }
--   score.grad(ds, pair)      dS through the score to the scaled product; calls input.add(name, value)
--                             once for each input that takes a gradient, value being the pair's term
--   large                     score and mask are so long that families do not unroll them: text.rolled
--   long                      unrolled, its score takes registers: ptxas starts many pairs' terms at once
--   mask                      what pairs are visible: masks.lua
--   input                     what mask and score read, and its gradients: inputs.lua
--   norm                      the normaliser: normalizers.lua
--   seq                       how sequences lie in memory: sequence/dense.lua
-- Tests are C expressions, "1" and "0" when known.
local hooks = {
  input = run("attention/inputs.lua"),
  mask = run("attention/masks.lua"),
  norm = run("attention/normalizers.lua")[spec.normalizer],
  seq = run("attention/sequence/dense.lua"),
}
local trees, input = run("attention/trees.lua"), hooks.input
local place, emit = trees.place, trees.emit

local score = { linear = formula.linear, additive = formula.text(formula.slope) == "1.0" }
hooks.score = score

-- What is left to do for each key when the row's part is known, without what is read.
do
  local text = emit({ formula.score }, { q = "q", k = "KEY", k_base = "BASE", k_offset = "OFFSET", s = "s", hoist = true }).values[1]
  text = text:gsub("ld[gs]_%w+%b()", "")
  score.uneven = text:find("KEY") ~= nil or select(2, text:gsub("OFFSET", "")) > 1
  score.chooses = score.uneven and text:find("?", 1, true) ~= nil
end

-- The terms of a sloped score in units of log 2.
local function terms_of(text, offset, s)
  local names = { OFFSET = offset:gsub("%p", "%%%0"), S = s:gsub("%p", "%%%0") }
  return text:match((("^([%w_.+-]+ %* %(float%)%(OFFSET%)) %+ %((of_head%d+ %* S) %+ (of_row%d+)%)$"):gsub("%u+", names)))
end
do
  local texts = emit({ formula.score }, { log2 = 1, q = "q", k = "KEY", k_base = "BASE", k_offset = "OFFSET", s_unit = "p.scale", s_raw = "s", hoist = true })
  local of_key = terms_of(texts.values[1], "OFFSET", "s")
  score.sloped = types.p.has_range_of_f32 and of_key ~= nil and not of_key:find("of_row") and not texts.row:find("ldg_")
end

-- Unrolled over a thread's pairs, 64 terms compile for 20 s, and spill (NVRTC 13.0, mma, d 64): a text
-- this long is evaluated in a loop, which costs a way through memory and the overlap of its reads. T5's
-- buckets have 253 characters. A quotient of 64 bits counts as much: wgmma compiled for 29 s with one by a variable, and 9 s with
-- two by constants, which spilled.
local of_pair = emit({ formula.mask, formula.score }, { q = "q", k = "k", s = "s", hoist = true }).values
hooks.large = #of_pair[1] + #of_pair[2] > 300 or (of_pair[1] .. of_pair[2]):find("floor_%a+64") ~= nil
hooks.long = not hooks.large and #of_pair[2] > 100 -- 4 terms of tanh
input.find_tiled(score.additive and not hooks.large)

function hooks.pair(names)
  local nodes, terms = { formula.mask, formula.score, names.backward and formula.slope or 0, names.exponent and formula.score or 0 }, {}
  names.log2 = names.exponent and #nodes or nil
  for _, x in ipairs(names.backward and formula.inputs or {}) do
    for at, read in ipairs(x.grad and x.reads or {}) do
      nodes[#nodes + 1] = read.slope
      terms[#terms + 1] = { name = x.name, read = at }
    end
  end
  names.staged = input.staged
  local texts = emit(nodes, names)
  for i, term in ipairs(terms) do term.slope = texts.values[4 + i] end
  if names.apart and score.sloped then
    local of_key, of_s, of_row = terms_of(texts.values[4], names.k_offset, names.s_raw)
    texts.values[4] = string.format("%s + (%s + %s)", of_s, of_key, of_row)
  end
  return { head = texts.head, row = texts.row, test = texts.values[1], score = texts.values[2], slope = texts.values[3], log2 = names.exponent and texts.values[4],
           terms = terms }
end

-- What tanh is taken of in the score.
local tanhs = formula.tanhs(formula.score)
score.bends, score.tanhs = #tanhs > 0, #tanhs

-- Where tanh is taken of the scaled product alone: a test of `reach`, the largest |s_raw|.
function hooks.small_reach(names)
  local texts, tests = emit(tanhs, names), {}
  for i, value in ipairs(texts.values) do
    local unit = value:match("^(of_head%d+) %* " .. names.s_raw:gsub("%W", "%%%0") .. "$")
    unit = unit and texts.head:match("const float " .. unit .. " = ([^\n]*);")
    if not unit then return nil end
    tests[i] = string.format("reach * abs_f32(%s) <= TANH_SMALL", unit)
  end
  return table.concat(tests, " && ")
end

score.bends_scaled = score.bends and hooks.small_reach({ q = "q", s_unit = "p.scale", s_raw = "s", hoist = true }) ~= nil

-- A cap of the scaled product and nothing else: in bfloat16, whose exponents need no range.
local function find_cap()
  if score.tanhs ~= 1 or not score.bends_scaled or not types.p.has_range_of_f32 then return nil end
  local texts = emit({ formula.score }, { q = "q", s_unit = "p.scale", s_raw = "s", hoist = true })
  local unit, factor = texts.values[1]:match("^tanh_f32%((of_head%d+) %* s%) %* ([%d.e+-]+)f$")
  local cap = unit and run("attention/cap.lua")(tonumber(factor))
  if not cap then return nil end
  cap.declare = string.format([[
const float cap_unit = %s, cap_square = cap_unit * cap_unit;
const float cap1 = %s * cap_unit, cap3 = %s * cap_unit * cap_square, cap5 = %s * cap_unit * cap_square * cap_square;]],
    texts.head:match("const float " .. unit .. " = ([^\n]*);"), table.unpack(cap.odd))
  return cap
end
score.cap = find_cap()
score.ranged_cap = formula.keys.by_one and score.cap or nil

-- x times a factor that may be 1.
local function times(x, factor) return factor == "1.0f" and x or string.format("%s * (%s)", x, factor) end

function score.above(q, other)
  local function at(row) return emit({ formula.score }, { q = row, k = "(" .. place(other) .. ")", s = "0.0f", hoist = true }) end
  local own, its = at(q), at(other)
  local function renamed(text) return (text:gsub("of_row", "of_other")) end
  return { head = own.head, row = own.row .. "\n" .. renamed(its.row), value = string.format("%s - (%s)", own.values[1], renamed(its.values[1])) }
end

function score.grad(ds, pair)
  for _, term in ipairs(pair.terms) do input.add(term.name, times(ds, term.slope), term) end
  return times(ds, pair.slope)
end

return hooks
