-- forward_plans_e4m3.lua: the plans of wgmma_forward for 8-bit numbers, as forward_plans.lua has those of 16 bits. Products whose sums
-- go to O apart take registers of their own, and V is turned by a warp. Nothing is measured yet.
local columns = run("attention/wgmma/shape.lua").columns

-- Other scores than the product, inputs, the largest product, and where a sequence is take registers from wide tiles.
local function is_plain(traits) return traits.score.is_s and not traits.max_logit end
local function reads_pairs(traits) return traits.input.differs_by_pair or traits.max_logit end

return {
  { block_q = 128, block_kv = 128, stages = 2, warps = 12, work = 45,
    when = function(spec, traits) return columns(spec.dv) <= 64 or columns(spec.dv) <= 128 and is_plain(traits) and not seq.is_packed("q") end },
  { block_q = 128, block_kv = 96, stages = 2, warps = 12, work = 50,
    when = function(spec, traits) return not reads_pairs(traits) and (is_plain(traits) or columns(spec.dv) <= 64 or not seq.is_packed("q")) end },
  { block_q = 128, block_kv = 64, stages = 2, warps = 12, work = 55, when = function(spec) return columns(spec.dv) <= 128 end },
}
