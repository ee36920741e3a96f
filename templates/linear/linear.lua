-- linear.lua: what families of linear share: the descriptions of passes around the products, which are a family's own.
local linear = {}

-- What all descriptions say of a spec.
function linear.description(about, align)
  return {
    about = about, align = align,
    widths = { rows_of_w = hooks.rows_of_w, kept_columns = hooks.kept_columns },
    elems = { keep = hooks.kept_elem },
    inputs = {}, outputs = {}, regions = {}, steps = {}, constants = {}, shared = {},
  }
end

function linear.add(list, ...)
  for _, item in ipairs({ ... }) do list[#list + 1] = item end
end

-- "y = act(x W^T + b) + residual" in the words of the spec.
local function formula()
  local h = hooks.has_bias and "x W^T + b" or "x W^T"
  local residual = hooks.has_residual and " + residual" or ""
  if hooks.norm then return string.format("out = %s(%s%s)", spec.epilogue, h, residual) end
  return "y = " .. (hooks.epilogue.value and string.format("%s(%s)", spec.epilogue, h) or h) .. residual
end

-- The tensors of forward.
function linear.forward(align)
  local d = linear.description(formula() .. ".", align)
  linear.add(d.inputs, "x", "w", hooks.has_bias and "bias" or nil)
  linear.add(d.inputs, hooks.has_residual and "residual" or nil)
  if hooks.norm then
    linear.add(d.inputs, "gamma", hooks.has_mean and "beta?" or nil)
    linear.add(d.outputs, "out", "z?", "rstd?", hooks.has_mean and "mean?" or nil)
    d.numbers = { "eps" }
  else
    linear.add(d.outputs, "y", hooks.keeps and "keep?" or nil)
  end
  return d
end

-- Columns of a row that a cluster of blocks holds at most, to normalise it in registers.
linear.fits_cluster = spec.width_out <= 2048

-- A forward whose blocks have parts of rows leaves z in scratch, as float32, and a last step normalises its rows: norm.cut.
function linear.add_norm(d, align)
  if not hooks.norm then return d end
  local rows = 4 -- of a block, a warp each
  d.regions[1] = { name = "sums", count = string.format("rows * %d", spec.width_out) }
  linear.add(d.constants, { "RAW", 4, "words of eight columns" }, { "ALIGNED", align >= 16 and 1 or 0, "whether rows are aligned to 16 bytes" },
             { "NORM_ROWS", rows, "rows of a block that normalises" })
  linear.add(d.steps, { entry = "linear_fwd_norm", grid = { string.format("cdiv(rows, %d)", rows), "1", "1" }, threads = 32 * rows,
                        registers = 48, work = tostring(3 * rows * spec.width_out), shared = {} })
  return d
end

-- What backward adds up over rows, in the order in which sums lie.
linear.sums = {}
if hooks.norm then linear.add(linear.sums, "dgamma") end
if hooks.has_mean then linear.add(linear.sums, "dbeta") end
if hooks.makes_dbias then linear.add(linear.sums, "dbias") end
local has_sums = #linear.sums > 0

-- Where dp, the gradient of h, lies: with a norm it is the residual's, and else dy unless forward has kept factors of it.
linear.dp = hooks.norm and "dresidual" or hooks.keeps and "dp" or "dy"

-- The same in a kernel: texts, of its first element and of those between its rows.
function linear.dp_at() return "p." .. linear.dp, linear.dp == "dp" and "(i64)ROWS_OF_W" or string.format("p.%s_n", linear.dp) end

-- The tensors of backward, and its first and last steps, gradient.cut: dp, and sums of columns, a part for each PART_ROWS rows.
local PART_ROWS, COLUMNS, ROW_WARPS = 32, 256, 4 -- of a block
function linear.backward(align)
  local gradient = hooks.norm and "dp = norm'(z) dout + dz" or "dp = dy act'(h)"
  local d = linear.description(string.format("%s, dx = dp W, dw = dp^T x of %s.", gradient, formula()), align)
  if hooks.norm then
    linear.add(d.inputs, "x", "w", "dout", "z", "gamma", "rstd", "dz?", hooks.has_mean and "mean" or nil)
    linear.add(d.outputs, "dx?", "dw?", "dresidual", "dgamma", hooks.has_mean and "dbeta?" or nil)
    linear.add(d.outputs, hooks.makes_dbias and "dbias" or nil)
    d.numbers = { "eps" } -- which is in rstd: a launch may have it as its forward has
  else
    linear.add(d.inputs, "x", "w", "dy", hooks.keeps and "keep" or nil)
    linear.add(d.outputs, "dx?", "dw?", hooks.makes_dbias and "dbias" or nil)
  end
  linear.add(d.inputs, "dx_more?")
  linear.add(d.constants, { "ROWS_OF_W", hooks.rows_of_w, "columns of h and of dp" }, { "WIDTH_IN", spec.width_in, "columns of x" },
             { "WIDTH_OUT", spec.width_out, "columns of y" }, { "RAW", 4, "words of eight columns" },
             { "ALIGNED", align >= 16 and 1 or 0, "whether rows are aligned to 16 bytes" })
  if hooks.keeps then d.regions[1] = { name = "dp", count = string.format("rows * %d", hooks.rows_of_w), elem = spec.elem } end
  if has_sums then
    linear.add(d.regions, { name = "sums", count = string.format("cdiv(rows, %d) * %d", PART_ROWS, #linear.sums * hooks.rows_of_w) })
  end
  if hooks.norm then
    linear.add(d.regions, { name = "means", count = "2 * rows" })
    linear.add(d.constants, { "NORM_ROWS", ROW_WARPS, "rows of a block, a warp each" })
    linear.add(d.steps, { entry = "linear_bwd_means", grid = { string.format("cdiv(rows, %d)", ROW_WARPS), "1", "1" }, threads = 32 * ROW_WARPS,
                          registers = 48, early = machine.pdl or nil, work = tostring(2 * ROW_WARPS * spec.width_out), shared = {} })
  end
  if not hooks.keeps and not has_sums then return d end
  local tiles = cdiv(hooks.rows_of_w, COLUMNS)
  linear.add(d.constants, { "PART_ROWS", PART_ROWS, "rows whose columns a block sums" }, { "WARP_ROWS", PART_ROWS // 8, "of which a warp has so many" },
             { "COLUMN_TILES", tiles, "tiles of 256 columns of dp" })
  linear.add(d.steps, { entry = "linear_bwd_dp", grid = { string.format("cdiv(rows, %d) * %d", PART_ROWS, tiles), "1", "1" },
                        threads = 256, registers = hooks.norm and 128 or 80, early = machine.pdl or nil, work = tostring(PART_ROWS * COLUMNS),
                        shared = has_sums and { { "SM_SUMS", #linear.sums * 8 * COLUMNS * 4, "sums of each warp [sums][8][256], float32" } } or {} })
  if has_sums then
    linear.add(d.steps, { entry = "linear_bwd_sums", grid = { tostring(cdiv(hooks.rows_of_w, 32)), tostring(#linear.sums), "1" }, threads = 256, registers = 32, early = machine.pdl or nil,
                          work = string.format("32 * cdiv(rows, %d)", PART_ROWS),
                          shared = { { "SM_GROUPS", 8 * 32 * 4, "sums of each warp's parts [8][32], float32" } } })
  end
  return d
end

-- dw in parts, each of some of the rows, which a last step adds. of: `few` parts at least and `most` at most, as many as have at most
-- `long` rows, where each has `least` rows. Gives how many, for a recipe; count_parts: the same in a kernel.
function linear.split(d, of)
  linear.add(d.constants, { "PARTS", of.most, "parts of the rows whose products a block of dw sums, at most" })
  if of.most == 1 then return "1" end
  linear.add(d.constants, { "FEW_PARTS", of.few, "of them, at least" }, { "LONG_PART", of.long, "rows of one, at most, while there are less than PARTS" },
             { "ROWS_OF_PART", of.least, "rows of one, at least" })
  local count = string.format("max(1, min(rows / %d, max(%d, min(%d, cdiv(rows, %d)))))", of.least, of.few, of.most, of.long)
  linear.add(d.regions, { name = "dw_parts", count = string.format("%s * %d", count, hooks.rows_of_w * spec.width_in) })
  return count
end
linear.count_parts = "imax(1, imin(p.rows / ROWS_OF_PART, imax(FEW_PARTS, imin(PARTS, cdiv(p.rows, LONG_PART)))))"

-- Does more than one part add to dw?
function linear.is_shared(parts) return parts > 1 end

function linear.add_parts(d, parts)
  if parts == 1 then return end
  linear.add(d.steps, { entry = "linear_bwd_dw_sum", grid = { tostring(cdiv(hooks.rows_of_w * spec.width_in, 8 * 256)), "1", "1" },
                        threads = 256, registers = 40, early = machine.pdl or nil, work = tostring(2048 * parts), shared = {} })
end

return linear
