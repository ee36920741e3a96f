-- forward_plans_e4m3.lua: the plans of decode_forward for k and v of e4m3, as forward_plans.lua has them. A key has half the bytes: a tile
-- has twice the keys, or a block more warps. More of them hide what widening costs.
local function is_narrow(spec) return spec.d + spec.dv <= 160 end
local is_wide = run("attention/decode/shape.lua").is_wide
local function is_usual(spec) return not is_narrow(spec) and not is_wide(spec) end

return {
  { block_q = 8, block_kv = 32, stages = 3, warps = 8, when = is_usual, about = "up to 8 query heads a key/value head, one row" },
  { block_q = 8, block_kv = 32, stages = 4, warps = 8, when = is_narrow, about = "the same" },
  { block_q = 8, block_kv = 16, stages = 3, warps = 6, when = is_wide, about = "the same" },
  { block_q = 8, block_kv = 16, stages = 4, warps = 8, when = is_usual, about = "the same; many masks and scores leave registers to fewer keys" },
  { block_q = 8, block_kv = 32, stages = 3, warps = 4, when = is_usual, about = "the same; machines with less shared memory" },
  { block_q = 8, block_kv = 32, stages = 4, warps = 4, when = is_narrow, about = "the same" },
  { block_q = 8, block_kv = 16, stages = 2, warps = 4, about = "the same" },
  { block_q = 16, block_kv = 32, stages = 3, warps = 6, when = is_usual, about = "16 rows" },
  { block_q = 16, block_kv = 32, stages = 4, warps = 8, when = is_narrow, about = "the same" },
  { block_q = 16, block_kv = 16, stages = 2, warps = 4, about = "the same; machines with less shared memory" },
  { block_q = 64, block_kv = 32, stages = 4, warps = 8, when = function(spec) return not is_wide(spec) end, about = "draft rows: 16 of 4 heads" },
  { block_q = 64, block_kv = 16, stages = 4, warps = 8, when = is_wide, about = "the same; fewer keys leave registers to wider heads" },
}
