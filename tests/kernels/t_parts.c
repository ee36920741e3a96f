/* t_parts.c - wgmma's forward where tiles of rows are fewer than blocks, or do not come out even:
 * the last ones are taken in parts, some of the keys each. On the host device, which has one to
 * three blocks by the seed, or on a GPU by the gpu label. */
#include "launch_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two warpgroups and three; a head dim that leaves columns over; terms that rows share, a cap, and
 * scores that begin anew in each part. */
static const char *const words[] = {
    "family=wgmma head_dim=64 block_q=192 block_kv=128 key_parts=16",
    "family=wgmma head_dim=16/104 dtype=f16 key_parts=16",
    "family=wgmma head_dim=40/256 key_parts=16",
    "family=wgmma head_dim=64 score=s+0.01*(k-p) key_parts=16",
    "family=wgmma head_dim=64 score=softcap(30.0) key_parts=16"};
enum { KERNELS = sizeof words / sizeof *words, SHAPES = 4, SEEDS = 3 };

static int on_gpu(void) { return strcmp(kernel_device()->arch, "host") != 0; }

/* On three blocks: one tile, in parts side by side; two, of which one block has keys of both; four,
 * of which one is left; five, of which two are. On a GPU: one tile; a few; 18 more than
 * multiprocessors; two thirds more, of which many blocks have keys of two. */
static fg_shape shape_of(int i) {
  static const fg_shape shapes[SHAPES] = {SHAPE(1, 1, 1, 70, 2700, 0), SHAPE(1, 2, 1, 9, 5000, 0),
                                          SHAPE(2, 2, 1, 100, 2000, 0), SHAPE(1, 5, 5, 5, 5000, 0)};
  const int all = kernel_device()->multiprocessors;
  const fg_shape of_gpu[SHAPES] = {SHAPE(1, 1, 1, 70, 9000, 0), SHAPE(1, 20, 4, 20, 3000, 0),
                                   SHAPE(1, all + 18, 1, 3, 2700, 0),
                                   SHAPE(1, (all < 132 ? all : 132) * 5 / 3, 1, 2, 6000, 0)};
  return on_gpu() ? of_gpu[i] : shapes[i];
}

static kernels made;

static void make(int i) {
  made = kernels_new("%s", words[i]);
  ck_assert_int_eq(made.n, 1);
}

TEST_TENTH(numbers_are_right, KERNELS) {
  make(_i);
  for (int s = 0; s < SHAPES; s++)
    for (uint64_t seed = 1; seed < SEEDS; seed++)
      kernel_verify(made.list, &(verify_case){.shape = shape_of(s),
                                              .sm_margin = s % 2 * (int)seed,
                                              .style = seed > 1 ? VERIFY_LARGE : VERIFY_PLAIN,
                                              .seed = seed});
  kernels_free(&made);
}

/* Fills the workspace. */
static void fill(const launch *l, uint64_t word) {
  const size_t n = l->problem->workspace_bytes / sizeof word;
  uint64_t *list = malloc(n * sizeof word);
  ck_assert_ptr_nonnull(list);
  for (size_t i = 0; i < n; i++) list[i] = word;
  GOOD(l->problem->device->class->upload(l->problem->device, l->problem->workspace, list,
                                         n * sizeof word));
  free(list);
}

/* How many words of it are not 0: no claim is left open, so what parts have left. */
static size_t written(const launch *l) {
  const size_t n = l->problem->workspace_bytes / sizeof(uint64_t);
  uint64_t *list = malloc(n * sizeof *list);
  size_t found = 0;
  ck_assert_ptr_nonnull(list);
  GOOD(l->problem->device->class->download(l->problem->device, list, l->problem->workspace,
                                           n * sizeof *list));
  for (size_t i = 0; i < n; i++) found += list[i] != 0;
  free(list);
  return found;
}

/* There are parts, and the same bits whichever comes last and whatever the workspace holds before:
 * what launches have left there too. */
TEST_TENTH(equal_launches_are_equal, KERNELS) {
  static const uint64_t left[] = {0, UINT64_MAX, UINT64_C(0x3f8000003f800000)};
  enum { THREE_BLOCKS = 2 };
  make(_i);
  for (int s = 0; s < SHAPES; s++) {
    const fg_shape shape = shape_of(s);
    launch want = launch_new(made.list, shape, 1), l = launch_new(made.list, shape, 1);
    fill(&want, 0);
    launch_run(&want, THREE_BLOCKS);
    ck_assert_msg(written(&want) > 0, "%s: shape %d has no parts", want.kernel->name, s);
    for (uint64_t turn = 1; turn < (on_gpu() ? 12 : 5); turn++) {
      launch_fill(&l, "o", NAN);
      launch_fill(&l, "lse", NAN);
      if (turn < 4) fill(&l, left[turn - 1]);
      launch_run(&l, THREE_BLOCKS + (uint64_t)kernel_device()->multiprocessors * turn);
      launch_same_outputs(&l, &want);
    }
    launch_free(&want);
    launch_free(&l);
  }
  kernels_free(&made);
}

/* The launch leaves multiprocessors free: on one alone no tile is left over for parts, on two those
 * of the last shape are. */
TEST_LOOP(margins, 1) {
  make(_i);
  const int all = kernel_device()->multiprocessors, last = SHAPES - 1;
  for (int left = 1; left < 3; left++) {
    launch l = launch_new(made.list, (fg_shape)SHAPE(1, 5, 5, 5, 5000, 0), 1);
    l.problem->args.sm_margin = all - left;
    fill(&l, 0);
    launch_run(&l, 3); /* of the blocks that the host device may have, all */
    ck_assert_msg((written(&l) > 0) == (left > 1), "%s: %d left", l.kernel->name, left);
    launch_free(&l);
  }
  for (int margin = 0; margin < 3; margin++)
    kernel_verify(made.list,
                  &(verify_case){.shape = shape_of(last), .sm_margin = margin, .seed = 3});
  kernels_free(&made);
}

/* Few keys make no parts, and need no workspace. */
TEST_TENTH(few_keys_take_no_workspace, KERNELS) {
  make(_i);
  launch l = launch_new(made.list, (fg_shape)SHAPE(1, 1, 1, 70, 700, 0), 1);
  ck_assert_uint_eq(l.problem->workspace_bytes, 0);
  launch_free(&l);
  kernels_free(&made);
}

TEST_BEGIN { kernel_device_of_wgmma(); }
