-- normalizers.lua: what turns a row's scores into weights, forward and backward (math.md 2 to 4).
-- A normaliser is a table of texts:
--
--   about               what it computes, for the header of the text
--   masked              the score that stands for a masked pair
--   state               the names of the row's variables
--   init(r)             statements that set them before the first key
--   second              the output that keeps the row for backward: "lse", float32 [b, h, nq]
--   step(r)             statements that take the row's scores of one tile in: they set r.p from r.s,
--                       move the state on, and set r.correction, by which the family multiplies what
--                       it has accumulated (nil: no such variable, it is always 1)
--   trial               step without a row maximum, and the test that it was safe; nil: none
--   finish(r)           statements that set r.inverse, which multiplies the accumulator, and
--                       r.second, the value to keep
--   merge(a, b)         statements that make a's state that of both, which have seen different keys,
--                       and set a.correction and b.correction, by which the two accumulators are
--                       multiplied before they are added
--   delta(dot, dsecond) a row's constant of backward, from dO . O and the gradient of `second`
--   p(s, second)        the weight again, from the score and what was kept
--   ds(p, dp, delta)    the gradient at the score
--
-- r names the family's variables: s, p, correction, inverse, second, the state's by their names,
-- and the functions max(x), sum(x): over all scores of the row, of which a lane holds a part.
local normalizers = {}

-- "a $x b" with the values of names: { x = "p[r]" }.
local function fill(text, names) return (text:gsub("%$(%w+)", names)) end

-- Softmax: m is the largest score so far, l the sum of exp(s - m), each lane's part of it until
-- `finish`. While a row has seen no visible key m is -inf, and 0 in its place keeps NaN out. The
-- difference is taken before the product: in m * LOG2E - origin * LOG2E a fused multiply-add leaves
-- the product's rounding error, so that an unchanged m would still correct l by up to 3e-4 a tile at
-- |m| = 7500 (LSE off by 9e-3 after 25 tiles; H200, 2026-11-20).
local softmax = {
  about = "softmax",
  masked = "NEG_INF",
  state = { "m", "l" },
  second = "lse",
}
normalizers.softmax = softmax

function softmax.init(r) return fill("$m = NEG_INF;\n$l = 0.0f;", r) end

function softmax.step(r)
  return fill([[
const float peak = max_f32($m, $max);
const float origin = peak == NEG_INF ? 0.0f : peak;
const float $correction = exp2_f32(($m - origin) * LOG2E);
$p = exp2_f32(($s - origin) * LOG2E);
$l = $correction * $l + $p;
$m = peak;]], { m = r.m, l = r.l, s = r.s, p = r.p, correction = r.correction, max = r.max(r.s) })
end

function softmax.finish(r)
  return fill([[
const float total = $sum;
const float $inverse = total == 0.0f ? 0.0f : 1.0f / total;
const float $second = total == 0.0f ? NEG_INF : $m + log_f32(total);]],
    { sum = r.sum(r.l), m = r.m, inverse = r.inverse, second = r.second })
end

function softmax.merge(a, b)
  return fill([[
const float peak = max_f32($am, $bm);
const float origin = peak == NEG_INF ? 0.0f : peak;
const float $ac = exp2_f32(($am - origin) * LOG2E);
const float $bc = exp2_f32(($bm - origin) * LOG2E);
$al = $ac * $al + $bc * $bl;
$am = peak;]], { am = a.m, al = a.l, ac = a.correction, bm = b.m, bl = b.l, bc = b.correction })
end

function softmax.delta(dot, dsecond) return dot .. " - " .. dsecond end

function softmax.p(s, second)
  return fill("$lse == NEG_INF ? 0.0f : exp2_f32(($s - $lse) * LOG2E)", { s = s, lse = second })
end

function softmax.ds(p, dp, delta) return fill("$p * ($dp - $delta)", { p = p, dp = dp, delta = delta }) end

return normalizers
