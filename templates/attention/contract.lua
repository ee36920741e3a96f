-- contract.lua: what a kernel computes, as text for the families: the plug-in contract.
-- Families know no mask, score or normaliser by name: they call these hooks with the names of their
-- own variables and emit what comes back. In every text the kernel's `p` (Params), `b` (batch), `h`
-- (query head) and `g` (its key/value head) are in scope, and so are q and k where the hook is given
-- them: global row and key. All text comes from the trees of the spec's expressions (`formula`).
--
--   pair(names)               the texts of a pair: { head =, row =, test =, score = }; head and row are declarations for
--                             where b and h, and q, are known; score_reads, row_reads: do score or row read memory;
--                             names: q, k, s and what formula.emit takes. With
--                             names.backward also slope, d score / ds, and terms: { name =, read =, slope =,
--                             has_score_slope =, reads_or_calls = } for each read of an input with a gradient: is its
--                             slope the score's; does a pair read memory or call a function of floats for it. An input
--                             for which names.leaves_out(name) is true has no terms. names.shown: of slices a test that the pair's
--                             slice shows it and no earlier one does; nil: that it shows it.
--                             With names.exponent the score is that times log2 e less names.origin, which is the same
--                             for a row. names.reach: tanh is that of numbers up to TANH_SMALL, and the largest goes to
--                             that variable; with names.s_first the multiple of s comes first, and what does not depend
--                             on s is one term. Declarations that nothing uses are no lines of the text: a family
--                             emits all of head and row
--   score.is_s                it is s itself; families may leave its scale to the normaliser, which takes a positive one:
--                             scale_is_negative is a test, positive_scale its size; the sign goes to the product, or
--                             masked_product is what a product is where the mask hides it
--   score.adds_to_s           it is s and terms that do not depend on s
--   score.is_uneven_in_k      more of it than inputs and one multiple of k differs from key to key: |k - p|
--   score.chooses_unevenly    that, and a choice is made for each pair: k < n ? s : 0
--   score.rows_share_terms    it is a multiple of s and one of k, the same for a head, and terms of the row: of one key
--                             the scores of two rows differ by the rows alone. In bfloat16, in which rows may share a
--                             reference
--   score.above(q, other)     of such: how much larger row q's are than those of `other`: { head =, row =, value = }; nil:
--                             they are the same
--   score.has_tanh, tanh_count  there is a tanh in it; how many
--   score.tanhs_are_of_scaled_s  there is, and each is that of the scaled product, times values of the head
--   small_reach(names)        of such: the test that no number is larger than TANH_SMALL, where `reach` is the largest
--                             |s_raw|
--   score.cap                 nil, or how weights of a capped product are taken: cap.lua, and declare = the text of cap_unit,
--                             what the product is multiplied with before, and of cap1, cap3, cap5: the polynomial's
--                             factors with it
--   score.cap_of_ranges       the same where a mask shows a row one range of keys, else nil
--   score.grad(ds, pair)      dS through the score to the scaled product; calls input.add(name, value)
--                             once for each input that takes a gradient, value being the pair's term
--   ds_follows_from_p         dS of a pair follows from its weight, before dropout, and dP: the score is s and terms beside
--                             it; else both are made where the score is
--   pairs_are_looped          score and mask are so large that families do not unroll them: text.rolled
--   score_is_long             unrolled, the score takes registers: ptxas starts many pairs' terms at once
--   uses(name)                whether mask or score use the head's "b", "h" or "hk"
--   mask                      what pairs are visible: masks.lua
--   descale                   nil, or what makes of numbers of e4m3 the ones they stand for: descale.lua
--   score.unit                what a product of q and k is multiplied with to be s: the scale; a float that descale declares
--   max_logit                 the largest scaled product of visible pairs is an output: max_logit.lua
--   input                     what mask and score read, and its gradients: inputs.lua
--   norm                      the normaliser: normalizer.lua says what one is
-- Tests are C expressions, "1" and "0" when known.
local hooks = {
  input = run("expr/inputs.lua"),
  mask = run("expr/masks.lua"),
  norm = run("attention/normalizer.lua")(spec.normalizer),
}
hooks.max_logit = spec.max_logit == "true"
if hooks.max_logit then table.insert(hooks.norm.outputs, "max_logit") end
hooks.descale = run("attention/descale.lua")
local unit = hooks.descale and hooks.descale.unit or "p.scale"
for _, name in ipairs(hooks.descale and hooks.descale.inputs or {}) do table.insert(hooks.norm.inputs, name) end
local trees, input, traits = run("expr/trees.lua"), hooks.input, formula.traits
local place, emit = trees.place, trees.emit

local score = {
  unit = unit, scale_is_negative = unit .. " < 0.0f", positive_scale = hooks.descale and hooks.descale.scale or string.format("%s < 0.0f ? -%s : %s", unit, unit, unit),
  masked_product = string.format("%s < 0.0f ? -(%s) : %s", unit, hooks.norm.masked, hooks.norm.masked),
  is_s = traits.is_s, adds_to_s = traits.adds_to_s, is_uneven_in_k = traits.is_uneven_in_k, chooses_unevenly = traits.chooses_unevenly,
  rows_share_terms = hooks.norm.trial ~= nil and types.p.has_range_of_f32 and traits.is_linear_in_s_and_k and not seq.slices,
  has_tanh = traits.tanh_count ~= nil, tanh_count = traits.tanh_count or 0, tanhs_are_of_scaled_s = traits.tanhs_are_of_scaled_s,
}
hooks.score = score

-- Unrolled over a thread's pairs, 64 tanh compile for 20 s, and spill (NVRTC 13.0, mma, d 64): what is larger than this
-- is evaluated in a loop, which costs a way through memory and the overlap of its reads. T5's buckets are of size 50
-- to 56. A quotient of 64 bits counts as much: wgmma compiled for 29 s with one by a variable, and 9 s with two by
-- constants, which spilled.
hooks.pairs_are_looped = traits.mask_size + traits.score_size > 64 or traits.has_wide_quotient
hooks.score_is_long = not hooks.pairs_are_looped and traits.score_size > 24 -- s and 4 terms of tanh
-- dS follows from P, before dropout, and dP: the score is s and terms beside it.
hooks.ds_follows_from_p = score.is_s or score.adds_to_s
-- A dense input of pairs is brought in tiles where it is added to s or multiplies it: the score is linear in s.
local is_linear = not score.is_s and not formula.uses(formula.slope, "s")
input.find_tiled(seq.is_dense and (score.adds_to_s or is_linear) and not hooks.pairs_are_looped)

function hooks.pair(names)
  -- The score itself comes first: its declarations keep their order, whether its exponent is asked for or not.
  local nodes, terms = { formula.mask, formula.score, names.backward and formula.slope or 0, names.exponent and formula.score or 0 }, {}
  names.log2 = names.exponent and #nodes or nil
  for _, x in ipairs(names.backward and formula.inputs or {}) do
    local is_taken = x.grad and not (names.leaves_out and names.leaves_out(x.name))
    for at, read in ipairs(is_taken and x.reads or {}) do
      nodes[#nodes + 1] = read.slope
      terms[#terms + 1] = { name = x.name, read = at, has_score_slope = read.slope == formula.slope,
                            reads_or_calls = formula.reads_or_calls(read.slope) }
    end
  end
  -- spot "contract.score_is_weight"
  names.staged, names.score_is_weight = input.staged, hooks.norm.score_is_weight
  local texts = emit(nodes, names)
  for i, term in ipairs(terms) do term.slope = texts.values[4 + i] end
  -- spot "contract.pair"
  local test = seq.slices and seq.slices.test(names.q, names.k, texts.values[1], names.shown) or texts.values[1]
  return { head = texts.head, row = texts.row, test = test, score = texts.values[names.exponent and 4 or 2], slope = texts.values[3],
           terms = terms, score_reads = texts.reads[2], row_reads = texts.row_reads }
end

-- Where tanh is taken of the scaled product alone: a test of `reach`, the largest |s_raw|.
local tanhs = formula.tanhs(formula.score)
function hooks.small_reach(names)
  local tests = {}
  for i, of in ipairs(tanhs) do tests[i] = string.format("reach * abs_f32(%s) <= TANH_SMALL", trees.unit(of, names)) end
  return table.concat(tests, " && ")
end

-- A cap of the scaled product and nothing else: in bfloat16, whose exponents need no range.
local function find_cap()
  local cap = hooks.norm.trial and types.p.has_range_of_f32 and traits.cap and run("attention/cap.lua")(traits.cap)
  if not cap then return nil end
  -- spot "contract.cap_powers"
  cap.declare = string.format([[
const float cap_unit = %s, cap_square = cap_unit * cap_unit;
const float cap1 = %s * cap_unit, cap3 = %s * cap_unit * cap_square, cap5 = %s * cap_unit * cap_square * cap_square;]],
    trees.unit(tanhs[1], { q = "q", s_unit = unit, s_raw = "s" }), table.unpack(cap.odd))
  return cap
end
score.cap = find_cap()
score.cap_of_ranges = hooks.mask.row_sees_a_range and score.cap or nil

function hooks.uses(name) return formula.uses(formula.mask, name) or formula.uses(formula.score, name) end

-- x times a factor that may be 1.
local function times(x, factor) return factor == "1.0f" and x or string.format("%s * (%s)", x, factor) end

function score.above(q, other)
  if not (formula.uses(formula.score, "q") or formula.uses(formula.score, "p")) then return nil end
  -- without what rows have in common, which may be infinite
  local function at(row, of_row) return emit({ formula.terms_of_pair }, { q = row, k = "(" .. place(other) .. ")", s = "0.0f", hoist = true, of_row = of_row }) end
  local own, its = at(q), at(other, "of_other")
  -- spot "contract.difference_of_rows"
  return { head = own.head, row = own.row .. "\n" .. its.row, value = string.format("%s - (%s)", own.values[1], its.values[1]) }
end

function score.grad(ds, pair)
  for _, term in ipairs(pair.terms) do input.add(term.name, times(ds, term.slope), term) end
  return times(ds, pair.slope)
end

return hooks
