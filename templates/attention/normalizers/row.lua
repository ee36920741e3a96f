-- row.lua: what turns a row's scores into weights, forward and backward (math.md 2 to 4).
-- A normaliser is a table of texts:
--
--   about               what it computes, for the header of the text
--   masked              the score that stands for a masked pair
--   state               the names of the row's variables
--   init(r)             statements that set them before the first key
--   second              the output that keeps the row for backward: "lse", float32 [b, h, nq]
--   step(r)             statements that take the row's scores of one tile in: they set r.p from r.s for
--                       each of them, move the state on, and set r.correction, by which the family
--                       multiplies what it has accumulated (nil: no such variable, it is always 1)
--   trial(r, first)     step without a row maximum, nil: none. { weight =, behind =, safe = }: the statements that set
--                       r.p of one score by the state as it is, those behind all of them, and the test (text) that
--                       this was exact. Where it holds for all rows of a warp the family goes on with accept(r),
--                       elsewhere it takes the tile by `step`. The first tile has first = true, behind start(r); a
--                       first one that fails, init(r). A trial of a row with a leader is exact where both have the
--                       same reference, which `step` takes where it leaves the row's weights near enough to 1
--   finish(r)           statements that set r.inverse, which multiplies the accumulator, and
--                       r.second, the value to keep; r.above: what its scores lack (nil: nothing)
--   merge(a, b)         statements that make a's state that of both, which have seen different keys,
--                       and set a.correction and b.correction, by which the two accumulators are
--                       multiplied before they are added
--   delta(dot, dsecond) a row's constant of backward, from dO . O and the gradient of `second`
--   kept(second)        what `p` takes of a row, from what was kept: once a row
--   weighs(kept)        a test of that: false of a row whose weights are all 0, and of rows beyond the last
--   p(s, kept, unit)    the weight again, from the score
--   weight(exponent)    the same from the score times log2 e less what p takes of the row
--   ds(p, dp, delta)    the gradient at the score
--
-- r is a row, as row(members) makes it of what a family says: the names of its variables and how it goes over
-- a row's scores. ROW has the members, and what each says; the state's are there by their own names.
local ROW = {
  -- of one score that the thread holds
  s = "the score's variable", p = "the weight's, which may be the same",
  unit = "what the score is to be multiplied with, positive; nil: nothing",
  log2 = "true: the score has been multiplied by log2 e",
  exponent = "text of the score times log2 e less the row's reference, to be made for each weight; nil: there is none",
  seen = "test of a score that the mask leaves, where the score does not say so itself; nil: it does",
  each = "function: a text of one score to a loop over the thread's scores of the row",
  -- of the row
  max = "function: the text of its largest score", sum = "function: the text of all threads' sum of a thread's number",
  correction = "what the family multiplies its accumulator with behind a step; nil: nothing, it is always 1",
  inverse = "what it multiplies it with at the end", second = "the number that is kept for backward",
  partial = "a part of the thread's sum of weights, which the family begins at 0; nil: weights go to the state's",
  partial_sum = "function: the text of all parts of that sum", total = "a variable for the sum of a first trial",
  -- of its reference
  keep = "test that the trial was exact, whose weights a step makes again bit by bit; nil: it was not",
  origin = "the reference of all rows, where scores are bounded (cap.lua); nil: each has its own",
  largest = "the sum at which a trial ends", start = "the text of the row's first reference; nil: 0",
  leader = "the number of the row whose reference is in `exponent`; nil: its own is",
  above = "what its scores lack, added to what is kept; nil: nothing",
}
local NEEDED = { "s", "p", "inverse", "second", "each", "max", "sum" }

-- The row of these members, all of which the normaliser `norm` must know; asked for others it fails.
local function checked_row(norm, members)
  local state = {}
  for _, name in ipairs(norm.state) do state[name] = true end
  local function check(name) -- for a caller whose own caller is at fault
    if not (ROW[name] or state[name]) then error("a row has no member '" .. tostring(name) .. "'", 3) end
  end
  local function refuse(_, name) check(name) end
  for name in pairs(members) do check(name) end
  for _, list in ipairs { NEEDED, norm.state } do
    for _, name in ipairs(list) do
      if not members[name] then error("a row needs '" .. name .. "'", 3) end
    end
  end
  return setmetatable(members, { __index = refuse, __newindex = refuse })
end

return checked_row
