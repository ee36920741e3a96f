-- logsoftmax.lua: O = sum over visible keys of (S - LSE) V (mathematics.md section 4); what its members are stands in
-- attention/normalizer.lua. The state is softmax's, m in units of log 2. Scores are weights as they are, so that nothing that has been
-- accumulated is corrected: a second accumulator, u, has the sum of the visible values, and LSE u is taken off at the end. A visible
-- score of -inf counts as masked.
local logsoftmax = {
  about = "log-softmax",
  inputs = {}, head_grads = {},
  masked = "NEG_INF",
  state = { "m", "l" },
  has_correction = false,
  second = "lse",
  empty = "NEG_INF",
  ds_is_0_if_masked = true,
  score_is_weight = true,
}

local fill = run("expr/text.lua").substituted
local function times(s, unit) return unit and s .. " * " .. unit or s end
local function in_log2(unit) return unit and "(" .. unit .. " * LOG2E)" or "LOG2E" end

-- A hidden pair's score is -inf until here.
-- spot "normalizers.logsoftmax.beside"
logsoftmax.beside = {
  output = "u",
  value = function(p) return fill("$p == NEG_INF ? 0.0f : $p", { p = p }) end,
  weight = function(p) return fill("$p == NEG_INF ? 0.0f : 1.0f", { p = p }) end,
}

function logsoftmax.init(r) return fill("$m = NEG_INF;\n$l = 0.0f;", r) end

-- spot "normalizers.logsoftmax.step"
function logsoftmax.step(r)
  local names = { m = r.m, l = r.l, s = r.s, p = r.p, max = r.max(), unit = in_log2(r.unit), score = times(r.s, r.unit) }
  names.weights = r.each(fill("$l += exp2_f32($s * $unit - origin);\n", names) .. (names.score ~= r.p and fill("$p = $score;", names) or ""))
  return fill([[
const float peak = max_f32($m, $max * $unit);
const float origin = peak == NEG_INF ? 0.0f : peak;
$l *= exp2_f32($m - origin);
$weights
$m = peak;]], names)
end

-- spot "normalizers.logsoftmax.finish"
function logsoftmax.finish(r)
  return fill([[
const float total = $sum;
const float $second = total == 0.0f ? NEG_INF : ($m + log2_f32(total)) * LN2;$take
const float $inverse = 1.0f;
const float $beside = total == 0.0f ? 0.0f : -$second;]], { sum = r.sum(r.l), m = r.m, inverse = r.inverse, second = r.second, take = r.take or "", beside = r.beside })
end

-- spot "normalizers.logsoftmax.merge"
function logsoftmax.merge(a, b)
  return fill([[
const float peak = max_f32($am, $bm);
const float origin = peak == NEG_INF ? 0.0f : peak;
$al = exp2_f32($am - origin) * $al + exp2_f32($bm - origin) * $bl;
$am = peak;
const float $ac = 1.0f;
const float $bc = 1.0f;]], { am = a.m, al = a.l, ac = a.correction, bm = b.m, bl = b.l, bc = b.correction })
end

-- spot "normalizers.logsoftmax.resume"
function logsoftmax.resume(r)
  return fill([[
const int is_empty = $second == NEG_INF;
$m = $second * LOG2E;
$l = is_empty ? 0.0f : 1.0f;
const float $weight = $l;
const float $beside = is_empty ? 0.0f : $second;]], r)
end

function logsoftmax.delta(dot, dsecond) return dot .. " - " .. dsecond end

-- A masked pair's weight is -0, which no other one is: LSE of 0 is kept as -0, so that a difference of 0 is +0.
-- spot "normalizers.logsoftmax.kept"
function logsoftmax.kept(second) return fill("($lse == 0.0f ? -0.0f : $lse)", { lse = second }) end

-- A hidden raw product is -inf times the sign of its unit.
-- spot "normalizers.logsoftmax.p"
function logsoftmax.p(s, kept, unit, finite)
  local hidden = unit and fill("($unit < 0.0f ? -NEG_INF : NEG_INF)", { unit = unit }) or "NEG_INF"
  return fill(finite and "($score - $kept)" or "($s == $hidden ? -0.0f : $score - $kept)",
              { s = s, hidden = hidden, score = times(s, unit), kept = kept })
end

-- spot "normalizers.logsoftmax.ds"
function logsoftmax.ds(p, dp, delta, _, finite)
  local ds = fill("$dp - exp2_f32($p * LOG2E) * $delta", { p = p, dp = dp, delta = delta })
  return finite and ds or fill("as_u32($p) == 0x80000000u ? 0.0f : $ds", { p = p, ds = ds })
end

return logsoftmax
