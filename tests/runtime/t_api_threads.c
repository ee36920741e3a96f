/* t_api_threads.c - one context in many threads, many processes on one cache, and forks. */
#define _XOPEN_SOURCE 700 /* pthread_barrier_t */
#include "api_case.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL "head_dim=8 block_q=4"

/* A launch for api_shape and head dims up to 16. */
enum { ELEMENTS = 2 * 37 * 16 };
typedef struct {
  uint16_t q[ELEMENTS], k[ELEMENTS], v[ELEMENTS], o[ELEMENTS];
  float lse[2 * 20];
} tensors;

static fg_tensor place(void *data, int64_t n) { return (fg_tensor){data, {0, n * 16, 16, 1}}; }

/* The same inputs every time; their bits are those of small numbers in both dtypes. */
static fg_args args_of(tensors *t) {
  fg_args args = FG_INIT(fg_args);
  for (int i = 0; i < ELEMENTS; i++) {
    t->q[i] = (uint16_t)(0x3800 + i * 7 % 13 * 64);
    t->k[i] = (uint16_t)(0x3800 + i * 5 % 11 * 64);
    t->v[i] = (uint16_t)(0x3800 + i * 3 % 17 * 64);
  }
  args.q = place(t->q, 20), args.o = place(t->o, 20);
  args.k = place(t->k, 37), args.v = place(t->v, 37);
  args.lse.data = t->lse;
  return args;
}

/* Threads that start together. */
enum { THREADS = 16 };
typedef struct {
  fg_context *context;
  pthread_barrier_t *start;
  const char *words;
  fg_kernel *kernel;
  tensors tensors;
  char failed[256];
} worker;

/* Check's assertions belong to the test's own thread. */
static fg_status work_steps(worker *w) {
  const fg_spec spec = api_spec(w->words);
  const fg_args args = args_of(&w->tensors);
  fg_op *op;
  TRY(fg_define(w->context, &spec, &op));
  TRY(fg_select(op, &api_shape, NULL, &w->kernel));
  for (int i = 0; i < 3; i++) TRY(fg_launch(w->kernel, &api_shape, &args, NULL, NULL));
  return FG_OK;
}

static void *work(void *context) {
  worker *w = context;
  pthread_barrier_wait(w->start);
  if (work_steps(w) != FG_OK) snprintf(w->failed, sizeof w->failed, "%.255s", fg_error());
  return NULL;
}

/* n threads over the first `ops` of eight ops, to their end. */
static void run_threads(fg_context *context, int n, int ops, worker *list) {
  static const char *const words[] = {SMALL,
                                      SMALL " mask=causal",
                                      SMALL " dtype=f16",
                                      SMALL " dtype=f16 mask=causal",
                                      "head_dim=8/16 block_q=4",
                                      "head_dim=16/8 block_q=4",
                                      "head_dim=8 family=simt block_q=16",
                                      "head_dim=8 family=simt block_q=16 mask=causal"};
  pthread_barrier_t start;
  pthread_t thread[THREADS];
  pthread_barrier_init(&start, NULL, (unsigned)n);
  for (int i = 0; i < n; i++) {
    list[i] = (worker){.context = context, .start = &start, .words = words[i % ops]};
    ck_assert_int_eq(pthread_create(&thread[i], NULL, work, &list[i]), 0);
  }
  for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
  pthread_barrier_destroy(&start);
}

static void expect_good(const worker *list, int n) {
  for (int i = 0; i < n; i++) ck_assert_msg(!*list[i].failed, "thread %d: %s", i, list[i].failed);
}

/* Loaded modules: mappings of their files in memory; and open files. */
static int mapped(void) {
  char line[1024];
  int n = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  ck_assert_ptr_nonnull(maps);
  while (fgets(line, sizeof line, maps)) n += strstr(line, "memfd:flashgen-kernel") != NULL;
  fclose(maps);
  return n;
}

static int open_files(void) {
  int n = 0;
  DIR *files = opendir("/proc/self/fd");
  ck_assert_ptr_nonnull(files);
  while (readdir(files)) n++;
  closedir(files);
  return n;
}

/* One compile, one kernel for all; threads that loaded another gave it back. */
TEST(test_one_op) {
  int files = open_files();
  fg_context *context = api_open("cache");
  fg_counts counts = FG_INIT(fg_counts);
  static worker list[THREADS];
  verify_case which = {.shape = api_shape};
  run_threads(context, THREADS, 1, list);
  expect_good(list, THREADS);
  fg_context_counts(context, &counts);
  ck_assert_uint_eq(counts.compiles, 1);
  for (int i = 1; i < THREADS; i++) {
    ck_assert_ptr_eq(list[i].kernel, list[0].kernel);
    ck_assert(!memcmp(&list[i].tensors, &list[0].tensors, sizeof list[0].tensors));
  }
  api_verify(list[0].kernel, API_PADDED, &which);
  ck_assert_int_gt(mapped(), 0);
  fg_close(context);
  ck_assert_int_eq(mapped(), 0);
  ck_assert_int_eq(open_files(), files);
}

TEST(test_eight_ops) {
  enum { OPS = 8 };
  fg_context *context = api_open("cache");
  static worker list[OPS];
  verify_case which = {.shape = api_shape};
  run_threads(context, OPS, OPS, list);
  expect_good(list, OPS);
  api_counts(context, 0, OPS, OPS, OPS);
  for (int i = 0; i < OPS; i++) {
    for (int j = 0; j < i; j++) ck_assert_ptr_ne(list[i].kernel, list[j].kernel);
    api_verify(list[i].kernel, API_PADDED, &which);
  }
  fg_close(context);
}

/* A failure reaches every thread that waits for it, and the next call tries again where it says
 * nothing of the text. */
TEST(test_failure_for_all) {
  static worker list[4];
  fg_counts counts = FG_INIT(fg_counts);
  api_compiler("compiler", NULL, "sleep 0.2; echo broken; exit 1");
  fg_context *context = api_open("cache");
  run_threads(context, 4, 1, list);
  for (int i = 0; i < 4; i++) ck_assert_ptr_nonnull(strstr(list[i].failed, "refused it (exit 1)"));
  ck_assert_int_le(api_compiled("compiler"), 4);
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  api_kernel(context, SMALL);
  fg_context_counts(context, &counts);
  ck_assert_uint_eq(counts.compiles, 1); /* those that succeeded */
  fg_close(context);
}

/* Forks -------------------------------------------------------------------------------------- */

/* Runs f in a child and returns what it returned. */
static int in_child(int (*f)(fg_context *), fg_context *context) {
  int state;
  fflush(NULL);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (!child) _exit(f(context));
  ck_assert_int_eq(waitpid(child, &state, 0), child);
  ck_assert(WIFEXITED(state));
  return WEXITSTATUS(state);
}

/* 0, or the number of the step that failed. */
static int use_own(fg_context *context) {
  const fg_config config = api_config("cache");
  const fg_spec spec = api_spec(SMALL);
  fg_kernel *kernel;
  fg_op *op;
  (void)context;
  if (fg_open(&config, &context)) return 1;
  if (fg_define(context, &spec, &op)) return 2;
  if (fg_select(op, &api_shape, NULL, &kernel)) return 3;
  fg_close(context);
  return 0;
}

static int refused(fg_status status) {
  return status == FG_EARGUMENT &&
         !strcmp(fg_error(), "this context was opened before a fork: the child opens its own");
}

static fg_op *only_op(const fg_context *context) {
  size_t i = 0;
  while (!context->ops.bucket[i]) i++;
  return context->ops.bucket[i];
}

static int use_parents(fg_context *context) {
  fg_spec spec = api_spec(SMALL);
  fg_op *op = only_op(context), *other;
  fg_kernel *kernel = op->candidate[0].kernel;
  fg_args args = FG_INIT(fg_args);
  char *text;
  if (!refused(fg_define(context, &spec, &other))) return 1;
  if (!refused(fg_select(op, &api_shape, NULL, &kernel))) return 2;
  if (!refused(fg_launch(kernel, &api_shape, &args, NULL, NULL))) return 3;
  if (!refused(fg_emit(context, &spec, NULL, &text))) return 4;
  return use_own(NULL) ? 5 : 0;
}

TEST(test_fork) {
  ck_assert_int_eq(in_child(use_own, NULL), 0); /* before any use */
  fg_context *context = api_open("cache");
  fg_kernel *kernel = api_kernel(context, SMALL);
  ck_assert_int_eq(in_child(use_parents, context), 0);
  fg_problem *p = api_problem(kernel, api_shape, 1); /* and the parent goes on */
  GOOD(api_launch(kernel, p));
  fg_problem_free(p);
  fg_close(context);
  ck_assert_int_eq(in_child(use_own, NULL), 0); /* after a context of the parent's is gone */
}

TEST(test_processes) {
  enum { PROCESSES = 8 };
  pid_t child[PROCESSES];
  int go[2], state;
  char byte;
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  ck_assert_int_eq(pipe(go), 0);
  for (int i = 0; i < PROCESSES; i++) {
    ck_assert_int_ge(child[i] = fork(), 0);
    if (child[i]) continue;
    close(go[1]);
    _exit(read(go[0], &byte, 1) == 0 ? use_own(NULL) : 9); /* all start at the pipe's end */
  }
  close(go[0]);
  close(go[1]);
  for (int i = 0; i < PROCESSES; i++) {
    ck_assert_int_eq(waitpid(child[i], &state, 0), child[i]);
    ck_assert_msg(WIFEXITED(state) && !WEXITSTATUS(state), "process %d: %d", i, state);
  }
  ck_assert_int_ge(api_compiled("compiler"), 1);
  ck_assert_int_le(api_compiled("compiler"), 2);
}

TEST_FIXTURE(api_enter, api_leave)
