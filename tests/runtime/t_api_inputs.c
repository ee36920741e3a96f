/* t_api_inputs.c - inputs of masks and scores through fg_launch: fg_args.inputs by the order of
 * their names, gradients, what is missing or wrong in them. On the host device, or on that which
 * FLASHGEN_TEST_DEVICE names. */
#include "api_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of names: cap, ids, slope, table, width. The bias has a place of its own. */
#define WORDS                                                                                      \
  "head_dim=16/8 mask=window(width,3)&&ids[b,k]>=0 score=softcap(alibi(slope)+table[h,k-q+nq-1],"  \
  "cap) inputs=width=int,cap=float,slope=f32[h]grad,table=f32[h,nq+nk-1]grad,ids=i32[b,k] "        \
  "bias=grad bias_dims=[h,q,k] family="
enum { CAP, IDS, SLOPE, TABLE, WIDTH, N_INPUTS };

static fg_context *context;
static const char *const families[] = {"simt", "mma"};
static const char *const orders[] = {"", " deterministic=true"};

static fg_kernel *make(const char *pass, const char *family, const char *more) {
  char words[512];
  snprintf(words, sizeof words, "pass=%s " WORDS "%s%s", pass, family, more);
  return api_kernel(context, words);
}

/* The suite's fixture clears the environment: it is read before that. */
static char name[32];

static void open_one(void) {
  api_enter();
  fg_config config = api_config("cache");
  config.device = name;
  GOOD(fg_open(&config, &context));
}

static void close_one(void) {
  fg_close(context);
  api_leave();
}

/* Through fg_launch; a GPU's device cannot stand in for itself, and is judged by its module. */
static void judge(fg_kernel *kernel, const verify_case *which) {
  verify_verdict verdict;
  if (!strcmp(name, "host")) {
    api_verify(kernel, API_PADDED, which);
    return;
  }
  GOOD(verify_run(&kernel->variant, kernel->source, kernel->module, which, 0, &verdict));
  ck_assert_msg(verdict.pass, "%s, seed %d", kernel->name, (int)which->seed);
}

TEST(declared) {
  fg_kernel *kernel = make("forward", families[0], "");
  ck_assert_str_eq(fg_op_inputs(kernel->op), "cap=float, ids=i32[b, k], slope=f32[h], "
                                             "table=f32[h, nq + nk - 1], width=int");
  ck_assert_str_eq(fg_op_inputs(NULL), "");
}

/* Those of packed sequences are all tokens. */
TEST(extents) {
  fg_op *op = make("forward", families[0], "")->op;
  fg_shape shape = SHAPE(2, 4, 2, 20, 37, 0);
  int64_t found[4] = {0};
  const int64_t table[4] = {4, 56, -1, -1}, ids[4] = {2, 37, -1, -1}, none[4] = {-1, -1, -1, -1};
  GOOD(fg_input_extents(op, TABLE, &shape, found));
  ck_assert_mem_eq(found, table, sizeof found);
  GOOD(fg_input_extents(op, CAP, &shape, found));
  ck_assert_mem_eq(found, none, sizeof found);
  GOOD(fg_input_extents(op, IDS, &shape, found));
  FAILS(FG_EARGUMENT, "input = 5: mask and score read 5", fg_input_extents(op, 5, &shape, found));
  ck_assert_mem_eq(found, ids, sizeof found);
  op = api_define(context, "head_dim=8 score=s+a[q]+c[k,0] inputs=a=f32[q],c=f32[k,nq-30] "
                           "q_layout=packed kv_layout=packed");
  shape.tokens_q = 55, shape.tokens_k = 66;
  GOOD(fg_input_extents(op, 0, &shape, found));
  ck_assert_int_eq(found[0], 55);
  FAILS(FG_EARGUMENT, "inputs.c: the extent nq - 30: it is -10 at this shape",
        fg_input_extents(op, 1, &shape, found));
}

TEST_LOOP(numbers, 2) {
  static const fg_shape shapes[] = {SHAPE(2, 4, 2, 20, 37, 0), SHAPE(1, 2, 1, 70, 33, 0),
                                    SHAPE(1, 2, 2, 150, 150, 0)};
  static const verify_number chosen[] = {{"width", 18}, {"cap", 3.5}};
  for (int i = 0; i < 3; i++) {
    const verify_case which = {.shape = shapes[i],
                               .given = i ? FG_GIVEN_SCALE : 0,
                               .scale = i ? 0.3F : 0,
                               .seed = (uint64_t)i,
                               .n_numbers = 2,
                               .number = chosen};
    judge(make("forward", families[_i], ""), &which);
    for (int o = 0; o < 2; o++) judge(make("backward", families[_i], orders[o]), &which);
  }
}

/* Ids that are in the tensor, numbers that are in their range. */
static fg_problem *problem(fg_kernel *kernel) {
  fg_problem *p = api_problem(kernel, (fg_shape)SHAPE(2, 2, 1, 90, 137, 0), 1);
  int ids = fg_problem_find(p, "ids");
  float values[2 * 137];
  for (int i = 0; i < 2 * 137; i++) values[i] = (float)(i % 5);
  ck_assert_int_eq(fg_problem_count(p, ids), 2 * 137);
  GOOD(fg_problem_set(p, ids, values));
  p->input[WIDTH].number = 50;
  p->input[CAP].number = 4;
  return p;
}

static float *outputs(const fg_problem *p, size_t *n) {
  float *values = NULL;
  *n = 0;
  for (int i = 0; i < p->recipe->n_tensors; i++) {
    if (!p->recipe->tensor[i].output) continue;
    size_t count = (size_t)fg_problem_count(p, i);
    values = realloc(values, (*n + count) * sizeof *values);
    ck_assert_ptr_nonnull(values);
    GOOD(fg_problem_get(p, i, values + *n));
    *n += count;
  }
  return values;
}

/* Equal launches give equal bits, whatever order blocks and threads come in. */
TEST_LOOP(equal_bits, 2) {
  fg_kernel *kernel = make("backward", families[_i], " deterministic=true");
  size_t n, m;
  float *first = NULL;
  for (uint64_t seed = 0; seed < 4; seed++) {
    fg_problem *p = problem(kernel);
    context->device->seed = seed;
    GOOD(api_launch(kernel, p));
    GOOD(context->device->class->synchronize(context->device));
    float *values = outputs(p, &m);
    if (!first) {
      first = values, n = m;
    } else {
      ck_assert_uint_eq(n, m);
      ck_assert_msg(!memcmp(first, values, n * sizeof *first), "%s, seed %d", kernel->name,
                    (int)seed);
      free(values);
    }
    fg_problem_free(p);
  }
  for (size_t i = 0; i < n; i++) ck_assert(isfinite(first[i]));
  free(first);
}

/* One thing wrong with an input; all is right before and after. */
typedef struct {
  int input;
  enum {
    MISSING,
    NO_GRAD,
    MISALIGNED,
    GRAD_MISALIGNED,
    LAST,
    NEGATIVE,
    TWICE,
    NUMBER,
    OLD,
    FEW,
    MANY,
    UNSET,
    WIDE
  } how;
  double number;
  const char *why;
} spoil;

static void expect_refused(fg_kernel *kernel, const spoil *s) {
  fg_problem *p = problem(kernel);
  fg_args args = p->args;
  fg_input_value *x = &p->input[s->input], kept = *x;
  switch (s->how) {
  case MISSING:
    x->value.data = NULL;
    break;
  case NO_GRAD:
    x->grad.data = NULL;
    break;
  case MISALIGNED:
    x->value.data = (char *)x->value.data + 2;
    break;
  case GRAD_MISALIGNED:
    x->grad.data = (char *)x->grad.data + 2;
    break;
  case LAST:
    x->value.stride[1] = 2;
    break;
  case NEGATIVE:
    x->value.stride[0] = -x->value.stride[0];
    break;
  case TWICE:
    x->grad.stride[0] = 0;
    break;
  case NUMBER:
    x->number = s->number;
    break;
  case OLD:
    args.size = offsetof(fg_args, inputs); /* an older header's */
    break;
  case FEW: /* all before it */
    args.n_inputs = s->input;
    break;
  case MANY:
    args.n_inputs++;
    break;
  case UNSET:
    x->size = 0;
    break;
  case WIDE: /* a newer header's */
    x->size += 8;
    break;
  }
  fg_status status = fg_launch(kernel, &p->shape, &args, p->workspace, NULL);
  ck_assert_msg(status == FG_EARGUMENT, "%s, expected \"%s\": status %d", kernel->name, s->why,
                (int)status);
  FAILS(FG_EARGUMENT, s->why, status);
  *x = kept;
  GOOD(api_launch(kernel, p));
  GOOD(context->device->class->synchronize(context->device));
  fg_problem_free(p);
}

TEST(refused) {
  static const spoil both[] = {
      {SLOPE, MISSING, 0, "slope is missing"},
      {TABLE, MISSING, 0, "table is missing"},
      {IDS, MISSING, 0, "ids is missing"},
      {TABLE, MISALIGNED, 0, "table: its address is not a multiple of 4"},
      {IDS, LAST, 0, "ids: its last stride is 2, not 1"},
      {TABLE, NEGATIVE, 0, "table: a stride is negative"},
      {WIDTH, NUMBER, 0.5, "width = 0.5: expected a whole number of at most 2^30 in size"},
      {WIDTH, NUMBER, 3e9, "width = 3e+09: expected a whole number of at most 2^30 in size"},
      {WIDTH, NUMBER, NAN, "width = nan: expected a whole number of at most 2^30 in size"},
      {CAP, NUMBER, 1e39, "cap = 1e+39: expected what a float32 can hold"},
      {CAP, NUMBER, NAN, "cap = nan: expected what a float32 can hold"},
      {WIDTH, FEW, 0, "width is not given: it is args.inputs[4], and n_inputs is 4"},
      {WIDTH, MANY, 0, "args.n_inputs = 6: mask and score read 5: cap=float, ids="},
      {WIDTH, UNSET, 0, "width is not given: the size of args.inputs[4] is 0"},
      {CAP, UNSET, 0, "is not given: the size of args.inputs[0] is 0"},
      {TABLE, WIDE, 0, "args.inputs[3]: its size is 104; expected FG_INIT's, 96"},
      {CAP, OLD, 0, "ids is not given: it is args.inputs[1], and n_inputs is 0"},
  };
  static const spoil backward_only[] = {
      {SLOPE, NO_GRAD, 0, "dslope is missing"},
      {TABLE, NO_GRAD, 0, "dtable is missing"},
      {TABLE, GRAD_MISALIGNED, 0, "dtable: its address is not a multiple of 4"},
      {TABLE, TWICE, 0, "dtable: a stride is 0: its elements would be written twice"},
  };
  fg_kernel *forward = make("forward", "simt", ""), *backward = make("backward", "mma", "");
  for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
    expect_refused(forward, &both[i]);
    expect_refused(backward, &both[i]);
  }
  for (size_t i = 0; i < sizeof backward_only / sizeof *backward_only; i++)
    expect_refused(backward, &backward_only[i]);
}

/* Names are the spec's affair: one that is not declared, and one that nothing uses. */
TEST(names) {
  static const struct {
    const char *words, *why;
  } wrong[] = {
      {"head_dim=8 score=s+slop[h] inputs=slope=f32[h]",
       "\"slop\" is no name, input or definition (did you mean \"slope\"?)"},
      {"head_dim=8 inputs=slope=f32[h]", "inputs.slope: declared, but no point uses it"},
      {"head_dim=8 score=s+slope[h] inputs=slope=f32[h],slope=f32[k]", "inputs.slope: given twice"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const fg_spec spec = api_spec(wrong[i].words);
    fg_op *op = NULL;
    FAILS(FG_ESPEC, wrong[i].why, fg_define(context, &spec, &op));
    ck_assert_ptr_null(op);
  }
}

TEST_FIXTURE(open_one, close_one)
TEST_BEGIN {
  const char *given = getenv("FLASHGEN_TEST_DEVICE");
  fg_device *device;
  snprintf(name, sizeof name, "%s", given && *given ? given : "host");
  if (fg_device_open(name, &device) != FG_OK) suite_skip("gpu", fg_error());
  fg_device_close(device);
}
