-- contract.lua: what a spec of linear means to its families, the global `hooks`:
--
--   epilogue      its row of epilogue.lua; epilogue.value is nil where y is h
--   is_gated      rows of w are two halves, and so are columns of h: the gate, and what it is multiplied with
--   rows_of_w     columns of h
--   keeps         what forward leaves for backward, in the tensor keep: "bits" of words of 32 columns, "factors" of each column
--                 of h, which times dy are its gradient, or nil, nothing: that gradient is dy
--   kept_columns  columns of that tensor
--   kept_elem     their type
--   has_bias, makes_dbias, has_residual
--   norm          nil, or "layer" or "rms": rows of z = h + residual are normalised, and `out` takes y's place
--   has_mean      of a norm: whether the mean goes out of a row, and beta comes in
local epilogue = run("linear/epilogue.lua")[spec.epilogue]
local is_gated = epilogue.is_gated or false
local rows_of_w = is_gated and 2 * spec.width_out or spec.width_out
local keeps = epilogue.value and (epilogue.is_test and "bits" or "factors") or nil

return {
  epilogue = epilogue, is_gated = is_gated, rows_of_w = rows_of_w,
  keeps = keeps, kept_columns = keeps == "bits" and cdiv(rows_of_w, 32) or rows_of_w,
  kept_elem = keeps == "bits" and "i32" or spec.elem,
  has_bias = spec.bias ~= "false", makes_dbias = spec.bias == "grad", has_residual = spec.residual == "true",
  norm = epilogue.norm, has_mean = epilogue.norm == "layer",
}
