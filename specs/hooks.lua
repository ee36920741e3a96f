-- hooks.lua: what models add to attention between its two products: soft caps, ALiBi, windows, biases,
-- learned relative positions; as in the table of their cost in speed.md.
--
--   flashgen tune specs/hooks.lua --shapes specs/shapes/hooks.lua --wisdom hooks.txt
local both, widths = { "forward", "backward" }, { 128, 64 }

return {
  { pass = both, head_dim = widths, mask = { "causal", "full" }, score = { "softcap(30.0)", "alibi" } },
  { pass = both, head_dim = widths, mask = "window(1023, 0)", score = { "s", "softcap(30.0)" } },
  -- a table of its own for each head, and its gradient
  { pass = both, head_dim = widths, score = "relative(table)",
    inputs = { table = "f32[h, nq + nk - 1] grad" } },
  -- a dense bias that all sequences share, given or learned
  { pass = both, head_dim = widths, bias = { true, "grad" }, bias_dims = "h,q,k" },
}
