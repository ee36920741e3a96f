-- forward_plans.lua: the plans of wgmma_forward in order of preference, and what they were measured at.
--
--   block_q, block_kv, stages, warps   the plan
--   when      function(spec, traits): is it worth a try? nil: always
--   work      of a block for a key and 16 rows, in 140ths of what mma takes of an H100 or H200: a number, or a function of
--             (spec, traits)
--   measured  TFLOP/s, or milliseconds where it says so, in bfloat16 on an H200: { shape, rate } each
--
-- 16384 tokens and as many heads as make 2048 columns unless the shape says otherwise.
local shape = run("attention/wgmma/shape.lua")
local columns, tiled_input = shape.columns, shape.tiled_input

-- An input that differs from pair to pair and scores with tanh cost small tiles more.
local function of_small_tiles(work)
  return function(_, traits) return work + ((traits.score.has_tanh or tiled_input()) and 4 or 0) end
end
-- The largest product takes registers from wide tiles.
local function does_more(traits) return traits.max_logit end
local function wide(spec) return columns(spec.dv) > 96 and spec.d <= 128 end
-- Without sums of weights to try, more keys at a time are worth more than more rows.
local function is_simple(spec, traits) return wide(spec) and traits.norm.trial == nil and traits.norm.beside == nil and not tiled_input() and traits.mask.edge_count < 2 end

return {
  { block_q = 192, block_kv = 128, stages = 2, warps = 16, work = 60,
    measured = { { "d 64, full, n 1024", 519 }, { "d 64, full, n 8192", 667 }, { "d 64, causal, n 1024", 373 }, { "d 64, causal, n 8192", 589 } } },
  { block_q = 192, block_kv = 96, stages = 2, warps = 16,
    when = function(spec, traits) return columns(spec.dv) <= 96 and (columns(spec.dv) > 64 or traits.score.has_tanh or tiled_input() ~= nil) end,
    work = function(spec, traits) return columns(spec.dv) > 64 and 63 or traits.score.cap_of_ranges and 67 or 57 end,
    measured = { { "d 96, full, n 4096", 734 }, { "d 96, causal, n 4096", 638 }, { "d 64, dense bias, n 8192, ms", 1.38 }, { "d 64, softcap by its range, n 8192, ms", 2.71 }, { "d 64, softcap by its polynomial, n 4096, ms", 1.29 } } },
  { block_q = 256, block_kv = 64, stages = 2, warps = 20, -- few lengths leave rows of 256 over
    when = function(spec, traits) return columns(spec.dv) <= 64 and (traits.score.is_s or traits.score.rows_share_terms and traits.mask.edge_count > 0) end,
    work = 62,
    measured = { { "d 64, full, n 512, ms", 0.072 }, { "d 64, full, n 1024, ms", 0.123 }, { "d 64, full, n 8192, ms", 1.70 }, { "d 64, causal, n 512, ms", 0.059 }, { "d 64, causal, n 1024, ms", 0.082 }, { "d 64, causal, n 8192, ms", 0.884 },
              { "d 64, ALiBi, causal, n 1024, ms", 0.178 }, { "d 64, ALiBi, causal, n 8192, ms", 0.979 }, { "d 64, ALiBi, window 1023, n 8192, ms", 0.307 }, { "d 64, ALiBi, full, n 8192, ms", 1.86 } } },
  { block_q = 192, block_kv = 64, stages = 4, warps = 16, -- rows that see few keys
    when = function(spec, traits) return wide(spec) and traits.mask.edge_count > 1 and not tiled_input() end,
    work = of_small_tiles(65),
    measured = { { "d 128, window 1023, n 8192, ms", 0.196 }, { "d 128, full, n 8192, ms", 1.431 } } },
  { block_q = 192, block_kv = 64, stages = 2, warps = 16, when = function(spec, traits) return (wide(spec) or does_more(traits)) and not is_simple(spec, traits) end, work = of_small_tiles(67),
    measured = { { "d 128, full, n 8192", 811 }, { "d 128, causal, n 8192", 785 }, { "d 128, full, n 8192, 80 keys", 800 }, { "d 128, causal, n 8192, 80 keys", 769 }, { "d 128, full, n 8192, 3 tiles in flight", 792 }, { "d 128, causal, n 8192, 3 tiles in flight", 760 },
              { "d 128, window 1023, n 8192, ms", 0.197 }, { "d 96, full, n 4096", 695 }, { "d 96, causal, n 4096", 613 },
                 { "d 128, full, retention, n 4096, ms", 0.733 }, { "d 128, causal, retention, n 4096, ms", 0.402 }, { "d 128, full, sigmoid, n 4096, ms", 0.880 }, { "d 128, causal, sigmoid, n 4096, ms", 0.461 }, { "d 128, full, none, n 4096, ms", 0.646 },
                 { "d 64, full, dropout, n 4096, ms", 2.320 }, { "d 64, causal, dropout, n 4096, ms", 1.286 }, { "d 128, full, dropout, n 4096, ms", 1.451 }, { "d 128, causal, dropout, n 4096, ms", 0.778 } } },
  { block_q = 128, block_kv = 128, stages = 2, warps = 12, work = 70,
    measured = { { "d 128, full, n 1024", 707 }, { "d 128, full, n 8192", 782 }, { "d 128, causal, n 1024", 526 }, { "d 128, causal, n 8192", 752 }, { "d 64, full, n 1024", 439 }, { "d 64, full, n 8192", 481 },
                 { "d 128, full, retention, n 4096, ms", 0.689 }, { "d 128, causal, retention, n 4096, ms", 0.366 }, { "d 128, full, sigmoid, n 4096, ms", 0.836 }, { "d 128, causal, sigmoid, n 4096, ms", 0.446 }, { "d 128, full, none, n 4096, ms", 0.632 },
                 { "d 64, full, dropout, n 4096, ms", 2.061 }, { "d 64, causal, dropout, n 4096, ms", 1.083 }, { "d 128, causal, dropout, n 4096, ms", 0.732 } } },
  { block_q = 128, block_kv = 96, stages = 2, warps = 12, work = 80, -- d 192, dropout
    measured = { { "d 128, full, n 1024", 644 }, { "d 128, full, n 8192", 719 }, { "d 64, full, n 1024", 406 }, { "d 64, full, n 8192", 450 },
                 { "d 64, full, dropout, n 4096, ms", 2.157 }, { "d 64, causal, dropout, n 4096, ms", 1.113 }, { "d 128, full, dropout, n 4096, ms", 1.396 }, { "d 128, causal, dropout, n 4096, ms", 0.717 } } },
  { block_q = 128, block_kv = 64, stages = 2, warps = 12, work = of_small_tiles(80),
    measured = { { "d 256, full, n 1024", 709 }, { "d 256, full, n 8192", 844 }, { "d 256, causal, n 1024", 524 }, { "d 256, causal, n 8192", 827 }, { "d 128, full, n 1024", 620 }, { "d 128, full, n 8192", 686 } } },
}
