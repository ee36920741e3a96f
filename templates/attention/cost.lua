-- cost.lua: what the cost model (runtime/cost.c) makes of the work that families state, by family and
-- pass: `scale`, and the plans' own for heads up to 64, 128 and 256 wide (0: not measured), `tail` and
-- `hide` in thousandths, `block` in units of work. Made by tests/bench/fit from measurements; a family
-- that is not here counts as it says.
-- 334 choices on NVIDIA H200.
return {
  mma_backward = {
    scale = 1062, block = 6206, tail = 0, hide = 4803,
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
    scale = 1012, block = 2470, tail = 1000, hide = 1096,
    plans = {
      ["wgmma-q128-k128-s2-w12"] = { 1069, 924, 1059 },
      ["wgmma-q192-k64-s2-w16"] = { 0, 981, 0 },
      ["wgmma-q128-k96-s2-w12"] = { 1041, 880, 940 },
      ["wgmma-q128-k64-s2-w12"] = { 1145, 957, 962 },
      ["wgmma-q192-k64-s4-w16"] = { 0, 1000, 0 },
      ["wgmma-q256-k64-s2-w20"] = { 1086, 0, 0 },
      ["wgmma-q192-k128-s2-w16"] = { 1075, 0, 0 },
      ["wgmma-q192-k96-s2-w16"] = { 1117, 990, 0 },
    },
  },
  mma_forward = {
    scale = 843, block = 0, tail = 80, hide = 2454,
    plans = {
      ["mma-q128-k64-s1-w4"] = { 817, 797, 0 },
      ["mma-q128-k64-s1-w8"] = { 887, 785, 907 },
      ["mma-q128-k64-s2-w8"] = { 829, 812, 933 },
      ["mma-q64-k32-s1-w4"] = { 804, 858, 929 },
      ["mma-q64-k32-s2-w4"] = { 783, 849, 965 },
      ["mma-q64-k64-s1-w4"] = { 783, 818, 919 },
      ["mma-q64-k64-s2-w4"] = { 804, 789, 915 },
      ["mma-q128-k48-s1-w4"] = { 0, 935, 0 },
      ["mma-q128-k64-s2-w4"] = { 766, 0, 0 },
      ["mma-q128-k96-s2-w4"] = { 752, 0, 0 },
    },
  },
}
