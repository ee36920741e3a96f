-- forward_plans.lua: the plans of mma_forward, best guess first, and how fast they were. Columns
-- besides a plan's:
--   on        instruction sets of the machines that it is for (`machine`: "hopper"); absent: all
--   when      function(spec, traits): of which specs the plan is a candidate; absent: of all
--   measured  { what, TFLOP/s }: bf16, n 4096, full
--   about     what it is good for
-- A warp of 32 rows reads K and V half as often as two of 16; blocks of 4 warps come in pairs that
-- hide each other's softmax.
local function spills_with_64_keys(spec, traits)
  return spec.dv > 64 and (traits.score.has_tanh or traits.input.differs_by_distance)
end

local is_wide = run("attention/heads.lua").is_wide

local plans = {
  { block_q = 128, block_kv = 96, stages = 2, warps = 4, measured = { { "d 64", 350 } },
    when = function(spec, traits) return not traits.score.cap end },
  { block_q = 128, block_kv = 64, stages = 2, warps = 4, measured = { { "d 64", 331 } } },
  { block_q = 128, block_kv = 64, stages = 1, warps = 4, measured = { { "d 64", 305 }, { "d 128", 380 } } },
  { block_q = 128, block_kv = 48, stages = 1, warps = 4, measured = { { "d 128, a table", 318 } },
    on = { "hopper", "blackwell" }, when = function(spec, traits) return spills_with_64_keys(spec, traits) and not traits.score.cap end },
  { block_q = 128, block_kv = 64, stages = 2, warps = 8, measured = { { "d 128", 288 }, { "d 256", 324 } } },
  { block_q = 128, block_kv = 48, stages = 1, warps = 4, measured = { { "d 128, a cap", 341 } },
    on = { "hopper", "blackwell" }, when = function(spec, traits) return spills_with_64_keys(spec, traits) and traits.score.cap ~= nil end },
  { block_q = 128, block_kv = 64, stages = 1, warps = 8, measured = { { "d 256", 310 } },
    about = "less shared memory: sm_80" },
  { block_q = 128, block_kv = 32, stages = 1, warps = 8, when = is_wide, about = "d 512: 8 warps with the most keys that fit" },
  { block_q = 64, block_kv = 64, stages = 2, warps = 4, measured = { { "d 64", 297 }, { "d 128", 309 } },
    about = "short sequences" },
  { block_q = 64, block_kv = 64, stages = 1, warps = 4,
    measured = { { "d 256", 305 }, { "d 256, causal, n 1024, where the others give 221", 244 } } },
  { block_q = 64, block_kv = 32, stages = 2, warps = 4, measured = { { "d 128", 279 } } },
  { block_q = 64, block_kv = 32, stages = 1, warps = 4, about = "d 256 with an input of the score on sm_86" },
  { block_q = 64, block_kv = 16, stages = 1, warps = 4, when = is_wide, about = "d 512 on sm_86" },
  { block_q = 32, block_kv = 16, stages = 1, warps = 2, when = is_wide, about = "d 512 with an input of the score on sm_86" },
}

-- Plans that lost to one of those.
local lost = {
  { block_q = 128, block_kv = 96, stages = 1, warps = 4, measured = { { "d 64", 305 } } },
  { block_q = 128, block_kv = 48, stages = 2, warps = 4, measured = { { "d 64", 294 } } },
  { block_q = 128, block_kv = 128, stages = 2, warps = 4, about = "spills at d 64" },
  { block_q = 128, block_kv = 96, stages = 2, warps = 4, about = "d 64, a cap: 4 % slower than 64 keys" },
  { block_q = 128, block_kv = 64, stages = 3, warps = 4, measured = { { "d 64", 319 } } },
  { block_q = 128, block_kv = 64, stages = 2, warps = 8, measured = { { "d 128, a table or a cap", 272 } } },
  { block_q = 128, block_kv = 32, stages = 2, warps = 8, measured = { { "d 256", 277 } } },
}

return { plans = plans, lost = lost, card = "H200", date = "2026-11-20" }
