-- sm_80.lua: the kernels for sm_80 whose cubins t_cubins compares with cubins.txt: the first plan of
-- each point. One of each way that the templates can go.
local both = { "forward", "backward" }

local function of(family, spec)
  spec.family, spec.dtype, spec.pass = family, spec.dtype or "bf16", spec.pass or both
  return spec
end
local function mma(spec) return of("mma", spec) end

return {
  mma { head_dim = { 64, 128 }, mask = { "full", "causal" } },
  mma { head_dim = { "192/128", 256, 320 }, mask = "causal" },
  mma { head_dim = 40, dtype = "f16" },
  -- masks
  mma { head_dim = 64, mask = "window(1023, 0)" },
  mma { head_dim = 64, mask = { "dilated(3) && k <= p", "causal && document(ids)" }, inputs = { ids = "i32[b, k] monotone" } },
  -- scores, and the gradients of what they read
  mma { head_dim = 64, mask = "causal", score = { "softcap(30.0)", "alibi(slope)", "relative(table)", "s + by_key[b, k]" },
        inputs = { slope = "f32[h] grad", table = "f32[h, nq + nk - 1] grad", by_key = "f32[b, k] grad" } },
  mma { head_dim = 64, bias = "grad", bias_dims = { "b,h,q,k", "h,q,k", "q" } },
  mma { head_dim = 128, pass = "forward", bias = true, bias_dims = "h,q,k" },
  -- gradients that are the same bits in every launch
  mma { head_dim = { 64, 128, 512 }, mask = "causal", pass = "backward", deterministic = true },
  -- slices
  mma { head_dim = 64, mask = { "full", "window(1023, 0)" }, slices = true },
  mma { head_dim = 64, mask = "causal", pass = "backward", deterministic = true, slices = true },
  of("simt", { head_dim = 64, mask = "causal", slices = true }),
  -- parts of sequences
  mma { head_dim = 64, mask = "causal", pass = both, shard = true },
  mma { head_dim = 64, mask = "window(1023, 0)", pass = both, shard = true, dropout = true },
  of("simt", { head_dim = 64, mask = "causal", shard = true }),
  -- plans that are not the first
  mma { head_dim = 64, mask = "causal", pass = "backward", warps_per_key = 2 },
  mma { head_dim = 128, mask = "causal", pass = "backward", block_kv = 64 },
  mma { head_dim = 64, mask = "causal", pass = "forward", stages = 1 },
  of("decode", { pass = "forward", head_dim = 128, mask = "window(1023, 0)", kv_layout = "cached", batch_invariant = true }),
  of("decode", { pass = "forward", head_dim = 128, dtype = "f16", kv_dtype = "e4m3", kv_layout = "cached" }),
  mma { head_dim = 128, mask = "causal", pass = "forward", kv_dtype = "e4m3" },
  of("simt", { head_dim = 64, mask = "causal" }),
  of("simt", { head_dim = 72, dtype = "f16", score = "softcap(alibi(slope), cap)", bias = "grad", bias_dims = "h,q,k",
               inputs = { slope = "f32[h] grad", cap = "float" } }),
  -- rows: a warp each, a block each
  { kernel = "layernorm", width = { 128, 1000 }, pass = { "forward", "backward" }, dtype = "f16" },
  { kernel = "logsoftmax", width = { 1000, 5000 }, pass = { "forward", "backward" }, dtype = "f16" },
  -- layers: what is kept for backward is nothing, bits, a factor of each column
  { kernel = "linear", width = "64/96", pass = both, dtype = "f16", bias = "grad", epilogue = { "none", "relu", "geglu" } },
  { kernel = "linear", width = 64, pass = both, family = "simt", epilogue = "gelu_erf", residual = true },
  { kernel = "linear", width = "64/96", pass = both, epilogue = "layernorm", residual = true, bias = "grad" },
  { kernel = "combine", head_dim = { 40, 128 }, dtype = "f16", parts_dtype = "spec" },
  { kernel = "append", head_dim = 128, dtype = "f16", kv_layout = "cached", q_layout = "packed", rotary = "interleaved" },
}
