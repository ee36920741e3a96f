-- plans.lua: the plans of products on tensor cores, best guess first, and how warps share a tile: `down` it, and `across`. A warp
-- of 64 rows and columns reads a word of shared memory for each two products of 16 x 8 x 16, the fewest that registers allow.
local plans = {
  { block_q = 128, block_kv = 128, stages = 3, warps = 4 },
  { block_q = 128, block_kv = 256, stages = 3, warps = 8, about = "wide and many rows" },
  { block_q = 128, block_kv = 128, stages = 2, warps = 4, about = "two blocks a multiprocessor, and less shared memory: sm_86" },
  { block_q = 64, block_kv = 128, stages = 3, warps = 4, about = "few tiles" },
  { block_q = 64, block_kv = 64, stages = 4, warps = 4, about = "fewer" },
  { block_q = 32, block_kv = 64, stages = 4, warps = 4, about = "few rows" },
}

return { plans = plans, division = { [4] = { down = 2, across = 2 }, [8] = { down = 2, across = 4 } } }
