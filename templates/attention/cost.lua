-- cost.lua: what the cost model (runtime/cost.c) makes of the work that families state, by family and
-- pass: `scale`, and the plans' own for heads up to 64, 128 and 256 wide (0: not measured), `tail` and
-- `hide` in thousandths, `block` in units of work. Made by tests/bench/fit from measurements; a family
-- that is not here counts as it says.
-- 334 choices on NVIDIA H200.
return {
  mma_backward = {
    scale = 1066, block = 7502, tail = 0, hide = 4513,
    plans = {
      ["mma-q64-k128-s2-w8-p2"] = { 1074, 1062, 0 },
      ["mma-q64-k64-s2-w4"] = { 1010, 953, 0 },
      ["mma-q32-k64-s2-w4"] = { 952, 849, 0 },
      ["mma-q32-k32-s1-w4-p2"] = { 986, 1017, 970 },
      ["mma-q32-k64-s1-w8-p2"] = { 1267, 981, 1097 },
      ["mma-q32-k64-s2-w8-p2"] = { 1207, 922, 1048 },
      ["mma-q64-k64-s1-w8-p4"] = { 1357, 1057, 1201 },
      ["mma-q64-k64-s2-w8-p4"] = { 1274, 1031, 1179 },
      ["mma-q64-k128-s2-w4"] = { 1107, 0, 0 },
    },
  },
  wgmma_forward = {
    scale = 999, block = 9140, tail = 820, hide = 1034,
    plans = {
      ["wgmma-q128-k128-s2-w12"] = { 956, 1000, 1060 },
      ["wgmma-q192-k64-s2-w16"] = { 0, 1086, 0 },
      ["wgmma-q192-k64-s2-w16-p16"] = { 0, 1038, 0 },
      ["wgmma-q128-k96-s2-w12"] = { 955, 967, 962 },
      ["wgmma-q128-k64-s2-w12"] = { 1029, 1059, 1000 },
      ["wgmma-q192-k64-s4-w16"] = { 0, 1111, 0 },
      ["wgmma-q128-k96-s2-w12-p16"] = { 0, 849, 0 },
      ["wgmma-q128-k64-s2-w12-p16"] = { 0, 0, 1023 },
      ["wgmma-q256-k64-s2-w20"] = { 991, 0, 0 },
      ["wgmma-q192-k128-s2-w16"] = { 962, 0, 0 },
      ["wgmma-q192-k128-s2-w16-p16"] = { 959, 0, 0 },
      ["wgmma-q192-k96-s2-w16"] = { 1095, 1065, 0 },
      ["wgmma-q128-k128-s2-w12-p16"] = { 853, 0, 0 },
    },
  },
  mma_forward = {
    scale = 828, block = 0, tail = 224, hide = 3038,
    plans = {
      ["mma-q128-k64-s1-w4"] = { 708, 879, 0 },
      ["mma-q128-k64-s1-w8"] = { 787, 859, 947 },
      ["mma-q128-k64-s2-w8"] = { 736, 887, 976 },
      ["mma-q64-k32-s1-w4"] = { 722, 962, 971 },
      ["mma-q64-k32-s2-w4"] = { 646, 924, 995 },
      ["mma-q64-k64-s1-w4"] = { 695, 892, 942 },
      ["mma-q64-k64-s2-w4"] = { 699, 858, 924 },
      ["mma-q128-k48-s1-w4"] = { 0, 915, 0 },
      ["mma-q128-k64-s2-w4"] = { 665, 0, 0 },
      ["mma-q128-k96-s2-w4"] = { 651, 0, 0 },
    },
  },
}
