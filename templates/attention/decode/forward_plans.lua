-- forward_plans.lua: the plans of decode_forward, best guess first. Columns besides a plan's:
--   when      function(spec): of which specs the plan is a candidate; absent: of all
--   about     what it is good for
-- A warp has its own stages. What is in flight on a multiprocessor is what it reads in the time of an access to memory, and
-- more: 64 KB. A tile of keys is about 8 KB of K and V, so that the copies of one are enough for each lane. A multiprocessor has one
-- block: heads whose rows lie side by side in memory go over the same keys at the same time then (line.cut). measured: what, with the
-- plan and with blocks of half the size, two a multiprocessor (H200, bf16, 32/8 heads of 128 columns, 64/8 of 64).
local function is_narrow(spec) return spec.d + spec.dv <= 160 end
local function is_usual(spec) return spec.d + spec.dv > 160 and spec.d + spec.dv <= 320 end
local is_wide = run("attention/decode/shape.lua").is_wide

return {
  { block_q = 8, block_kv = 16, stages = 3, warps = 6, when = is_usual, about = "up to 8 query heads a key/value head, one row",
    measured = { "us, 64 sequences of 2048 keys", 127.2, 130.0 } },
  { block_q = 8, block_kv = 32, stages = 4, warps = 4, when = is_narrow, about = "the same", measured = { "us, 64 sequences of 2048 keys", 67.3, 69.6 } },
  { block_q = 8, block_kv = 32, stages = 3, warps = 6, when = is_narrow, about = "the same; pages, which are looked up" },
  { block_q = 8, block_kv = 16, stages = 3, warps = 4, when = is_wide, about = "the same" },
  { block_q = 8, block_kv = 16, stages = 2, warps = 4, when = function(spec) return not is_narrow(spec) end, about = "the same; machines with less shared memory" },
  { block_q = 8, block_kv = 32, stages = 2, warps = 4, when = is_narrow, about = "the same" },
  { block_q = 16, block_kv = 16, stages = 3, warps = 6, when = is_usual, about = "16 rows" },
  { block_q = 16, block_kv = 32, stages = 3, warps = 6, when = is_narrow, about = "the same" },
  { block_q = 16, block_kv = 16, stages = 2, warps = 4, about = "the same; machines with less shared memory" },
  { block_q = 64, block_kv = 32, stages = 3, warps = 8, when = function(spec) return spec.d + spec.dv <= 256 end, about = "draft rows: 16 of 4 heads" },
  { block_q = 64, block_kv = 16, stages = 4, warps = 8, when = function(spec) return spec.d + spec.dv > 256 end, about = "the same; fewer keys leave registers to wider heads" },
}
