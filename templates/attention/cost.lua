-- cost.lua: what the cost model (runtime/cost.c) makes of the work that families state, by family and
-- pass: `scale`, and the plans' own for heads up to 64, 128 and 256 wide (0: not measured), `tail` and
-- `hide` in thousandths, `block` in units of work. Made by tests/bench/fit from measurements; a family
-- that is not here counts as it says.
-- 334 choices on NVIDIA H200.
return {
  mma_backward = {
    scale = 1063, block = 40389, tail = 0, hide = 4019,
    plans = {
      ["mma-q64-k128-s2-w8-p2"] = { 1094, 1052, 0 },
      ["mma-q64-k64-s2-w4"] = { 1029, 930, 0 },
      ["mma-q32-k64-s2-w4"] = { 962, 833, 0 },
      ["mma-q32-k32-s1-w4-p2"] = { 996, 988, 960 },
      ["mma-q32-k64-s1-w8-p2"] = { 1273, 971, 1097 },
      ["mma-q32-k64-s2-w8-p2"] = { 1213, 913, 1048 },
      ["mma-q64-k64-s1-w8-p4"] = { 1371, 1042, 1195 },
      ["mma-q64-k64-s2-w8-p4"] = { 1288, 1012, 1173 },
      ["mma-q64-k128-s2-w4"] = { 1128, 0, 0 },
    },
  },
  wgmma_forward = {
    scale = 989, block = 9248, tail = 1000, hide = 63,
    plans = {
      ["wgmma-q128-k128-s2-w12"] = { 1000, 924, 1076 },
      ["wgmma-q192-k64-s2-w16"] = { 0, 981, 0 },
      ["wgmma-q128-k96-s2-w12"] = { 956, 889, 962 },
      ["wgmma-q128-k64-s2-w12"] = { 1055, 972, 1000 },
      ["wgmma-q192-k64-s4-w16"] = { 0, 1000, 0 },
      ["wgmma-q256-k64-s2-w20"] = { 1000, 0, 0 },
      ["wgmma-q192-k128-s2-w16"] = { 1000, 0, 0 },
      ["wgmma-q192-k96-s2-w16"] = { 1029, 1000, 0 },
    },
  },
  mma_forward = {
    scale = 908, block = 0, tail = 0, hide = 1039,
    plans = {
      ["mma-q128-k64-s1-w4"] = { 841, 915, 0 },
      ["mma-q128-k64-s1-w8"] = { 849, 881, 1045 },
      ["mma-q128-k64-s2-w8"] = { 806, 915, 1073 },
      ["mma-q64-k32-s1-w4"] = { 779, 933, 1072 },
      ["mma-q64-k32-s2-w4"] = { 764, 952, 1128 },
      ["mma-q64-k64-s1-w4"] = { 772, 924, 1073 },
      ["mma-q64-k64-s2-w4"] = { 699, 906, 1127 },
      ["mma-q128-k48-s1-w4"] = { 0, 1053, 0 },
      ["mma-q128-k64-s2-w4"] = { 792, 0, 0 },
      ["mma-q128-k96-s2-w4"] = { 779, 0, 0 },
    },
  },
}
