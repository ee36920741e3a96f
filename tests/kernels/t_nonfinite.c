/* t_nonfinite.c - infinities and NaN in q, k, v and dO: what they may reach, and nothing else.
 *
 * A number that is none in row i of q or dO is row i's, and that of the keys which row i sees; one
 * in row j of k or v is the rows' that see key j. Rows and keys beyond the last, which tiles have
 * too, add nothing. Tiles multiply a hidden pair's weight, 0, with what k and v hold: rows that do
 * not see a key are asked for where no tile of theirs has it. */
#include "launch_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No tile has as many rows or keys: none of them is whole. */
static const fg_shape shape = {.b = 1, .h = 2, .hk = 2, .nq = 70, .nk = 141};
enum { D = 32, ROW = 37, KEY = 5 };

static const char *const family[] = {"simt", "mma", "wgmma", "decode"};
enum { FAMILIES = sizeof family / sizeof *family };

/* Sets column 0 of row `at` of head 0. */
static void plant(launch *l, const char *name, int64_t at, float value) {
  float *x = launch_get(l, name);
  x[at * shape.h * D] = value;
  launch_set(l, name, x);
  free(x);
}

/* Makes column 0 of q positive, so that -inf in k makes scores of -inf. */
static void make_positive(launch *l) {
  float *q = launch_get(l, "q");
  for (int64_t i = 0; i < launch_count(l, "q"); i += D) q[i] = fabsf(q[i]) + 0.5f;
  launch_set(l, "q", q);
  free(q);
}

/* Of [b, n, h, d], or of lse, [b, h, n]: which may hold what is no number. */
typedef int (*reach)(int64_t row, int64_t column);
static int none(int64_t row, int64_t column) { return (void)row, (void)column, 0; }
static int all(int64_t row, int64_t column) { return (void)row, (void)column, 1; }
static int the_row(int64_t row, int64_t column) { return (void)column, row == ROW; }
static int column_0(int64_t row, int64_t column) { return (void)row, column == 0; }

/* In head 1 nothing is planted: all of it is finite. */
static void check(const launch *l, const char *name, reach may) {
  float *x = launch_get(l, name);
  int64_t n = launch_count(l, name), rows = !strcmp(name, "lse") ? shape.nq : 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t head = rows ? i / rows : i / D % shape.h;
    int64_t row = rows ? i % rows : i / D / shape.h, column = rows ? 0 : i % D;
    if (head == 0 && may(row, column)) continue;
    ck_assert_msg(isfinite(x[i]), "%s: %s, row %d, head %d, column %d: %g", l->kernel->name, name,
                  (int)row, (int)head, (int)column, (double)x[i]);
  }
  free(x);
}

/* Scores of key 5 are -inf, and so its weights 0: nothing comes of it. */
static void check_hidden(const launch *l, const char *name) {
  float *x = launch_get(l, name);
  for (int c = 0; c < D; c++)
    ck_assert_msg(x[KEY * shape.h * D + c] == 0, "%s: %s of the hidden key: %g", l->kernel->name,
                  name, (double)x[KEY * shape.h * D + c]);
  free(x);
}

static const struct plant {
  const char *name;
  int at;
  float value;
  reach o, lse, dq, dk, dv;
} plants[] = {
    {"k", KEY, -INFINITY, none, none, column_0, none, none},
    {"k", KEY, INFINITY, all, all, all, all, all},
    {"k", KEY, NAN, all, all, all, all, all},
    {"v", KEY, INFINITY, column_0, none, all, all, none},
    {"v", KEY, -INFINITY, column_0, none, all, all, none},
    {"v", KEY, NAN, column_0, none, all, all, none},
    {"q", ROW, INFINITY, the_row, the_row, the_row, all, all},
    {"q", ROW, NAN, the_row, the_row, the_row, all, all},
    {"do", ROW, INFINITY, none, none, the_row, all, column_0},
    {"do", ROW, NAN, none, none, the_row, all, column_0},
};
enum { PLANTS = sizeof plants / sizeof *plants };

/* backward: NULL = forward is judged. capped: no score is -inf. */
static void run(const kernel *forward, const kernel *backward, const struct plant *p, int capped) {
  launch l = launch_new(backward ? backward : forward, shape, 5);
  make_positive(&l);
  if (backward || strcmp(p->name, "do")) plant(&l, p->name, p->at, p->value);
  if (backward) launch_take_forward(&l, forward);
  launch_run(&l, 7);
  if (!backward) {
    check(&l, "o", p->o);
    check(&l, "lse", p->lse);
  } else {
    check(&l, "dq", p->dq);
    check(&l, "dk", p->dk);
    check(&l, "dv", p->dv);
    if (p->dv == none && p->dk == none && !capped) {
      check_hidden(&l, "dk");
      check_hidden(&l, "dv");
    }
  }
  launch_free(&l);
}

/* Scores of a shape of their own take other ways through a kernel. */
enum { CAPPED = 2 };
static const char *const spec[] = {
    "mask=full dtype=bf16",
    "mask=full dtype=f16",
    "mask=k<nk score=softcap(20.0)",
    "mask=full bias=true bias_dims=[h,q,k]",
    "mask=full score=s-0.01*float(k)",
    "mask=full score=s+log(float(nq-q))-log(float(nk-k))",
};

TEST_TENTH(reaches_no_other, sizeof spec / sizeof *spec) {
  for (int f = 0; f < FAMILIES; f++) {
    kernels forward = kernels_some(_i, "family=%s head_dim=%d %s", family[f], D, spec[_i]);
    for (int i = 0; i < forward.n; i++)
      for (int p = 0; p < PLANTS; p++) run(&forward.list[i], NULL, &plants[p], _i == CAPPED);
    if (f < 2) {
      kernels backward = kernels_some(_i, "pass=backward family=%s head_dim=%d deterministic=%s %s",
                                      family[f], D, f == 1 ? "false,true" : "false", spec[_i]);
      for (int i = 0; i < backward.n; i++)
        for (int p = 0; p < PLANTS; p++)
          run(&forward.list[0], &backward.list[i], &plants[p], _i == CAPPED);
      kernels_free(&backward);
    }
    kernels_free(&forward);
  }
}
