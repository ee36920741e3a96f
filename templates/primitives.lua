-- primitives.lua: the functions through which kernels reach the machine: name, result, parameters.
-- One table for both targets: ptx/<file>.cut and host/<file>.cut give each row its body. Addresses
-- of shared memory are u32; `lanes` is the mask of the lanes of the warp that take part.
local all = {}

all[#all + 1] = { name = "base",
  { "shared_base",   "u32",   "void" },                       -- the address of dynamic shared memory
  { "lds_u32",       "u32",   "u32 address" },
  { "lds_u32x4",     "void",  "u32 *v, u32 address" },        -- 16-byte aligned
  { "sts_u32",       "void",  "u32 address, u32 v" },
  { "ldg_u16",       "u16",   "const u16 *from" },
  { "ldg_f32",       "float", "const float *from" },
  { "stg_u16",       "void",  "u16 *to, u16 v" },
  { "stg_f32",       "void",  "float *to, float v" },
  { "block_sync",    "void",  "void" },
  { "barrier_sync",  "void",  "int id, int threads" },
  { "barrier_arrive", "void", "int id, int threads" },
  { "warp_sync",     "void",  "u32 lanes" },
  { "shfl_xor",      "float", "u32 lanes, float v, int mask" }, -- v of lane (own ^ mask)
  { "shfl",          "float", "u32 lanes, float v, int from" },
  { "ballot",        "u32",   "u32 lanes, int predicate" },
  { "atomic_add",    "float", "float *to, float v" },         -- the old value; order is not fixed
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

return all
