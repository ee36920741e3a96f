-- forward_plans_e4m3.lua: the plans of wgmma_forward for 8-bit numbers, as forward_plans.lua has those of 16 bits. Products whose sums
-- go to O apart take registers of their own, beside a wide O those of S, and V is turned by two warps. measured: TFLOP/s on an H200, 16 heads of 32768
-- tokens together; at this power one kernel differs from itself by 5 %.
local columns = run("attention/wgmma/shape.lua").columns

-- Other scores than the product, inputs, the largest product, and where a sequence is take registers from wide tiles.
local function is_plain(traits) return traits.score.is_s and not traits.max_logit end
local function reads_pairs(traits) return traits.input.differs_by_pair or traits.max_logit end

return {
  { block_q = 128, block_kv = 160, stages = 2, warps = 12, work = 41, when = function(spec, traits) return columns(spec.dv) <= 128 and is_plain(traits) and not seq.is_packed("q") and not seq.is_paged() end,
    measured = { { "d 128, full, n 8192", 994 }, { "d 128, full, n 8192, parts", 1032 }, { "d 128, full, n 16384, parts", 974 }, { "d 128, causal, n 8192", 990 }, { "d 128, causal, n 16384", 1031 },
              { "d 192/128, full, n 8192", 1105 }, { "d 192/128, causal, n 8192", 1081 }, { "d 64, full, n 8192", 624 }, { "d 64, causal, n 8192", 614 } } },
  { block_q = 128, block_kv = 128, stages = 2, warps = 12, work = 42,
    measured = { { "d 128, full, n 8192", 1027 }, { "d 128, full, n 16384", 947 }, { "d 128, causal, n 8192", 981 }, { "d 128, causal, n 16384", 1010 }, { "d 192/128, full, n 8192", 1138 }, { "d 192/128, causal, n 8192", 1047 }, { "d 64, full, n 8192", 630 }, { "d 64, causal, n 8192", 611 },
              { "d 160, full, n 8192", 953 }, { "d 160, causal, n 8192", 942 } },
    when = function(spec, traits) return columns(spec.dv) <= 64 or columns(spec.dv) <= 160 and is_plain(traits) and not seq.is_packed("q") end },
  { block_q = 128, block_kv = 96, stages = 2, warps = 12, work = 46,
    measured = { { "d 192, full, n 8192", 911 }, { "d 192, full, n 8192, parts", 980 }, { "d 192, causal, n 8192", 968 }, { "d 160, full, n 8192", 869 }, { "d 192/128, full, n 8192", 1032 }, { "d 64, full, n 8192", 599 } },
    when = function(spec, traits) return columns(spec.dv) <= 192 and not reads_pairs(traits) and (is_plain(traits) or columns(spec.dv) <= 64 or not seq.is_packed("q")) end },
  { block_q = 128, block_kv = 64, stages = 2, warps = 12, work = 50,
    measured = { { "d 256, full, n 8192", 927 }, { "d 256, full, n 8192, parts", 928 }, { "d 256, causal, n 8192", 976 }, { "d 192, full, n 8192", 844 }, { "d 64, full, n 8192", 488 } } },
}
