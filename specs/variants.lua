-- variants.lua: an example of each named mask, score and normaliser, and the examples of own_formula.md.
--
--   flashgen check specs/variants.lua
--
-- Whatever a mask or score names beyond the language itself is declared in `inputs`; definitions of
-- one's own go in `define`.
local both = { "forward", "backward" }

return {
  -- masks
  { head_dim = 64, pass = both,
    mask = { "full", "causal", "causal_top_left", "window(127, 0)", "window(left, right)", "prefix(32)",
             "chunked(64)", "dilated(3) && k <= p" },
    inputs = { left = "int", right = "int" } },

  -- scores; what has "grad" gets a gradient in the backward
  { head_dim = 64, pass = both, mask = "causal",
    score = { "softcap(30.0)", "softcap(s, cap)", "alibi", "alibi(slope)", "relative(table)" },
    inputs = { cap = "float", slope = "f32[h] grad", table = "f32[h, nq + nk - 1] grad" } },
  { head_dim = 64, pass = both, bias = "grad", bias_dims = "h,q,k" },

  -- what turns scores into weights
  { head_dim = 64, pass = both, mask = "causal", normalizer = { "logsoftmax", "sigmoid", "none" } },

  -- own_formula.md, 1: softcap, ALiBi and a window in one
  { head_dim = 64, pass = both, mask = "window(width, 0)", score = "softcap(alibi(slope), cap)",
    inputs = { width = "int", cap = "float", slope = "f32[h]" } },
  -- 2: T5's buckets of distance, learned
  { head_dim = 64, pass = both, score = "t5(table, 32, 128)", inputs = { table = "f32[h, 32] grad" } },
  -- 3: prefix-LM, a prefix for each sequence of the batch
  { head_dim = 64, pass = both, mask = "prefix(length[b])", inputs = { length = "i32[b]" } },
  -- 4: packed documents, causal within each; the order lets tiles of other documents be skipped
  { head_dim = 64, pass = both, mask = "causal && document(ids)", inputs = { ids = "i32[b, k] monotone" } },
  -- 5: a mask of one's own
  { head_dim = 64, pass = both, mask = "strided(4, 64)",
    define = { ["strided(n, near)"] = "k <= p && (p - k < near || (p - k) % n == 0)" } },
  -- 6: gpt-oss: a window beside a sink
  { head_dim = 64, pass = both, mask = "window(127, 0)", sink = "grad" },
  -- 7: retention, with a decay that is learned
  { head_dim = 64, pass = both, mask = "causal", normalizer = "retention", score = "decay(rate)",
    inputs = { rate = "f32[h] grad" } },
  { head_dim = 64, mask = "causal", max_logit = true },
  -- 8: dropout
  { head_dim = 64, pass = both, mask = "causal", dropout = true },
}
