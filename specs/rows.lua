-- rows.lua: kernels of rows beside attention: norms with what is added before them, and the loss of a vocabulary.
local both, dtypes = { "forward", "backward" }, { "bf16", "f16" }
return {
  -- behind an output projection or a feed-forward net: z = x + bias + residual goes on beside its norm
  { kernel = "layernorm", pass = both, dtype = dtypes, width = { 512, 1024, 2048, 4096, 8192 },
    norm = { "layer", "rms" }, residual = true, bias = { "false", "grad" } },
  -- alone, also of a head's queries and keys
  { kernel = "layernorm", pass = both, dtype = dtypes, width = { 64, 128, 1024, 4096 }, norm = { "layer", "rms" } },

  { kernel = "logsoftmax", pass = both, dtype = dtypes, width = { 1000, 32000, 50257, 128256 }, target = { false, true } },
}
