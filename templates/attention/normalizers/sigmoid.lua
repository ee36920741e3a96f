-- sigmoid.lua: A = 1 / (1 + exp(-(S + c))), O = A V (mathematics.md section 4); what its members are stands in attention/normalizer.lua. c is
-- the launch's sigmoid_bias, or -log of the sequence's keys, of all its parts. Forward keeps nothing of a row; its constant, c, is made anew for backward.

local fill = run("expr/text.lua").substituted

local sigmoid = {
  about = "sigmoid",
  inputs = {}, head_grads = {}, numbers = { "sigmoid_bias" },
  masked = "NEG_INF",
  state = {},
  score_is_weight = true,
  has_correction = false,
  clips = true,
  ds_is_0_if_masked = true, kept_takes_keys = true,
}

-- c in units of log 2; not given it is a NaN. A row without keys has no weight to make of it.
-- spot "normalizers.sigmoid.bias"
local function bias()
  return fill("(p.sigmoid_bias == p.sigmoid_bias ? p.sigmoid_bias * LOG2E : -log2_f32((float)imax(1, $nk)))", { nk = seq.shard and "whole_k" or seq.nk })
end

-- exp(-(S + c)).
-- spot "normalizers.sigmoid.weight"
local function against(s, unit, bias)
  return fill("exp2_f32(-($s * $unit + $bias))", { s = s, unit = unit and "(" .. unit .. " * LOG2E)" or "LOG2E", bias = bias })
end

function sigmoid.declare() return fill("const float shift = $bias;", { bias = bias() }) end

function sigmoid.init() return "" end

-- The reciprocal is by products, as exact as the weights' dtype can tell: one unit makes it and the power.
-- spot "normalizers.sigmoid.step"
function sigmoid.step(r)
  local clipped = spec.dtype == "bf16" and "inverse_to_be_clipped" or "near_inverse_to_be_clipped"
  return r.each(string.format("%s = %s(1.0f + %s);", r.p, r.clips and clipped or "inverse_by_products", against(r.s, r.unit, "shift")))
end

function sigmoid.finish(r) return string.format("const float %s = 1.0f;", r.inverse) end

function sigmoid.merge(a, b) return string.format("const float %s = 1.0f;\nconst float %s = 1.0f;", a.correction, b.correction) end

function sigmoid.resume(r) return string.format("const float %s = 1.0f;", r.weight) end

function sigmoid.kept() return bias() end

-- The gradient takes 1 - p too, of which little is left in a weight near 1: it is p times the basis, 1 / p - 1.
function sigmoid.basis(s, kept, unit) return against(s, unit, kept) end
function sigmoid.p(basis) return fill("inverse_f32(1.0f + $basis)", { basis = basis }) end

-- spot "normalizers.sigmoid.ds"
function sigmoid.ds(p, dp, _, _, _, basis) return fill("$p * (least_f32($basis, 1e38f) * $p) * $dp", { p = p, dp = dp, basis = basis }) end

return sigmoid
