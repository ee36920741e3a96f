/* t_combine.c - parts of attention combined, on a device: every plan against the oracle, any
 * strides, parts without keys, and the parts of an attention kernel. */
#include "launch_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fewer columns than lanes, as many, some lanes without; a whole warp; more than one has. */
#define WIDTHS "head_dim=8,40,64,128,256,264 "

/* No row, one; parts fewer than lanes, as many, more, the most. */
static const fg_shape shapes[] = {
    {.parts = 1, .b = 1, .h = 1, .nq = 1},  {.parts = 2, .b = 2, .h = 3, .nq = 5},
    {.parts = 4, .b = 0, .h = 3, .nq = 5},  {.parts = 4, .b = 3, .h = 2, .nq = 0},
    {.parts = 31, .b = 1, .h = 2, .nq = 7}, {.parts = 32, .b = 1, .h = 1, .nq = 9},
    {.parts = 256, .b = 1, .h = 2, .nq = 2}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

TEST_TENTH(every_plan, 2) {
  static const char *const dtype[] = {"bf16", "f16"};
  const bool on_host = fg_arch_is_host(kernel_device()->arch); /* where it needs no memory */
  kernels made = kernels_new("kernel=combine parts_dtype=f32,spec " WIDTHS "dtype=%s", dtype[_i]);
  ck_assert_int_eq(made.n, 2 * (4 * 3 + 2 * 2)); /* plans: one fewer of 256 columns and more */
  for (int n = 0; n < made.n; n++)
    for (int i = 0; i < SHAPES; i++)
      for (int style = 0; style < VERIFY_STYLES; style++)
        kernel_verify(&made.list[n], &(verify_case){.shape = shapes[i],
                                                    .style = (verify_style)style,
                                                    .contiguous = (n + i) % 2,
                                                    .far = i == 1 && style == 0 && on_host,
                                                    .again = i == 4,
                                                    .seed = 20 + (uint64_t)(7 * i + style)});
  kernels_free(&made);
}

/* A NaN in a part of a row is that row's alone, unless the part has no keys; a part whose LSE is
 * NaN gives NaN. */
TEST(nonfinite) {
  kernels made = kernels_new("kernel=combine head_dim=40");
  const fg_shape shape = {.parts = 3, .b = 1, .h = 2, .nq = 4};
  enum { WIDTH = 40, ROW = 5 }; /* q = 2, h = 1 */
  for (int n = 0; n < made.n; n++) {
    for (int c = 0; c < 3; c++) {
      launch l = launch_new(&made.list[n], shape, 5);
      float *o = launch_get(&l, "o_parts"), *lse = launch_get(&l, "lse_parts");
      if (c < 2) o[(8 + ROW) * WIDTH + 3] = NAN; /* of part 1 */
      if (c == 1) lse[8 + 4 + 2] = -INFINITY;
      if (c == 2) lse[8 + 4 + 2] = NAN;
      launch_set(&l, "o_parts", o);
      launch_set(&l, "lse_parts", lse);
      free(o);
      free(lse);
      launch_run(&l, 3);
      o = launch_get(&l, "o");
      for (int i = 0; i < 8 * WIDTH; i++) {
        const bool odd = c == 2 ? i / WIDTH == ROW : !c && i == ROW * WIDTH + 3;
        ck_assert_msg(!isfinite(o[i]) == odd, "%s: case %d: o[%d] is %g", made.list[n].name, c, i,
                      (double)o[i]);
      }
      free(o);
      launch_free(&l);
    }
  }
  kernels_free(&made);
}

/* The tensor's values with its axes in another order in memory, the last of `order` the fastest: by
 * the places of strides. Those of o_parts have its columns inside. */
static void lay_out(launch *l, const char *name, const int order[4], const int64_t extent[4],
                    int64_t inside) {
  fg_problem *p = l->problem;
  const int i = fg_problem_find(p, name);
  fg_tensor *place = fg_args_tensor_of(&p->args, &p->recipe->tensor[i]);
  float *values = launch_get(l, name);
  for (int a = 3; a >= 0; a--) {
    place->stride[order[a]] = inside;
    inside *= extent[order[a]];
  }
  launch_set(l, name, values);
  free(values);
}

/* Any order of the axes, the rows of lse_parts not the fastest, and addresses that are no multiples
 * of 16: the same bits. */
TEST(strides) {
  static const int orders[][4] = {{1, 3, 2, 0}, {3, 0, 1, 2}, {2, 1, 0, 3}};
  const int64_t extent[4] = {5, 2, 3, 4}; /* s b h n */
  const fg_shape shape = {.parts = 5, .b = 2, .h = 3, .nq = 4};
  kernels made = kernels_new("kernel=combine head_dim=40 parts_dtype=f32,spec");
  for (int n = 0; n < made.n; n++) {
    launch plain = launch_new(&made.list[n], shape, 9);
    launch_run(&plain, 1);
    for (int i = 0; i < 3; i++) {
      launch l = launch_new(&made.list[n], shape, 9);
      lay_out(&l, "o_parts", orders[i], extent, 40);
      lay_out(&l, "lse_parts", orders[i], extent, 1);
      launch_run(&l, 2);
      launch_same_outputs(&l, &plain);
      launch_poison(&l);
      fg_problem_drop(l.problem, fg_problem_find(l.problem, "lse"));
      launch_run(&l, 3);
      launch_same(&l, &plain, "o");
      launch_free(&l);
    }
    launch odd = launch_new(&made.list[n], shape, 9);
    launch_layout(&odd, "o", "bnhd", 1);
    launch_run(&odd, 2);
    launch_same_outputs(&odd, &plain);
    launch_free(&odd);
    launch_free(&plain);
  }
  kernels_free(&made);
}

TEST(refused) {
  kernels made = kernels_first("kernel=combine head_dim=16");
  launch l = launch_new(&made.list[0], (fg_shape){.parts = 2, .b = 1, .h = 2, .nq = 3}, 1);
  fg_tensor *o = &l.problem->args.o_parts;
  const int64_t stride = o->stride[3];
  o->stride[3] = -16;
  launch_refused(&l, "o_parts", "a stride is negative");
  o->stride[3] = stride;
  launch_run(&l, 1);
  for (int i = 0; i < 2; i++) {
    l.problem->shape.parts = i ? 257 : 0;
    ck_assert_int_eq(fg_problem_run(l.problem, l.kernel->module), FG_EARGUMENT);
    ck_assert_str_eq(fg_error(),
                     i ? "parts = 257: expected 1 to 256" : "parts = 0: expected 1 to 256");
  }
  l.problem->shape.parts = 2;
  launch_free(&l);
  kernels_free(&made);
}

/* Elements [from, to) of each batch's rows of [b, n, h, d] as a tensor of their own. */
static void take_rows(const launch *whole, const launch *part, const char *name, int64_t b,
                      int64_t n, int64_t from, int64_t rows, int64_t width) {
  float *x = launch_get(whole, name), *y = malloc((size_t)(b * rows * width) * sizeof *y + 1);
  for (int64_t i = 0; i < b; i++)
    memcpy(y + i * rows * width, x + (i * n + from) * width, (size_t)(rows * width) * sizeof *y);
  launch_set(part, name, y);
  free(x);
  free(y);
}

/* Results that are parts of the next combine. */
static const char *const names[][2] = {
    {"o", "o_parts"}, {"lse", "lse_parts"}, {"r", "r_parts"}, {"u", "u_parts"}};
enum { RESULTS = sizeof names / sizeof *names };
static const char *const rooted[] = {"softmax", "retention", "logsoftmax", "sigmoid", "none"};
enum { ROOTED = sizeof rooted / sizeof *rooted };

/* A part says the bias of the whole: its own keys are fewer. */
static void give_bias(const launch *l) {
  if (!l->problem->recipe->takes) return;
  l->problem->args.given |= FG_GIVEN_SIGMOID_BIAS;
  l->problem->args.sigmoid_bias = -4.0F;
}

/* Runs attention on a part of the keys, and leaves its results as part number `at`. */
static void run_part(const launch *whole, const launch *combine, int at, int64_t from, int64_t n) {
  fg_shape shape = whole->problem->shape;
  const int64_t nk = shape.nk, hk = shape.hk;
  shape.nk = n;
  launch part = launch_new(whole->kernel, shape, 1);
  float *q = launch_get(whole, "q");
  launch_set(&part, "q", q);
  take_rows(whole, &part, "k", shape.b, nk, from, n, hk * 64);
  take_rows(whole, &part, "v", shape.b, nk, from, n, hk * 64);
  give_bias(&part);
  launch_run(&part, 7);
  for (int i = 0; i < RESULTS; i++) {
    if (fg_problem_find(part.problem, names[i][0]) < 0) continue;
    const int64_t count = launch_count(&part, names[i][0]);
    float *x = launch_get(&part, names[i][0]), *all = launch_get(combine, names[i][1]);
    memcpy(all + at * count, x, (size_t)count * sizeof *x);
    launch_set(combine, names[i][1], all);
    free(x);
    free(all);
  }
  free(q);
  launch_free(&part);
}

/* Attention over parts of the keys, one of them of no key, combined: attention over all. Combining
 * some first changes no more than roundings. */
TEST_TENTH(parts_of_attention, ROOTED) {
  static const int64_t cut[] = {0, 50, 50, 90, 203};
  kernels attention = kernels_first("head_dim=64 dtype=f16 family=simt normalizer=%s", rooted[_i]);
  kernels made = kernels_first(
      "kernel=combine head_dim=64 dtype=f16 parts_dtype=spec normalizer=%s", rooted[_i]);
  const fg_shape shape = {.b = 2, .h = 2, .hk = 1, .nq = 9, .nk = 203};
  launch whole = launch_new(&attention.list[0], shape, 2);
  give_bias(&whole);
  launch_run(&whole, 1);
  launch all = launch_new(&made.list[0], (fg_shape){.parts = 4, .b = 2, .h = 2, .nq = 9}, 1);
  launch some = launch_new(&made.list[0], (fg_shape){.parts = 2, .b = 2, .h = 2, .nq = 9}, 1);
  launch last = launch_new(&made.list[0], (fg_shape){.parts = 3, .b = 2, .h = 2, .nq = 9}, 1);
  for (int i = 0; i < 4; i++) {
    run_part(&whole, &all, i, cut[i], cut[i + 1] - cut[i]);
    run_part(&whole, i < 2 ? &some : &last, i % 2, cut[i], cut[i + 1] - cut[i]);
  }
  launch_run(&all, 1);
  launch_run(&some, 1);
  for (int i = 0; i < RESULTS; i++) {
    if (fg_problem_find(some.problem, names[i][0]) < 0) continue;
    const int64_t count = launch_count(&some, names[i][0]);
    float *x = launch_get(&some, names[i][0]), *parts = launch_get(&last, names[i][1]);
    memcpy(parts + 2 * count, x, (size_t)count * sizeof *x);
    launch_set(&last, names[i][1], parts);
    free(x);
    free(parts);
  }
  launch_run(&last, 1);
  const launch *const results[] = {&all, &last};
  for (int i = 0; i < 2; i++) {
    for (int n = 0; n < RESULTS; n++) {
      if (fg_problem_find(whole.problem, names[n][0]) < 0) continue;
      const double off = launch_difference(results[i], &whole, names[n][0]);
      ck_assert_msg(off < (n ? 1e-5 : 7e-4), "%s, %d: %s differs by %g", rooted[_i], i, names[n][0],
                    off);
    }
  }
  launch_free(&whole), launch_free(&all), launch_free(&some), launch_free(&last);
  kernels_free(&attention);
  kernels_free(&made);
}

TEST_TIMEOUT(300)
