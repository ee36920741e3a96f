-- cost.lua: what the cost model (runtime/cost.c) makes of the work that families state, by family and
-- pass: `scale`, and the plans' own for heads up to 64, 128 and 256 wide (0: not measured), `tail` and
-- `hide` in thousandths, `block` in units of work. Made by tests/bench/fit from measurements; a family
-- that is not here counts as it says.
-- 334 choices on NVIDIA H200.
return {
  mma_backward = {
    scale = 1062, block = 6282, tail = 0, hide = 4757,
    plans = {
      ["mma-q64-k128-s2-w8-p2"] = { 1064, 1057, 0 },
      ["mma-q64-k64-s2-w4"] = { 1000, 948, 0 },
      ["mma-q32-k64-s2-w4"] = { 947, 845, 0 },
      ["mma-q32-k32-s1-w4-p2"] = { 987, 1017, 970 },
      ["mma-q32-k64-s1-w8-p2"] = { 1262, 976, 1097 },
      ["mma-q32-k64-s2-w8-p2"] = { 1207, 918, 1048 },
      ["mma-q64-k64-s1-w8-p4"] = { 1351, 1052, 1201 },
      ["mma-q64-k64-s2-w8-p4"] = { 1270, 1026, 1179 },
      ["mma-q64-k128-s2-w4"] = { 1096, 0, 0 },
    },
  },
  wgmma_forward = {
    scale = 1004, block = 1440, tail = 1000, hide = 1244,
    plans = {
      ["wgmma-q128-k128-s2-w12"] = { 1024, 924, 1059 },
      ["wgmma-q192-k64-s2-w16"] = { 0, 971, 0 },
      ["wgmma-q128-k96-s2-w12"] = { 1044, 880, 940 },
      ["wgmma-q128-k64-s2-w12"] = { 1121, 957, 962 },
      ["wgmma-q192-k64-s4-w16"] = { 0, 1000, 0 },
      ["wgmma-q192-k128-s2-w16"] = { 1067, 0, 0 },
      ["wgmma-q192-k96-s2-w16"] = { 1151, 990, 0 },
    },
  },
  mma_forward = {
    scale = 832, block = 0, tail = 88, hide = 2484,
    plans = {
      ["mma-q128-k64-s1-w4"] = { 792, 798, 0 },
      ["mma-q128-k64-s1-w8"] = { 839, 785, 907 },
      ["mma-q128-k64-s2-w8"] = { 804, 810, 937 },
      ["mma-q64-k32-s1-w4"] = { 779, 857, 928 },
      ["mma-q64-k32-s2-w4"] = { 757, 849, 964 },
      ["mma-q64-k64-s1-w4"] = { 761, 818, 919 },
      ["mma-q64-k64-s2-w4"] = { 776, 786, 914 },
      ["mma-q128-k48-s1-w4"] = { 0, 939, 0 },
      ["mma-q128-k64-s2-w4"] = { 746, 0, 0 },
      ["mma-q128-k96-s2-w4"] = { 738, 0, 0 },
    },
  },
}
