-- kinds.lua: what each kind of kernel (spec field `kernel`) is made of.
--
--   hooks     the file that gives its families what a spec means, as the global `hooks`; nil: its fields say all
--   tensors   names of tensors that have a type: the members of the global `types`
--   sequence  the file of the layout of sequences, the global `seq`; nil: a kind without sequences
--   words     the fields of a spec that name Lua files of a folder, { name =, folder = }, or rows of the table that a file
--             returns, { name =, file = }; nil: there are none
--   families  for each pass those that compute it, in order of preference
--   family    the name of a family's file for a pass, without its ending; what belongs to it has the same beginning
return {
  attention = {
    hooks = "attention/contract.lua",
    tensors = { "q", "k", "v", "p", "o", "dout", "dq", "dk", "dv", "operand" },
    sequence = "attention/sequence/sequence.lua",
    words = { { name = "normalizer", folder = "attention/normalizers" } },
    families = { forward = { "wgmma", "mma", "decode", "simt" }, backward = { "wgmma", "mma", "simt" } },
    family = function(name, pass) return string.format("attention/%s/%s", name, pass) end,
  },
  append = {
    tensors = { "k", "k_new" },
    families = { forward = { "simt" } },
    family = function(name) return "attention/append/" .. name end,
  },
  combine = {
    tensors = { "o" },
    words = { { name = "normalizer", folder = "attention/normalizers" } },
    families = { forward = { "simt" } },
    family = function(name) return "attention/combine/" .. name end,
  },
  layernorm = {
    tensors = { "x" },
    families = { forward = { "simt" }, backward = { "simt" } },
    family = function(name, pass) return string.format("layernorm/%s/%s", name, pass) end,
  },
  linear = {
    hooks = "linear/contract.lua",
    tensors = { "x", "operand" },
    words = { { name = "epilogue", file = "linear/epilogue.lua" } },
    families = { forward = { "wgmma", "mma", "simt" }, backward = { "wgmma", "mma", "simt" } },
    family = function(name, pass) return string.format("linear/%s/%s", name, pass) end,
  },
  logsoftmax = {
    tensors = { "x" },
    families = { forward = { "simt" }, backward = { "simt" } },
    family = function(name, pass) return string.format("logsoftmax/%s/%s", name, pass) end,
  },
}
