/* t_claims.c - wgmma's kernels whose blocks stay and claim their work by words of the workspace:
 * whatever it holds before a launch, and whichever launch left it there, no tile is lost or done
 * twice, on however many multiprocessors, and o, lse, dk and dv have the same bits. On the host
 * device, or on a GPU by the gpu label. */
#include "launch_case.h"

#include "base/random.h"

#include <inttypes.h>
#include <stdio.h>
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
enum { WORDS = sizeof words / sizeof *words, SHAPES = 3, MOST = 24 };

/* Tiles of rows enough that blocks claim more than once, and of keys; fewer of the others than
 * there are blocks; one of each. */
static const fg_shape shapes[2][SHAPES] = {
    {SHAPE(2, 2, 1, 260, 100, 0), SHAPE(1, 1, 1, 300, 460, 0), SHAPE(1, 1, 1, 7, 9, 0)},
    {SHAPE(2, 32, 8, 700, 500, 0), SHAPE(1, 32, 32, 300, 920, 0), SHAPE(1, 1, 1, 7, 9, 0)}};

/* Of either pass: plans that stay, with tiles of rows of either size; then one that does not. */
static const char *const made_of[] = {
    "family=wgmma head_dim=64 block_q=192 block_kv=128 key_parts=1 mask=full,causal,window(130,0)",
    "family=wgmma pass=backward head_dim=64 mask=full block_q=128;"
    "family=wgmma pass=backward head_dim=64 mask=window(130,0) block_q=64;"
    "family=wgmma pass=backward head_dim=128 mask=causal score=alibi;"
    "family=wgmma pass=backward head_dim=192/128 mask=causal"};
enum { BACKWARD = 1, PASSES = sizeof made_of / sizeof *made_of };

static kernels made[PASSES];

static void make(void) {
  for (int pass = 0; pass < PASSES; pass++) {
    made[pass] = kernels_new("%s", made_of[pass]);
    ck_assert_int_le(made[pass].n, MOST);
  }
}

static void drop(void) {
  for (int pass = 0; pass < PASSES; pass++) kernels_free(&made[pass]);
}

static fg_shape shape_of(int s) { return shapes[!kernel_device_is_host()][s]; }

/* The byte of the workspace at which a region lies, and its bytes; -1: the kernel has none of that
 * name. */
static int64_t region(const launch *l, const char *name, int64_t *bytes) {
  const fg_recipe *r = l->problem->recipe;
  int64_t offset;
  for (int i = 0; i < r->n_regions; i++) {
    if (strcmp(r->region[i].name, name) != 0) continue;
    GOOD(fg_workspace_region(r, &l->problem->shape, i, &offset, bytes));
    return offset;
  }
  return -1;
}

/* Where the word of claims lies. */
static int64_t place(const launch *l) {
  int64_t bytes, at = region(l, "claims", &bytes);
  if (at >= 0) ck_assert_int_ge(bytes, sizeof(uint64_t));
  return at;
}

/* The workspace holds anything, and the word. */
static void fill(const launch *l, uint64_t seed, uint64_t word) {
  const fg_problem *p = l->problem;
  const size_t n = p->workspace_bytes / sizeof word;
  const int64_t at = place(l);
  uint64_t *all = malloc(p->workspace_bytes), state = seed;
  ck_assert_ptr_nonnull(all);
  for (size_t i = 0; i < n; i++) all[i] = fg_random_next(&state);
  if (at >= 0) all[at / (int64_t)sizeof word] = word;
  GOOD(p->device->class->upload(p->device, p->workspace, all, p->workspace_bytes));
  free(all);
}

static launch start(const kernel *k, fg_shape shape, uint64_t draw) {
  launch l = launch_new(k, shape, draw);
  if (launch_has(&l, "do")) launch_fill(&l, "lse", 3); /* weights need not be a softmax's */
  return l;
}

/* The outputs are those of `want`, and begin as NaN; the word counts no more. */
static void run(launch *l, const launch *want, uint64_t seed) {
  fg_device *device = l->problem->device;
  const int64_t at = place(l);
  uint64_t word = 0;
  launch_poison(l);
  launch_run(l, seed);
  launch_same_as_promised(l, want);
  if (at >= 0)
    GOOD(device->class->download(device, &word, (char *)l->problem->workspace + at, sizeof word));
  ck_assert_msg(word >> 32 != OPEN >> 32, "%s: left open, %" PRIx64, l->kernel->name, word);
}

/* One that begins on a workspace of zeros. */
static launch wanted(const kernel *k, int s, uint64_t draw) {
  launch l = start(k, shape_of(s), draw);
  fill(&l, 1, 0);
  launch_run(&l, 0);
  return l;
}

/* Each word before each kernel at one of the shapes, on fewer multiprocessors too. */
TEST_TENTH(any_word_will_do, PASSES) {
  for (int i = 0; i < made[_i].n; i++)
    for (int s = 0; s < SHAPES; s++) {
      const kernel *k = made[_i].list + i;
      launch want = wanted(k, s, 1), l = start(k, shape_of(s), 1);
      for (int w = (i + s) % SHAPES; w < WORDS; w += SHAPES) {
        l.problem->args.sm_margin = w % 3;
        fill(&l, (uint64_t)w, words[w]);
        run(&l, &want, (uint64_t)w);
      }
      launch_free(&want);
      launch_free(&l);
    }
}

/* Launches of all kernels and shapes, one behind the other on one workspace. */
TEST_TENTH(launches_leave_it_as_new, PASSES) {
  launch want[MOST][SHAPES], l[MOST][SHAPES];
  const kernels *all = &made[_i];
  void *own[MOST][SHAPES], *largest = NULL;
  size_t bytes = 0;
  for (int i = 0; i < all->n; i++)
    for (int s = 0; s < SHAPES; s++) {
      want[i][s] = wanted(all->list + i, s, 2);
      l[i][s] = start(all->list + i, shape_of(s), 2);
      own[i][s] = l[i][s].problem->workspace;
      fill(&l[i][s], 5, words[4]);
      if (l[i][s].problem->workspace_bytes <= bytes) continue;
      bytes = l[i][s].problem->workspace_bytes;
      largest = own[i][s];
    }
  for (int i = 0; i < all->n * SHAPES; i++) l[i / SHAPES][i % SHAPES].problem->workspace = largest;
  for (uint64_t turn = 0; turn < 8; turn++)
    for (int i = 0; i < all->n; i++) {
      const int s = (int)(turn * 5 + (uint64_t)i) % SHAPES;
      run(&l[i][s], &want[i][s], turn);
    }
  for (int i = 0; i < all->n; i++)
    for (int s = 0; s < SHAPES; s++) {
      l[i][s].problem->workspace = own[i][s];
      launch_free(&want[i][s]);
      launch_free(&l[i][s]);
    }
}

/* A grid whose blocks cannot all be there leaves nothing undone, and one block at least is. */
TEST_TENTH(margins, PASSES) {
  const int64_t card = kernel_device()->multiprocessors, margin[] = {0, 1, 2, card / 2, card - 1};
  char end[96];
  snprintf(end, sizeof end, "expected 0 to %d on a device of %d multiprocessors", (int)card - 1,
           (int)card);
  for (const kernel *k = made[_i].list; k < made[_i].list + made[_i].n; k++) {
    launch want = wanted(k, 0, 3), l = start(k, shape_of(0), 3);
    for (int m = 0; m < (kernel_device_is_host() ? 3 : 5); m++) {
      l.problem->args.sm_margin = margin[m];
      for (uint64_t seed = 0; seed < 2; seed++) run(&l, &want, seed);
    }
    l.problem->args.sm_margin = card;
    FAILS(FG_EARGUMENT, end, fg_problem_run(l.problem, k->module));
    launch_free(&want);
    launch_free(&l);
  }
}

/* The flags of a launch that was cut short: all that is counted in them, jobs, units, rows and sums
 * of heads, counted half-way. Kernels with flags clear them; a word of claims that counts would
 * lose jobs, and is left by no launch that ends. */
TEST(after_one_cut_short) {
  int tried = 0;
  for (const kernel *k = made[BACKWARD].list; k < made[BACKWARD].list + made[BACKWARD].n; k++) {
    launch want = wanted(k, 1, 6), l = wanted(k, 1, 6);
    const fg_problem *p = l.problem;
    int64_t bytes = 0;
    const int64_t at = region(&l, "flags", &bytes);
    if (at >= 0) {
      uint32_t *flags = malloc((size_t)bytes);
      ck_assert_ptr_nonnull(flags);
      GOOD(p->device->class->download(p->device, flags, (char *)p->workspace + at, (size_t)bytes));
      for (int64_t i = 0; i < bytes / 4; i++) flags[i] = (flags[i] + 1) / 2;
      ck_assert_uint_gt(flags[0], 0);
      GOOD(p->device->class->upload(p->device, (char *)p->workspace + at, flags, (size_t)bytes));
      free(flags);
      run(&l, &want, 1);
      tried++;
    }
    launch_free(&want);
    launch_free(&l);
  }
  ck_assert_int_gt(tried, 0);
}

/* Of packed sequences blocks may have no tile at all: they do not open the word again that the last
 * claim has closed. */
TEST(blocks_without_tiles) {
  static const int64_t starts_q[] = {0, 3, 7}, starts_k[] = {0, 4, 9};
  const fg_shape few = {.b = 2, .h = 1, .hk = 1, .tokens_q = 7, .tokens_k = 9};
  kernels packed = kernels_new(
      "family=wgmma head_dim=64 mask=full,causal q_layout=packed kv_layout=packed block_q=192");
  for (int i = 0; i < packed.n; i++) {
    launch l[2];
    for (int j = 0; j < 2; j++) {
      l[j] = launch_new(packed.list + i, few, 7);
      launch_set_ints(&l[j], "starts_q", starts_q);
      launch_set_ints(&l[j], "starts_k", starts_k);
      launch_drop(&l[j], "used_q");
      launch_drop(&l[j], "used_k");
      fill(&l[j], (uint64_t)i, words[j * 5]);
    }
    ck_assert_int_ge(place(&l[0]), 0);
    launch_run(&l[0], 0);
    for (uint64_t seed = 1; seed < 5; seed++) run(&l[1], &l[0], seed);
    launch_free(&l[0]);
    launch_free(&l[1]);
  }
  kernels_free(&packed);
}

/* Whoever takes which tile and when: of one launch after the other, in another order each. */
TEST_TENTH(repeats, PASSES) {
  const int n = kernel_device_is_host() ? 3 : 100;
  for (const kernel *k = made[_i].list; k < made[_i].list + made[_i].n; k++) {
    launch want = wanted(k, 1, 4), l = start(k, shape_of(1), 4);
    for (int i = 1; i < n; i++) run(&l, &want, (uint64_t)i);
    launch_free(&want);
    launch_free(&l);
  }
}

TEST_ONCE(make, drop)
TEST_BEGIN { kernel_device_of_wgmma(); }
