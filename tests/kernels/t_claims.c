/* t_claims.c - wgmma's forward, whose blocks claim their rows by a word of the workspace: whatever
 * it holds before a launch, and whichever launch left it there, no tile of rows is lost or done
 * twice. On the host device, or on a GPU by the gpu label. */
#include "launch_case.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* tile/claims.cut's mark of a word that counts. */
#define OPEN UINT64_C(0x7fb5c1a100000000)

/* New, negative, all bits; what a mark's neighbours look like; floats, NaN, bf16. */
static const uint64_t words[] = {0,
                                 1,
                                 UINT64_MAX,
                                 OPEN - 1,
                                 OPEN + (UINT64_C(1) << 32),
                                 OPEN >> 32,
                                 UINT64_C(0x3f8000003f800000),
                                 UINT64_C(0x7fc000007fc00000),
                                 UINT64_C(0x3f803f803f803f80)};
enum { WORDS = sizeof words / sizeof *words, SHAPES = 3 };

/* Tiles of rows enough that blocks claim more than once; fewer than there are blocks; one. */
static const fg_shape shapes[2][SHAPES] = {
    {SHAPE(2, 2, 1, 260, 100, 0), SHAPE(1, 1, 1, 300, 200, 0), SHAPE(1, 1, 1, 7, 9, 0)},
    {SHAPE(2, 32, 8, 700, 500, 0), SHAPE(1, 2, 1, 600, 520, 0), SHAPE(1, 1, 1, 7, 9, 0)}};

static kernels made;

static int on_gpu(void) { return strcmp(kernel_device()->arch, "host") != 0; }

static void make(void) {
  if (on_gpu() && strcmp(kernel_device()->arch, "sm_90a")) exit(77);
  made = kernels_new("family=wgmma head_dim=64 block_q=192 block_kv=128 "
                     "key_parts=1 mask=full,causal,window(130,0)");
}

static void drop(void) { kernels_free(&made); }

static void put(const launch *l, uint64_t word) {
  ck_assert_uint_ge(l->problem->workspace_bytes, sizeof word);
  GOOD(l->problem->device->class->upload(l->problem->device, l->problem->workspace, &word,
                                         sizeof word));
}

/* The outputs are those of `want`, and begin as NaN; the word counts no more. */
static void run(launch *l, const launch *want, uint64_t seed) {
  launch_fill(l, "o", NAN);
  launch_fill(l, "lse", NAN);
  launch_run(l, seed);
  launch_same_outputs(l, want);
  fg_device *device = l->problem->device;
  uint64_t word;
  GOOD(device->class->download(device, &word, l->problem->workspace, sizeof word));
  ck_assert_msg(word >> 32 != OPEN >> 32, "%s: left open, %" PRIx64, l->kernel->name, word);
}

START_TEST(any_word_will_do) {
  for (int i = 0; i < made.n; i++)
    for (int s = 0; s < SHAPES; s++) {
      const fg_shape shape = shapes[on_gpu()][s];
      launch want = launch_new(made.list + i, shape, 1), l = launch_new(made.list + i, shape, 1);
      put(&want, 0);
      launch_run(&want, 0);
      for (int w = 0; w < WORDS; w++) { /* on fewer multiprocessors too */
        l.problem->args.sm_margin = w % 3;
        put(&l, words[w]);
        run(&l, &want, (uint64_t)w);
      }
      launch_free(&want);
      launch_free(&l);
    }
}
END_TEST

/* Launches of all kernels and shapes, one behind the other on one workspace. */
START_TEST(launches_leave_it_as_new) {
  enum { MOST = 16 };
  launch want[MOST][SHAPES], l[MOST][SHAPES];
  ck_assert_int_le(made.n, MOST);
  void *own[MOST][SHAPES], *shared = NULL;
  for (int i = 0; i < made.n; i++)
    for (int s = 0; s < SHAPES; s++) {
      const fg_shape shape = shapes[on_gpu()][s];
      want[i][s] = launch_new(made.list + i, shape, 2);
      l[i][s] = launch_new(made.list + i, shape, 2);
      put(&want[i][s], 0);
      launch_run(&want[i][s], 0);
      own[i][s] = l[i][s].problem->workspace;
      if (!shared) {
        shared = own[i][s];
        put(&l[i][s], words[4]);
      }
      l[i][s].problem->workspace = shared;
    }
  for (uint64_t turn = 0; turn < 8; turn++)
    for (int i = 0; i < made.n; i++) {
      const int s = (int)(turn * 5 + (uint64_t)i) % SHAPES;
      run(&l[i][s], &want[i][s], turn);
    }
  for (int i = 0; i < made.n; i++)
    for (int s = 0; s < SHAPES; s++) {
      l[i][s].problem->workspace = own[i][s];
      launch_free(&want[i][s]);
      launch_free(&l[i][s]);
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("claims");
  TCase *tests = tcase_create("claims");
  kernel_device();
  tcase_add_unchecked_fixture(tests, make, drop);
  tcase_add_test(tests, any_word_will_do);
  tcase_add_test(tests, launches_leave_it_as_new);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
