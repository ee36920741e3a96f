-- forward_plans_e4m3.lua: the plans of wgmma_forward for 8-bit numbers, as forward_plans.lua has those of 16 bits. Products whose sums
-- go to O apart take registers of their own, beside a wide O those of S, and V is turned by a warp. measured: TFLOP/s on an H200, 16 heads of 32768
-- tokens together; at this power one kernel differs from itself by 5 %.
local columns = run("attention/wgmma/shape.lua").columns

-- Other scores than the product, inputs, the largest product, and where a sequence is take registers from wide tiles.
local function is_plain(traits) return traits.score.is_s and not traits.max_logit end
local function reads_pairs(traits) return traits.input.differs_by_pair or traits.max_logit end

return {
  { block_q = 128, block_kv = 160, stages = 2, warps = 12, work = 41, when = function(spec, traits) return columns(spec.dv) <= 128 and is_plain(traits) and not seq.is_packed("q") and not seq.is_paged() end,
    measured = { { "d 128, full, n 8192", 940 }, { "d 128, full, n 8192, parts", 964 }, { "d 128, full, n 16384, parts", 951 }, { "d 128, causal, n 8192", 936 }, { "d 128, causal, n 16384", 958 },
              { "d 192/128, full, n 8192", 1072 }, { "d 192/128, causal, n 8192", 1039 }, { "d 64, full, n 8192", 599 }, { "d 64, causal, n 8192", 595 } } },
  { block_q = 128, block_kv = 128, stages = 2, warps = 12, work = 42,
    measured = { { "d 128, full, n 8192", 957 }, { "d 128, causal, n 8192", 905 }, { "d 128, causal, n 16384", 920 }, { "d 192/128, full, n 8192", 1011 }, { "d 192/128, causal, n 8192", 1019 }, { "d 64, full, n 8192", 612 }, { "d 64, causal, n 8192", 592 } },
    when = function(spec, traits) return columns(spec.dv) <= 64 or columns(spec.dv) <= 160 and is_plain(traits) and not seq.is_packed("q") end },
  { block_q = 128, block_kv = 96, stages = 2, warps = 12, work = 46,
    when = function(spec, traits) return columns(spec.dv) <= 192 and not reads_pairs(traits) and (is_plain(traits) or columns(spec.dv) <= 64 or not seq.is_packed("q")) end },
  { block_q = 128, block_kv = 64, stages = 2, warps = 12, work = 50 },
}
