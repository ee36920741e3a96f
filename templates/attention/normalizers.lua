-- normalizers.lua: what turns a row's scores into weights, forward and backward (math.md 2 to 4).
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
local normalizers = {}

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

-- "a $x b" with the values of names: { x = "p[r]" }.
local function fill(text, names) return (text:gsub("%$(%w+)", names)) end

-- Softmax: m is the largest score so far in units of log 2, l the sum of exp2(s - m), each thread's part
-- of it until `finish`. While a row has seen no visible key m is -inf, and 0 in its place keeps NaN
-- out. m is rounded before it is used: with exp2(s * unit - max * unit) a fused multiply-add would
-- leave the product's rounding error, so that an unchanged maximum would still correct l by up to
-- 3e-4 a tile at |m| = 7500, and LSE by 9e-3 after 25 tiles.
local softmax = {
  about = "softmax",
  masked = "NEG_INF",
  state = { "m", "l" },
  second = "lse",
}
normalizers.softmax = softmax

function softmax.row(members) return checked_row(softmax, members) end

function softmax.init(r) return fill("$m = NEG_INF;\n$l = 0.0f;", r) end

-- A score in units of log 2.
local function in_log2(unit) return unit and "(" .. unit .. " * LOG2E)" or "LOG2E" end

-- Powers of 2 that a row's weights may be from 1 by its leader's reference, in bfloat16, and the sum at which a trial
-- of it ends.
local FAR, FARTHEST = "32.0f", "1e12f"

function softmax.step(r)
  if r.origin then
    local names = { p = r.p, partial = r.partial or r.l, exponent = r.exponent or r.s .. " - " .. r.origin }
    local weights = r.each(fill("$p = exp2_f32($exponent);\n$partial += $p;", names))
    return r.partial and weights .. fill("\n$l += ", r) .. r.partial_sum() .. ";" or weights
  end
  local unit = r.log2 and "" or " * " .. in_log2(r.unit)
  local names = { m = r.m, l = r.l, s = r.s, p = r.p, correction = r.correction, max = r.max(), unit = unit, keep = r.keep }
  names.peak = fill("max_f32($m, $max$unit)", names)
  local mass = ""
  if r.leader then
    names.sum, names.leader, names.far = r.sum(r.l), "m" .. r.leader, FAR
    mass = fill("const float mass = $m + log2_f32($sum);\n", names)
    names.peak = fill("abs_f32(max_f32(mass, $max$unit) - $leader) < $far ? $leader : ", names) .. names.peak
  end
  if r.keep then names.peak = fill("$keep ? $m : ", names) .. names.peak end
  names.weights = r.each(fill("$p = exp2_f32($s$unit - origin);\n" .. (r.partial or "$l") .. " += $p;", names))
  if r.partial then names.weights = names.weights .. fill("\n$l += ", names) .. r.partial_sum() .. ";" end
  return mass .. fill([[
const float peak = $peak;
const float origin = peak == NEG_INF ? 0.0f : peak;
const float $correction = exp2_f32($m - origin);
$l *= $correction;
$weights
$m = peak;]], names)
end

-- Weights are exact whatever m is, as long as no sum overflows and a row's sum is no denormal: bfloat16 has
-- the exponents of float32. float16 ends at 65504, and below 2^-14 loses digits; a row whose first tile
-- sums to 1/16 has lost none that count.
local largest = { bf16 = "65536.0f", f16 = "32768.0f" }
local least = { bf16 = "1e-12f", f16 = "0.0625f" }

function softmax.start(r) return fill("$m = ", r) .. (r.origin or r.start or "0.0f") .. fill(";\n$l = 0.0f;", r) end

function softmax.trial(r, first)
  local exponent = r.exponent or (r.log2 and r.s or r.s .. " * " .. in_log2(r.unit)) .. (first and not r.start and "" or " - " .. r.m)
  local power = fill(r.seen and "exp2_f32_if($exponent, $seen)" or "exp2_f32($exponent)", { exponent = exponent, seen = r.seen })
  local weight = fill("$p = $power;\n$partial += $p;", { p = r.p, partial = r.partial, power = power })
  local sum, joined = r.partial_sum(), r.leader and r.exponent and fill(" && $m == m$leader", r) or ""
  local most = r.leader and FARTHEST or r.largest or largest[types.p.name]
  if not first then return { weight = weight, behind = "", safe = string.format("%s < %s", sum, most) .. joined } end
  local enough = r.origin and "" or string.format("%s > %s && ", r.total, least[types.p.name])
  return { weight = weight, behind = string.format("const float %s = %s;", r.total, r.sum(sum)), safe = string.format("%s%s < %s", enough, r.total, most) .. joined }
end

function softmax.accept(r) return fill("$l += ", r) .. r.partial_sum() .. ";" end

function softmax.finish(r)
  return fill([[
const float total = $sum;
const float $inverse = total == 0.0f ? 0.0f : inverse_f32(total);
const float $second = total == 0.0f ? NEG_INF : ($m + log2_f32(total)) * LN2$above;]],
    { sum = r.sum(r.l), m = r.m, inverse = r.inverse, second = r.second, above = r.above and " + (" .. r.above .. ")" or "" })
end

function softmax.merge(a, b)
  return fill([[
const float peak = max_f32($am, $bm);
const float origin = peak == NEG_INF ? 0.0f : peak;
const float $ac = exp2_f32($am - origin);
const float $bc = exp2_f32($bm - origin);
$al = $ac * $al + $bc * $bl;
$am = peak;]], { am = a.m, al = a.l, ac = a.correction, bm = b.m, bl = b.l, bc = b.correction })
end

function softmax.delta(dot, dsecond) return dot .. " - " .. dsecond end

-- Of a row without a visible key every weight is 0.
function softmax.kept(second) return fill("$lse == NEG_INF ? -NEG_INF : $lse * LOG2E", { lse = second }) end

function softmax.weighs(kept) return kept .. " != -NEG_INF" end

function softmax.p(s, kept, unit)
  return fill("exp2_f32($s * $unit - $kept)", { s = s, kept = kept, unit = in_log2(unit) })
end

-- The same from an exponent: a score times log2 e less what was kept.
function softmax.weight(exponent) return "exp2_f32(" .. exponent .. ")" end

function softmax.ds(p, dp, delta) return fill("$p * ($dp - $delta)", { p = p, dp = dp, delta = delta }) end

return normalizers
