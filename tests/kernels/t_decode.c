/* t_decode.c - what attention of few rows has of its own: how blocks divide the keys, parts that
 * one of them joins, heads that are rows of a tile, and a workspace that nobody clears. On the host
 * device, or on a GPU by the gpu label. */
#include "launch_sequences.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a tile: 8, of one team a warp; 16; 64, of two teams. */
#define EIGHT "family=decode head_dim=64 block_q=8 block_kv=32 warps=4 "
#define PLANS "family=decode head_dim=40/64 block_q=8,16,64 "

/* ---- numbers ---- */

/* Groups that leave rows of a tile over, and of more heads than it has rows; many sequences, whose
 * places in the line are kept in groups; one long one; fewer keys than blocks; more rows than keys,
 * so that some see none. Every mode of division is among them, on one number of blocks or another.
 */
static const struct numbers {
  const char *words;
  fg_shape shape;
} numbers[] = {
    {PLANS, SHAPE(1, 96, 1, 1, 700, 0)},
    {PLANS "mask=causal", SHAPE(2, 6, 2, 3, 77, 0)},
    {PLANS, SHAPE(1, 10, 2, 2, 600, 0)},
    {PLANS "score=alibi", SHAPE(2, 12, 2, 1, 90, 0)},
    {PLANS "mask=causal", SHAPE(1, 4, 1, 2, 3000, 0)},
    {PLANS "mask=window(600,0)", SHAPE(1, 4, 2, 3, 2600, 0)},
    {PLANS "mask=causal_top_left", SHAPE(1, 4, 4, 1, 600, 0)},
    {PLANS "mask=causal", SHAPE(1, 2, 1, 50, 17, 0)},
    {PLANS "mask=k<=p-100*h", SHAPE(2, 4, 2, 5, 300, 0)},
    {PLANS "mask=k<=p-100*hk", SHAPE(2, 4, 2, 5, 300, 0)},
    {PLANS "inputs.w=i32[h] mask=p-k<w[h]%300", SHAPE(1, 4, 1, 3, 400, 0)},
    {PLANS "inputs.w=i32[b] mask=p-k<w[b]%300", SHAPE(3, 4, 1, 3, 400, 0)},
    {PLANS "mask=k/64%3!=1", SHAPE(1, 4, 1, 3, 1500, 0)},
    {PLANS "sink=true mask=causal", SHAPE(1, 8, 2, 9, 1100, 0)},
    {PLANS "sink=false,true", SHAPE(2, 4, 2, 2, 0, 0)},
    {EIGHT "q_layout=packed kv_layout=paged", SHAPE(3000, 2, 2, 1, 10, 0)},
    {EIGHT, SHAPE(3000, 1, 1, 1, 20, 0)},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers, SEEDS = 5 };

/* The optional tensors are there with an even seed alone: LSE may be null. */
TEST_TENTH(numbers_are_right, NUMBERS) {
  const struct numbers *row = &numbers[_i];
  kernels made = kernels_new("%s", row->words);
  for (int i = 0; i < made.n; i++)
    for (uint64_t seed = 0; seed < (row->shape.b > 99 ? 2 : SEEDS); seed++)
      kernel_verify(&made.list[i],
                    &(verify_case){.shape = row->shape,
                                   .style = seed % 5 == 3 ? VERIFY_LARGE : VERIFY_PLAIN,
                                   .sm_margin = seed == 4,
                                   .again = seed < 3,
                                   .seed = seed});
  kernels_free(&made);
}

/* ---- parts ---- */

/* The workspace holds anything, as a launch of another kernel may leave it, or the word. */
static void fill(const launch *l, uint64_t seed, uint64_t word) {
  const fg_problem *p = l->problem;
  const size_t n = p->workspace_bytes / sizeof word;
  uint64_t *all = malloc(p->workspace_bytes + 1), state = seed;
  ck_assert_ptr_nonnull(all);
  for (size_t i = 0; i < n; i++) all[i] = seed ? fg_random_next(&state) : word;
  GOOD(p->device->class->upload(p->device, p->workspace, all, n * sizeof word));
  free(all);
}

/* The region of the workspace; the caller frees it. */
static float *region(const launch *l, const char *name, int64_t *bytes) {
  const fg_problem *p = l->problem;
  const fg_recipe *r = p->recipe;
  int64_t offset;
  float *values = NULL;
  for (int i = 0; i < r->n_regions; i++) {
    if (strcmp(r->region[i].name, name) != 0) continue;
    GOOD(fg_workspace_region(r, &p->shape, i, &offset, bytes));
    values = malloc((size_t)*bytes);
    ck_assert_ptr_nonnull(values);
    GOOD(p->device->class->download(p->device, values, (char *)p->workspace + offset,
                                    (size_t)*bytes));
  }
  ck_assert_ptr_nonnull(values);
  return values;
}

/* How many places hold a part after a launch on a workspace of zeros. */
static int count_parts(const launch *l) {
  enum { PLACE = 8 * (64 + 2 * 4) }; /* floats: rows of O and of two states of a quad */
  int64_t bytes;
  int count = 0;
  float *parts = region(l, "parts", &bytes);
  const int64_t n = bytes / (int64_t)sizeof *parts;
  ck_assert_int_eq(n % PLACE, 0);
  for (int64_t i = 0; i < n; i += PLACE) {
    int is_written = 0;
    for (int64_t j = i; j < i + PLACE; j++) is_written |= parts[j] != 0;
    count += is_written;
  }
  free(parts);
  return count;
}

/* How keys are divided by as many blocks as the seed says, 2 to 6, in tiles of 32 keys:
 * few heads: parts of at least 16 tiles, as many as there are blocks, or fewer where rests are
 * left; many: equal stretches. Ones that end where heads do have no parts; one that ends in a head
 * leaves two; each of five ends in one. Fewer tiles than blocks have none. */
static const struct division {
  const char *words;
  fg_shape shape;
  uint64_t seed;
  int parts;
} divisions[] = {
    {EIGHT, SHAPE(1, 4, 1, 2, 3000, 0), 5, 6},
    {EIGHT, SHAPE(1, 4, 1, 2, 3000, 0), 3, 4},
    {EIGHT, SHAPE(1, 4, 1, 2, 3000, 0), 1, 2},
    {EIGHT, SHAPE(1, 4, 2, 2, 1100, 0), 5, 6},
    {EIGHT, SHAPE(1, 4, 1, 2, 500, 0), 5, 0},
    {EIGHT, SHAPE(2, 2, 2, 1, 640, 0), 1, 0},
    {EIGHT, SHAPE(3, 1, 1, 1, 640, 0), 1, 2},
    {EIGHT, SHAPE(5, 1, 1, 1, 640, 0), 5, 10},
    {EIGHT "mask=causal_top_left", SHAPE(1, 4, 4, 1, 600, 0), 5, 0},
};
enum { DIVISIONS = sizeof divisions / sizeof *divisions };

TEST_TENTH(keys_are_divided, DIVISIONS) {
  const struct division *row = &divisions[_i];
  if (!kernel_device_is_host()) return;
  kernels made = kernels_new("%s", row->words);
  launch l = launch_new(made.list, row->shape, 1);
  fill(&l, 0, 0);
  launch_run(&l, row->seed);
  ck_assert_int_eq(count_parts(&l), row->parts);
  launch_free(&l);
  kernels_free(&made);
}

/* More heads than multiprocessors of a GPU, and fewer. */
static const fg_shape shapes[] = {SHAPE(1, 4, 1, 2, 3000, 0), SHAPE(5, 1, 1, 1, 900, 0),
                                  SHAPE(3, 6, 2, 5, 200, 0), SHAPE(40, 16, 8, 1, 300, 0)};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const char *const layouts[] = {"", "mask=causal kv_layout=cached",
                                      "mask=causal kv_layout=paged",
                                      "q_layout=packed kv_layout=packed"};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* A launch on a workspace of zeros. */
static launch run_alone(const kernel *k, fg_shape shape, uint64_t draw, uint64_t seed) {
  launch l = launch_new_sequences(k, shape, draw);
  fill(&l, 0, 0);
  launch_run(&l, seed);
  return l;
}

/* The outputs, NaN before, are those of `want`. */
static void run(launch *l, const launch *want, uint64_t seed) {
  launch_poison(l);
  launch_run(l, seed);
  launch_same_outputs(l, want);
}

/* Whatever the workspace holds before, and whichever block comes last: also what launches before
 * have left there. */
TEST_TENTH(equal_launches_are_equal, LAYOUTS) {
  /* all bits; floats; a word of claims that counts, and its neighbour */
  static const uint64_t left[] = {UINT64_MAX, UINT64_C(0x3f8000003f800000),
                                  UINT64_C(0x7fb5c1a200000000), UINT64_C(0x7fb5c1a0ffffffff)};
  enum { LEFT = sizeof left / sizeof *left };
  kernels made = kernels_new(PLANS "%s", layouts[_i]);
  for (int i = 0; i < made.n; i++)
    for (int s = 0; s < SHAPES - kernel_device_is_host(); s++) {
      launch want = run_alone(&made.list[i], shapes[s], 1, 2);
      launch l = launch_new_sequences(&made.list[i], shapes[s], 1);
      for (int turn = 0; turn < LEFT + 4; turn++) {
        if (turn < LEFT) fill(&l, 0, left[turn]);
        if (turn == LEFT) fill(&l, 9, 0);
        run(&l, &want, 2 + launch_order(&l, turn)); /* from LEFT on four in a row */
      }
      launch_free(&want);
      launch_free(&l);
    }
  kernels_free(&made);
}

/* Launches of other lengths, shapes and numbers of blocks, one after the other on one workspace. */
TEST_TENTH(launches_share_a_workspace, LAYOUTS) {
  enum { DRAWS = 3, LAUNCHES = SHAPES * DRAWS };
  kernels made = kernels_new(EIGHT "%s", layouts[_i]);
  launch want[LAUNCHES], l[LAUNCHES];
  void *own[LAUNCHES], *largest = NULL;
  size_t bytes = 0;
  const int n = (SHAPES - kernel_device_is_host()) * DRAWS;
  for (int i = 0; i < n; i++) {
    const fg_shape shape = shapes[i / DRAWS];
    const uint64_t draw = (uint64_t)(i % DRAWS) + 1;
    want[i] = run_alone(made.list, shape, draw, draw);
    l[i] = launch_new_sequences(made.list, shape, draw);
    fill(&l[i], 5, 0);
    own[i] = l[i].problem->workspace;
    if (l[i].problem->workspace_bytes <= bytes) continue;
    bytes = l[i].problem->workspace_bytes;
    largest = own[i];
  }
  for (int i = 0; i < n; i++) l[i].problem->workspace = largest;
  for (int turn = 0; turn < 2; turn++)
    for (int i = 0; i < n; i++) {
      const int at = (5 * i + turn) % n; /* n is no multiple of 5 */
      run(&l[at], &want[at], (uint64_t)(at % DRAWS) + 1 + launch_order(&l[at], turn));
    }
  for (int i = 0; i < n; i++) {
    l[i].problem->workspace = own[i];
    launch_free(&want[i]);
    launch_free(&l[i]);
  }
  kernels_free(&made);
}

/* ---- rows ---- */

/* Rows that see no key are 0 and -inf in every plan, the others are not. */
TEST(rows_without_keys) {
  enum { WIDTH = 64, HIDDEN = 10 };
  const fg_shape shape = SHAPE(1, 6, 2, 40, 30, 0);
  kernels made = kernels_new(PLANS "mask=causal");
  for (int i = 0; i < made.n; i++) {
    launch l = launch_new(&made.list[i], shape, 3);
    launch_run(&l, (uint64_t)i);
    float *o = launch_get(&l, "o"), *lse = launch_get(&l, "lse");
    for (int64_t at = 0; at < launch_count(&l, "lse"); at++)
      ck_assert_msg((lse[at] == -INFINITY) == (at % shape.nq < HIDDEN), "%s: lse[%d] = %g",
                    made.list[i].name, (int)at, (double)lse[at]);
    for (int64_t at = 0; at < launch_count(&l, "o"); at++)
      ck_assert_msg((o[at] == 0) == (at / WIDTH / shape.h < HIDDEN), "%s: o[%d] = %g",
                    made.list[i].name, (int)at, (double)o[at]);
    free(o), free(lse);
    launch_free(&l);
  }
  kernels_free(&made);
}

TEST_BEGIN { kernel_device(); }
