-- primitives.lua: the functions through which kernels reach the machine: name, result, parameters; pure = true: a call
-- does nothing but give a value, so that a value that nobody uses is not emitted.
-- One table for both targets: ptx/<file>.cut and host/<file>.cut give each row its body. Addresses
-- of shared memory are u32; `lanes` is the mask of the lanes of the warp that take part. A file whose
-- `on` is false is not there; functions named _if do nothing where the predicate is 0, without
-- a branch: a branch around them would cost the compiler its proof that the warp stays together.
local all = {}

all[#all + 1] = { name = "base",
  { "shared_base",   "u32",   "void" },                       -- the address of dynamic shared memory
  { "lds_u32",       "u32",   "u32 address", pure = true },
  { "lds_u32x2",     "void",  "u32 *v, u32 address" },        -- x2: 8-byte aligned
  { "lds_u32x4",     "void",  "u32 *v, u32 address" },        -- x4: 16-byte aligned
  { "sts_u32",       "void",  "u32 address, u32 v" },
  { "sts_u32x4",     "void",  "u32 address, const u32 *v" },
  { "sts_u32x4_if",  "void",  "u32 address, const u32 *v, int predicate" },
  { "ldg_u16",       "u16",   "const u16 *from", pure = true },
  { "ldg_u32",       "u32",   "const void *from", pure = true },
  { "ldg_u32x4",     "void",  "u32 *v, const void *from" },
  { "ldg_f32",       "float", "const float *from", pure = true },
  { "ldg_f32x4",     "void",  "float *v, const float *from" },
  { "stg_u16",       "void",  "u16 *to, u16 v" },
  { "stg_u32",       "void",  "void *to, u32 v" },
  { "stg_u32x4",     "void",  "void *to, const u32 *v" },
  { "stg_f32",       "void",  "float *to, float v" },
  { "stg_f32_if",    "void",  "float *to, float v, int predicate" },
  { "stg_f32x2_if",  "void",  "float *to, float a, float b, int predicate" },
  { "stg_f32x4",     "void",  "float *to, const float *v" },
  { "block_sync",    "void",  "void" },
  { "fence_device",  "void",  "void" },                       -- what the thread knows of is seen by all blocks, and the other way
  { "barrier_sync",  "void",  "int id, int threads" },
  { "barrier_arrive", "void", "int id, int threads" },
  { "warp_sync",     "void",  "u32 lanes" },
  { "shfl_xor",      "float", "u32 lanes, float v, int mask" }, -- v of lane (own ^ mask)
  { "shfl",          "float", "u32 lanes, float v, int from", pure = true },
  { "shfl_u32",      "u32",   "u32 lanes, u32 v, int from", pure = true },
  { "ballot",        "u32",   "u32 lanes, int predicate" },
  { "any_lane",      "int",   "u32 lanes, int predicate" },   -- 1 if that of any lane is not 0
  { "atomic_add",    "float", "float *to, float v" },         -- the old value; order is not fixed
  { "atomic_add_u64", "u64",  "u64 *to, u64 v" },
  { "atomic_cas_u64", "u64",  "u64 *to, u64 from, u64 v" },   -- v where `from` stands; what stood there
  { "red_add_f32",   "void",  "float *to, float v" },         -- the same without it, and cheaper
  { "red_max_f32",   "void",  "float *to, float v" },         -- the larger one; no NaN
  { "red_add_f32x4", "void",  "float *to, const float *v" },  -- four sums, not one of four
  { "as_f32",        "float", "u32 bits", pure = true },
  { "as_u32",        "u32",   "float v", pure = true },
  { "first_bit",     "int",   "u32 bits", pure = true },                   -- the number of the lowest bit that is 1; there is one
  { "prmt_u32",      "u32",   "u32 a, u32 b, u32 selector", pure = true }, -- bytes of a, then b, by 4 bits each; 8 more: its sign, 8 times
  { "join_u16",      "u32",   "u32 low, u32 high", pure = true },          -- the lower halves of both
  { "exp2_f32",      "float", "float x", pure = true },
  { "exp2_f32_if",   "float", "float x, int predicate" },      -- else 0
  { "log2_f32",      "float", "float x", pure = true },                    -- to 2^-22 absolute where x is near 1
  { "log_f32",       "float", "float x", pure = true },
  { "log_approx_f32", "float", "float x", pure = true },                   -- to 2^-22 absolute where x is near 1, else relative
  { "inverse_f32",   "float", "float x", pure = true },                    -- 1 / x, to 1 ulp
  { "sqrt_f32",      "float", "float x", pure = true },                    -- to 1 ulp
  { "fma_f32",       "float", "float a, float b, float x", pure = true },  -- a b + x, rounded once
  { "fma_sat_f32",   "float", "float a, float b, float x", pure = true },  -- the same, 0 below 0 and 1 above 1; 0 of a NaN
  { "divide_f32",    "float", "float a, float b", pure = true },           -- a / b, to 2 ulp, whatever b
  { "floor_i32",     "int",   "float x", pure = true },                    -- the integer below, saturating; 0 of a NaN
  { "max_f32",       "float", "float a, float b", pure = true },           -- a NaN loses
  { "min_nan_f32",   "float", "float a, float b", pure = true },           -- the smaller one; a NaN wins
  { "f16_to_f32",    "float", "u16 x", pure = true },
  { "f32_to_f16",    "u16",   "float x", pure = true },                    -- to nearest even
  { "bf16_to_f32",   "float", "u16 x", pure = true },
  { "f32_to_bf16",   "u16",   "float x", pure = true },
  { "e4m3_to_f32",   "float", "u8 x", pure = true },
  { "f32_to_e4m3",   "u8",    "float x", pure = true },                    -- to nearest even, 448 at most; of a NaN 0x7f
}

-- Counters in global memory by which blocks of a grid tell each other. What a thread knows of when it
-- releases is seen by who acquires the word later.
all[#all + 1] = { name = "flags",
  { "atomic_add_u32",    "u32",  "u32 *to, u32 v" },   -- the old value; orders nothing by itself
  { "red_release_u32",   "void", "u32 *to, u32 v" },   -- adds
  { "store_release_u32", "void", "u32 *to, u32 v" },
  { "load_acquire_u32",  "u32",  "const u32 *from" },
  { "flag_wait", "void", "const u32 *flag, u32 until" }, -- acquires, again until (int)(word - until) >= 0
}

-- Tensor cores of sm_80 on. ldmatrix and mma are calls of the whole warp. Fragments are PTX's of
-- mma.m16n8k16: lane l holds rows l / 4 and l / 4 + 8 of d[4] and a[4], column l / 4 of b[2].
all[#all + 1] = { name = "mma",
  -- Four 8x8 matrices of 16-bit numbers: lane l gives the address of row l % 8 of matrix l / 8,
  -- 16-byte aligned. r[i] is its pair of matrix i: row l / 4, columns 2 * (l % 4) and one more; or,
  -- with trans, column l / 4 and these rows.
  { "ldmatrix_x4",       "void", "u32 *r, u32 address" },
  { "ldmatrix_x4_trans", "void", "u32 *r, u32 address" },
  { "mma_bf16",          "void", "float *d, const u32 *a, const u32 *b" }, -- d += a b, float32 sums
  { "mma_f16",           "void", "float *d, const u32 *a, const u32 *b" },
  { "pack_bf16",         "u32",  "float low, float high" },  -- both to nearest even
  { "pack_f16",          "u32",  "float low, float high" },
  { "pack_clipped_bf16", "u32",  "float low, float high" },  -- the same, of a number below 0 it is 0; a NaN stays
  { "pack_clipped_f16",  "u32",  "float low, float high" },
  { "max_pair_bf16",     "u32",  "u32 a, u32 b", pure = true }, -- of both numbers of a pair the larger one; a NaN loses
  { "max_pair_f16",      "u32",  "u32 a, u32 b", pure = true },
  { "multiply_pair_bf16", "u32", "u32 a, u32 b", pure = true }, -- of both numbers of a pair the product, to nearest even
  { "multiply_pair_f16",  "u32", "u32 a, u32 b", pure = true },
  -- Four numbers of e4m3, exactly, a NaN as one: those of the even bytes of x to pairs[0], those of the odd ones to pairs[1].
  { "widen_bf16",        "void", "u32 *pairs, u32 x" },
  { "widen_f16",         "void", "u32 *pairs, u32 x" },
}

-- Products of e4m3, four numbers a word, sm_89 on: fragments as those of 16 bits, where each pair is four numbers: lane l has
-- columns 4 * (l % 4) to 3 more of a, and 16 on, and these rows of b. Sums are float32; Hopper's tensor cores keep 13 to 14 bits.
all[#all + 1] = { name = "e4m3", on = machine.e4m3,
  { "mma_e4m3",    "void", "float *d, const u32 *a, const u32 *b" },     -- m16n8k32
  { "pack_e4m3",   "u32",  "float low, float high" },                    -- the lower 16 bits; to nearest even, 448 at most
  { "pack_e4m3x4", "u32",  "float a, float b, float c, float d" },       -- a in the lowest byte
}

-- Copies from global to shared memory behind the thread's back. A copy belongs to the group that
-- the thread commits next; groups land in order. The thread that waited for a copy sees it, others
-- do behind a barrier after that wait.
local async = { name = "async",
  -- To shared memory go 16 bytes, of which `bytes`, an even number, are read and the rest are zeros.
  { "cp_async_16",       "void", "u32 to, const void *from, int bytes" },
  { "cp_async_4",        "void", "u32 to, const void *from, int bytes" }, -- 4 bytes, of them 4, 2 or 0
  { "cp_async_commit",   "void", "void" },
}
for in_flight = 0, 3 do -- until at most that many of the thread's groups have not landed
  async[#async + 1] = { "cp_async_wait_" .. in_flight, "void", "void" }
end
all[#all + 1] = async

-- Calls of a whole warp, sm_90 on.
all[#all + 1] = { name = "warp", on = machine.tma,
  -- As ldmatrix_x4, the other way: lane l gives the address of row l % 8 of matrix l / 8.
  { "stmatrix_x4",       "void", "u32 address, const u32 *r" },
  { "stmatrix_x4_trans", "void", "u32 address, const u32 *r" },
  { "elect_one",         "int",  "void" }, -- 1 in one lane of the whole warp, the same each time
}

-- Barriers in shared memory: 8 bytes, 8-byte aligned. A phase ends when `count` arrivals and all
-- bytes that were expected have come; then the next one begins. `parity` is that of the phase
-- waited for: 0 for the first, so a wait for 1 on a new barrier returns at once.
all[#all + 1] = { name = "barrier", on = machine.tma,
  { "mbarrier_init",      "void", "u32 bar, int count" },
  { "fence_barrier_init", "void", "void" },               -- after them all, then block_sync or cluster_sync
  { "mbarrier_arrive",    "void", "u32 bar" },
  { "mbarrier_arrive_if", "void", "u32 bar, int predicate" },
  { "mbarrier_expect",    "void", "u32 bar, int bytes" }, -- arrives, and so many bytes are to come
  { "mbarrier_expect_if", "void", "u32 bar, int bytes, int predicate" },
  { "mbarrier_wait",      "void", "u32 bar, int parity" },
  { "mbarrier_try",       "int",  "u32 bar, int parity" }, -- 1: the phase has ended
  -- At the same place in another block of the cluster. It orders this block's memory only.
  { "mbarrier_arrive_remote",    "void", "u32 bar, int rank" },
  { "mbarrier_arrive_remote_if", "void", "u32 bar, int rank, int predicate" },
  -- What this thread stored to shared memory is seen by wgmma and TMA, behind a barrier.
  { "fence_async",        "void", "void" },
  -- What threads wrote to global memory, and this thread knows of, is seen by its loads of TMA.
  { "fence_async_global", "void", "void" },
}

-- Clusters of blocks, and grids that overlap in time.
all[#all + 1] = { name = "cluster", on = machine.cluster,
  { "cluster_rank",    "int",  "void" },
  { "cluster_arrive",  "void", "void" },  -- both of every thread of every block, in turn
  { "cluster_wait",    "void", "void" },
  { "cluster_sync",    "void", "void" },
  { "grid_wait",       "void", "void" },  -- until the grid before has ended and its memory is seen
  { "grid_launch",     "void", "void" },  -- the next grid may start
}

-- TMA: boxes of a tensor, by the tensor's map and the coordinates of the box's first element (d,
-- row, head, batch; of rank 5: column, row, block of columns, head, batch). Elements outside of the
-- tensor load as zeros and are not stored. Loads arrive at the barrier with the whole box's bytes.
local tma = { name = "tma", on = machine.tma, { "tma_prefetch", "void", "const tensor_map *map" } }
for rank = 4, 5 do
  local at = { "int c0", "int c1", "int c2", "int c3", rank == 5 and "int c4" or nil }
  local load = string.format("u32 to, const tensor_map *map, %s, u32 bar, u64 policy", table.concat(at, ", "))
  local store = string.format("const tensor_map *map, %s, u32 from", table.concat(at, ", "))
  tma[#tma + 1] = { string.format("tma_load_%dd", rank), "void", load }
  tma[#tma + 1] = { string.format("tma_load_%dd_if", rank), "void", load .. ", int predicate" }
  -- To the same places, and to the same barrier, in each block of the mask of ranks.
  tma[#tma + 1] = { string.format("tma_multicast_%dd", rank), "void", load .. ", int ranks" }
  tma[#tma + 1] = { string.format("tma_store_%dd", rank), "void", store }
  tma[#tma + 1] = { string.format("tma_store_%dd_if", rank), "void", store .. ", int predicate" }
end
tma[#tma + 1] = { "tma_store_commit", "void", "void" } -- a group, of the thread's stores so far
for in_flight = 0, 3 do -- of its groups: have been read from shared memory; are written
  tma[#tma + 1] = { "tma_store_wait_read_" .. in_flight, "void", "void" }
  tma[#tma + 1] = { "tma_store_wait_" .. in_flight, "void", "void" }
end
all[#all + 1] = tma

-- Copies of plain bytes behind the threads' backs, which arrive at the barrier with as many as they
-- have. Addresses and `bytes` are multiples of 16.
all[#all + 1] = { name = "bulk", on = machine.tma,
  { "bulk_load", "void", "u32 to, const void *from, int bytes, u32 bar" }, -- global to shared memory
  { "bulk_load_if", "void", "u32 to, const void *from, int bytes, u32 bar, int predicate" },
  -- From the own block's shared memory to block `rank` of the cluster: `to` and `bar` are addresses of
  -- the own block, and stand for the same places there.
  { "bulk_copy_remote", "void", "u32 to, u32 from, int bytes, u32 bar, int rank" },
  { "bulk_copy_remote_if", "void", "u32 to, u32 from, int bytes, u32 bar, int rank, int predicate" },
}

-- Products by a warpgroup (instances.lua has them), and its registers.
local wgmma = { name = "wgmma", on = machine.wgmma,
  -- How a product names its operand in shared memory: for tiles, a multiple of 1024 and 16.
  { "matrix_at", "u32", "u32 address" },
}
for in_flight = 0, 7 do -- of the warpgroup's products
  wgmma[#wgmma + 1] = { "wgmma_wait_" .. in_flight, "void", "void" }
end
-- Of each thread of the warpgroup, all of whose warps call it. What dec gives up goes back to the
-- block's pool, inc waits for it; the pool is what the block was launched with.
for registers = 24, 256, 8 do
  wgmma[#wgmma + 1] = { "setmaxnreg_dec_" .. registers, "void", "void" }
  wgmma[#wgmma + 1] = { "setmaxnreg_inc_" .. registers, "void", "void" }
end
all[#all + 1] = wgmma

return all
