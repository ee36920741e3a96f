-- simt.lua: new rows of keys and values to their places in a cache, keys turned by their positions, and so queries to a
-- tensor of their own (mathematics.md section 5), on any arch. A warp has a row of one of the tensors, with all its heads: LANES lanes
-- have the columns of a head, 8 each, in turns where they are many, so that cosines and sines are read once for all heads.
local append = run("attention/append/rows.lua")

local function applies(spec)
  if spec.kv_layout ~= "cached" and spec.kv_layout ~= "paged" then
    return false, string.format("kv_layout=%s is no cache: give cached or paged", spec.kv_layout)
  end
  if append.turns and append.pairs * 2 > spec.d then
    return false, string.format("rotary_dim=%d is more than the head dim, %d", append.pairs * 2, spec.d)
  end
  return true
end

local function describe(spec, plan)
  local turns, packed = append.turns, append.is_packed
  local inputs = { "k_new", "v_new", "used_k" }
  local function add(...) table.move({ ... }, 1, select("#", ...), #inputs + 1, inputs) end
  if packed then add("starts_q", "used_q?") end
  if append.is_paged then add("table") else add("rows?") end
  if append.is_quantized then add("k_descale?", "v_descale?") end
  if turns then add("q?", "rotary_cos", "rotary_sin", "row_positions?") end
  return {
    about = string.format("new keys and values into a cache%s%s.", append.is_quantized and " of e4m3" or "", turns and ", keys and queries turned by their positions" or ""),
    align = 2,
    widths = { pairs = append.pairs },
    inputs = inputs,
    outputs = { "k+", "v+", turns and "q_out?" or nil },
    regions = {},
    steps = {
      { entry = "append", grid = { string.format("cdiv(%s, %d)", packed and "tokens_q" or "b * nq", plan.block_q), turns and "3" or "2", "1" },
        threads = 32 * plan.warps, registers = 64, work = tostring(plan.block_q * math.max(spec.d, spec.dv)) },
    },
    constants = {
      { "D", spec.d, "columns of a query and a key" },
      { "DV", spec.dv, "of a value" },
      { "PAIRS", append.pairs, "pairs of columns that turn" },
      { "ROWS", plan.block_q, "rows of a block, a warp each" },
      { "AHEAD", append.ahead, "heads whose loads are under way together" },
    },
    shared = {},
  }
end

return {
  template = "attention/append/simt.cut", library = { "tile/sequences.cut", "attention/append/columns.cut" },
  applies = applies,
  candidates = function() return { { block_q = 4, warps = 4 }, { block_q = 1, warps = 1 } } end,
  describe = describe,
}
