-- inference.lua: what serving runs: the forward alone, prefill and decode, also the head dims that
-- models have beside 64, 128 and 256.
return {
  { dtype = "bf16", head_dim = { 128, 64, 256 }, mask = { "causal", "full" } },
  { dtype = "bf16", head_dim = { 96, "192/128" }, mask = "causal" },
  { dtype = "bf16", head_dim = { 128, 64 }, mask = "window(4095, 0)" },
  { dtype = "f16", head_dim = { 128, 64 }, mask = "causal" },
}
