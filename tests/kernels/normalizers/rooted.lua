-- rooted.lua: P = exp(S) / sqrt(sum of exp(2 S)), so that the squares of a row's weights sum to 1. It takes scores as
-- they are, by base e, has no trial and three states: m is the largest score so far; near is the sum of the squares of
-- weights of at least 1/2, and far of the others, by the reference m, a thread's part each.
local rooted = {
  about = "rooted",
  inputs = {}, head_grads = {},
  masked = "NEG_INF",
  state = { "m", "near", "far" },
  has_correction = true,
  second = "lse", -- the logarithm of the root
  empty = "NEG_INF",
  no_weight = "-NEG_INF",
  ds_is_0_if_masked = true,
}

local fill = run("expr/text.lua").substituted

function rooted.init(r) return fill("$m = NEG_INF;\n$near = 0.0f;\n$far = 0.0f;", r) end

function rooted.step(r)
  local unit = r.unit and " * " .. r.unit or ""
  local weights = fill([[
const float weight_of_score = exp2_f32(($s$unit - origin) * LOG2E);
if (weight_of_score >= 0.5f) {
  $near += weight_of_score * weight_of_score;
} else {
  $far += weight_of_score * weight_of_score;
}
$p = weight_of_score;]], { s = r.s, p = r.p, near = r.near, far = r.far, unit = unit })
  return fill([[
const float peak = max_f32($m, $max$unit);
const float origin = peak == NEG_INF ? 0.0f : peak;
const float $correction = exp2_f32(($m - origin) * LOG2E);
$near *= $correction * $correction;
$far *= $correction * $correction;
]], { m = r.m, near = r.near, far = r.far, max = r.max(), unit = unit, correction = r.correction }) ..
    r.each("{\n" .. weights .. "\n}") .. fill("\n$m = peak;", r)
end

function rooted.finish(r)
  return fill([[
const float squares = $sum;
const float $inverse = squares == 0.0f ? 0.0f : inverse_f32(sqrt_f32(squares));
const float $second = squares == 0.0f ? NEG_INF : $m + 0.5f * LN2 * log2_f32(squares);$take]],
    { sum = r.sum("(" .. r.near .. " + " .. r.far .. ")"), m = r.m, inverse = r.inverse, second = r.second, take = r.take or "" })
end

function rooted.merge(a, b)
  return fill([[
const float peak = max_f32($am, $bm);
const float origin = peak == NEG_INF ? 0.0f : peak;
const float $ac = exp2_f32(($am - origin) * LOG2E);
const float $bc = exp2_f32(($bm - origin) * LOG2E);
$an = $ac * $ac * $an + $bc * $bc * $bn;
$af = $ac * $ac * $af + $bc * $bc * $bf;
$am = peak;]], { am = a.m, an = a.near, af = a.far, ac = a.correction, bm = b.m, bn = b.near, bf = b.far, bc = b.correction })
end

function rooted.resume(r)
  return fill("$m = $second;\n$near = $second == NEG_INF ? 0.0f : 1.0f;\n$far = 0.0f;\nconst float $weight = 1.0f;", r)
end

function rooted.delta(dot, dsecond) return dot .. " - " .. dsecond end

function rooted.kept(second) return fill("$lse == NEG_INF ? -NEG_INF : $lse", { lse = second }) end

function rooted.p(s, kept, unit)
  return fill("exp2_f32(($s$unit - $kept) * LOG2E)", { s = s, kept = kept, unit = unit and " * " .. unit or "" })
end

function rooted.ds(p, dp, delta) return fill("$p * ($dp - $p * $delta)", { p = p, dp = dp, delta = delta }) end

return rooted
