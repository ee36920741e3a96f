/* hopper_pipeline.h - kernels for hopper_case.h: halves of a box for both blocks of a cluster; numbers
 * that two blocks exchange; and units that blocks of a grid take by tickets, each of which waits for
 * the one before. */
#ifndef FG_TESTS_HOPPER_PIPELINE_H
#define FG_TESTS_HOPPER_PIPELINE_H

/* Each block loads half of the box, for both; three times over, so that both wait for the places to
 * be free. */
static const char halves[] =
    "$(kernel('attn_fwd')) {\n"
    "const u32 at = (shared_base() + 1023) & ~1023u, full = at + 2048, empty = full + 8;\n"
    "const int rank = cluster_rank();\n"
    "if (threadIdx.x == 0) {\n"
    "mbarrier_init(full, 1);\n"
    "mbarrier_init(empty, 2);\n"
    "fence_barrier_init();\n"
    "}\n"
    "cluster_sync();\n"
    "for (int i = 0; i < 3; i++) {\n"
    "if (threadIdx.x == 0) {\n"
    "mbarrier_wait(empty, (i & 1) ^ 1);\n"
    "mbarrier_expect(full, 2048);\n"
    "tma_multicast_4d(at + (u32)(1024 * rank), &p.from, 0, 16 * i + 8 * rank, 0, 0, full, "
    "L2_NORMAL, 3);\n"
    "}\n"
    "mbarrier_wait(full, i & 1);\n"
    "for (int j = 4 * (int)threadIdx.x; j < 2048; j += 512) {\n"
    "const u32 pair = lds_u32(at + (u32)(j ^ ((j >> 7 & 7) << 4)));\n"
    "float *to = p.lse + (3 * rank + i) * 1024 + j / 2;\n"
    "stg_f32_if(to, bf16_to_f32((u16)pair), 1);\n"
    "stg_f32_if(to + 1, bf16_to_f32((u16)(pair >> 16)), 1);\n"
    "}\n"
    "block_sync();\n"
    "mbarrier_arrive_remote_if(empty, 0, threadIdx.x == 0);\n"
    "if (threadIdx.x == 0) { mbarrier_arrive_remote(empty, 1); }\n"
    "}\n"
    "cluster_arrive();\n"
    "cluster_wait();\n"
    "}\n";

/* Each block adds its rank + 1 to what the other one has sent, five times over, in two places. */
static const char exchange[] =
    "$(kernel('attn_fwd')) {\n"
    "const u32 at = (shared_base() + 1023) & ~1023u, full = at + 4096, empty = full + 16;\n"
    "const int rank = cluster_rank(), thread = (int)threadIdx.x;\n"
    "if (thread == 0) {\n"
    "for (u32 i = 0; i < 16; i += 8) {\n"
    "mbarrier_init(full + i, 1);\n"
    "mbarrier_init(empty + i, 3);\n"
    "}\n"
    "fence_barrier_init();\n"
    "}\n"
    "cluster_sync();\n"
    "u32 v[4] = {0, 1000, 2000, (u32)thread};\n"
    "for (int i = 0; i < 5; i++) {\n"
    "const u32 place = (u32)(i & 1), out = at + 1024 * place, in = out + 2048;\n"
    "const int phase = i >> 1 & 1;\n"
    "mbarrier_wait(empty + 8 * place, phase ^ 1);\n"
    "sts_u32x4(out + (u32)(16 * thread), v);\n"
    "fence_async();\n"
    "block_sync();\n"
    "mbarrier_expect_if(full + 8 * place, 1024, thread == 0);\n"
    "if (i & 1) {\n"
    "if (thread == 0) { bulk_copy_remote(in, out, 1024, full + 8 * place, 1 - rank); }\n"
    "} else {\n"
    "bulk_copy_remote_if(in, out, 1024, full + 8 * place, 1 - rank, thread == 0);\n"
    "}\n"
    "mbarrier_wait(full + 8 * place, phase);\n"
    "lds_u32x4(v, in + (u32)(16 * thread));\n"
    "for (int e = 0; e < 4; e++) { v[e] += (u32)rank + 1; }\n"
    "warp_sync(ALL_LANES);\n"
    "mbarrier_arrive_remote_if(empty + 8 * place, 1 - rank, thread % 32 == 0);\n"
    "mbarrier_arrive_if(empty + 8 * place, thread == 0);\n"
    "}\n"
    "for (int e = 0; e < 4; e++) { stg_f32(p.lse + 256 * rank + 4 * thread + e, (float)v[e]); }\n"
    "cluster_sync();\n"
    "}\n";

/* Unit u leaves u + 1 in its 128 places. */
static const char units[] =
    "$(kernel('attn_fwd')) {\n"
    "u32 *words = (u32 *)p.words;\n"
    "const u32 at = shared_base();\n"
    "const int thread = (int)threadIdx.x;\n"
    "for (;;) {\n"
    "if (thread == 0) { sts_u32(at, atomic_add_u32(words, 1)); }\n"
    "block_sync();\n"
    "const u32 unit = lds_u32(at);\n"
    "if (unit >= 12) { break; }\n"
    "if (unit > 0 && thread == 0) { flag_wait(words + unit, 1); }\n"
    "block_sync(); // it has been waited for\n"
    "float *to = p.lse + 128 * unit + thread;\n"
    "stg_f32(to, unit > 0 ? ldg_f32(p.lse + 128 * unit - 1 - thread) + 1.0f : 1.0f);\n"
    "block_sync(); // it is written\n"
    "if (thread == 0) { red_release_u32(words + unit + 1, 1); }\n"
    "}\n"
    "}\n";

static const char units_recipe[] = "{ grid = '6', words = '13', shared = 16 }";

static const char exchange_recipe[] =
    "{ grid = '2', cluster = 2, threads = 64, shared = 1024 + 4096 + 32 }";

static const char halves_recipe[] =
    "{ grid = '2', cluster = 2, shared = 4096, maps = {\n"
    "{ name = 'from', tensor = 'k', columns = 64, rows = 8, swizzle = 128 } } }";

#endif
