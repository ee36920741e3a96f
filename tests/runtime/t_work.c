/* t_work.c - how much work calls do, in numbers that do not depend on the machine: each limit is
 * today's number, and a change that does less lowers it. */
#include "alloc_watch.h"
#include "api_case.h"
#include "expand/state.h"
#include "work_watch.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* Limits only fall. Lists and choices are for an H100's arch, whose wisdom is shipped. */
static const struct {
  const char *call;
  long most[WORK_KINDS]; /* as work_names has them */
} limits[] = {
    {"open", {0, 0, 40, 0, 0, 0, 0, 14}},
    {"list, cold", {24, 240, 9600, 1, 9, 0, 22, 170}},
    {"choose", {9, 0, 572, 0, 0, 0, 0, 1}},
    {"list, warm", {25, 240, 8600, 0, 9, 9, 0, 9}},
    {"select, cold", {10, 0, 30500, 6, 2, 0, 63, 310}},
    {"select, warm", {10, 0, 12500, 3, 2, 2, 0, 105}},
    {"emit", {1, 0, 14600, 2, 0, 0, 68, 225}},
    {"select, hot", {0, 0, 0, 0, 0, 0, 0, 0}},
    {"launch, hot", {0, 0, 0, 0, 0, 0, 0, 0}},
};

/* Ends what work_start began: no count is above its limit. One of more than MANY is no tenth below
 * it: smaller ones follow the number of variables that a machine has. */
enum { MANY = 100 };

static void expect_work(const char *call) {
  long work[WORK_KINDS];
  int at = 0;
  work_stop(work);
  while (strcmp(limits[at].call, call)) at++;
  for (int i = 0; i < WORK_KINDS; i++) {
    const long most = limits[at].most[i];
    if (i == WORK_ALLOCATIONS && !ALLOC_WATCH) continue;
    ck_assert_msg(work[i] <= most, "%s: %s %ld, the limit is %ld", call, work_names[i], work[i],
                  most);
    ck_assert_msg(most <= MANY || work[i] >= most - most / 10, "%s: %s %ld: lower the limit, %ld",
                  call, work_names[i], work[i], most);
  }
}

/* Leaves the variables that a call may need: it looks through all that there are. */
static void leave_few_variables(void) {
  static const char *const kept[] = {
      "HOME=", "PATH=", "TMPDIR=", "LD_LIBRARY_PATH=", "FLASHGEN_TEST_KERNELS="};
  int n = 0;
  for (char **at = environ; *at; at++)
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
      if (!strncmp(*at, kept[i], strlen(kept[i]))) {
        environ[n++] = *at;
        break;
      }
  environ[n] = NULL;
}

static void enter(void) {
  leave_few_variables();
  api_enter();
}

static void spare_lua(void) {
  enum { FUNCTION = 512 };
  lua_State *L;
  void *user;
  GOOD(fg_template_state_new(&L));
  union {
    lua_Alloc function;
    const void *code;
  } allocate = {.function = lua_getallocf(L, &user)};
  fg_state_free(L);
  alloc_spare(allocate.code, FUNCTION);
}

static fg_context *open_hopper(void) {
  fg_config config = api_config("cache");
  fg_context *context;
  config.device = "sm_90a", config.n_wisdom = 0;
  GOOD(fg_open(&config, &context));
  return context;
}

TEST(test_open) {
  const fg_config config = api_config("cache");
  fg_context *context;
  fg_close(api_open("cache")); /* what a process does once */
  work_start();
  fg_status status = fg_open(&config, &context);
  expect_work("open");
  GOOD(status);
  fg_close(context);
}

static void list(const char *call) {
  fg_context *context = open_hopper();
  fg_op *op = api_define(context, "head_dim=64 family=mma");
  work_start();
  fg_status status = fg_op_candidates(op);
  expect_work(call);
  GOOD(status);
  fg_close(context);
}

TEST(test_list) {
  spare_lua();
  list("list, cold");
  list("list, warm");
}

TEST(test_choose) {
  const fg_shape shape = SHAPE(4, 16, 16, 1054, 1054, 0);
  fg_context *context = open_hopper();
  fg_op *op = api_define(context, "head_dim=64 family=mma");
  int index;
  GOOD(fg_op_candidates(op));
  work_start();
  fg_status status = fg_op_choose(op, &shape, &index);
  expect_work("choose");
  GOOD(status);
  fg_close(context);
}

TEST(test_emit) {
  fg_context *context = open_hopper();
  const fg_spec spec = api_spec("head_dim=64 family=mma");
  char *text;
  spare_lua();
  work_start();
  fg_status status = fg_emit(context, &spec, NULL, &text);
  expect_work("emit");
  GOOD(status);
  free(text);
  fg_close(context);
}

/* A spec with expressions, on the host device, from its text to its kernel. */
static void select_first(const char *call) {
  fg_context *context = api_open("cache");
  fg_kernel *kernel;
  work_start();
  fg_op *op =
      api_define(context, "head_dim=8 block_q=4 family=simt mask=k<=p&&p-k<5 score=s/2.0+1.0");
  fg_status status = fg_select(op, &api_shape, NULL, &kernel);
  expect_work(call);
  GOOD(status);
  fg_close(context);
}

TEST(test_select) {
  spare_lua();
  select_first("select, cold");
  select_first("select, warm");
}

static fg_status do_nothing(fg_module *module, const fg_shape *shape, const fg_args *args,
                            void *workspace, void *stream) {
  (void)module, (void)shape, (void)args, (void)workspace, (void)stream;
  return FG_OK;
}

TEST(test_hot) {
  fg_context *context = api_open("cache");
  fg_kernel *kernel = api_kernel(context, "head_dim=8 block_q=4"), *again;
  fg_problem *p = api_problem(kernel, api_shape, 1);
  fg_device_class class = *context->device->class;
  class.launch = do_nothing;
  context->device->class = &class;
  work_start();
  fg_status status = fg_select(kernel->op, &api_shape, NULL, &again);
  expect_work("select, hot");
  GOOD(status);
  work_start();
  status = api_launch(kernel, p);
  expect_work("launch, hot");
  GOOD(status);
  fg_problem_free(p);
  fg_close(context);
}

TEST_FIXTURE(enter, api_leave)
