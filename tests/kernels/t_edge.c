/* t_edge.c - rows that see no key, and axes without extent: outputs are written, zero or -inf, and
 * never NaN (mathematics.md section 2). */
#include "launch_case.h"

#include <math.h>
#include <stdlib.h>

static const char *const order[] = {"false", "true"}; /* deterministic */

/* Element i of the named output is `value` wherever `where` says so, and finite elsewhere but for
 * an lse of -inf. NULL = everywhere. */
static void check(const launch *l, const char *name, float value,
                  int (*where)(const fg_shape *, int64_t row), int64_t width) {
  if (!launch_has(l, name)) return;
  float *x = launch_get(l, name);
  for (int64_t i = 0; i < launch_count(l, name); i++) {
    int there = !where || where(&l->problem->shape, i / width);
    ck_assert_msg(there ? x[i] == value : isfinite(x[i]) && x[i] != 0, "%s: %s[%d] = %g",
                  l->kernel->name, name, (int)i, (double)x[i]);
  }
  free(x);
}

/* o and lse are outputs of forward only. */
static void all_empty(const launch *l) {
  static const char *const names[] = {"dq", "dk", "dv", "dbias"};
  for (int i = 0; i < 4; i++) check(l, names[i], 0, NULL, 1);
  if (launch_has(l, "do")) return;
  check(l, "o", 0, NULL, 1);
  check(l, "lse", -INFINITY, NULL, 1);
}

/* ---- rows in front of the first key ---- */

/* Causal with more rows than keys; `row` counts [b, n, h]. */
static int in_front(const fg_shape *s, int64_t row) { return row / s->h % s->nq + s->nk < s->nq; }
static int in_front_lse(const fg_shape *s, int64_t row) { return row % s->nq + s->nk < s->nq; }

static void forward_in_front(const kernel *k, fg_shape shape) {
  launch l = launch_new(k, shape, 1);
  launch_run(&l, 0);
  check(&l, "o", 0, in_front, 24);
  check(&l, "lse", -INFINITY, in_front_lse, 1);
  launch_free(&l);
}

TEST_TENTH(test_in_front, 2) {
  const fg_shape shape = {.b = 2, .h = 4, .hk = 2, .nq = 45, .nk = 9};
  kernels forward = kernels_some(_i, "head_dim=24 dtype=bf16,f16 mask=causal");
  kernels backward = kernels_some(
      _i, "pass=backward head_dim=24 dtype=bf16,f16 mask=causal deterministic=%s", order[_i % 2]);
  kernels decode = kernels_some(_i, "family=decode head_dim=24 dtype=bf16,f16 mask=causal");
  ck_assert_int_eq(forward.n, backward.n);
  for (int i = 0; i < decode.n; i++) forward_in_front(&decode.list[i], shape);
  for (int i = 0; i < forward.n; i++) {
    forward_in_front(&forward.list[i], shape);
    launch l = launch_new(&backward.list[i], shape, 1);
    launch_take_forward(&l, &forward.list[i]);
    launch_run(&l, 0);
    check(&l, "dq", 0, in_front, 24);
    launch_free(&l);
  }
  kernels_free(&decode);
  kernels_free(&forward);
  kernels_free(&backward);
}

/* ---- a bias of -inf ---- */

/* Row 3 of each head sees nothing, key 5 is seen by none. */
static int row_3(const fg_shape *s, int64_t row) { return row / s->h % s->nq == 3; }
static int row_3_lse(const fg_shape *s, int64_t row) { return row % s->nq == 3; }
static int key_5(const fg_shape *s, int64_t row) { return row / s->hk % s->nk == 5; }
static int hidden(const fg_shape *s, int64_t at) {
  return at % s->nk == 5 || at / s->nk % s->nq == 3;
}

static void hide(launch *l) {
  const fg_shape *s = &l->problem->shape;
  float *bias = launch_get(l, "bias");
  for (int64_t i = 0; i < launch_count(l, "bias"); i++)
    if (hidden(s, i)) bias[i] = -INFINITY;
  launch_set(l, "bias", bias);
  free(bias);
}

static void forward_hidden(const kernel *k, fg_shape shape) {
  launch l = launch_new(k, shape, 2);
  hide(&l);
  launch_run(&l, 0);
  check(&l, "o", 0, row_3, 24);
  check(&l, "lse", -INFINITY, row_3_lse, 1);
  launch_free(&l);
}

TEST_TENTH(test_hidden, 2) {
  const fg_shape shape = {.b = 2, .h = 4, .hk = 2, .nq = 21, .nk = 45};
  kernels forward = kernels_some(_i, "head_dim=24 bias=true bias_dtype=f16,f32");
  kernels backward = kernels_some(
      _i, "pass=backward head_dim=24 bias=grad bias_dtype=f16,f32 deterministic=%s", order[_i % 2]);
  kernels decode = kernels_some(_i, "family=decode head_dim=24 bias=true bias_dtype=f16,f32");
  ck_assert_int_eq(forward.n, backward.n);
  for (int i = 0; i < decode.n; i++) forward_hidden(&decode.list[i], shape);
  for (int i = 0; i < forward.n; i++) {
    forward_hidden(&forward.list[i], shape);
    launch l = launch_new(&backward.list[i], shape, 2);
    hide(&l);
    launch_take_forward(&l, &forward.list[i]);
    launch_run(&l, 0);
    check(&l, "dq", 0, row_3, 24);
    check(&l, "dk", 0, key_5, 24);
    check(&l, "dv", 0, key_5, 24);
    check(&l, "dbias", 0, hidden, 1);
    launch_free(&l);
  }
  kernels_free(&decode);
  kernels_free(&forward);
  kernels_free(&backward);
}

/* ---- axes without extent ---- */

static const fg_shape empty[] = {
    {.b = 2, .h = 4, .hk = 2, .nq = 21, .nk = 0},  {.b = 2, .h = 4, .hk = 2, .nq = 0, .nk = 45},
    {.b = 2, .h = 4, .hk = 2, .nq = 0, .nk = 0},   {.b = 0, .h = 4, .hk = 2, .nq = 21, .nk = 45},
    {.b = 2, .h = 0, .hk = 2, .nq = 21, .nk = 45}, {.b = 2, .h = 0, .hk = 0, .nq = 21, .nk = 45},
};

static void all_are_empty(kernels made) {
  for (int i = 0; i < made.n; i++)
    for (size_t j = 0; j < sizeof empty / sizeof *empty; j++) {
      launch l = launch_new(&made.list[i], empty[j], 3);
      launch_run(&l, 0);
      all_empty(&l);
      launch_free(&l);
    }
  kernels_free(&made);
}

TEST_TENTH(test_empty, 4) {
  const char *dims = _i % 2 ? "b,h,q,k" : "";
  kernels made = kernels_some(_i,
                              "pass=forward,backward head_dim=24 mask=full,causal bias=grad "
                              "bias_dims=[%s] deterministic=%s",
                              dims, order[_i / 2 % 2]);
  all_are_empty(made);
  all_are_empty(kernels_some(
      _i, "family=decode head_dim=24 mask=full,causal bias=true bias_dims=[%s]", dims));
}

/* ---- a scale of 0, or below ---- */

/* Rows in front of the first key among them. */
static void all_of_scale(kernels made, float scale, int turn) {
  for (int i = 0; i < made.n; i++)
    kernel_verify(&made.list[i],
                  &(verify_case){.shape = {.b = 1, .h = 2, .hk = 1, .nq = 70, .nk = 45},
                                 .given = FG_GIVEN_SCALE,
                                 .scale = scale,
                                 .seed = (uint64_t)turn});
  kernels_free(&made);
}

/* What a mask hides is -inf before it is scaled, and has no weight all the same; each seen key has
 * the same one. */
TEST_TENTH(test_no_scale, 2) {
  kernels made = kernels_some(_i,
                              "pass=forward,backward head_dim=64 mask=full,causal bias=false,grad "
                              "deterministic=%s",
                              order[_i % 2]);
  const float scale = _i % 2 ? 0.0f : -0.0f;
  all_of_scale(made, scale, _i);
  all_of_scale(kernels_some(_i, "family=decode head_dim=64 mask=full,causal bias=false,true"),
               scale, _i);
}
