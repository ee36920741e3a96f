-- retention.lua: O = S V / max(r, 1), r being the sum of |S| (mathematics.md section 4); what its members are stands in
-- attention/normalizer.lua. r is a sum of each thread's part until `finish`. Of a row backward takes 1 / max(r, 1), which is below 1
-- where the divisor moves with the scores.
local retention = {
  about = "retention",
  inputs = {}, head_grads = {},
  masked = "0.0f",
  state = { "mass" },
  score_is_weight = true,
  has_correction = false,
  second = "r",
  second_has_no_gradient = true,
  empty = "0.0f",
  ds_is_0_if_masked = false, -- it is as a score of 0, which has a gradient
}

local fill = run("expr/text.lua").substituted
local function times(s, unit) return unit and s .. " * " .. unit or s end

function retention.init(r) return fill("$mass = 0.0f;", r) end

-- spot "normalizers.retention.step"
function retention.step(r)
  return r.each(fill("$p = $weight;\n$mass += abs_f32($p);", { p = r.p, mass = r.mass, weight = times(r.s, r.unit) }))
end

-- spot "normalizers.retention.finish"
function retention.finish(r)
  return fill([[
const float $second = $sum;$take
const float $inverse = inverse_f32(max_f32($second, 1.0f));]], { sum = r.sum(r.mass), second = r.second, take = r.take or "", inverse = r.inverse })
end

-- spot "normalizers.retention.merge"
function retention.merge(a, b)
  return fill("$sum += $other;\nconst float $kept = 1.0f;\nconst float $added = 1.0f;", { sum = a.mass, other = b.mass, kept = a.correction, added = b.correction })
end

-- spot "normalizers.retention.resume"
function retention.resume(r) return fill("$mass = $second;\nconst float $weight = max_f32($second, 1.0f);", r) end

-- times what is kept, as dS takes it: where sum |S| is below 1 it is no divisor
-- spot "normalizers.retention.delta"
function retention.delta(dot, _, second) return fill("($r > 1.0f ? $dot * inverse_f32($r) : 0.0f)", { r = second, dot = dot }) end

-- spot "normalizers.retention.kept"
function retention.kept(second) return fill("inverse_f32(max_f32($r, 1.0f))", { r = second }) end

-- spot "normalizers.retention.p"
function retention.p(s, kept, unit) return unit and fill("$s * ($unit * $kept)", { s = s, unit = unit, kept = kept }) or fill("$s * $kept", { s = s, kept = kept }) end

-- A score of 0 does not move the divisor.
-- spot "normalizers.retention.ds"
function retention.ds(p, dp, delta, kept)
  return fill("fma_f32($kept, $dp, fma_f32(-2.0f * $delta, step_f32($p), $delta))", { p = p, dp = dp, delta = delta, kept = kept })
end

return retention
