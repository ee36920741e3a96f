/* t_batch_invariant.c - batch_invariant=true: the bits of a sequence's rows are the same alone and
 * in any batch, on any number of blocks; without it they need not be. */
#include "launch_case.h"

#include <stdlib.h>
#include <string.h>

/* Sequences of a batch: keys of several spans and of one, more rows than have parts, and none. */
enum { BATCH = 5, HEADS = 4, KEY_HEADS = 2, WIDTH = 40, MOST = 2600 };
static const int keys[BATCH] = {2500, 40, 2600, 1100, 0}, rows[BATCH] = {3, 1, 17, 2, 2};

#define COMMON "head_dim=40 mask=causal score=s+0.01*(k-p) "
static const char *const layouts[] = {"kv_layout=cached", "kv_layout=packed",
                                      "q_layout=packed kv_layout=packed",
                                      "q_layout=packed kv_layout=cached"};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static kernels made;
static int q_is_packed, k_is_packed;

static void make(int layout, const char *more) {
  q_is_packed = !strncmp(layouts[layout], "q_", 2),
  k_is_packed = strstr(layouts[layout], "kv_layout=packed") != NULL;
  made = kernels_new(COMMON "warps=4 block_kv=16,32 %s %s", layouts[layout], more);
}

/* Rows of queries of a sequence, and the first one of sequence i in the tensor, in rows of one
 * head. */
static int rows_of(int i) { return q_is_packed ? rows[i] : 2; }
static int first_row(int i, const int *n, int packed, int each) {
  int first = 0;
  for (int j = 0; j < i; j++) first += packed ? n[j] : each;
  return first;
}

/* A launch of sequences from `first` on. */
static launch new_launch(const kernel *k, int first, int n) {
  fg_shape s = {.b = n, .h = HEADS, .hk = KEY_HEADS, .nq = 2, .nk = MOST};
  int64_t starts[2][BATCH + 1] = {{0}}, used[BATCH];
  for (int i = 0; i < n; i++) {
    starts[0][i + 1] = starts[0][i] + rows[first + i];
    starts[1][i + 1] = starts[1][i] + keys[first + i];
    used[i] = keys[first + i];
  }
  if (q_is_packed) s.tokens_q = starts[0][n];
  if (k_is_packed) s.tokens_k = starts[1][n];
  launch l = launch_new(k, s, 1);
  if (q_is_packed) launch_set_ints(&l, "starts_q", starts[0]), launch_drop(&l, "used_q");
  if (k_is_packed)
    launch_set_ints(&l, "starts_k", starts[1]), launch_drop(&l, "used_k");
  else
    launch_set_ints(&l, "used_k", used), launch_drop(&l, "first_k"), launch_drop(&l, "rows");
  return l;
}

/* The values of sequence i in a launch of all become those of the launch `alone`. */
static void copy(const launch *all, const launch *alone, const char *name, int first, int heads) {
  float *values = launch_get(all, name);
  launch_set(alone, name, values + (int64_t)first * heads * WIDTH);
  free(values);
}

/* The outputs of sequence i alone and of the batch; whether they are the same bits. */
static int is_same(const launch *all, const launch *alone, int i) {
  const int n = rows_of(i), first = first_row(i, rows, q_is_packed, 2);
  float *o = launch_get(all, "o"), *own = launch_get(alone, "o");
  float *lse = launch_get(all, "lse"), *own_lse = launch_get(alone, "lse");
  int same =
      !memcmp(o + (int64_t)first * HEADS * WIDTH, own, sizeof *o * (size_t)(n * HEADS * WIDTH));
  const int64_t tokens = launch_count(all, "lse") / HEADS;
  for (int h = 0; h < HEADS; h++) {
    const float *row = q_is_packed ? lse + h * tokens + first : lse + ((int64_t)i * HEADS + h) * n;
    same = same && !memcmp(row, own_lse + (int64_t)h * n, sizeof *lse * (size_t)n);
  }
  free(o), free(own), free(lse), free(own_lse);
  return same;
}

/* How many of the sequences have other bits alone, on so many seeds' numbers of blocks. */
static int count_differing(const kernel *k) {
  int differing = 0;
  launch all = new_launch(k, 0, BATCH);
  launch_run(&all, 5);
  for (int i = 0; i < BATCH; i++) {
    launch alone = new_launch(k, i, 1);
    copy(&all, &alone, "q", first_row(i, rows, q_is_packed, 2), HEADS);
    copy(&all, &alone, "k", first_row(i, keys, k_is_packed, MOST), KEY_HEADS);
    copy(&all, &alone, "v", first_row(i, keys, k_is_packed, MOST), KEY_HEADS);
    for (uint64_t seed = 1; seed < 3; seed++) {
      launch_run(&alone, seed);
      differing += !is_same(&all, &alone, i);
    }
    launch_free(&alone);
  }
  launch_free(&all);
  return differing;
}

TEST_TENTH(bits_are_of_one_sequence, LAYOUTS) {
  make(_i, "batch_invariant=true family=decode,mma");
  ck_assert_int_gt(made.n, 1);
  for (int i = 0; i < made.n; i++)
    ck_assert_msg(count_differing(&made.list[i]) == 0, "%s", made.list[i].name);
  kernels_free(&made);
}

/* The test can fail; on the host alone, where there are few enough blocks for a sequence's share to
 * depend on the others. */
TEST_TENTH(bits_are_of_the_batch, LAYOUTS) {
  if (!kernel_device_is_host()) return;
  int differing = 0;
  make(_i, "family=decode");
  for (int i = 0; i < made.n; i++) differing += count_differing(&made.list[i]);
  ck_assert_int_gt(differing, 0);
  kernels_free(&made);
}

TEST_BEGIN { kernel_device(); }
