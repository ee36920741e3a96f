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

-- "act(x W^T + b) + residual" in the words of the spec.
local function formula()
  local h = hooks.has_bias and "x W^T + b" or "x W^T"
  local y = not hooks.epilogue.value and h or string.format("%s(%s)", spec.epilogue, h)
  return y .. (hooks.has_residual and " + residual" or "")
end

-- The tensors of forward.
function linear.forward(align)
  local d = linear.description(string.format("y = %s.", formula()), align)
  linear.add(d.inputs, "x", "w", hooks.has_bias and "bias" or nil)
  linear.add(d.inputs, hooks.has_residual and "residual" or nil)
  linear.add(d.outputs, "y", hooks.keeps and "keep?" or nil)
  return d
end

-- The tensors of backward, and its first and last steps, gradient.cut: dp, the gradient of h, which lies in scratch unless it is
-- dy, and its sums of columns, a part for each PART_ROWS rows. dp holds two numbers of the spec's type in each `count`.
local PART_ROWS, COLUMNS = 128, 256 -- of a block
function linear.backward(align)
  local d = linear.description(string.format("dp = dy act'(h), dx = dp W, dw = dp^T x of y = %s.", formula()), align)
  linear.add(d.inputs, "x", "w", "dy", hooks.keeps and "keep" or nil)
  linear.add(d.outputs, "dx", "dw", hooks.makes_dbias and "dbias" or nil)
  linear.add(d.constants, { "ROWS_OF_W", hooks.rows_of_w, "columns of h and of dp" }, { "WIDTH_IN", spec.width_in, "columns of x" },
             { "WIDTH_OUT", spec.width_out, "columns of y" }, { "RAW", 4, "words of eight columns" },
             { "ALIGNED", align >= 16 and 1 or 0, "whether rows are aligned to 16 bytes" })
  if hooks.keeps then d.regions[1] = { name = "dp", count = string.format("rows * %d", hooks.rows_of_w), elem = spec.elem } end
  if hooks.makes_dbias then
    linear.add(d.regions, { name = "sums", count = string.format("cdiv(rows, %d) * %d", PART_ROWS, hooks.rows_of_w) })
  end
  if not hooks.keeps and not hooks.makes_dbias then return d end
  local tiles = cdiv(hooks.rows_of_w, COLUMNS)
  linear.add(d.constants, { "PART_ROWS", PART_ROWS, "rows whose columns a block sums" },
             { "COLUMN_TILES", tiles, "tiles of 256 columns of dp" })
  linear.add(d.steps, { entry = "linear_bwd_dp", grid = { string.format("cdiv(rows, %d) * %d", PART_ROWS, tiles), "1", "1" },
                        threads = 256, registers = 40, work = tostring(PART_ROWS * COLUMNS),
                        shared = hooks.makes_dbias and { { "SM_SUMS", 8 * COLUMNS * 4, "sums of each warp [8][256], float32" } } or {} })
  if hooks.makes_dbias then
    linear.add(d.steps, { entry = "linear_bwd_dbias", grid = { tostring(cdiv(hooks.rows_of_w, 32)), "1", "1" }, threads = 256, registers = 32,
                          work = string.format("32 * cdiv(rows, %d)", PART_ROWS),
                          shared = { { "SM_GROUPS", 8 * 32 * 4, "sums of each warp's parts [8][32], float32" } } })
  end
  return d
end

-- dp in kernels behind that step: a text, and that of the elements between its rows.
function linear.dp() return hooks.keeps and "p.dp" or "p.dy", hooks.keeps and "(i64)ROWS_OF_W" or "p.dy_n" end

-- dw in parts, each of some of the rows, which a last step adds: `parts`, at most, and at least `rows` of each.
function linear.split(d, parts, rows)
  linear.add(d.constants, { "PARTS", parts, "parts of the rows whose products a block of dw sums, at most" },
             { "ROWS_OF_PART", rows, "rows of one, at least" })
  if parts == 1 then return "1" end
  local count = string.format("max(1, min(%d, rows / %d))", parts, rows)
  linear.add(d.regions, { name = "dw_parts", count = string.format("%s * %d", count, hooks.rows_of_w * spec.width_in) })
  return count
end

-- Does more than one part add to dw?
function linear.is_shared(parts) return parts > 1 end

function linear.add_parts(d, parts)
  if parts == 1 then return end
  linear.add(d.steps, { entry = "linear_bwd_dw_sum", grid = { tostring(cdiv(hooks.rows_of_w * spec.width_in, 8 * 256)), "1", "1" },
                        threads = 256, registers = 40, work = tostring(2048 * parts), shared = {} })
end

return linear
