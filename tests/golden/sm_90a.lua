-- sm_90a.lua: the kernels for sm_90a whose cubins t_cubins compares with cubins.txt: the first plan of
-- each point. One of each way that the templates can go.
local both, bf16 = { "forward", "backward" }, "bf16"
local far = "k <= p && p - k < width" -- a window whose width is known at run time alone

local function wgmma(spec)
  spec.pass, spec.family, spec.dtype = spec.pass or "forward", "wgmma", spec.dtype or bf16
  return spec
end
local function decode(spec)
  spec.family, spec.dtype = "decode", spec.dtype or bf16
  return spec
end
local function mma(spec)
  spec.pass, spec.family, spec.dtype = spec.pass or "backward", "mma", spec.dtype or bf16
  return spec
end

return {
  wgmma { head_dim = { 64, 96, 128, "192/128", 256 }, mask = { "full", "causal" } },
  wgmma { head_dim = { 40, 128 }, mask = "causal", dtype = "f16" },
  -- masks: a range of keys for each row, from an input, of either end, not of a range
  wgmma { head_dim = { 64, 128 }, mask = "window(1023, 0)" },
  wgmma { head_dim = 64, mask = { far, "window(127, 128)" }, inputs = { width = "int" } },
  wgmma { head_dim = 64, mask = { "dilated(3) && k <= p", "chunked(64)", "prefix(length[b])", "causal && document(ids)" },
          inputs = { length = "i32[b]", ids = "i32[b, k] monotone" } },
  -- scores: by a cap, by the distance, by a table, by dense and keyed inputs
  wgmma { head_dim = { 64, 128 }, mask = { "full", "causal" }, score = { "softcap(30.0)", "alibi" } },
  wgmma { head_dim = 64, mask = "window(1023, 0)", score = { "softcap(30.0)", "softcap(alibi(slope), cap)" },
          inputs = { cap = "float", slope = "f32[h]" } },
  wgmma { head_dim = 128, score = { "relative(table)", "s + by_key[b, k]", "s * s" },
          inputs = { table = "f32[h, nq + nk - 1]", by_key = "f32[b, k]" } },
  wgmma { head_dim = { 64, 128 }, bias = true, bias_dims = "h,q,k" },
  -- plans that are not the first: rows, tiles in flight, parts
  wgmma { head_dim = 64, mask = "causal", block_q = { 128, 256 } },
  wgmma { head_dim = { 64, 128, 256 }, key_parts = 16 },
  wgmma { head_dim = 64, score = "alibi", key_parts = 16 },
  -- in clusters, two warpgroups to the rows of a block
  wgmma { head_dim = { 320, 512, "576/512" }, mask = { "full", "causal" } },
  wgmma { head_dim = { 512, "64/512" }, mask = "causal", score = { "softcap(30.0)", "alibi" } },
  wgmma { head_dim = 512, mask = "causal", q_layout = "packed", kv_layout = "packed" },
  -- gradients: of each width, mask, score, and input
  wgmma { pass = "backward", head_dim = { 64, 96, 128, "64/128" }, mask = { "full", "causal" } },
  wgmma { pass = "backward", head_dim = { 40, 128 }, mask = { "window(1023, 0)", "dilated(3) && k <= p" }, dtype = "f16" },
  wgmma { pass = "backward", head_dim = { 64, 128 }, mask = "causal", score = { "softcap(30.0)", "alibi", "relative(table)" },
          inputs = { table = "f32[h, nq + nk - 1] grad" } },
  wgmma { pass = "backward", head_dim = { 64, 128 }, mask = "prefix(32)" },
  wgmma { pass = "backward", head_dim = { 64, 128 }, bias = "grad", bias_dims = "h,q,k" },
  -- in clusters
  wgmma { pass = "backward", head_dim = { 192, "192/128", 256 }, mask = { "full", "causal" } },
  wgmma { pass = "backward", head_dim = { "136/200", 256 }, mask = { "window(1023, 0)", "dilated(3) && k <= p" }, dtype = "f16" },
  wgmma { pass = "backward", head_dim = { "192/128", 192 }, mask = "causal", score = "softcap(30.0)" },
  wgmma { pass = "backward", head_dim = { "192/128", 256 }, mask = "causal", score = { "alibi", "relative(table)" },
          inputs = { table = "f32[h, nq + nk - 1] grad" } },
  wgmma { pass = "backward", head_dim = 256, bias = "grad", bias_dims = "h,q,k" },
  -- in clusters that divide columns
  wgmma { pass = "backward", head_dim = { 320, 512, "576/512" }, mask = { "full", "causal" } },
  wgmma { pass = "backward", head_dim = 384, mask = "causal", score = { "softcap(30.0)", "alibi" } },
  wgmma { pass = "backward", head_dim = 512, mask = "causal", q_layout = "packed", kv_layout = "packed" },
  -- few rows: of a head and of several, whose keys lie behind each other and in pages
  decode { head_dim = 128, mask = "causal", kv_layout = { "dense", "paged" } },
  decode { head_dim = 64, score = "alibi", q_layout = "packed", kv_layout = "packed", block_q = 64 },
  -- keys in pages
  wgmma { head_dim = { 64, 128 }, mask = { "full", "causal" }, kv_layout = "paged" },
  wgmma { head_dim = 128, mask = "causal", q_layout = "packed", kv_layout = "paged" },
  -- slices: of bare masks, of a score that reads, and of a bound of the mask inside them
  wgmma { pass = both, head_dim = { 64, 128, 256 }, mask = { "full", "causal" }, slices = true },
  wgmma { head_dim = 128, mask = "window(1023, 0)", score = "alibi", slices = true },
  mma { pass = both, head_dim = { 128, 256 }, mask = "causal", slices = true },
  -- parts of sequences, packed ones too
  wgmma { pass = both, head_dim = { 64, 128 }, mask = { "full", "causal" }, shard = true },
  wgmma { pass = both, head_dim = 128, mask = "causal", shard = true, q_layout = "packed", kv_layout = "packed" },
  wgmma { pass = both, head_dim = 128, mask = "window(1023, 0)", score = "alibi", shard = true },
  -- results in float32
  wgmma { head_dim = { 64, 128, 256 }, mask = "causal", o_dtype = "f32" },
  wgmma { head_dim = 128, mask = "causal", q_layout = "packed", kv_layout = "packed", o_dtype = "f32" },
  wgmma { pass = "backward", head_dim = { 64, 128, 256 }, mask = "causal", o_dtype = "f32", dqkv_dtype = "f32" },
  decode { head_dim = 128, mask = "causal", o_dtype = "f32" },
  decode { head_dim = { 64, 128 }, mask = "causal", kv_dtype = "e4m3", kv_layout = "paged" },
  -- descales of blocks of tokens
  wgmma { head_dim = 128, mask = "causal", dtype = "e4m3", descale_block = 128 },
  decode { head_dim = 128, mask = "causal", kv_dtype = "e4m3", descale_block = 64 },
  wgmma { head_dim = { 128, 256 }, mask = "causal", dtype = "e4m3" },
  mma { pass = both, head_dim = 128, mask = "causal", o_dtype = "f32", dqkv_dtype = "f32" },
  -- what Hopper takes of mma
  mma { pass = both, head_dim = { 64, 128 }, mask = "causal" },
  mma { head_dim = 64, bias = "grad", bias_dims = "h,q,k" },
  -- rows: a warp each, a block each, a cluster each
  { kernel = "logsoftmax", width = { 1000, 5000, 50257 }, pass = { "forward", "backward" } },
  { kernel = "logsoftmax", width = 128256, target = true, pass = { "forward", "backward" } },
  { kernel = "layernorm", width = { 1024, 8192 }, residual = true, bias = "grad", pass = { "forward", "backward" } },
  { kernel = "layernorm", width = 9000, bias = true, warps = 9 }, -- warps that a multiprocessor's parts do not share evenly
  { kernel = "layernorm", width = 16384, dtype = "f32", norm = "rms", pass = { "forward", "backward" } },
  -- layers: what is kept for backward is nothing, bits, a factor of each column; and tiles that are not the first
  { kernel = "linear", width = "1024/4096", pass = both, family = "wgmma", epilogue = { "none", "relu", "gelu" }, bias = "grad" },
  { kernel = "linear", width = 512, pass = both, family = "wgmma", epilogue = "swiglu", residual = true },
  { kernel = "linear", width = 512, family = "wgmma", block_kv = 128, epilogue = "silu" },
  { kernel = "linear", width = 1024, pass = both, family = "wgmma", epilogue = { "layernorm", "rmsnorm" }, residual = true },
  { kernel = "linear", width = 1024, pass = both, family = "mma", bias = true, dtype = "f16" },
  -- parts: a row for a part of a warp, a warp each
  { kernel = "combine", head_dim = 64 },
  { kernel = "combine", head_dim = 128, block_q = 4 },
  { kernel = "combine", head_dim = 128, dtype = "f32" },
  -- a cache: rows that turn, and rows as they are
  { kernel = "append", head_dim = 128, kv_layout = "paged", rotary = { "none", "halves" } },
  { kernel = "append", head_dim = 128, kv_dtype = "e4m3", kv_layout = "paged", rotary = "halves" },
}
