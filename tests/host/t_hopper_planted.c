/* t_hopper_planted.c - the bugs of Hopper's pipelines are reported by the host device, with the
 * template's line, in every order of threads.
 *
 * Each bug is a replacement in the text of hopper_pipeline.h. */
#include "hopper_attention.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 6 };

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
    {"k + 1024 * stage", "k + 1025 * stage", "wrong|*wgmma's b at byte *"},
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
    {"(int)(64 * own), 0, 0, 0, q_at", "(int)(64 * own) - 1, 0, 0, 0, q_at",
     "*tma_store to coordinate -1: a GPU stops at one below 0*"},
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

static char *plant(const char *right_text, const bug *b) {
  const char *at = strstr(right_text, b->from);
  ck_assert_msg(at != NULL, "the kernel has no %s", b->from);
  char *text = malloc(strlen(right_text) + strlen(b->to) + 1);
  sprintf(text, "%.*s%s%s", (int)(at - right_text), right_text, b->to, at + strlen(b->from));
  return text;
}

TEST_TENTH(planted_bugs, BUGS) {
  static float want[NQ * D];
  const bug *b = &bugs[_i];
  char *text = plant(pipeline, b);
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

static const bug cluster_bugs[] = {
    {"mbarrier_init(empty, 2);", "mbarrier_init(empty, 1);",
     "*shared TMA load at byte *|*all 1 arrivals of its phase * have come*"},
    {"mbarrier_arrive_remote_if(empty, 0, threadIdx.x == 0);\n", "",
     "*deadlock:*of block 0: phase 0, * of 2 arrivals have come*"},
    {"cluster_sync();\n", "block_sync();\n", "*there is no mbarrier at shared byte * of block *"},
    {"cluster_arrive();\ncluster_wait();\n", "",
     "*of the cluster, which has ended*|*the block ends, and nothing makes it wait for block *"},
    {"mbarrier_expect(full, 2048);", "mbarrier_expect(full, 1024);",
     "*deadlock:*|*race: shared load at byte *|*still filling it*|*all 1 arrivals of its phase*|"
     "*shared TMA load*|*never written*"},
    {"block_sync();\nmbarrier_arrive", "mbarrier_arrive", "*race: shared TMA load at byte *"},
};
enum { CLUSTER_BUGS = sizeof cluster_bugs / sizeof *cluster_bugs };

static const bug exchange_bugs[] = {
    {"mbarrier_expect_if(full + 8 * place, 1024,", "mbarrier_arrive_if(full + 8 * place,",
     "*while TMA for * is still filling it*|*race: shared load at byte *|*never written*|"
     "*deadlock:*bytes have not*|*bulk_copy_remote at byte *"},
    {"mbarrier_expect_if(full + 8 * place, 1024, thread == 0);\n", "",
     "*deadlock:*-1024 bytes have not*"},
    {"fence_async();\n", "",
     "*bulk_copy_remote at shared byte *stored without a fence_async after*"},
    {"fence_async();\nblock_sync();\n", "fence_async();\n",
     "*race: shared bulk_copy_remote at byte *|*never written*|*stored without a fence_async*|"
     "*which a bulk_copy_remote still reads*"},
    {"mbarrier_wait(full + 8 * place, phase);\n", "",
     "*while TMA for * is still filling it*|*never written*|*race: shared load at byte *"},
    {"mbarrier_wait(empty + 8 * place, phase ^ 1);\n", "",
     "*which a bulk_copy_remote *|*race: shared bulk_copy_remote at byte *"},
    {"mbarrier_init(empty + i, 3);", "mbarrier_init(empty + i, 2);",
     "*all 2 arrivals of its phase * have come*|*which a bulk_copy_remote *|*race: shared *"},
    {"thread == 0);\n}\nfor", "0);\n}\nfor", "*deadlock:*2 of 3 arrivals have come*"},
    {"1 - rank, thread % 32 == 0);", "rank, thread % 32 == 0);",
     "*which a bulk_copy_remote *|*race: shared bulk_copy_remote at byte *"},
    {"warp_sync(ALL_LANES);\nmbarrier_arrive", "mbarrier_arrive",
     "*race: shared bulk_copy_remote at byte *"},
    {"cluster_sync();\nu32 v", "block_sync();\nu32 v", "*there is no mbarrier at shared byte *"},
    {"(float)v[e]); }\ncluster_sync();\n", "(float)v[e]); }\n",
     "*of the cluster, which has ended*|*the block ends, and nothing makes it wait for block *|"
     "*the block ends with a bulk_copy_remote from *"},
};
enum { EXCHANGE_BUGS = sizeof exchange_bugs / sizeof *exchange_bugs };

TEST_TENTH(planted_bugs_of_an_exchange, EXCHANGE_BUGS) {
  const bug *b = &exchange_bugs[_i];
  char *text = plant(exchange, b);
  hopper h = hopper_new(exchange_recipe, text, "bf16", 64,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 512, .nk = 1});
  for (int seed = 0; seed < SEEDS; seed++) {
    kernel_device()->seed = (uint64_t)seed;
    hopper_fails(&h, b->says);
  }
  hopper_free(&h);
  free(text);
}

TEST_TENTH(planted_bugs_of_a_cluster, CLUSTER_BUGS) {
  static float k[64 * 64];
  const bug *b = &cluster_bugs[_i];
  char *text = plant(halves, b);
  hopper h = hopper_new(halves_recipe, text, "bf16", 64,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 6 * 1024, .nk = 64});
  fill(k, 64 * 64);
  hopper_set(&h, "k", k);
  for (int seed = 0; seed < SEEDS; seed++) {
    kernel_device()->seed = (uint64_t)seed;
    hopper_fails(&h, b->says);
  }
  hopper_free(&h);
  free(text);
}

static const bug unit_bugs[] = {
    /* units that are handed out too late: whoever has one waits for what nobody has begun */
    {"sts_u32(at, atomic_add_u32(words, 1))", "sts_u32(at, 11 - atomic_add_u32(words, 1))",
     "*deadlock:*flag at byte * of tensor words, element *: it is 0, awaited is 1\n* more are to "
     "come when one of the * that run has ended*"},
    {"flag_wait(words + unit, 1)", "flag_wait(words + unit, 2)",
     "*deadlock:*flag at byte 4 of tensor words, element ?1]: it is 1, awaited is 2\n*"},
    {"flag_wait(words + unit, 1);", "",
     "*race: load at byte * of tensor lse, *, which another block stores to*|*race: store at byte "
     "* "
     "of tensor lse, *, which another block loads*|*load of an element never written: byte * of "
     "tensor lse*"},
    {"block_sync(); // it has been waited for\n", "",
     "*race: load at byte * of tensor lse, *, which another block stores to*|*race: store at byte "
     "* "
     "of tensor lse, *, which another block loads*|*load of an element never written: byte * of "
     "tensor lse*|*race: shared store at byte 0, *"},
    {"block_sync(); // it is written\n", "",
     "*race: load at byte * of tensor lse, *, which another block stores to*|*load of an element "
     "never written: byte * of tensor lse*|*race: store at byte * of tensor lse, *, which another "
     "block loads*|*race: shared store at byte 0, *|*race: load at byte * of tensor lse, *, which "
     "thread * stores to*"},
    {"red_release_u32(", "atomic_add_u32(",
     "*race: load at byte * of tensor lse, *, which another block stores to*"},
};
enum { UNIT_BUGS = sizeof unit_bugs / sizeof *unit_bugs, ALWAYS = 2 /* are found in any seed */ };

/* A block that runs alone may take all units, and then nothing is wrong: in some seeds. */
TEST_TENTH(planted_bugs_of_units, UNIT_BUGS) {
  const bug *b = &unit_bugs[_i];
  int found = 0;
  char *text = plant(units, b);
  hopper h = hopper_new(units_recipe, text, "bf16", 64,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 12 * 128, .nk = 1});
  for (int seed = 0; seed < 18; seed++) {
    kernel_device()->seed = (uint64_t)seed;
    if (hopper_runs(&h)) continue;
    hopper_fails(&h, b->says);
    found++;
  }
  ck_assert_msg(found >= (_i < ALWAYS ? 18 : 11), "%s: found in %d seeds", b->to, found);
  hopper_free(&h);
  free(text);
}

TEST_FIXTURE(templates_enter, templates_leave)
TEST_BEGIN { kernel_device(); }
