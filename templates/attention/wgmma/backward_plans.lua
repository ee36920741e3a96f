-- backward_plans.lua: the plans of wgmma_backward in order of preference, and what they were measured at. The columns are
-- those of forward_plans.lua.
--
--   work      of a block for a key and a row, in units of mma's backward: a number, or a function of (spec)
local shape = run("attention/wgmma/shape.lua")
local columns = shape.columns
local function is_wide(spec) return run("attention/wgmma/backward_wide.lua").is_for(spec) and not shape.is_wide end

return {
  { block_q = 128, block_kv = 128, stages = 2, warps = 12,
    when = function(spec, traits) return columns(spec.d) <= 64 and columns(spec.dv) <= 64 and shape.score_is_light(traits) and #traits.input.grads == 0 end, work = 123,
    measured = { { "d 64, full, n 1024", 505 }, { "d 64, full, n 4096", 579 }, { "d 64, causal, n 4096", 544 } } },
  { block_q = 64, block_kv = 128, stages = 2, warps = 12, when = function(spec) return not is_wide(spec) and not shape.is_wide end,
    work = function(spec) return columns(math.max(spec.d, spec.dv)) > 64 and 121 or 145 end,
    measured = { { "d 64, full, n 4096", 496 }, { "d 64, causal, n 4096", 468 }, { "d 128, full, n 1024", 543 }, { "d 128, full, n 4096", 631 }, { "d 128, causal, n 4096", 592 } } },
  { block_q = 64, block_kv = 128, stages = 2, warps = 16, when = is_wide, work = 143 },
  { block_q = 64, block_kv = 128, stages = 3, warps = 16,
    when = function(spec) return is_wide(spec) and columns(math.max(spec.d, spec.dv)) <= 192 end, work = 143 },
  { block_q = 64, block_kv = 64, stages = 1, warps = 16, when = function() return shape.is_wide end, work = 143 },
}
