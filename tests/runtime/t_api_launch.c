/* t_api_launch.c - fg_launch: its numbers against the oracle, what it refuses, and shapes with
 * nothing to compute. */
#include "api_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORWARD  "head_dim=16/8 mask=causal bias=true bias_dims=[h,q,k]"
#define BACKWARD "pass=backward head_dim=16/8 mask=causal bias=grad bias_dims=[h,q,k]"

static fg_context *context;
static fg_kernel *forward, *backward;         /* simt */
static fg_kernel *mma_forward, *mma_backward; /* in order, so that launches agree */

static void open_both(void) {
  context = api_open("cache");
  forward = api_kernel(context, FORWARD " family=simt");
  backward = api_kernel(context, BACKWARD " family=simt");
  mma_forward = api_kernel(context, FORWARD " family=mma");
  mma_backward = api_kernel(context, BACKWARD " family=mma deterministic=true");
}

static void close_both(void) { fg_close(context); }

/* Both kernels are compiled once for all tests, each of which is a process with a context. */
static void warm(void) {
  api_enter();
  open_both();
  close_both();
}

static void open_warm(void) {
  open_both();
  api_counts(context, 8, 4, 0, 4);
}

TEST(test_numbers) {
  static const fg_shape shapes[] = {SHAPE(2, 4, 2, 20, 37, 0), SHAPE(1, 2, 2, 33, 17, 0),
                                    SHAPE(3, 1, 1, 1, 70, 0)};
  for (int i = 0; i < 3; i++)
    for (int layout = API_PADDED; layout <= API_TRANSPOSED; layout++) {
      verify_case which = {.shape = shapes[i],
                           .given = i ? FG_GIVEN_SCALE : 0,
                           .scale = i ? 0.3F : 0,
                           .seed = (uint64_t)i};
      api_verify(forward, (api_layout)layout, &which);
      api_verify(backward, (api_layout)layout, &which);
      api_verify(mma_forward, (api_layout)layout, &which);
      api_verify(mma_backward, (api_layout)layout, &which);
    }
}

/* What a launch refuses: t_launch.c has the arguments, here are the structs. */
typedef struct {
  const char *tensor;
  enum { MISSING, CUT, SIZE, NO_WORKSPACE } how;
  const char *why;
} spoil;

static void expect_refused(fg_kernel *kernel, const spoil *s) {
  fg_problem *p = api_problem(kernel, (fg_shape)SHAPE(2, 2, 1, 20, 37, 0), 1);
  fg_args args = p->args;
  void *workspace = s->how == NO_WORKSPACE ? NULL : p->workspace;
  int i = s->tensor ? fg_problem_find(p, s->tensor) : -1;
  fg_tensor *t = i < 0 ? NULL : fg_args_tensor_of(&args, &kernel->source->recipe.tensor[i]);
  ck_assert_msg(t || s->how >= SIZE, "no tensor %s", s->tensor);
  if (s->how == MISSING) t->data = NULL;
  if (s->how == CUT) args.size = (size_t)((char *)&t->stride[1] - (char *)&args); /* within it */
  if (s->how == SIZE) args.size = s->tensor ? sizeof args + 8 : 0;
  FAILS(FG_EARGUMENT, s->why, fg_launch(kernel, &p->shape, &args, workspace, NULL));
  api_untouched(p);
  GOOD(api_launch(kernel, p)); /* and nothing else was wrong */
  fg_problem_free(p);
}

TEST(test_refused) {
  static const spoil both[] = {
      {"q", MISSING, "q is missing"},
      {"k", CUT, "args: its size, 64, ends within a tensor"},
      {NULL, SIZE, "args: its size is 0"},
      {"large", SIZE, "args: its size is"},
  };
  static const spoil no_workspace = {NULL, NO_WORKSPACE,
                                     "workspace is missing: the launch needs 512 bytes"};
  for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
    expect_refused(forward, &both[i]);
    expect_refused(mma_backward, &both[i]);
  }
  expect_refused(backward, &no_workspace);
}

/* A forward whose lse nobody wants; every way to the end of a row's work looks at it. */
TEST(test_no_lse) {
  static const struct {
    const char *words;
    int64_t nk;
  } all[] = {{"head_dim=16/8 mask=causal family=simt", 37},
             {"head_dim=16/8 mask=causal family=mma", 37},
             {"head_dim=64 mask=causal family=wgmma", 150},
             {"head_dim=64 family=wgmma key_parts=16", 1500}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    fg_kernel *kernel = api_kernel(context, all[i].words);
    const fg_shape shape = SHAPE(1, 2, 1, 20, all[i].nk, 0);
    fg_problem *with = api_problem(kernel, shape, 1), *without = api_problem(kernel, shape, 1);
    int lse = fg_problem_find(without, "lse");
    fg_problem_drop(without, lse);
    GOOD(api_launch(kernel, with));
    GOOD(api_launch(kernel, without));
    const int o = fg_problem_find(with, "o");
    size_t n = (size_t)fg_problem_count(with, o);
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    ck_assert(x && y);
    GOOD(fg_problem_get(with, o, x));
    GOOD(fg_problem_get(without, o, y));
    ck_assert_msg(!memcmp(x, y, n * sizeof *x), "%s", kernel->name);
    free(x);
    free(y);
    fg_problem_free(with);
    fg_problem_free(without);
  }
}

/* The scale counts where it is given, 0 too: all weights are equal then. */
TEST(test_scale) {
  fg_problem *p = api_problem(forward, api_shape, 1), *q = api_problem(forward, api_shape, 1);
  const int zeros = fg_problem_find(q, "q");
  float none[20 * 2 * 16] = {0};
  p->args.scale = 0.5F;
  FAILS(FG_EARGUMENT, "args: scale = 0.5 does not count: given lacks FG_GIVEN_SCALE",
        api_launch(forward, p));
  p->args.given = 16;
  FAILS(FG_EARGUMENT, "args: given = 0x10 has bits that name nothing", api_launch(forward, p));
  p->args.given = FG_GIVEN_SCALE;
  p->args.scale = NAN;
  FAILS(FG_EARGUMENT, "scale = nan: expected a number of at most 2^64 in size",
        api_launch(forward, p));
  p->args.scale = -1e30F;
  FAILS(FG_EARGUMENT, "scale = -1e+30: expected a number of at most 2^64 in size",
        api_launch(forward, p));
  p->args.scale = 0;
  GOOD(fg_problem_set(q, zeros, none));
  GOOD(api_launch(forward, p));
  GOOD(api_launch(forward, q));
  api_same_outputs(p, q);
  fg_problem_free(p);
  fg_problem_free(q);
}

/* Which outputs may lie where: not over each other nor over an input, but between the rows of
 * another tensor of the same buffer. */
TEST(test_overlap) {
  enum { AT_FIRST, ONE_ROW_ON, AMONG_ROWS };
  static const struct {
    const char *output, *over;
    int where;
    const char *why;
  } all[] = {
      {"dk", "dv", AT_FIRST, "dv lies over dk, and it is an output"},
      {"dq", "q", AT_FIRST, "dq lies over q, and it is an output"},
      {"dv", "v", ONE_ROW_ON, "dv lies over v, and it is an output"},
      {"dbias", "bias", AT_FIRST, "dbias lies over bias, and it is an output"},
      {"dq", "lse", AT_FIRST, "dq lies over lse, and it is an output"},
      {"dk", "k", AMONG_ROWS, NULL},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    fg_problem *p = api_problem(backward, api_shape, 1);
    const fg_recipe_tensor *t = backward->source->recipe.tensor;
    fg_args args = p->args;
    fg_tensor *output = fg_args_tensor_of(&args, &t[fg_problem_find(p, all[i].output)]);
    fg_tensor *over = fg_args_tensor_of(&args, &t[fg_problem_find(p, all[i].over)]);
    char *rows = calloc(2, p->bytes[fg_problem_find(p, all[i].over)]);
    ck_assert_ptr_nonnull(rows);
    if (all[i].where == AMONG_ROWS) { /* rows of the one and the other in turn */
      over->data = rows, output->data = rows + 2 * over->stride[2];
      over->stride[2] *= 2, output->stride[2] = over->stride[2];
      GOOD(fg_launch_check(&backward->source->recipe, &api_shape, &args));
      output->data = rows + 2 * over->stride[2];
      FAILS(FG_EARGUMENT, "dk lies over k, and it is an output",
            fg_launch(backward, &api_shape, &args, p->workspace, NULL));
    } else {
      output->data = (char *)over->data + (all[i].where == ONE_ROW_ON ? 2 * over->stride[2] : 0);
      FAILS(FG_EARGUMENT, all[i].why, fg_launch(backward, &api_shape, &args, p->workspace, NULL));
    }
    free(rows);
    fg_problem_free(p);
  }
}

/* A number of the launch that the spec has no use for, that is not given, or that is none. */
TEST(test_sigmoid_bias) {
  fg_problem *p = api_problem(forward, api_shape, 1);
  fg_kernel *sigmoid = api_kernel(context, FORWARD " family=simt normalizer=sigmoid");
  p->args.given = FG_GIVEN_SIGMOID_BIAS;
  p->args.sigmoid_bias = -2.0F;
  FAILS(FG_EARGUMENT, "args: a sigmoid_bias is given, which belongs to normalizer=sigmoid",
        api_launch(forward, p));
  fg_problem *q = api_problem(sigmoid, api_shape, 1);
  q->args.sigmoid_bias = -2.0F;
  FAILS(FG_EARGUMENT, "args: sigmoid_bias = -2 does not count: given lacks its bit",
        api_launch(sigmoid, q));
  q->args.given = FG_GIVEN_SIGMOID_BIAS;
  q->args.sigmoid_bias = INFINITY;
  FAILS(FG_EARGUMENT, "sigmoid_bias = inf: expected a finite number", api_launch(sigmoid, q));
  q->args.sigmoid_bias = -2.0F;
  GOOD(api_launch(sigmoid, q));
  fg_problem_free(p);
  fg_problem_free(q);
}

/* Multiprocessors that a launch leaves free, of the host device's six. */
TEST(test_margin) {
  fg_problem *p = api_problem(forward, api_shape, 1), *q = api_problem(forward, api_shape, 1);
  p->args.sm_margin = -1;
  FAILS(FG_EARGUMENT, "sm_margin = -1: expected 0 to 5 on a device of 6 multiprocessors",
        api_launch(forward, p));
  p->args.sm_margin = 6;
  FAILS(FG_EARGUMENT, "sm_margin = 6: expected 0 to 5 on a device of 6 multiprocessors",
        api_launch(forward, p));
  p->args.sm_margin = (INT64_C(1) << 32) + 1;
  FAILS(FG_EARGUMENT, "sm_margin = 4294967297: expected", api_launch(forward, p));
  p->args.size = offsetof(fg_args, sm_margin); /* an older header's, which has no margin */
  GOOD(api_launch(forward, p));
  p->args = (fg_args)q->args;
  p->args.size = offsetof(fg_args, sm_margin) - 8;
  FAILS(FG_EARGUMENT, "ends within a tensor", api_launch(forward, p));
  fg_problem_free(p);
  fg_problem_free(q);
}

/* Arguments of an older header, which ends before scale: the default scale. */
TEST(test_older_args) {
  fg_problem *a = api_problem(forward, api_shape, 1), *b = api_problem(forward, api_shape, 1);
  a->args.scale = 7, a->args.given = FG_GIVEN_SCALE;
  a->args.size = offsetof(fg_args, given);
  GOOD(api_launch(forward, a));
  GOOD(api_launch(forward, b));
  api_same_outputs(a, b);
  fg_problem_free(a);
  fg_problem_free(b);
}

TEST(test_workspace) {
  fg_shape shape = SHAPE(2, 2, 1, 20, 37, 0);
  ck_assert_uint_eq(fg_workspace_bytes(forward, &shape), 0);
  ck_assert_uint_eq(fg_workspace_bytes(backward, &shape), 512); /* 2 2 20 floats */
  ck_assert_uint_eq(fg_workspace_bytes(mma_forward, &shape), 0);
  ck_assert_uint_gt(fg_workspace_bytes(mma_backward, &shape), 512);
  shape.nq = 0;
  ck_assert_uint_eq(fg_workspace_bytes(backward, &shape), 0);
  ck_assert_uint_eq(fg_workspace_bytes(mma_backward, &shape), 0);
}

/* No rows, no batch: success, nothing is asked for. */
TEST(test_empty) {
  static const fg_shape shapes[] = {SHAPE(1, 2, 1, 0, 37, 0), SHAPE(0, 2, 1, 20, 37, 0),
                                    SHAPE(1, 0, 0, 20, 37, 0)};
  fg_args args = FG_INIT(fg_args);
  for (int i = 0; i < 3; i++) {
    fg_problem *p = api_problem(backward, shapes[i], 1);
    GOOD(api_launch(backward, p));
    for (int t = 0; t < p->recipe->n_tensors; t++) { /* no rows: the keys' gradients are 0 */
      float values[4096];
      if (!p->recipe->tensor[t].output) continue;
      ck_assert_int_le(fg_problem_count(p, t), 4096);
      GOOD(fg_problem_get(p, t, values));
      for (int64_t j = 0; j < fg_problem_count(p, t); j++) ck_assert(values[j] == 0);
    }
    fg_problem_free(p);
    p = api_problem(forward, shapes[i], 1);
    GOOD(api_launch(forward, p));
    fg_problem_free(p);
  }
  GOOD(fg_launch(forward, &(fg_shape)SHAPE(0, 0, 0, 0, 0, 0), &args, NULL, NULL));
}

/* No keys: O = 0 and LSE = -inf are written, and no k is asked for. */
TEST(test_no_keys) {
  fg_problem *p = api_problem(forward, (fg_shape)SHAPE(2, 2, 1, 20, 0, 0), 1);
  float o[2 * 2 * 20 * 8], lse[2 * 2 * 20];
  ck_assert_int_eq(fg_problem_count(p, fg_problem_find(p, "o")), sizeof o / sizeof *o);
  GOOD(api_launch(forward, p));
  GOOD(fg_problem_get(p, fg_problem_find(p, "o"), o));
  GOOD(fg_problem_get(p, fg_problem_find(p, "lse"), lse));
  for (size_t i = 0; i < sizeof o / sizeof *o; i++) ck_assert(o[i] == 0);
  for (size_t i = 0; i < sizeof lse / sizeof *lse; i++) ck_assert(lse[i] == -INFINITY);
  fg_problem_free(p);
}

TEST_ONCE(warm, api_leave)
TEST_FIXTURE(open_warm, close_both)
