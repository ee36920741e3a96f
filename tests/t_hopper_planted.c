/* t_hopper_planted.c - the bugs of Hopper's pipelines are reported by the host device, with the
 * template's line, in every order of threads.
 *
 * The kernel is attention's skeleton: a warp that loads, two warpgroups that multiply (S = Q K^T
 * queued with O += P V of the tile before, P in registers), and O by way of Q's place. Each bug is
 * a replacement in its text. */
#include "elem.h"
#include "hopper_case.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 128, NQ = 128, NK_MAX = 320, SEEDS = 6 };

static const char recipe[] =
    "{ threads = 384, shared = 1024 + 98304 + 128, maps = {\n"
    "{ name = 'q_map', tensor = 'q', columns = 64, rows = 64, blocks = 2, swizzle = 128 },\n"
    "{ name = 'k_map', tensor = 'k', columns = 64, rows = 64, blocks = 2, swizzle = 128 },\n"
    "{ name = 'v_map', tensor = 'v', columns = 64, rows = 64, blocks = 2, swizzle = 128 },\n"
    "{ name = 'o_map', tensor = 'o', columns = 64, rows = 64, blocks = 2, swizzle = 128 } } }";

static const char pipeline[] =
    "@ instance { 'wgmma', name = 'scores', n = 64, k = 128, "
    "a = { major = 'k', swizzle = 128, block = 8192 }, "
    "b = { major = 'k', swizzle = 128, block = 8192, stride = 1024 } }\n"
    "@ instance { 'wgmma', name = 'values', n = 128, k = 64, init = 'sum', "
    "b = { major = 'mn', swizzle = 128, block = 8192 } }\n"
    "DEV void pack(u32 *x, const float *s) {\n"
    "for (int i = 0; i < 16; i++) { x[i] = pack_bf16(s[2 * i], s[2 * i + 1]); }\n"
    "}\n"
    "$(kernel('attn_fwd')) {\n"
    "const u32 sm = (shared_base() + 1023) & ~1023u;\n"
    "const u32 q_at = sm, k_at = sm + 32768, v_at = sm + 65536, bars = sm + 98304;\n"
    "const u32 q_full = bars, k_full = bars + 16, k_empty = bars + 32, v_full = bars + 48;\n"
    "const u32 v_empty = bars + 64;\n"
    "const int thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;\n"
    "const int group = warp / 4, tiles = (p.nk + 63) / 64;\n"
    "if (thread == 0) {\n"
    "for (u32 i = 0; i < 16; i += 8) {\n"
    "mbarrier_init(q_full + i, 1);\n"
    "mbarrier_init(k_full + i, 1);\n"
    "mbarrier_init(k_empty + i, 8);\n"
    "mbarrier_init(v_full + i, 1);\n"
    "mbarrier_init(v_empty + i, 8);\n"
    "}\n"
    "fence_barrier_init();\n"
    "}\n"
    "block_sync();\n"
    "if (group == 0) {\n"
    "setmaxnreg_dec_40();\n"
    "if (thread == 0) {\n"
    "for (int i = 0; i < 2; i++) {\n"
    "mbarrier_expect(q_full + (u32)(8 * i), 16384);\n"
    "tma_load_5d(q_at + (u32)(16384 * i), &p.q_map, 0, 64 * i, 0, 0, 0, q_full + (u32)(8 * i), "
    "L2_FIRST);\n"
    "}\n"
    "for (int j = 0; j < tiles; j++) {\n"
    "const u32 stage = (u32)(j % 2), bar = 8 * stage, at = 16384 * stage;\n"
    "const int phase = j / 2 % 2 ^ 1;\n"
    "mbarrier_wait(k_empty + bar, phase);\n"
    "mbarrier_expect(k_full + bar, 16384);\n"
    "tma_load_5d(k_at + at, &p.k_map, 0, 64 * j, 0, 0, 0, k_full + bar, L2_LAST);\n"
    "mbarrier_wait(v_empty + bar, phase);\n"
    "mbarrier_expect(v_full + bar, 16384);\n"
    "tma_load_5d(v_at + at, &p.v_map, 0, 64 * j, 0, 0, 0, v_full + bar, L2_LAST);\n"
    "}\n"
    "}\n"
    "} else {\n"
    "setmaxnreg_inc_232();\n"
    "const u32 own = (u32)(group - 1), q = matrix_at(q_at + 16384 * own);\n"
    "const u32 k = matrix_at(k_at), v = matrix_at(v_at);\n"
    "float s[32], o[64];\n"
    "u32 x[16];\n"
    "for (int i = 0; i < 64; i++) { o[i] = 0.0f; }\n"
    "mbarrier_wait(q_full + 8 * own, 0);\n"
    "mbarrier_wait(k_full, 0);\n"
    "scores(s, q, k);\n"
    "wgmma_wait_0();\n"
    "mbarrier_arrive_if(k_empty, lane == 0);\n"
    "pack(x, s);\n"
    "for (int j = 1; j < tiles; j++) {\n"
    "const u32 stage = (u32)(j % 2), before = 1 - stage;\n"
    "const int phase = j / 2 % 2, phase_before = (j - 1) / 2 % 2;\n"
    "mbarrier_wait(k_full + 8 * stage, phase);\n"
    "scores(s, q, k + 1024 * stage);\n"
    "mbarrier_wait(v_full + 8 * before, phase_before);\n"
    "values(o, x, v + 1024 * before);\n"
    "wgmma_wait_1(); // scores\n"
    "mbarrier_arrive_if(k_empty + 8 * stage, lane == 0);\n"
    "wgmma_wait_0(); // values\n"
    "mbarrier_arrive_if(v_empty + 8 * before, lane == 0);\n"
    "pack(x, s);\n"
    "}\n"
    "mbarrier_wait(v_full + (u32)(8 * ((tiles - 1) % 2)), (tiles - 1) / 2 % 2);\n"
    "values(o, x, v + (u32)(1024 * ((tiles - 1) % 2)));\n"
    "wgmma_wait_0();\n"
    "const int row = warp % 4 * 16 + lane % 16;\n"
    "for (int i = 0; i < 8; i++) {\n"
    "u32 r[4];\n"
    "for (int e = 0; e < 4; e++) { r[e] = pack_bf16(o[8 * i + 2 * e], o[8 * i + 2 * e + 1]); }\n"
    "const int chunk = (i % 4 * 2 + lane / 16) ^ (row & 7);\n"
    "stmatrix_x4(q_at + 16384 * own + (u32)(i / 4 * 8192 + row * 128 + chunk * 16), r);\n"
    "}\n"
    "fence_async();\n"
    "barrier_sync(1 + (int)own, 128);\n"
    "if (thread % 128 == 0) {\n"
    "tma_store_5d(&p.o_map, 0, (int)(64 * own), 0, 0, 0, q_at + 16384 * own);\n"
    "tma_store_commit();\n"
    "tma_store_wait_read_0();\n"
    "}\n"
    "}\n"
    "}\n";

typedef struct bug {
  const char *from, *to;
  const char *says; /* patterns parted by "|"; with "wrong" it may run and be wrong instead */
} bug;

#define ARRIVE(bar) "mbarrier_arrive_if(" bar ", lane == 0);\n"
static const bug bugs[] = {
    /* descriptors */
    {"block = 8192, stride = 1024", "block = 8192, stride = 512", "wrong"},
    {"block = 8192, stride = 1024", "block = 4096, stride = 1024", "wrong"},
    {"major = 'mn', swizzle = 128, block = 8192", "major = 'mn', swizzle = 128, block = 4096",
     "wrong"},
    {"major = 'mn', swizzle = 128, block = 8192", "major = 'mn', swizzle = 64, block = 8192",
     "wrong|*wgmma\'s b at byte *"},
    {"k + 1024 * stage", "k + 1025 * stage", "wrong|*wgmma's b * which*|*never written*"},
    /* the asynchronous proxy */
    {"fence_async();\n", "",
     "*tma_store at shared byte *, which thread * stored without a "
     "fence_async after it*"},
    {"fence_async();\nbarrier_sync(1 + (int)own, 128);\n",
     "barrier_sync(1 + (int)own, 128);\n"
     "fence_async();\n",
     "*stored without a fence_async*"},
    {"barrier_sync(1 + (int)own, 128);\n", "",
     "*race: shared tma_store at byte *|*never written*|*stored without a fence_async*|"
     "*which a wgmma or a TMA store of warp * still reads*"},
    {"fence_barrier_init();\n", "", "*called no fence_barrier_init after it*"},
    {"tma_store_wait_read_0();\n", "", "*ends with a tma_store * in flight: it never waits*"},
    {"tma_store_commit();\n", "", "*ends with a tma_store * in flight: it never waits*"},
    /* phases */
    {"mbarrier_wait(k_full + 8 * stage, phase);",
     "mbarrier_wait(k_full + 8 * stage, phase ^ (j & 1));",
     "*wgmma's b*|deadlock*|*deadlock:*mbarrier_wait*"},
    {"mbarrier_wait(v_empty + bar, phase);", "mbarrier_wait(v_empty + bar, phase ^ (j & 1));",
     "*shared TMA load*|*deadlock:*"},
    {"mbarrier_wait(k_full, 0);\n", "", "*wgmma's b*"},
    {"mbarrier_wait(q_full + 8 * own, 0);\n", "", "*wgmma's a*"},
    {"mbarrier_wait(v_full + 8 * before, phase_before);\n", "", "*wgmma's b*"},
    {"mbarrier_wait(k_empty + bar, phase);\n", "",
     "*shared TMA load*|*all 1 arrivals of its phase * have come*"},
    {"const int phase = j / 2 % 2, phase_before", "const int phase = 0, phase_before",
     "*wgmma's b*|*deadlock:*|*shared TMA load*"},
    /* counts */
    {"mbarrier_init(k_empty + i, 8);", "mbarrier_init(k_empty + i, 7);",
     "*all 7 arrivals of its phase * have come*|*race: shared TMA load*"},
    {"mbarrier_init(v_empty + i, 8);", "mbarrier_init(v_empty + i, 9);",
     "*deadlock:*8 of 9 arrivals have come*"},
    {"mbarrier_expect(k_full + bar, 16384);", "mbarrier_expect(k_full + bar, 16368);",
     "*deadlock:*"},
    {"mbarrier_expect(k_full + bar, 16384);", "mbarrier_expect(k_full + bar, 16400);",
     "*deadlock:*16 bytes have not*"},
    /* a stage released too early (one of K would not be: V's wait, which comes later, covers it) */
    {"wgmma_wait_0(); // values\n" ARRIVE("v_empty + 8 * before"),
     ARRIVE("v_empty + 8 * before") "wgmma_wait_0(); // values\n",
     "*still reads*|*race: shared TMA load*"},
    /* registers in flight */
    {"wgmma_wait_0(); // values\n" ARRIVE("v_empty + 8 * before") "pack(x, s);\n",
     "pack(x, s);\nwgmma_wait_0(); // values\n" ARRIVE("v_empty + 8 * before"),
     "*wgmma: its a in registers was changed before the wait for it*"},
    {"wgmma_wait_1(); // scores\n", "s[0] = 0.0f;\nwgmma_wait_1(); // scores\n",
     "*wgmma: its d was changed before the wait for it*"},
    {"wgmma_wait_1(); // scores\n", "o[5] *= 2.0f;\nwgmma_wait_1(); // scores\n",
     "*wgmma: its d was changed before the wait for it*"},
    {"wgmma_wait_0();\nconst int row", "const int row",
     "*ends with a wgmma in flight*|*still reads*"},
    /* the pool of registers */
    {"setmaxnreg_inc_232();", "setmaxnreg_inc_240();",
     "*deadlock:*wants * registers, * are in the block's pool*setmaxnreg_inc_240*"},
    {"setmaxnreg_dec_40();", "", "*deadlock:*setmaxnreg_inc_232*"},
    {"setmaxnreg_dec_40();", "setmaxnreg_dec_176();",
     "*setmaxnreg_dec_176 of a thread that has 168*"},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

/* -1, 0 and 1: S is exact in bfloat16. */
static void fill(float *x, int n) {
  for (int i = 0; i < n; i++) x[i] = (float)(rand() % 3 - 1);
}

/* Makes the kernel with tensors, and what o should be. */
static hopper begin(const char *text, int nk, float *want) {
  static float q[NQ * D], k[NK_MAX * D], v[NK_MAX * D];
  hopper h =
      hopper_new(recipe, text, "bf16", D, (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = NQ, .nk = nk});
  fill(q, NQ * D), fill(k, nk * D), fill(v, nk * D);
  hopper_set(&h, "q", q), hopper_set(&h, "k", k), hopper_set(&h, "v", v);
  memset(want, 0, NQ * D * sizeof *want);
  for (int i = 0; i < NQ * nk; i++) {
    float s = 0;
    for (int c = 0; c < D; c++) s += q[i / nk * D + c] * k[i % nk * D + c];
    for (int c = 0; c < D; c++) want[i / nk * D + c] += s * v[i % nk * D + c];
  }
  for (int i = 0; i < NQ * D; i++) {
    uint16_t bits;
    fg_elem_store(FG_ELEM_BF16, &bits, 0, want[i]);
    want[i] = fg_elem_load(FG_ELEM_BF16, &bits, 0);
  }
  return h;
}

static int right(const hopper *h, const float *want) {
  static float o[NQ * D];
  hopper_get(h, "o", o);
  return !memcmp(o, want, sizeof o);
}

START_TEST(the_kernel_is_right) {
  static const int lengths[] = {1, 63, 64, 65, 200, NK_MAX};
  static float want[NQ * D];
  hopper h = begin(pipeline, lengths[_i], want);
  for (int seed = 0; seed < 3 * SEEDS; seed++) {
    kernel_device()->seed = (uint64_t)seed;
    hopper_run(&h);
    ck_assert_msg(right(&h, want), "wrong, seed %d", seed);
  }
  hopper_free(&h);
}
END_TEST

static char *plant(const bug *b) {
  const char *at = strstr(pipeline, b->from);
  ck_assert_msg(at != NULL, "the kernel has no %s", b->from);
  char *text = malloc(sizeof pipeline + strlen(b->to));
  sprintf(text, "%.*s%s%s", (int)(at - pipeline), pipeline, b->to, at + strlen(b->from));
  return text;
}

START_TEST(planted_bugs) {
  static float want[NQ * D];
  const bug *b = &bugs[_i];
  char *text = plant(b);
  hopper h = begin(text, NK_MAX, want);
  for (int seed = 0; seed < SEEDS; seed++) {
    kernel_device()->seed = (uint64_t)seed;
    if (!strncmp(b->says, "wrong", 5) && hopper_runs(&h))
      ck_assert_msg(!right(&h, want), "%s: not seen, seed %d", b->to, seed);
    else
      hopper_fails(&h, b->says);
  }
  hopper_free(&h);
  free(text);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("hopper planted");
  TCase *tests = tcase_create("planted");
  kernel_device();
  tcase_add_checked_fixture(tests, templates_enter, templates_leave);
  tcase_add_loop_test(tests, the_kernel_is_right, 0, 6);
  tcase_add_loop_test(tests, planted_bugs, 0, BUGS);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
