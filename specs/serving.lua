-- serving.lua: a step of decode over caches and pages, and packed prompts.
return {
  { dtype = "bf16", head_dim = { 128, 64 }, mask = "causal", kv_layout = { "dense", "cached", "paged" } },
  { dtype = "bf16", head_dim = { 128, 64 }, mask = "causal", q_layout = "packed", kv_layout = { "packed", "paged" } },
}
