-- normalizer.lua: what turns a row's scores into weights, forward and backward (mathematics.md sections 2 to 4).
-- A normaliser is a file of attention/normalizers/: the spec's field `normalizer` is its name. It returns a table of
-- texts, and of functions that give texts:
--
--   about               what it computes, for the header of the text
--   unit                "log2": it wants scores in units of log 2; nil: as they are
--   masked              the score that stands for a masked pair; times any positive number it is itself
--   state               the names of the row's variables; {}: it has none
--   has_correction      step changes the state's reference, so that what was accumulated before is multiplied
--   second              the output that keeps the row for backward: "lse", float32 [b, h, nq]; nil: there is none
--   second_has_no_gradient  nobody gives one of it; nil: d of its name is an input of backward
--   empty               its value of a row that sees no key
--   beside              a second accumulator; nil: there is none. { output = the name of it, float32 [b, h, nq, dv]: "u", value(p),
--                       weight(p) }: texts of a pair's weight in O and in it, of r.p as step leaves it
--   inputs              tensors that finish reads; of a head, which is h there: { "sink" }
--   score_is_weight     a score, or its sigmoid, is the weight: what a score is off by counts beside its own size
--   clips               its weights are never below 0, and a family that packs them may make 0 of what is: r.clips
--   drops               its weights may be dropped at random: `drop` is dropout.lua then, where the spec says so
--   numbers             numbers of the launch that it reads, members of Params: { "sigmoid_bias" }; nil: none
--   declare()           statements that declare what init and step take of a sequence, once for its rows; nil: nothing
--   init(r)             statements that set the state before the first key
--   step(r)             statements that take the row's scores of one tile in: they set r.p from r.s for each of them,
--                       move the state on, and set r.correction, by which the family multiplies what it has accumulated
--   finish(r)           of a row of head h: statements that set r.inverse, which multiplies the accumulator, and r.second, the value to
--                       keep; r.above: what its scores lack (nil: nothing); and r.beside, by which the second accumulator is multiplied
--                       before it is added to what will be O
--   merge(a, b)         statements that make a's state that of both, which have seen different keys, and set
--                       a.correction and b.correction, by which the two accumulators are multiplied before they are
--                       added. Merged with a state that it has in it already, a keeps its reference
--   resume(r)           the other way of finish: statements that set the state of a row from r.second, which finish gave,
--                       and r.weight, by which the finished row of O is multiplied to be the accumulator of that state.
--                       Of an empty row the weight, times the correction of a merge, is 0; nil: what is kept is not enough.
--                       r.beside, by which the second accumulator is multiplied and added to that; it goes on as it is
--
-- A step without a row maximum; all three or none:
--
--   trial(r, first)     { weight =, behind =, safe =, weight_of = }: the statements that set r.p of one score by the state as it is,
--                       those behind all of them, and the test (text) that this was exact. Where it holds for all rows
--                       of a warp the family goes on with accept(r), elsewhere it takes the tile by `step`. The first
--                       tile has first = true, behind start(r); a first one that fails, init(r). A trial of a row with
--                       a leader is exact where both have the same reference, which `step` takes where it leaves the
--                       row's weights near enough to 1. weight_of(score): text of the weight that a
--                       score, multiplied by `unit`, has; nil: scores do not have the order of their weights
--   start(r), accept(r)
--
-- Backward:
--
--   delta(dot, dsecond, second)  a row's constant of the gradient, from dO . O, of a second accumulator dO . u, the gradient of
--                       `second`, and second itself;
--                       nil: there is none
--   kept(second)        what p and ds take of a row, from what was kept: once a row
--   kept_takes_keys     kept() reads how many keys the row's sequence has; nil: it does not
--   no_weight           kept(empty) of a row whose weights are 0 whatever its scores; nil: there is no such number
--   head_grads          gradients of inputs, [h]: { output = "dsink", term = function(kept, delta) }, the text of what a row of head
--                       h adds to it
--   p(s, kept, unit, finite)  the weight again, from the score; unit: what s is to be multiplied with, nil: nothing; finite: the
--                       score is a visible pair's, and a number
--   basis(s, kept, unit)  where ds takes more than the weight, which is rounded: the number that both are made of; p is p(basis)
--                       then; nil: p is all that ds takes
--   weight(exponent)    the same from the score times log2 e less what was kept; nil: there is no such way
--   ds(p, dp, delta, kept, finite, basis)  the gradient at the score. Of a masked score's weight and a dp of 0 it is 0; finite: as of p
--   ds_is_0_if_masked   so it is whatever dp
--   ds_is_proportional  it is the weight times what does not depend on it; nil: it is not
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
  alone = "test that the row sees one key at most; nil: nobody asks, because its largest weight is 1",
  take = "a statement that takes `second` as soon as that is known; as finish finds it, behind a newline, or nothing",
  packed = "function: the text of a number as the product has it, which rounds weights",
  beside = "what the second accumulator is multiplied with",
  weight = "what a finished row is multiplied with to go on from it",
  keep = "test that the trial was exact, whose weights a step makes again bit by bit; nil: it was not",
  origin = "the reference of all rows, where scores are bounded (cap.lua); nil: each has its own",
  below = "how far, in log 2, the reference lies below the row's largest score, whose weight is that power of 2 then; nil: it does not",
  largest = "the sum at which a trial ends", start = "the text of the row's first reference; nil: 0",
  leader = "the number of the row whose reference is in `exponent`; nil: its own is",
  clips = "true: a weight below 0 becomes 0",
  above = "what its scores lack, added to what is kept; nil: nothing",
}
local NEEDED = { "s", "p", "inverse", "each", "max", "sum" }

-- member = its type, "?" where it may be missing
local NORMALIZER = {
  about = "string", unit = "string?", masked = "string", state = "table", has_correction = "boolean", second = "string?", empty = "string?", beside = "table?",
  second_has_no_gradient = "boolean?", inputs = "table", head_grads = "table", numbers = "table?", score_is_weight = "boolean?", clips = "boolean?", drops = "boolean?",
  declare = "function?", init = "function", step = "function", finish = "function", merge = "function", resume = "function?",
  trial = "function?", start = "function?", accept = "function?",
  delta = "function?", kept = "function?", no_weight = "string?", p = "function", basis = "function?", weight = "function?", ds = "function",
  ds_is_0_if_masked = "boolean", ds_is_proportional = "boolean?", kept_takes_keys = "boolean?",
}
-- Members of which a normaliser has all or none.
local TOGETHER = { { "trial", "start", "accept" }, { "second", "empty" } }

-- The table that a normaliser's file returned: whether it has what it needs and nothing else.
local function check(file, norm)
  local function fail(format, ...) error(string.format("%s: " .. format, file, ...), 0) end
  if type(norm) ~= "table" then fail("it returns a %s, not a normaliser", type(norm)) end
  for name, kind in pairs(NORMALIZER) do
    local is, wanted = type(norm[name]), kind:match("%a+")
    if is ~= wanted and not (is == "nil" and kind:find("?", 1, true)) then
      fail("a normaliser needs a %s as '%s', not a %s", wanted, name, is)
    end
  end
  for name in pairs(norm) do
    if not NORMALIZER[name] then fail("a normaliser has no member '%s'", tostring(name)) end
  end
  for _, names in ipairs(TOGETHER) do
    for i = 2, #names do
      if (norm[names[i]] == nil) ~= (norm[names[1]] == nil) then fail("it has one of '%s' and '%s' alone", names[1], names[i]) end
    end
  end
  if norm.unit and norm.unit ~= "log2" then fail("there is no unit '%s'", norm.unit) end
end

-- The row of these members, all of which the normaliser `norm` must know; asked for others it fails.
local function checked_row(norm, members)
  local state = {}
  for _, name in ipairs(norm.state) do state[name] = true end
  local function check(name) -- for a caller whose own caller is at fault
    if not (ROW[name] or state[name]) then error("a row has no member '" .. tostring(name) .. "'", 3) end
  end
  local function refuse(_, name) check(name) end
  for name in pairs(members) do check(name) end
  for _, list in ipairs { NEEDED, norm.state, { norm.second and "second" }, { norm.beside and "beside" } } do
    for _, name in ipairs(list) do
      if not members[name] then error("a row needs '" .. name .. "'", 3) end
    end
  end
  return setmetatable(members, { __index = refuse, __newindex = refuse })
end

-- The normaliser of that name, and what follows from it: row(members), states(name_of, row), refused, why a family does
-- not take the spec, or nil, second_of_row,
-- a name for a row's, dsecond, the gradient of its second output where that has one, second_in_words, for a
-- sentence on what is computed, declare_basis(s, kept, unit), the declaration of `basis`, which p and ds take then, or "", takes, which of { kept =, delta = } of a row p and ds take, outputs, what a forward may be given to write, dots, the one of them whose product with dO delta is made
-- of, and backward_inputs, what backward reads of forward's results and their gradients.
return function(name)
  local file = "attention/normalizers/" .. name .. ".lua"
  local norm = run(file)
  check(file, norm)
  -- The names of states, as name_of("m") makes them: "m[r]"; with `row` they become members of it.
  function norm.states(name_of, row)
    local names = {}
    for i, name in ipairs(norm.state) do
      names[i] = name_of(name)
      if row then row[name] = names[i] end
    end
    return names
  end
  function norm.row(members)
    members.take = members.take and "\n" .. members.take or ""
    return checked_row(norm, members)
  end
  norm.outputs = { "o" }
  if norm.second then table.insert(norm.outputs, norm.second .. "?") end
  if norm.beside then table.insert(norm.outputs, norm.beside.output .. "?") end
  norm.dots = norm.beside and norm.beside.output or "o"
  norm.second_in_words = norm.second and string.format(", and %s%s of each row", norm.second, norm.beside and " and " .. norm.beside.output or "") or ""
  norm.backward_inputs = {}
  local is_beside_sink = (spec.sink or "false") ~= "false"
  for _, input in ipairs(norm.inputs) do is_beside_sink = is_beside_sink and input ~= "sink" end
  norm.refused = is_beside_sink and string.format("normalizer=%s takes no sink", name) or nil
  local drops = spec.dropout == "true"
  if drops and not norm.drops then norm.refused = string.format("normalizer=%s takes no dropout", name) end
  norm.drop = drops and run("attention/dropout.lua") or nil
  norm.second_of_row = norm.second and norm.second .. "_of_row" or nil
  norm.dsecond = norm.second and not norm.second_has_no_gradient and "d" .. norm.second or nil
  local read_by_grads = #norm.head_grads > 0 and norm.inputs or {}
  for _, input in ipairs { norm.delta and norm.dots or false, norm.second or false, "do", norm.dsecond or false, table.unpack(read_by_grads) } do
    if input then table.insert(norm.backward_inputs, input) end
  end
  if drops then
    norm.numbers = { "keep", table.unpack(norm.numbers or {}) }
    table.insert(norm.inputs, "seed")
    table.insert(norm.backward_inputs, "seed")
  end
  norm.declare = norm.declare or function() return "" end
  norm.kept = norm.kept or function() return "0.0f" end -- nobody reads it
  if norm.basis then
    local p, ds = norm.p, norm.ds
    function norm.p() return p("basis") end
    function norm.ds(weight, dp, delta, kept, finite) return ds(weight, dp, delta, kept, finite, "basis") end
  end
  function norm.declare_basis(...) return norm.basis and string.format("const float basis = %s;", norm.basis(...)) or "" end
  local of_pair = norm.declare_basis("s", "kept") .. norm.p("s", "kept") .. " " .. norm.ds("p", "dp", "delta", "kept")
  local function takes(word) return of_pair:find("%f[%w_]" .. word .. "%f[^%w_]") ~= nil end
  norm.takes = { kept = takes("kept"), delta = takes("delta") }
  return norm
end
