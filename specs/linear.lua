-- linear.lua: the layers of a block: projections beside attention, and feed-forward nets, with what each adds behind its product.
local both, dtypes = { "forward", "backward" }, { "bf16", "f16" }

local function layers(spec)
  spec.kernel, spec.pass, spec.dtype = "linear", both, dtypes
  return spec
end

return {
  -- of queries, keys and values; behind attention, where the residual stream is added
  layers { width = { 1024, 4096, 8192 }, bias = { "false", "grad" }, residual = { false, true } },
  -- behind attention, as a block that normalises what it adds
  layers { width = { 512, 1024 }, bias = { "false", "grad" }, residual = true, epilogue = { "layernorm", "rmsnorm" } },
  -- a feed-forward net with a bias: up with an activation, down onto the residual stream
  layers { width = { "512/2048", "1024/4096", "4096/16384" }, bias = "grad", epilogue = { "relu", "gelu", "gelu_erf", "silu" } },
  layers { width = { "2048/512", "4096/1024", "16384/4096" }, bias = "grad", residual = true },
  -- a gated one, without a bias
  layers { width = { "1024/2816", "4096/14336" }, epilogue = { "swiglu", "geglu", "reglu" } },
  layers { width = { "2816/1024", "14336/4096" }, residual = true },
}
