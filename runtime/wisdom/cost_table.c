/* cost_table.c - the constants of the cost model. Made by tests/bench/fit from measurements:
 * 334 choices on NVIDIA H200. */
#include "cost.h"

const fg_cost_family fg_cost_families[] = {
    {"mma", FG_PASS_BACKWARD, {1066, 7502, 0, 4513}},
    {"wgmma", FG_PASS_FORWARD, {999, 9140, 820, 1034}},
    {"mma", FG_PASS_FORWARD, {828, 0, 224, 3038}},
    {0},
};

const fg_cost_plan fg_cost_plans[] = {
    {"mma-q64-k128-s2-w8-p2", FG_PASS_BACKWARD, {1074, 1062, 0}},
    {"mma-q64-k64-s2-w4", FG_PASS_BACKWARD, {1010, 953, 0}},
    {"mma-q32-k64-s2-w4", FG_PASS_BACKWARD, {952, 849, 0}},
    {"mma-q32-k32-s1-w4-p2", FG_PASS_BACKWARD, {986, 1017, 970}},
    {"mma-q32-k64-s1-w8-p2", FG_PASS_BACKWARD, {1267, 981, 1097}},
    {"mma-q32-k64-s2-w8-p2", FG_PASS_BACKWARD, {1207, 922, 1048}},
    {"mma-q64-k64-s1-w8-p4", FG_PASS_BACKWARD, {1357, 1057, 1201}},
    {"mma-q64-k64-s2-w8-p4", FG_PASS_BACKWARD, {1274, 1031, 1179}},
    {"mma-q64-k128-s2-w4", FG_PASS_BACKWARD, {1107, 0, 0}},
    {"wgmma-q128-k128-s2-w12", FG_PASS_FORWARD, {956, 1000, 1060}},
    {"wgmma-q192-k64-s2-w16", FG_PASS_FORWARD, {0, 1086, 0}},
    {"wgmma-q192-k64-s2-w16-p16", FG_PASS_FORWARD, {0, 1038, 0}},
    {"wgmma-q128-k96-s2-w12", FG_PASS_FORWARD, {955, 967, 962}},
    {"wgmma-q128-k64-s2-w12", FG_PASS_FORWARD, {1029, 1059, 1000}},
    {"wgmma-q192-k64-s4-w16", FG_PASS_FORWARD, {0, 1111, 0}},
    {"wgmma-q128-k96-s2-w12-p16", FG_PASS_FORWARD, {0, 849, 0}},
    {"wgmma-q128-k64-s2-w12-p16", FG_PASS_FORWARD, {0, 0, 1023}},
    {"wgmma-q256-k64-s2-w20", FG_PASS_FORWARD, {991, 0, 0}},
    {"wgmma-q192-k128-s2-w16", FG_PASS_FORWARD, {962, 0, 0}},
    {"wgmma-q192-k128-s2-w16-p16", FG_PASS_FORWARD, {959, 0, 0}},
    {"wgmma-q192-k96-s2-w16", FG_PASS_FORWARD, {1095, 1065, 0}},
    {"wgmma-q128-k128-s2-w12-p16", FG_PASS_FORWARD, {853, 0, 0}},
    {"mma-q128-k64-s1-w4", FG_PASS_FORWARD, {708, 879, 0}},
    {"mma-q128-k64-s1-w8", FG_PASS_FORWARD, {787, 859, 947}},
    {"mma-q128-k64-s2-w8", FG_PASS_FORWARD, {736, 887, 976}},
    {"mma-q64-k32-s1-w4", FG_PASS_FORWARD, {722, 962, 971}},
    {"mma-q64-k32-s2-w4", FG_PASS_FORWARD, {646, 924, 995}},
    {"mma-q64-k64-s1-w4", FG_PASS_FORWARD, {695, 892, 942}},
    {"mma-q64-k64-s2-w4", FG_PASS_FORWARD, {699, 858, 924}},
    {"mma-q128-k48-s1-w4", FG_PASS_FORWARD, {0, 915, 0}},
    {"mma-q128-k64-s2-w4", FG_PASS_FORWARD, {665, 0, 0}},
    {"mma-q128-k96-s2-w4", FG_PASS_FORWARD, {651, 0, 0}},
    {0},
};
