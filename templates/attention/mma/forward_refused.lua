-- forward_refused.lua: plans of mma_forward that compilers refuse, because they spill. Rows:
--   what      of which kernels, in words
--   on        instruction sets of the machines where they do (`machine`: "hopper"); absent: all
--   when      function(spec, plan, traits): which they are
--   spare     registers that family.registers() must leave free there, or the plan is refused: a number, or
--             function(plan)
--   cause     of the rows of one cause the largest spare counts, and those of several causes add up
--   spilled   bytes, by kernel
--   compiler  the one that refused
local mma, heads = run("attention/mma/mma.lua"), run("attention/heads.lua")
local COMPILER = "NVRTC 13.0"

local function has_32_rows(plan) return plan.block_q // plan.warps > 16 end
local function scores(plan) return plan.block_q // plan.warps * plan.block_kv // 32 end
local function third_of_scores(plan) return scores(plan) // 3 end
local function is_scored(traits) return not traits.score.is_s end
local function is_masked(traits) return traits.mask.edge_count > 0 end

local rows = {
  { cause = "e4m3", what = "warps of 32 rows of e4m3",
    when = function(_, plan) return types.p.is_byte and has_32_rows(plan) end,
    spare = 255, spilled = { { "d 64", 56 }, { "d 64, sm_89", 8 } } },
  { cause = "e4m3", what = "more than 32 keys and 64 columns of V of e4m3", on = { "hopper" },
    when = function(spec, plan) return types.p.is_byte and plan.block_kv > 32 and spec.dv > 64 end,
    spare = 255, spilled = { { "d 128", 48 }, { "d 192/128", 88 }, { "d 256", 132 } } },
  { cause = "descale", what = "descales of blocks, the largest product and a score beside widened keys of more than 128 columns, more than 32 at a time",
    when = function(spec, plan, traits)
      local has_blocks = mma.is_widened and traits.descale.is_of_blocks
      return has_blocks and traits.max_logit and is_scored(traits) and math.max(spec.d, spec.dv) > 128 and plan.block_kv > 32
    end,
    spare = 255, spilled = { { "d 256, a slope, dilated(4), packed queries and pages", 124 }, { "d 256, a slope, dilated(4), slices", 24 } } },
  { cause = "dropout", what = "warps of 32 rows with dropout",
    when = function(_, plan, traits) return traits.norm.drop ~= nil and has_32_rows(plan) end,
    spare = 255, spilled = { { "d 64", 172 }, { "d 128", 252 } } },
  { cause = "dropout", what = "dropout and more than 208 columns of V",
    when = function(spec, _, traits) return traits.norm.drop ~= nil and mma.columns_of_block(spec) > 208 end,
    spare = 56, spilled = { { "d 256", 72 } } },
  { cause = "max_logit", what = "warps of 32 rows that make the largest product, beside a score or a mask with holes",
    when = function(_, plan, traits)
      return traits.max_logit and has_32_rows(plan) and (is_scored(traits) or not traits.mask.row_sees_a_range)
    end,
    spare = 255, spilled = { { "d 64, a slope", 192 }, { "d 128, a slope", 276 } } },
  { cause = "score", what = "tanh beside more than 256 columns of K, whose S comes in parts, and more than 32 keys",
    when = function(spec, plan, traits) return traits.score.has_tanh and spec.d > heads.NARROW and mma.columns_of_block(spec) > 208 and plan.block_kv > 32 end,
    spare = 255, spilled = { { "d 576/512, softcap(30.0), 64 rows", 160 } } },
  { cause = "slices", what = "slices, whose places are held, beside more than 256 columns of K and more than 32 keys",
    when = function(spec, plan) return seq.slices and spec.d > heads.NARROW and mma.columns_of_block(spec) > 208 and plan.block_kv > 32 end,
    spare = 56, spilled = { { "d 512", 88 } } },
  { cause = "widths", what = "a second accumulator of rows of no multiple of 128 bytes beside more than 256 columns of K",
    when = function(spec, plan, traits)
      return traits.norm.beside ~= nil and spec.d > heads.NARROW and mma.columns_of_block(spec) % 64 > 0 and plan.block_kv > 32
    end,
    spare = 40, spilled = { { "d 344", 60 } } },
  { cause = "layout", what = "sequences that are not dense, whose lengths and places are held",
    when = function() return not seq.is_dense end,
    spare = 32, spilled = { { "d 64, packed, sm_80", 68 }, { "d 128, packed, sm_80", 280 }, { "d 128, paged, a slope, a window", 260 }, { "d 40, paged, a window", 44 } } },
  { cause = "layout", what = "the same beside a score and more than 208 columns of V",
    when = function(spec, _, traits) return not seq.is_dense and is_scored(traits) and spec.dv > 208 end,
    spare = 48, spilled = { { "d 256, cached, causal, a slope", 20 } } },
  { cause = "widths", what = "warps of 32 rows with a V wider than K, whose loop over d leaves nothing to wait for",
    when = function(spec, plan) return has_32_rows(plan) and spec.dv > spec.d end,
    spare = 16, spilled = { { "d 64/128", 72 }, { "d 128/256", 56 } } },
  { cause = "widths", what = "the same with warps of 16 rows and a score",
    when = function(spec, plan, traits)
      return not has_32_rows(plan) and is_scored(traits) and plan.block_kv > 32 and spec.dv > spec.d
    end,
    spare = scores, spilled = { { "d 64/128, a score", 72 } } },
  { cause = "widths", what = "warps of 32 rows with a K wider than V",
    when = function(spec, plan) return has_32_rows(plan) and spec.d > spec.dv end,
    spare = 32, spilled = { { "d 192/128, sm_80", 236 }, { "d 128/64, sm_80", 192 } } },
  { cause = "widths", what = "warps of 32 rows whose V has rows of no multiple of 128 bytes",
    when = function(spec, plan) return has_32_rows(plan) and spec.dv % 64 > 0 end,
    spare = 16, spilled = { { "d 96, a mask", 72 }, { "d 96, a score", 160 } } },

  { cause = "scores", what = "warps of 32 rows on sm_100", on = { "blackwell" },
    when = function(spec, plan) return has_32_rows(plan) end,
    spare = 32, spilled = { { "d 64", 24 }, { "d 128", 256 } } },
  { cause = "scores", what = "warps of 32 rows with a score of tanh on sm_100", on = { "blackwell" },
    when = function(spec, plan, traits) return has_32_rows(plan) and traits.score.has_tanh end,
    spare = 56, spilled = { { "d 128, a cap", 52 } } },
  { cause = "scores of sm_100", what = "warps of 16 rows with a score on sm_100", on = { "blackwell" },
    when = function(spec, plan, traits) return not has_32_rows(plan) and is_scored(traits) and plan.block_kv > 32 end,
    spare = scores, spilled = { { "d 256, an input", 12 }, { "d 256, a cap", 52 } } },
  { cause = "scores", what = "warps of 32 rows under a mask with holes",
    when = function(spec, plan, traits) return has_32_rows(plan) and (traits.mask.has_gaps.keys or false) end,
    spare = third_of_scores, spilled = { { "d 64, documents", 132 }, { "d 64, dilated", 48 } } },
  { cause = "scores", what = "warps of 32 rows with a score that differs from key to key, as |k - p|",
    when = function(spec, plan, traits) return has_32_rows(plan) and traits.score.is_uneven_in_k end,
    spare = third_of_scores, spilled = { { "d 64", 8 } } },
  { cause = "scores", what = "warps of 32 rows with a score on sm_80", on = { "ampere" },
    when = function(spec, plan, traits) return has_32_rows(plan) and is_scored(traits) end,
    spare = third_of_scores, spilled = { { "d 64", 56 } } },
  { cause = "scores", what = "warps of 32 rows and more than 64 keys with a mask and a score",
    when = function(spec, plan, traits)
      return has_32_rows(plan) and is_scored(traits) and is_masked(traits) and plan.block_kv > 64
    end,
    spare = third_of_scores, spilled = { { "d 64, causal, ALiBi", 12 } } },
  { cause = "scores", what = "warps of 32 rows with a K wider than V, a mask and a score",
    when = function(spec, plan, traits)
      return has_32_rows(plan) and is_scored(traits) and is_masked(traits) and spec.d > spec.dv
    end,
    spare = third_of_scores, spilled = { { "d 192/128, causal, ALiBi", 220 } } },
  { cause = "scores", what = "warps of 32 rows whose O and S are large, with a mask and tanh that is no cap",
    when = function(spec, plan, traits)
      return has_32_rows(plan) and is_masked(traits) and traits.score.has_tanh and not traits.score.cap and
        16 * cdiv(spec.dv, 16) + plan.block_kv > 160
    end,
    spare = third_of_scores, spilled = {} },
  { cause = "scores", what = "warps of 32 rows and more than 64 keys with several terms of tanh, and no mask",
    on = { "hopper", "blackwell" },
    when = function(spec, plan, traits)
      return has_32_rows(plan) and traits.score.tanh_count > 1 and plan.block_kv > 64 and not is_masked(traits) and
        not traits.mask.has_gaps.keys and not traits.score.is_uneven_in_k
    end,
    spare = function(plan) return scores(plan) // 2 end, spilled = { { "d 40", 148 } } },
}

return { rows = rows, compiler = COMPILER }
