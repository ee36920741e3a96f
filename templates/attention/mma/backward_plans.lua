-- backward_plans.lua: the plans of mma_backward, best guess first, and how fast they were. The
-- columns are those of forward_plans.lua.
-- Warps of 32 keys read each operand half as often as warps of 16, and two blocks of 4 warps hide each
-- other's waits.
local is_wide = run("attention/heads.lua").is_wide

-- Diagonals of dS run over a tile's keys, and go on behind the last one at the first one, once.
local function is_wide_without_diagonals(spec, traits)
  for _, x in ipairs(traits.input.grads) do
    if x.diagonal then return false end
  end
  return is_wide(spec)
end

local plans = {
  { block_q = 64, block_kv = 128, stages = 2, warps = 4, measured = { { "d 64", 316 } } },
  { block_q = 64, block_kv = 128, stages = 2, warps = 8, warps_per_key = 2, measured = { { "d 64", 288 }, { "d 128", 347 } } },
  { block_q = 64, block_kv = 64, stages = 2, warps = 8, warps_per_key = 4, measured = { { "d 256", 270 } } },
  { block_q = 64, block_kv = 64, stages = 1, warps = 8, warps_per_key = 4, about = "less shared memory: sm_80" },
  { block_q = 32, block_kv = 64, stages = 2, warps = 8, warps_per_key = 2, measured = { { "d 256", 206 } },
    about = "d 256 with an input of the score" },
  { block_q = 32, block_kv = 64, stages = 1, warps = 8, warps_per_key = 2, about = "the same on sm_80" },
  { block_q = 64, block_kv = 32, stages = 2, warps = 8, warps_per_key = 4, when = is_wide_without_diagonals, about = "d 320" },
  { block_q = 64, block_kv = 32, stages = 1, warps = 8, warps_per_key = 4, when = is_wide_without_diagonals, about = "d 512" },
  { block_q = 32, block_kv = 32, stages = 2, warps = 8, warps_per_key = 4, when = is_wide, about = "d 512 with a gradient by distance" },
  { block_q = 32, block_kv = 32, stages = 1, warps = 8, warps_per_key = 4, when = is_wide, about = "d 512 on sm_80" },
  { block_q = 32, block_kv = 16, stages = 1, warps = 8, warps_per_key = 8, when = is_wide_without_diagonals, about = "d 512 on sm_86" },
  { block_q = 16, block_kv = 16, stages = 1, warps = 8, warps_per_key = 8, when = is_wide, about = "the widest heads on sm_86" },
  { block_q = 64, block_kv = 64, stages = 2, warps = 4, measured = { { "d 64", 258 }, { "d 128", 266 } },
    about = "short sequences" },
  { block_q = 32, block_kv = 64, stages = 2, warps = 4, measured = { { "d 128", 248 } }, about = "fits sm_86" },
  { block_q = 32, block_kv = 32, stages = 1, warps = 4, warps_per_key = 2, about = "d 256 on sm_86; every such spec and arch" },
}

-- Plans that lost to one of those.
local lost = {
  { block_q = 64, block_kv = 128, stages = 2, warps = 8, measured = { { "d 64", 254 }, { "d 128", 281 } } },
  { block_q = 128, block_kv = 128, stages = 2, warps = 4, measured = { { "d 64", 265 } } },
  { block_q = 64, block_kv = 64, stages = 2, warps = 8, warps_per_key = 2, measured = { { "d 256", 226 } } },
}

return { plans = plans, lost = lost, card = "H200", date = "2026-11-20" }
