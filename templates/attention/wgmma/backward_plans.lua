-- backward_plans.lua: the plans of wgmma_backward in order of preference, and what they were measured at. The columns are
-- those of forward_plans.lua.
--
--   work      of a block for a key and a row, in units of mma's backward: a number, or a function of (spec)
local columns = run("attention/wgmma/shape.lua").columns

-- Does the score take hardly more registers than s itself?
local function is_light(traits)
  local dense_gradient = false
  for _, x in ipairs(traits.input.grads) do dense_gradient = dense_gradient or x.kind == "dense" end
  return traits.ds_follows_from_p and not traits.input.differs_by_key and not dense_gradient
end

return {
  { block_q = 128, block_kv = 128, stages = 2, warps = 12,
    when = function(spec, traits) return columns(spec.d) <= 64 and columns(spec.dv) <= 64 and is_light(traits) end, work = 123,
    measured = { { "d 64, full, n 1024", 455 }, { "d 64, full, n 4096", 579 }, { "d 64, causal, n 4096", 518 } } },
  { block_q = 64, block_kv = 128, stages = 2, warps = 12,
    work = function(spec) return columns(math.max(spec.d, spec.dv)) > 64 and 121 or 145 end,
    measured = { { "d 64, full, n 4096", 492 }, { "d 64, causal, n 4096", 456 }, { "d 128, full, n 1024", 503 }, { "d 128, full, n 4096", 635 }, { "d 128, causal, n 4096", 576 } } },
}
