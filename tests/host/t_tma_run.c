/* t_tma_run.c - TMA, mbarriers, clusters and what a warp does together, on a device: boxes in and
 * out of tensors, beyond their edges, in every swizzle; halves of boxes sent to both blocks of a
 * cluster; rows of plain bytes; numbers that blocks of a
 * cluster exchange; words that
 * order warps, and blocks of a grid.
 *
 * On the host device that tries the templates and the engine; on a GPU (label gpu), that both are
 * what the hardware does, and that the driver's tensor maps are. */
#include "hopper_case.h"
#include "hopper_pipeline.h"
#include "templates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { B = 2, H = 3, N = 37, NQ = 600, D_MAX = 128 };

/* A box of k to lse, as it should lie, and to o. */
static const char boxes[] =
    "@ local map, n = case.maps[1], case.rank\n"
    "@ local row = map.columns * 2\n"
    "@ local bytes = row * map.rows * math.max(1, map.blocks or 1)\n"
    "@ local swizzle = map.swizzle == 0 and 'i' or\n"
    "@   string.format('(i ^ ((i >> 7 & %d) << 4))', map.swizzle // 16 - 1)\n"
    "$(kernel('attn_fwd')) {\n"
    "const u32 at = (shared_base() + 1023) & ~1023u, bar = at + $(bytes);\n"
    "const int lead = threadIdx.x < 32 ? elect_one() : 0;\n"
    "mbarrier_expect_if(bar, 0, 0);\n"
    "if (lead) {\n"
    "mbarrier_init(bar, 1);\n"
    "fence_barrier_init();\n"
    "tma_prefetch(&p.from);\n"
    "}\n"
    "block_sync();\n"
    "mbarrier_expect_if(bar, $(bytes), lead);\n"
    "tma_load_$(n)d_if(at, &p.from, $(case.from), bar, L2_LAST, lead);\n"
    "mbarrier_wait(bar, 0);\n"
    "for (int i = 4 * (int)threadIdx.x; i < $(bytes); i += 512) {\n"
    "const u32 pair = lds_u32(at + (u32)$(swizzle));\n"
    "stg_f32(p.lse + i / 2, bf16_to_f32((u16)pair));\n"
    "stg_f32(p.lse + i / 2 + 1, bf16_to_f32((u16)(pair >> 16)));\n"
    "}\n"
    "tma_store_$(n)d_if(&p.to, $(case.to), at, lead);\n"
    "tma_store_commit();\n"
    "tma_store_wait_read_0();\n"
    "tma_store_wait_0();\n"
    "}\n";

typedef struct box {
  int d, rank, columns, rows, blocks, swizzle;
  int from[4], to[4]; /* column, row, head, batch */
} box;

static const box list[] = {
    {40, 4, 64, 16, 0, 128, {0, 30, 1, 1}, {0, 4, 2, 0}},
    {40, 4, 64, 16, 0, 128, {0, -3, 2, 0}, {0, 9, 0, 1}},
    {64, 4, 64, 40, 0, 128, {0, 0, 0, 1}, {0, 1, 1, 1}},
    {128, 4, 64, 8, 0, 128, {64, 11, 2, 1}, {96, 597, 2, 1}},
    {96, 4, 32, 24, 0, 64, {64, 20, 1, 0}, {32, 3, 1, 0}},
    {24, 4, 16, 20, 0, 32, {16, 17, 0, 0}, {8, 588, 2, 1}},
    {48, 4, 24, 7, 0, 0, {24, 33, 2, 1}, {8, 0, 0, 0}},
    {64, 4, 64, 8, 0, 128, {0, 0, 3, 0}, {0, 0, 0, 2}},
    {128, 5, 64, 24, 2, 128, {0, 20, 1, 1}, {0, 5, 2, 0}},
    {96, 5, 32, 13, 3, 64, {0, -2, 2, 1}, {0, 590, 0, 0}},
    {64, 5, 16, 16, 4, 32, {0, 3, 0, 1}, {0, 21, 1, 1}},
};
enum { BOXES = sizeof list / sizeof *list };

/* "column, row, head, batch", or with the columns in two. */
static void print_place(const box *x, const int at[4], size_t size, char *text) {
  if (x->rank == 4)
    snprintf(text, size, "%d, %d, %d, %d", at[0], at[1], at[2], at[3]);
  else
    snprintf(text, size, "0, %d, 0, %d, %d", at[1], at[2], at[3]);
}

/* Of a tensor [B, length, H, d]; -1: outside. */
static int index_of(const box *x, int length, const int at[4], int block, int row, int column) {
  int c = at[0] + block * x->columns + column, n = at[1] + row, h = at[2], b = at[3];
  int inside = c >= 0 && c < x->d && n >= 0 && n < length && h >= 0 && h < H && b >= 0 && b < B;
  return inside ? ((b * length + n) * H + h) * x->d + c : -1;
}

TEST_LOOP(boxes_of_tensors, BOXES) {
  static float k[B * N * H * D_MAX], o[B * NQ * H * D_MAX], want[B * NQ * H * D_MAX];
  static float lse[B * H * NQ];
  const box *x = &list[_i];
  char which[512], from[48], to[48], fields[96];
  int blocks = x->blocks ? x->blocks : 1, bytes = 2 * x->columns * x->rows * blocks;
  int all = B * NQ * H * x->d;
  print_place(x, x->from, sizeof from, from);
  print_place(x, x->to, sizeof to, to);
  snprintf(fields, sizeof fields, "columns = %d, rows = %d, swizzle = %d", x->columns, x->rows,
           x->swizzle);
  if (x->blocks) snprintf(fields + strlen(fields), 24, ", blocks = %d", x->blocks);
  snprintf(which, sizeof which,
           "{ rank = %d, from = '%s', to = '%s', shared = %d, maps = {\n"
           "{ name = 'from', tensor = 'k', %s }, { name = 'to', tensor = 'o', %s } } }",
           x->rank, from, to, bytes + 1024 + 16, fields, fields);
  hopper h = hopper_new(which, boxes, "bf16", x->d,
                        (fg_shape){.b = B, .h = H, .hk = H, .nq = NQ, .nk = N});
  hopper_fill(k, B * N * H * x->d);
  hopper_set(&h, "k", k);
  hopper_run(&h);
  hopper_get(&h, "o", o);
  hopper_get(&h, "lse", lse);
  for (int i = 0; i < all; i++) want[i] = NAN;
  for (int i = 0; i < bytes / 2; i++) {
    int column = i % x->columns, row = i / x->columns % x->rows, block = i / x->columns / x->rows;
    int source = index_of(x, N, x->from, block, row, column);
    int target = index_of(x, NQ, x->to, block, row, column);
    float value = source < 0 ? 0 : k[source];
    ck_assert_msg(lse[i] == value, "number %d: %g, not %g", i, (double)lse[i], (double)value);
    if (target >= 0) want[target] = value;
  }
  for (int i = 0; i < all; i++)
    ck_assert_msg(o[i] == want[i] || (isnan(o[i]) && isnan(want[i])), "o[%d]: %g, not %g", i,
                  (double)o[i], (double)want[i]);
  hopper_free(&h);
}

TEST(halves_to_both_blocks) {
  static float k[64 * 64], lse[6 * 1024];
  hopper h = hopper_new(halves_recipe, halves, "bf16", 64,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 6 * 1024, .nk = 64});
  hopper_fill(k, 64 * 64);
  hopper_set(&h, "k", k);
  for (int turn = 0; turn < 10; turn++) {
    kernel_device()->seed = (uint64_t)turn;
    hopper_run(&h);
    hopper_get(&h, "lse", lse);
    for (int i = 0; i < 6 * 1024; i++)
      ck_assert_msg(lse[i] == k[i % 3072], "block %d, number %d: %g, not %g", i / 3072, i % 3072,
                    (double)lse[i], (double)k[i % 3072]);
  }
  hopper_free(&h);
}

/* After five rounds each number has been added to by the ranks in turns. */
TEST(blocks_exchange_numbers) {
  static float lse[512];
  hopper h = hopper_new(exchange_recipe, exchange, "bf16", 64,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 512, .nk = 1});
  for (int turn = 0; turn < 10; turn++) {
    kernel_device()->seed = (uint64_t)turn;
    hopper_run(&h);
    hopper_get(&h, "lse", lse);
    for (int i = 0; i < 512; i++) {
      int rank = i / 256, element = i % 4, thread = i % 256 / 4;
      int want = (element == 3 ? thread : 1000 * element) + 7 + rank;
      ck_assert_msg(lse[i] == (float)want, "%d: %g, not %d", i, (double)lse[i], want);
    }
  }
  hopper_free(&h);
}

TEST(units_follow_each_other) {
  static float lse[12 * 128];
  hopper h = hopper_new(units_recipe, units, "bf16", 64,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 12 * 128, .nk = 1});
  for (int turn = 0; turn < 20; turn++) {
    kernel_device()->seed = (uint64_t)turn;
    hopper_run(&h);
    hopper_get(&h, "lse", lse);
    for (int i = 0; i < 12 * 128; i++)
      ck_assert_msg(lse[i] == (float)(i / 128 + 1), "%d: %g", i, (double)lse[i]);
  }
  hopper_free(&h);
}

/* Rows of k, a copy each, to lse. */
static const char rows[] =
    "$(kernel('attn_fwd')) {\n"
    "const u32 at = shared_base() + 16, bar = shared_base() + 16400;\n"
    "const int thread = (int)threadIdx.x;\n"
    "if (thread == 0) {\n"
    "mbarrier_init(bar, 1);\n"
    "fence_barrier_init();\n"
    "}\n"
    "block_sync();\n"
    "if (thread == 0) { mbarrier_expect(bar, 128 * p.nk); }\n"
    "if (thread < 50) { bulk_load(at + (u32)(128 * thread), p.k + thread * p.k_n, 128, bar); }\n"
    "bulk_load_if(at + (u32)(128 * thread), p.k + thread * p.k_n, 128, bar,\n"
    "thread >= 50 && thread < p.nk);\n"
    "mbarrier_wait(bar, 0);\n"
    "for (int i = thread; i < 32 * p.nk; i += 128) {\n"
    "const u32 pair = lds_u32(at + (u32)(4 * i));\n"
    "stg_f32(p.lse + 2 * i, bf16_to_f32((u16)pair));\n"
    "stg_f32(p.lse + 2 * i + 1, bf16_to_f32((u16)(pair >> 16)));\n"
    "}\n"
    "}\n";

TEST(rows_of_bytes) {
  static float k[100 * 64], lse[100 * 64];
  hopper h = hopper_new("{ shared = 16 + 16384 + 16 }", rows, "bf16", 64,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 100 * 64, .nk = 100});
  hopper_fill(k, 100 * 64);
  hopper_set(&h, "k", k);
  for (int turn = 0; turn < 4; turn++) {
    kernel_device()->seed = (uint64_t)turn;
    hopper_run(&h);
    hopper_get(&h, "lse", lse);
    for (int i = 0; i < 100 * 64; i++)
      ck_assert_msg(lse[i] == k[i], "number %d: %g, not %g", i, (double)lse[i], (double)k[i]);
  }
  hopper_free(&h);
}

/* Each warp waits for the one before, by a word of global memory, and adds to what that has left;
 * at the end a bulk copy reads it all. */
static const char words[] =
    "$(kernel('attn_fwd')) {\n"
    "const u32 sm = shared_base(), bar = sm + 16;\n"
    "const int thread = (int)threadIdx.x, warp = thread / 32;\n"
    "u32 *word = (u32 *)p.lse;\n"
    "if (thread == 0) {\n"
    "mbarrier_init(bar, 1);\n"
    "fence_barrier_init();\n"
    "store_release_u32(word, 0xfffffffeu);\n"
    "}\n"
    "block_sync();\n"
    "if (thread % 32 == 0) {\n"
    "flag_wait(word, (u32)warp - 2);\n"
    "stg_u32(p.lse + 64 + warp, warp ? ldg_u32(p.lse + 63 + warp) * 10 + 1 : 1);\n"
    "red_release_u32(word, 1);\n"
    "}\n"
    "if (thread == 96) {\n"
    "while (load_acquire_u32(word) != 2) { }\n"
    "fence_async_global();\n"
    "mbarrier_expect(bar, 16);\n"
    "bulk_load(sm, p.lse + 64, 16, bar);\n"
    "stg_f32(p.lse + 4, (float)atomic_add_u32(word, 7));\n"
    "stg_f32(p.lse + 5, (float)atomic_add_u32(word, 0));\n"
    "}\n"
    "mbarrier_wait(bar, 0);\n"
    "if (thread < 4) { stg_f32(p.lse + 8 + thread, (float)lds_u32(sm + (u32)(4 * thread))); }\n"
    "}\n";

TEST(words_order_warps) {
  static float lse[128];
  static const float want[] = {1, 11, 111, 1111};
  hopper h = hopper_new("{ shared = 32 }", words, "bf16", 64,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 128, .nk = 1});
  for (int turn = 0; turn < 10; turn++) {
    kernel_device()->seed = (uint64_t)turn;
    hopper_run(&h);
    hopper_get(&h, "lse", lse);
    ck_assert_msg(lse[4] == 2 && lse[5] == 9, "%g, %g", (double)lse[4], (double)lse[5]);
    for (int i = 0; i < 4; i++)
      ck_assert_msg(lse[8 + i] == want[i], "%d: %g", i, (double)lse[8 + i]);
  }
  hopper_free(&h);
}

/* A warpgroup gives up registers and another takes them; matrices stored and read back, straight
 * and transposed; a tile is claimed by an atomic, whose number all warps get through shared memory.
 */
static const char pieces[] =
    "$(kernel('attn_fwd')) {\n"
    "const int thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;\n"
    "const u32 sm = shared_base(), bar = sm + 12288, box = bar + 16, own = sm + (u32)(1024 * "
    "warp);\n"
    "grid_launch();\n"
    "if (thread == 0) {\n"
    "mbarrier_init(bar, 1);\n"
    "fence_barrier_init();\n"
    "}\n"
    "block_sync();\n"
    "grid_wait();\n"
    "if (warp < 4) { setmaxnreg_dec_40(); } else { setmaxnreg_inc_208(); }\n"
    "u32 r[4], claim[4];\n"
    "for (int i = 0; i < 4; i++) { r[i] = (u32)(1000 * warp + 8 * lane + 2 * i); }\n"
    "for (int i = 0; i < 4; i++) { r[i] |= (r[i] + 1) << 16; }\n"
    "if (warp % 2 == 0) { stmatrix_x4(own + (u32)(16 * lane), r); }\n"
    "else { stmatrix_x4_trans(own + (u32)(16 * lane), r); }\n"
    "if (thread == 64) {\n"
    "stg_f32(p.lse, as_f32(7));\n"
    "stg_f32(p.lse + 1, as_f32(0));\n"
    "if (atomic_cas_u64((u64 *)p.lse, 9, 1) == 7) { atomic_cas_u64((u64 *)p.lse, 7, 8); }\n"
    "claim[0] = (u32)atomic_add_u64((u64 *)p.lse, 5) - 1;\n"
    "}\n"
    "claim[1] = claim[2] = claim[3] = 7;\n"
    "if (warp == 2) {\n"
    "claim[0] = shfl_u32(ALL_LANES, thread == 64 ? claim[0] : 0, 0);\n"
    "sts_u32x4_if(box, claim, lane == 9);\n"
    "warp_sync(ALL_LANES);\n"
    "}\n"
    "mbarrier_arrive_if(bar, thread == 73);\n"
    "while (!mbarrier_try(bar, 0)) { }\n"
    "const u32 claimed = lds_u32(box);\n"
    "warp_sync(ALL_LANES);\n"
    "for (int i = 0; i < 4; i++) {\n"
    "const u32 pair = lds_u32(own + (u32)(16 * lane + 4 * i));\n"
    "float *to = p.lse + 64 + 256 * warp + 8 * lane + 2 * i;\n"
    "stg_f32(to, (float)(pair & 0xffff) + (float)claimed);\n"
    "stg_f32(to + 1, (float)(pair >> 16) + (float)claimed);\n"
    "}\n"
    "}\n";

enum { PIECES = 12 * 256 };

TEST(pieces_of_a_warp) {
  static float lse[64 + PIECES];
  hopper h = hopper_new("{ threads = 384, early = true, shared = 12288 + 64 }", pieces, "bf16", 16,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 64 + PIECES, .nk = 1});
  for (int turn = 0; turn < 10; turn++) {
    kernel_device()->seed = (uint64_t)turn;
    hopper_run(&h);
    hopper_get(&h, "lse", lse);
    for (int i = 0; i < PIECES; i++) {
      int warp = i / 256, row = i / 8 % 32, column = i % 8, matrix = row / 8, at = row % 8;
      int lane = warp % 2 ? 4 * column + at / 2 : 4 * at + column / 2;
      int want = 1000 * warp + 8 * lane + 2 * matrix + (warp % 2 ? at % 2 : column % 2);
      ck_assert_msg(lse[64 + i] == (float)(want + 7), "%d: %g, not %d + 7", i, (double)lse[64 + i],
                    want);
    }
  }
  hopper_free(&h);
}

TEST_FIXTURE(templates_enter, templates_leave)
TEST_BEGIN { kernel_device_of_wgmma(); }
