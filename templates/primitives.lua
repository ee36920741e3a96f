-- primitives.lua: the functions through which kernels reach the machine: name, result, parameters.
-- One table for both targets: ptx/<file>.cut and host/<file>.cut give each row its body. Addresses
-- of shared memory are u32; `lanes` is the mask of the lanes of the warp that take part.
local all = {}

all[#all + 1] = { name = "base",
  { "shared_base",   "u32",   "void" },                       -- the address of dynamic shared memory
  { "lds_u32",       "u32",   "u32 address" },
  { "lds_u32x2",     "void",  "u32 *v, u32 address" },        -- x2: 8-byte aligned
  { "lds_u32x4",     "void",  "u32 *v, u32 address" },        -- x4: 16-byte aligned
  { "sts_u32",       "void",  "u32 address, u32 v" },
  { "sts_u32x4",     "void",  "u32 address, const u32 *v" },
  { "ldg_u16",       "u16",   "const u16 *from" },
  { "ldg_u32",       "u32",   "const void *from" },
  { "ldg_u32x4",     "void",  "u32 *v, const void *from" },
  { "ldg_f32",       "float", "const float *from" },
  { "ldg_f32x4",     "void",  "float *v, const float *from" },
  { "stg_u16",       "void",  "u16 *to, u16 v" },
  { "stg_u32",       "void",  "void *to, u32 v" },
  { "stg_u32x4",     "void",  "void *to, const u32 *v" },
  { "stg_f32",       "void",  "float *to, float v" },
  { "stg_f32x4",     "void",  "float *to, const float *v" },
  { "block_sync",    "void",  "void" },
  { "barrier_sync",  "void",  "int id, int threads" },
  { "barrier_arrive", "void", "int id, int threads" },
  { "warp_sync",     "void",  "u32 lanes" },
  { "shfl_xor",      "float", "u32 lanes, float v, int mask" }, -- v of lane (own ^ mask)
  { "shfl",          "float", "u32 lanes, float v, int from" },
  { "ballot",        "u32",   "u32 lanes, int predicate" },
  { "any_lane",      "int",   "u32 lanes, int predicate" },   -- 1 if that of any lane is not 0
  { "atomic_add",    "float", "float *to, float v" },         -- the old value; order is not fixed
  { "red_add_f32",   "void",  "float *to, float v" },         -- the same without it, and cheaper
  { "red_add_f32x4", "void",  "float *to, const float *v" },  -- four sums, not one of four
  { "as_f32",        "float", "u32 bits" },
  { "as_u32",        "u32",   "float v" },
  { "exp2_f32",      "float", "float x" },
  { "log_f32",       "float", "float x" },
  { "max_f32",       "float", "float a, float b" },           -- a NaN loses
  { "f16_to_f32",    "float", "u16 x" },
  { "f32_to_f16",    "u16",   "float x" },                    -- to nearest even
  { "bf16_to_f32",   "float", "u16 x" },
  { "f32_to_bf16",   "u16",   "float x" },
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

return all
