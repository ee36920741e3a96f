-- epilogue.lua: what becomes of h = x W^T + b (mathematics.md section 5): a row for each value of the spec field `epilogue`.
--
--   value, derivative  of a float h the activation, and its derivative, as C expressions, in which names of `shared` stand, C
--                      declarations for both; none: y is h
--   is_test            the derivative is 1 where h > 0 and 0 elsewhere, so that a bit keeps it
--   is_gated           h has two halves, g and v, and y is the activation of g times v
--   norm               y is no function of h alone: h + residual is z, whose rows are normalised: "layer", "rms"
--
-- Families ask for these through contract.lua and know no row by its name. What the numbers are judged by is a row of
-- runtime/reference/oracle_epilogue.c.
local relu = { shared = "", value = "h < 0.0f ? 0.0f : h", derivative = "h > 0.0f ? 1.0f : 0.0f", is_test = true } -- of NaN NaN
-- h is small beside 0 and large beside 1, so that both take h times a sigmoid: no difference of near numbers loses digits.
local silu = { shared = "const float s = sigmoid_f32(h);", value = "h * s", derivative = "s * (1.0f + h * (1.0f - s))" }
-- (1 + tanh(u)) / 2 is the sigmoid of 2 u, and 2 u is h (1.5957691 + 0.071354816 h^2). Where h^2 exceeds 256 the derivative is
-- 0 or 1 to the last bit: a product of 0 and of infinity would be NaN.
local gelu = {
  shared = "const float square = least_f32(h * h, 256.0f), s = sigmoid_f32(h * (1.5957691f + 0.071354816f * square));",
  value = "h * s", derivative = "s + h * (s * (1.0f - s)) * (1.5957691f + 0.21406445f * square)",
}
local gelu_erf = {
  shared = "const float s = normal_cdf_f32(h);",
  value = "h * s", derivative = "s + h * (0.39894228f * exp2_f32(-0.72134752f * h * h))",
}

-- The same of the first half, times the second.
local function gated(activation)
  return { shared = activation.shared, value = activation.value, derivative = activation.derivative, is_gated = true }
end

return {
  none = {},
  relu = relu, gelu = gelu, gelu_erf = gelu_erf, silu = silu,
  reglu = gated(relu), geglu = gated(gelu), swiglu = gated(silu),
  layernorm = { norm = "layer" }, rmsnorm = { norm = "rms" },
}
