/* t_api_memory.c - what the hot calls allocate and lock (nothing), and what happens when memory
 * runs out at any allocation of any call: a clear failure, nothing lost, and the next call works.
 */
#include "alloc_watch.h"
#include "api_case.h"
#include "expand/state.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL    "head_dim=8 block_q=4"
#define BACKWARD "pass=backward head_dim=8 block_q=4"

/* Skips what needs the watch where there is none. */
#define NEEDS_WATCH                                                                                \
  if (!ALLOC_WATCH) return

static void expect_seen(alloc_seen seen, long allocations, long frees, long locks) {
  ck_assert_msg(seen.allocations == allocations && seen.frees == frees && seen.locks == locks,
                "allocations %ld frees %ld locks %ld", seen.allocations, seen.frees, seen.locks);
}

/* The watch sees what it should. */
TEST(test_watch) {
  NEEDS_WATCH;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  long live = alloc_live();
  alloc_start();
  char *volatile a = malloc(3), *volatile b = strdup("b");
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  a = realloc(a, 300);
  free(b);
  expect_seen(alloc_stop(), 3, 1, 1);
  ck_assert_int_eq(alloc_live(), live + 1);
  alloc_fail(2);
  b = malloc(1);
  char *volatile c = calloc(1, 1);
  ck_assert(b && !c && alloc_failed());
  alloc_fail(0);
  free(a);
  free(b);
  ck_assert_int_eq(alloc_live(), live);
}

/* The same for a shape of the class, never seen before. */
TEST(test_hot_select) {
  NEEDS_WATCH;
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, SMALL);
  fg_kernel *kernel = api_select(op, api_shape), *hot[2] = {NULL, NULL};
  fg_shape near = api_shape;
  near.nq++;
  alloc_start();
  fg_status status[2] = {fg_select(op, &api_shape, NULL, &hot[0]),
                         fg_select(op, &near, NULL, &hot[1])};
  expect_seen(alloc_stop(), 0, 0, 0);
  ck_assert(!status[0] && !status[1] && hot[0] == kernel && hot[1] == kernel);
  fg_close(context);
}

/* However many classes of shapes are asked for, what is remembered of them is bounded. */
TEST(test_bounded_memo) {
  NEEDS_WATCH;
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, SMALL);
  long live = 0;
  for (int i = 0; i < 2 * FG_MEMO; i++) {
    api_select(op, (fg_shape)SHAPE(1, 1, 1, (int64_t)1 << i % 29, (int64_t)1 << i / 29, 0));
    if (i == FG_MEMO) live = alloc_live();
  }
  ck_assert_int_eq(alloc_live(), live);
  fg_close(context);
}

static int reached;
static fg_status do_nothing(fg_module *module, const fg_shape *shape, const fg_args *args,
                            void *workspace, void *stream) {
  int64_t n;
  (void)args, (void)workspace, (void)stream;
  reached++;
  return fg_workspace_size(&module->source->recipe, shape, &n);
}

/* The host's engine keeps a description of each launch's tensors and runs one launch at a time: one
 * block and one lock, which are the device's. All that lies before the device takes none. */
TEST(test_hot_launch) {
  NEEDS_WATCH;
  fg_context *context = api_open("cache");
  fg_kernel *kernel = api_kernel(context, BACKWARD);
  fg_problem *p = api_problem(kernel, api_shape, 1);
  fg_device_class class = *context->device->class;
  GOOD(api_launch(kernel, p));
  alloc_start();
  fg_status status = api_launch(kernel, p);
  expect_seen(alloc_stop(), 1, 1, 1);
  ck_assert_int_eq(status, FG_OK);
  class.launch = do_nothing;
  context->device->class = &class;
  alloc_start();
  status = api_launch(kernel, p);
  size_t bytes = fg_workspace_bytes(kernel, &api_shape);
  expect_seen(alloc_stop(), 0, 0, 0);
  ck_assert(status == FG_OK && bytes && reached == 1);
  fg_problem_free(p);
  fg_close(context);
}

/* Failures ----------------------------------------------------------------------------------- */

/* Lua's allocations, all made by one function of ours, are spared: there are ten thousand of them,
 * and t_gen_memory fails those. */
static void spare_lua(void) {
  enum { FUNCTION = 512 }; /* more than that function's bytes; nothing behind it allocates */
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

/* Check's assertions allocate, so none is here. */
static fg_status use(fg_context *context, const fg_problem *p) {
  fg_spec spec = FG_INIT(fg_spec);
  fg_op *op;
  fg_kernel *kernel;
  spec.head_dim = "8", spec.block_q = "4";
  TRY(fg_define(context, &spec, &op));
  TRY(fg_select(op, &api_shape, NULL, &kernel));
  return api_launch(kernel, p);
}

/* A context's life; if a call in it fails, all of them must pass when they are made again. */
static fg_status live(const fg_config *config, const fg_problem *p) {
  fg_context *context;
  TRY(fg_open(config, &context));
  fg_status status = use(context, p);
  if (status != FG_OK) {
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%.511s", fg_error());
    ck_assert_msg(use(context, p) == FG_OK, "after \"%s\": %s", sentence, fg_error());
    fg_fail(status, "%s", sentence);
  }
  fg_close(context);
  return status;
}

/* Which failures are clear: memory itself, or a file, template, compiler or machine that libc could
 * not read, start or load for want of it. */
static int is_clear(fg_status status) {
  return status == FG_OK || status == FG_EMEMORY || status == FG_EIO || status == FG_ETEMPLATE ||
         status == FG_ECOMPILER || status == FG_EENVIRONMENT;
}

/* Fails each allocation of a context's life in turn; returns how many there are. A cold one has a
 * cache of its own, which must be good for the next context. */
static long fail_each(fg_config config, const fg_problem *p, int cold, int *reported) {
  char directory[32] = "cache";
  config.cache = directory;
  GOOD(live(&config, p));
  GOOD(live(&config, p));
  for (long n = 1;; n++) {
    if (cold) snprintf(directory, sizeof directory, "cold%ld", n);
    long before = alloc_live();
    alloc_fail(n);
    fg_status status = live(&config, p);
    int failed = alloc_failed();
    alloc_fail(0);
    ck_assert_msg(is_clear(status), "allocation %ld: %d, %s", n, status, fg_error());
    ck_assert_msg(!status || strlen(fg_error()) > 10, "allocation %ld: \"%s\"", n, fg_error());
    *reported += status == FG_EMEMORY;
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%.511s", status ? fg_error() : "passed");
    GOOD(live(&config, p)); /* and what libc keeps of a failure goes */
    ck_assert_msg(alloc_live() <= before, "allocation %ld (%s): %ld blocks are lost", n, sentence,
                  alloc_live() - before);
    if (!failed) return n - 1;
  }
}

/* A kernel and its launch, made once; the compiler then only copies what it gave. */
static void expect_all(int cold, long least) {
  int reported = 0;
  api_compiler("compiler", "compiler 1.0",
               "for a; do [ \"$p\" = -o ] && o=$a; p=$a; done\n"
               "[ -f kernel.so ] || { $CC \"$@\" && cp \"$o\" kernel.so; }\n"
               "exec cp kernel.so \"$o\"");
  fg_context *context = api_open("first");
  fg_problem *p = api_problem(api_kernel(context, SMALL), api_shape, 1);
  long n = fail_each(api_config(NULL), p, cold, &reported);
  ck_assert_int_ge(n, least);
  ck_assert_int_ge(reported, 10);
  fg_problem_free(p);
  fg_close(context);
}

TEST(test_fail_warm) {
  NEEDS_WATCH;
  spare_lua();
  expect_all(0, 20);
}

TEST(test_fail_cold) {
  NEEDS_WATCH;
  spare_lua();
  expect_all(1, 60);
}

TEST_FIXTURE(api_enter, api_leave)
