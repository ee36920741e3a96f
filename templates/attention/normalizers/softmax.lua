-- softmax.lua: the normaliser of mathematics.md section 2; what its members are stands in attention/normalizer.lua.

local fill = run("expr/text.lua").substituted

-- Softmax: m is the largest score so far in units of log 2, l the sum of exp2(s - m), each thread's part
-- of it until `finish`. While a row has seen no visible key m is -inf, and 0 in its place keeps NaN
-- out. m is rounded before it is used: with exp2(s * unit - max * unit) a fused multiply-add would
-- leave the product's rounding error, so that an unchanged maximum would still correct l by up to
-- 3e-4 a tile at |m| = 7500, and LSE by 9e-3 after 25 tiles.
-- A sink is a score of no key: it is in the sum of weights when a row is finished, and in LSE.
local has_sink = (spec.sink or "false") ~= "false"
local softmax = {
  about = has_sink and "softmax beside a sink" or "softmax",
  inputs = has_sink and { "sink" } or {},
  head_grads = {},
  unit = "log2",
  masked = "NEG_INF",
  state = { "m", "l" },
  has_correction = true,
  drops = true,
  second = "lse",
  empty = "NEG_INF",
  no_weight = "-NEG_INF",
  ds_is_0_if_masked = true,
  ds_is_proportional = true,
}

-- spot "normalizers.softmax.init"
function softmax.init(r) return fill("$m = NEG_INF;\n$l = 0.0f;", r) end

-- A score in units of log 2.
local function in_log2(unit) return unit and "(" .. unit .. " * LOG2E)" or "LOG2E" end

-- Powers of 2 that a row's weights may be from 1 by its leader's reference, in bfloat16, and the sum at which a trial
-- of it ends.
-- spot "normalizers.softmax.far"
local FAR, FARTHEST = "32.0f", "1e12f"

function softmax.step(r)
  if r.origin then
    local names = { p = r.p, partial = r.partial or r.l, exponent = r.exponent or r.s .. " - " .. r.origin }
    local weights = r.each(fill("$p = exp2_f32($exponent);\n$partial += $p;", names))
    return r.partial and weights .. fill("\n$l += ", r) .. r.partial_sum() .. ";" or weights
  end
  local unit = r.log2 and "" or " * " .. in_log2(r.unit)
  local names = { m = r.m, l = r.l, s = r.s, p = r.p, correction = r.correction, max = r.max(), unit = unit, keep = r.keep }
  names.below = r.below and " - " .. r.below or ""
  -- spot "normalizers.softmax.below"
  names.peak = fill("max_f32($m, $max$unit$below)", names)
  local mass = ""
  if r.leader then
    names.sum, names.leader, names.far = r.sum(r.l), "m" .. r.leader, FAR
    mass = fill("const float mass = $m + log2_f32($sum);\n", names)
    names.peak = fill("abs_f32(max_f32(mass, $max$unit) - $leader) < $far ? $leader : ", names) .. names.peak
  end
  if r.keep then names.peak = fill("$keep ? $m : ", names) .. names.peak end
  names.weights = r.each(fill("$p = exp2_f32($s$unit - origin);\n" .. (r.partial or "$l") .. " += $p;", names))
  if r.partial then names.weights = names.weights .. fill("\n$l += ", names) .. r.partial_sum() .. ";" end
  -- spot "normalizers.softmax.step"
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
-- e4m3 ends at 448: a row whose largest weight was 8 at its reference has none above it while a thread's weights sum to less.
local largest = { bf16 = "65536.0f", f16 = "32768.0f", e4m3 = "448.0f" }
local least = { bf16 = "1e-12f", f16 = "0.0625f" }

function softmax.start(r) return fill("$m = ", r) .. (r.origin or r.start or "0.0f") .. fill(";\n$l = 0.0f;", r) end

function softmax.trial(r, first)
  local exponent = r.exponent or (r.log2 and r.s or r.s .. " * " .. in_log2(r.unit)) .. (first and not r.start and "" or " - " .. r.m)
  local power = fill(r.seen and "exp2_f32_if($exponent, $seen)" or "exp2_f32($exponent)", { exponent = exponent, seen = r.seen })
  local weight = fill("$p = $power;\n$partial += $p;", { p = r.p, partial = r.partial, power = power })
  -- spot "normalizers.softmax.trial"
  local sum, joined = r.partial_sum(), r.leader and r.exponent and fill(" && $m == m$leader", r) or ""
  local most = r.leader and FARTHEST or r.largest or largest[types.p.name]
  local function weight_of(score) return fill("exp2_f32($score * LOG2E - $m)", { m = r.m, score = score }) end
  if not first then return { weight = weight, behind = "", safe = string.format("%s < %s", sum, most) .. joined, weight_of = weight_of } end
  local enough = r.origin and "" or string.format("%s > %s && ", r.total, least[types.p.name])
  return { weight = weight, behind = string.format("const float %s = %s;", r.total, r.sum(sum)), safe = string.format("%s%s < %s", enough, r.total, most) .. joined, weight_of = weight_of }
end

function softmax.accept(r) return fill("$l += ", r) .. r.partial_sum() .. ";" end

-- The sink counts by the unit of the row's scores, which may lack something that is the same for all. Where all rows have one
-- reference, a row without a weight has the sink as its own: by the other one the sink's power may be 0.
-- spot "normalizers.softmax.sink"
local function finish_beside_sink(r)
  local names = { sum = r.sum(r.l), m = r.m }
  if r.origin then
    names.declared = fill("const float of_row = $sum;\n", names)
    names.sum, names.m = "of_row", fill("(of_row == 0.0f ? NEG_INF : $m)", names)
  end
  return (names.declared or "") .. fill([[
const float sink = (ldg_f32(p.sink + h)$above) * LOG2E;
const float highest = max_f32($m, sink), origin = highest == NEG_INF ? 0.0f : highest;
const float of_keys = exp2_f32($m - origin);
const float total = $sum * of_keys + exp2_f32(sink - origin);
const float $second = total == 0.0f ? NEG_INF : (origin + log2_f32(total)) * LN2$behind;$take
const float $inverse = total == 0.0f ? 0.0f : of_keys * inverse_f32(total);]],
    { sum = names.sum, m = names.m, inverse = r.inverse, second = r.second, take = r.take or "", above = r.above and " - (" .. r.above .. ")" or "",
      behind = r.above and " + (" .. r.above .. ")" or "" })
end

-- A weight that stands alone is divided by itself, so that O is V: by the weight that was multiplied, which is rounded.
function softmax.finish(r)
  if has_sink then return finish_beside_sink(r) end
  local divisor = r.alone and fill("$alone ? $packed : total", { alone = r.alone, packed = r.packed("total") }) or "total"
  return fill([[
const float total = $sum;
const float $second = total == 0.0f ? NEG_INF : ($m + log2_f32(total)) * LN2$above;$take
const float $inverse = total == 0.0f ? 0.0f : inverse_f32($divisor);]],
    { sum = r.sum(r.l), m = r.m, inverse = r.inverse, second = r.second, take = r.take or "", divisor = divisor,
      above = r.above and " + (" .. r.above .. ")" or "" })
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

-- Finished, its weights sum to 1 by the reference LSE. A row without a visible key has none.
-- spot "normalizers.softmax.resume"
function softmax.resume(r)
  return fill("$m = $second * LOG2E;\n$l = $second == NEG_INF ? 0.0f : 1.0f;\nconst float $weight = 1.0f;", r)
end

function softmax.delta(dot, dsecond) return dot .. " - " .. dsecond end

-- Every weight of a row without a visible key is 0.
-- spot "normalizers.softmax.kept"
function softmax.kept(second) return fill("$lse == NEG_INF ? -NEG_INF : $lse * LOG2E", { lse = second }) end

function softmax.p(s, kept, unit)
  return fill("exp2_f32($s * $unit - $kept)", { s = s, kept = kept, unit = in_log2(unit) })
end

-- The same from an exponent: a score times log2 e less what was kept.
function softmax.weight(exponent) return "exp2_f32(" .. exponent .. ")" end

-- spot "normalizers.softmax.ds"
function softmax.ds(p, dp, delta) return fill("$p * ($dp - $delta)", { p = p, dp = dp, delta = delta }) end

-- No value stands against the sink: its dP is 0. A row without keys and sink has nothing of it.
-- spot "normalizers.softmax.sink_gradient"
if spec.sink == "grad" then
  softmax.head_grads = { { output = "dsink", term = function(kept, delta)
    return fill("($kept == -NEG_INF ? 0.0f : exp2_f32(ldg_f32(p.sink + h) * LOG2E - $kept) * -$delta)", { kept = kept, delta = delta })
  end } }
end

return softmax
