-- cost.lua: what the cost model (runtime/cost.c) makes of the work that families state, by family and
-- pass: `scale`, and the plans' own for heads up to 64, 128 and 256 wide (0: not measured), `tail` and
-- `hide` in thousandths, `block` in units of work. Made by tests/bench/fit from measurements; a family
-- that is not here counts as it says.
-- 332 choices on NVIDIA H200.
return {
  mma_backward = {
    scale = 1047, block = 14019, tail = 0, hide = 4630,
    plans = {
      ["mma-q64-k128-s2-w8-p2"] = { 1067, 1017, 0 },
      ["mma-q64-k64-s2-w4"] = { 1005, 913, 0 },
      ["mma-q32-k64-s2-w4"] = { 947, 813, 0 },
      ["mma-q32-k32-s1-w4-p2"] = { 986, 979, 960 },
      ["mma-q32-k64-s1-w8-p2"] = { 1286, 942, 1086 },
      ["mma-q32-k64-s2-w8-p2"] = { 1222, 886, 1038 },
      ["mma-q64-k64-s1-w8-p4"] = { 1351, 1011, 1189 },
      ["mma-q64-k64-s2-w8-p4"] = { 1269, 988, 1167 },
      ["mma-q64-k128-s2-w4"] = { 1096, 0, 0 },
    },
  },
  wgmma_forward = {
    scale = 999, block = 3027, tail = 1000, hide = 1577,
    plans = {
      ["wgmma-q128-k128-s2-w12"] = { 1005, 906, 1059 },
      ["wgmma-q192-k64-s2-w16"] = { 0, 962, 0 },
      ["wgmma-q128-k96-s2-w12"] = { 1020, 859, 940 },
      ["wgmma-q128-k64-s2-w12"] = { 1100, 939, 962 },
      ["wgmma-q192-k128-s2-w16"] = { 1048, 0, 0 },
      ["wgmma-q192-k96-s2-w16"] = { 1269, 981, 0 },
    },
  },
  mma_forward = {
    scale = 845, block = 0, tail = 84, hide = 2432,
    plans = {
      ["mma-q128-k64-s1-w4"] = { 801, 809, 0 },
      ["mma-q128-k64-s1-w8"] = { 844, 789, 943 },
      ["mma-q128-k64-s2-w8"] = { 812, 817, 970 },
      ["mma-q64-k32-s1-w4"] = { 784, 858, 966 },
      ["mma-q64-k32-s2-w4"] = { 764, 854, 1004 },
      ["mma-q64-k64-s1-w4"] = { 766, 826, 956 },
      ["mma-q64-k64-s2-w4"] = { 788, 793, 951 },
      ["mma-q128-k48-s1-w4"] = { 0, 910, 0 },
      ["mma-q128-k64-s2-w4"] = { 755, 0, 0 },
      ["mma-q128-k96-s2-w4"] = { 751, 0, 0 },
    },
  },
}
