-- quickstart.lua: a small zoo that has one of everything: both passes and dtypes, three head dims,
-- full and causal masks, a bias and its gradient. `flashgen check specs/quickstart.lua` runs it.
return {
  {
    kernel   = "attention",
    pass     = { "forward", "backward" },
    dtype    = { "bf16", "f16" },
    head_dim = { 64, 128, "192/128" },
    mask     = { "full", "causal" },
    when     = function(s) return s.dtype == "bf16" or s.head_dim == 64 end,
  },
  {
    pass      = { "forward", "backward" },
    head_dim  = 64,
    mask      = { "full", "causal" },
    bias      = { true, "grad" },       -- forward reads "grad" as true: equal points merge
    bias_dims = { "h,q,k", "b,k" },     -- per head, and a padding bias per batch
  },
}
