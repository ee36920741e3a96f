/* t_sequence_wrong.c - starts, lengths and tables that say nothing sound, and tokens that no
 * sequence has: no kernel reads or writes beyond a tensor. Kernels are one of each family that
 * takes the layout. */
#include "launch_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PACKED   "q_layout=packed kv_layout=packed"
#define BACKWARD "pass=backward deterministic=true"

/* Starts that fall, are negative or lie behind the tensor; lengths that are negative or longer than
 * there is. No kernel reads or writes beyond a tensor, whatever its numbers are: where sequences
 * overlap several write one token, and the host device says so. */
static const struct {
  int64_t starts_q[4], starts_k[4], used_q[3], used_k[3], first_k[3];
} wrong[] = {
    {{0, 90, 30, 130}, {0, 100, 20, 150}, {500, 500, 500}, {500, 500, 500}, {0, 0, 0}},
    {{130, 90, 30, 0}, {150, 90, 30, 0}, {5, 5, 5}, {5, 5, 5}, {3, 3, 3}},
    {{-7, 40, 80, 1000}, {-9, 50, 90, 2000}, {60, 60, 2000}, {80, 80, 3000}, {-5, 90, 4}},
    {{INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX},
     {INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN},
     {INT32_MAX, INT32_MIN, -1},
     {INT32_MIN, INT32_MAX, INT32_MAX},
     {INT32_MAX, INT32_MIN, -1}},
    {{5, 5, 5, 5}, {0, 150, 150, 150}, {-1, -1, -1}, {-1, -1, -1}, {100000, 100000, 100000}},
};
enum { WRONG = sizeof wrong / sizeof *wrong };

/* Pages are right: there are as many as the longest sequence may have. is_short: without what may
 * be left out. */
static void run_wrong(const kernel *k, int i, bool is_short) {
  const bool is_packed = k->variant.point.kv_layout == FG_PACKED;
  fg_shape s = {.b = 3, .h = 4, .hk = 2, .tokens_q = 130, .tokens_k = 150};
  int64_t table[3 * 10];
  s.nq = 50, s.nk = 150, s.pages = 4;
  if (k->variant.point.kv_layout == FG_PAGED) s.page = 16;
  for (int t = 0; t < 30; t++) table[t] = t % 4;
  launch l = launch_new(k, s, 6);
  launch_set_ints(&l, "starts_q", wrong[i].starts_q);
  launch_set_ints(&l, "starts_k", wrong[i].starts_k);
  launch_set_ints(&l, "used_q", wrong[i].used_q);
  launch_set_ints(&l, "used_k", wrong[i].used_k);
  launch_set_ints(&l, "first_k", wrong[i].first_k);
  launch_set_ints(&l, "rows", (const int64_t[]){3, 0, 3});
  launch_set_ints(&l, "table", table);
  if (is_short) launch_drop(&l, "used_q");
  if (is_short) launch_drop(&l, "first_k");
  if (is_short && is_packed) launch_drop(&l, "used_k");
  l.problem->device->seed = (uint64_t)(2 * i + is_short);
  fg_status status = fg_problem_run(l.problem, k->module);
  ck_assert_msg(status == FG_OK || strstr(fg_error(), ": race: store at "), "%s: %s", k->name,
                fg_error());
  launch_free(&l);
}

TEST_TENTH(wrong_places, 7) {
  static const char *const words[] = {PACKED,
                                      "kv_layout=packed",
                                      "q_layout=packed",
                                      "q_layout=packed kv_layout=cached",
                                      "q_layout=packed kv_layout=paged",
                                      BACKWARD " " PACKED,
                                      "pass=backward " PACKED};
  kernels made = kernels_of_families(_i, "head_dim=40 mask=causal %s", words[_i]);
  for (int i = 0; i < made.n; i++)
    for (int w = 0; w < 2 * WRONG; w++) run_wrong(&made.list[i], w / 2, w % 2);
  kernels_free(&made);
}

/* Sequences that have all tokens, and fall between each other: more tiles than tokens make. */
TEST_TENTH(falls_often, 2) {
  enum { SEQUENCES = 9, TOKENS = 400 };
  static const char *const words[] = {"", BACKWARD};
  kernels made = kernels_of_families(_i, "head_dim=40 mask=causal " PACKED " %s", words[_i]);
  int64_t starts[SEQUENCES + 1];
  for (int i = 0; i <= SEQUENCES; i++) starts[i] = i % 2 ? TOKENS : 0;
  for (int i = 0; i < made.n; i++) {
    const fg_shape s = {.b = SEQUENCES, .h = 1, .hk = 1, .tokens_q = TOKENS, .tokens_k = TOKENS};
    launch l = launch_new(&made.list[i], s, 7);
    launch_set_ints(&l, "starts_q", starts);
    launch_set_ints(&l, "starts_k", starts);
    launch_drop(&l, "used_q");
    launch_drop(&l, "used_k");
    fg_status status = fg_problem_run(l.problem, made.list[i].module);
    ck_assert_msg(status == FG_OK || strstr(fg_error(), ": race: store at "), "%s: %s",
                  made.list[i].name, fg_error());
    launch_free(&l);
  }
  kernels_free(&made);
}

/* Pages without a key are refused. */
TEST(empty_pages) {
  kernels made = kernels_of_families(0, "head_dim=40 kv_layout=paged");
  for (int i = 0; i < made.n; i++) {
    launch l = launch_new(
        &made.list[i],
        (fg_shape){.b = 1, .h = 2, .hk = 1, .nq = 1, .nk = 30, .pages = 8, .page = 4}, 9);
    l.problem->shape.page = 0;
    FAILS(FG_EARGUMENT, "page = 0: with kv_layout=paged a page has 1 key at least",
          fg_problem_run(l.problem, made.list[i].module));
    launch_free(&l);
  }
  ck_assert_int_gt(made.n, 0);
  kernels_free(&made);
}

/* Tokens that no sequence has, beside one that a batch has an input of, and beside no batch. */
static void run_nobody(const kernel *k, int64_t b) {
  static const int64_t starts_q[] = {4, 9, 12}, starts_k[] = {2, 20, 25};
  const int64_t n = b ? starts_q[0] : 20;
  launch l = launch_new(
      k, (fg_shape){.b = b, .h = 2, .hk = 1, .nk = 30, .tokens_q = 20, .tokens_k = 30}, 8);
  launch_set_ints(&l, "starts_q", b ? starts_q : (const int64_t[]){0});
  launch_set_ints(&l, "starts_k", b ? starts_k : (const int64_t[]){0});
  launch_drop(&l, "used_q");
  launch_drop(&l, "used_k");
  launch_run(&l, (uint64_t)b);
  float *o = launch_get(&l, "o"), *lse = launch_get(&l, "lse");
  const int64_t width = launch_count(&l, "o") / 20;
  for (int64_t i = 0; i < n * width; i++) ck_assert_msg(o[i] == 0, "%s: o[%d]", k->name, (int)i);
  for (int64_t i = 0; i < n; i++)
    ck_assert_msg(lse[i] == -INFINITY && lse[20 + i] == -INFINITY, "%s: lse[%d]", k->name, (int)i);
  free(o);
  free(lse);
  launch_free(&l);
}

TEST_TENTH(tokens_of_nobody, 2) {
  static const char *const words[] = {"kv_layout=dense", "kv_layout=packed"};
  kernels made = kernels_of_families(
      _i, "head_dim=40 mask=causal bias=true bias_dims=b q_layout=packed %s", words[_i]);
  for (int i = 0; i < made.n; i++)
    for (int64_t b = 0; b <= 2; b += 2) run_nobody(&made.list[i], b);
  kernels_free(&made);
}
