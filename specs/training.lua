-- training.lua: what training runs, forward and backward. `flashgen tune` goes over it in this order,
-- so that a budget is spent on what most need.
local both = { "forward", "backward" }

return {
  { pass = both, dtype = "bf16", head_dim = { 128, 64, 256 }, mask = { "causal", "full" } },
  -- attention within a window, its width compiled in
  { pass = both, dtype = "bf16", head_dim = { 128, 64 }, mask = "window(1023, 0)" },
  { pass = both, dtype = "f16", head_dim = { 128, 64 }, mask = "causal" },
  { pass = "forward", dtype = "f16", head_dim = { 128, 64 }, mask = "full" },
}
