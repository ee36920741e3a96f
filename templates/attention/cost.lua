-- cost.lua: what the cost model (runtime/cost.c) makes of the work that families state, by family and
-- pass: `scale`, and the plans' own for heads up to 64, 128 and 256 wide (0: not measured), `tail` and
-- `hide` in thousandths, `block` in units of work. Made by tests/bench/fit from measurements; a family
-- that is not here counts as it says.
-- 274 choices on NVIDIA H200.
return {
  mma_backward = {
    scale = 1023, block = 68695, tail = 0, hide = 973,
    plans = {
      ["mma-q64-k128-s2-w8-p2"] = { 1000, 1151, 0 },
      ["mma-q64-k64-s2-w4"] = { 924, 1000, 0 },
      ["mma-q32-k64-s2-w4"] = { 804, 924, 0 },
      ["mma-q32-k32-s1-w4-p2"] = { 804, 1000, 903 },
      ["mma-q32-k64-s1-w8-p2"] = { 1151, 1064, 1076 },
      ["mma-q32-k64-s2-w8-p2"] = { 1000, 1000, 1000 },
      ["mma-q64-k64-s1-w8-p4"] = { 1144, 1151, 1151 },
      ["mma-q64-k64-s2-w8-p4"] = { 1076, 1151, 1151 },
      ["mma-q64-k128-s2-w4"] = { 1000, 0, 0 },
    },
  },
  wgmma_forward = {
    scale = 982, block = 13601, tail = 1000, hide = 206,
    plans = {
      ["wgmma-q128-k128-s2-w12"] = { 1076, 1000, 1000 },
      ["wgmma-q128-k64-s2-w12"] = { 1000, 1000, 924 },
      ["wgmma-q128-k96-s2-w12"] = { 994, 1000, 924 },
      ["wgmma-q192-k128-s2-w16"] = { 913, 0, 0 },
    },
  },
  mma_forward = {
    scale = 876, block = 0, tail = 0, hide = 1646,
    plans = {
      ["mma-q128-k64-s1-w4"] = { 799, 924, 0 },
      ["mma-q128-k64-s1-w8"] = { 799, 903, 994 },
      ["mma-q128-k64-s2-w8"] = { 752, 924, 1000 },
      ["mma-q64-k32-s1-w4"] = { 752, 1000, 1000 },
      ["mma-q64-k32-s2-w4"] = { 752, 1000, 1058 },
      ["mma-q64-k64-s1-w4"] = { 752, 924, 1000 },
      ["mma-q64-k64-s2-w4"] = { 699, 924, 984 },
      ["mma-q128-k64-s2-w4"] = { 752, 0, 0 },
      ["mma-q128-k96-s2-w4"] = { 752, 0, 0 },
    },
  },
}
