/* t_cache_process.c - the kernel cache under many threads and processes at once.
 *
 * Where a test needs two of them to be somewhere at the same time, they wait for each other there;
 * nothing depends on who is fast. */
#include "cache_case.h"
#include "scratch.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 32, THREADS = 16, KEYS = 200, UNIT = 4096 };

static int gate[2], back[2]; /* pipes: children wait for the parent's end, and the other way */
static fg_cache_report report;

static uint64_t count(fg_count which) { return fg_cache_count(cache, which); }

static void enter(void) {
  case_enter();
  ck_assert_int_eq(pipe(gate) | pipe(back), 0);
}

/* Holds children back until the parent closes the gate. */
static void wait_at_gate(void) {
  char byte;
  close(gate[1]);
  ck_assert_int_eq(read(gate[0], &byte, 1), 0);
}

static void open_gate(void) {
  for (int i = 0; i < 2; i++) {
    if (gate[i] >= 0) close(gate[i]);
    gate[i] = -1;
  }
}

static void leave(void) {
  case_leave();
  open_gate();
  for (int i = 0; i < 2; i++) close(back[i]);
}

/* One byte from a child. */
static void await_child(void) {
  char byte;
  ck_assert_int_eq(read(back[0], &byte, 1), 1);
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

/* --- processes --- */

static void slow(void) { pause_ms(50); }

static void ask_cold(void) {
  wait_at_gate();
  case_open("c");
  case_ask(cache, 1);
  ck_assert_uint_eq(count(FG_COUNT_HITS) + count(FG_COUNT_MISSES), 1);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
}

TEST(test_one_cold_key) {
  pid_t child[PROCESSES];
  case_hook = slow;
  for (int i = 0; i < PROCESSES; i++) child[i] = case_fork(ask_cold, false);
  open_gate();
  for (int i = 0; i < PROCESSES; i++) ck_assert_int_eq(case_wait(child[i]), 0);
  ck_assert_int_eq(*cache_made, 1);
  ck_assert_int_eq(case_files("c"), 1);
}

/* All keys, each process in an order of its own. */
static void ask_all(void) {
  wait_at_gate();
  case_open("c");
  int stride[] = {1, 3, 7, 9, 11, 13, 17, 19}; /* coprime to KEYS */
  for (int i = 0; i < KEYS; i++) case_ask(cache, (i * stride[getpid() % 8] + getpid()) % KEYS);
  ck_assert_uint_eq(count(FG_COUNT_HITS) + count(FG_COUNT_MISSES), KEYS);
  ck_assert_uint_eq(count(FG_COUNT_PUBLISHED), count(FG_COUNT_PRODUCED));
  ck_assert_uint_eq(count(FG_COUNT_CORRUPT) + count(FG_COUNT_REFUSED), 0);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
}

/* Beyond the minute of grace, so that it takes what was just written. */
static void collect_on(void) {
  open_gate();
  case_open("c");
  fault_clock(CLOCK_REALTIME, 120);
  if (write(back[1], "", 1) != 1) _exit(98);
  for (;;) ck_assert_msg(fg_cache_gc(cache, KEYS / 2 * UNIT, &report) == FG_OK, "%s", fg_error());
}

TEST(test_stress) {
  pid_t child[PROCESSES], collector[2];
  case_open("c");
  case_ask(cache, 0);
  for (int i = 0; i < 2; i++) collector[i] = case_fork(collect_on, false);
  for (int i = 0; i < 2; i++) await_child();
  for (int i = 0; i < PROCESSES; i++) child[i] = case_fork(ask_all, false);
  open_gate();
  for (int i = 0; i < PROCESSES; i++) ck_assert_int_eq(case_wait(child[i]), 0);
  for (int i = 0; i < 2; i++) {
    kill(collector[i], SIGKILL);
    ck_assert(WIFSIGNALED(case_wait(collector[i])));
  }
  ck_assert_int_gt(*cache_made, KEYS); /* some were evicted and produced again */
  ck_assert_int_lt(*cache_made, PROCESSES * KEYS);
  fault_clock(CLOCK_REALTIME, 120);
  ck_assert_int_eq(fg_cache_gc(cache, KEYS / 2 * UNIT, &report), FG_OK);
  ck_assert_uint_le(report.bytes, KEYS / 2 * UNIT);
  ck_assert_uint_eq(report.temporaries, 0);
  ck_assert_int_eq(fg_cache_verify(cache, &report), FG_OK);
  ck_assert_uint_eq(report.bad, 0);
}

/* --- the lock between processes --- */

static void stop_here(void) {
  if (write(back[1], "", 1) != 1) _exit(98);
  raise(SIGSTOP);
}

/* Produces key 1 and stops in the middle of it, with the lock. */
static void hold(void) {
  case_hook = stop_here;
  case_open("c");
  case_ask(cache, 1);
  ck_assert_uint_eq(count(FG_COUNT_PUBLISHED), 1);
}

static pid_t start_holder(void) {
  int status;
  pid_t holder = case_fork(hold, false);
  await_child();
  ck_assert_int_eq(waitpid(holder, &status, WUNTRACED), holder);
  ck_assert(WIFSTOPPED(status));
  return holder;
}

TEST(test_holder_stopped) {
  setenv("FLASHGEN_LOCK_SECONDS", "1", 1);
  pid_t holder = start_holder();
  case_open("c");
  case_ask(cache, 1);
  case_counts(0, 1, 0, 1);
  ck_assert_uint_eq(count(FG_COUNT_LOCK_TIMEOUTS), 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), "FLASHGEN_LOCK_SECONDS"));
  kill(holder, SIGCONT);
  ck_assert_int_eq(case_wait(holder), 0);
  ck_assert_int_eq(*cache_made, 2);
  ck_assert_int_eq(case_files("c"), 1);
  case_open("c");
  ck_assert(case_get(cache, 1));
}

TEST(test_holder_killed) {
  pid_t holder = start_holder();
  kill(holder, SIGKILL);
  ck_assert(WIFSIGNALED(case_wait(holder)));
  case_open("c");
  case_ask(cache, 1);
  case_counts(0, 1, 0, 1);
  ck_assert_uint_eq(count(FG_COUNT_LOCK_TIMEOUTS), 0);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
}

static void ask_waiting(void) {
  case_open("c");
  if (write(back[1], "", 1) != 1) _exit(98);
  case_ask(cache, 1);
  ck_assert_uint_eq(count(FG_COUNT_LOCK_TIMEOUTS), 0);
}

/* Killed while another process is waiting: that one goes on. */
TEST(test_holder_killed_later) {
  pid_t holder = start_holder(), waiter = case_fork(ask_waiting, false);
  await_child();
  pause_ms(50); /* so that it does wait, most likely; right either way */
  kill(holder, SIGKILL);
  ck_assert(WIFSIGNALED(case_wait(holder)));
  ck_assert_int_eq(case_wait(waiter), 0);
  ck_assert_int_eq(*cache_made, 2);
}

/* Let go on while another process is waiting: that one gets its entry. */
TEST(test_holder_finishes) {
  pid_t holder = start_holder(), waiter = case_fork(ask_waiting, false);
  await_child();
  pause_ms(50);
  kill(holder, SIGCONT);
  ck_assert_int_eq(case_wait(holder), 0);
  ck_assert_int_eq(case_wait(waiter), 0);
  ck_assert_int_eq(*cache_made, 1);
}

static pid_t forked;
static void fork_here(void) {
  case_hook = NULL;
  forked = case_fork(wait_at_gate, false);
}

/* A process that was forked while we had the lock does not keep it. */
TEST(test_forked_meanwhile) {
  setenv("FLASHGEN_LOCK_SECONDS", "1", 1);
  case_hook = fork_here;
  case_open("c");
  case_ask(cache, 1);
  ck_assert_int_eq(unlink(case_path("c", 1)), 0);
  case_open("c");
  case_ask(cache, 1);
  ck_assert_uint_eq(count(FG_COUNT_LOCK_TIMEOUTS), 0);
  open_gate();
  ck_assert_int_eq(case_wait(forked), 0);
}

/* Another key of the same lock file is not waited for. */
TEST(test_other_key_of_file) {
  setenv("FLASHGEN_LOCK_SECONDS", "1", 1);
  char bucket[3] = {0};
  int other = 2;
  memcpy(bucket, case_path("c", 1) + 4, 2);
  while (strncmp(bucket, case_path("c", other) + 4, 2) != 0) other++;
  pid_t holder = start_holder();
  case_open("c");
  case_ask(cache, other);
  ck_assert_uint_eq(count(FG_COUNT_LOCK_TIMEOUTS), 0);
  kill(holder, SIGKILL);
  case_wait(holder);
}

/* --- threads --- */

static pthread_barrier_t together;

static void *ask_one(void *argument) {
  (void)argument;
  pthread_barrier_wait(&together);
  case_ask(cache, 1);
  return NULL;
}

static void run_threads(int n, void *(*f)(void *)) {
  pthread_t thread[THREADS];
  pthread_barrier_init(&together, NULL, (unsigned)n);
  for (intptr_t i = 0; i < n; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, f, (void *)i), 0);
  for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
  pthread_barrier_destroy(&together);
}

TEST(test_threads_one_key) {
  case_hook = slow;
  case_open("c");
  run_threads(THREADS, ask_one);
  ck_assert_int_eq(*cache_made, 1);
  ck_assert_uint_eq(count(FG_COUNT_MISSES), 1);
  ck_assert_uint_eq(count(FG_COUNT_HITS) + count(FG_COUNT_JOINED), THREADS - 1);
  ck_assert_int_eq(case_files("c"), 1);
}

/* The same where nothing can be written: threads that come late find it in memory. */
TEST(test_threads_memory_only) {
  scratch_put("file", "x", 1);
  case_open("file");
  run_threads(THREADS, ask_one);
  ck_assert_int_eq(*cache_made, 1);
  ck_assert_uint_eq(count(FG_COUNT_HITS) + count(FG_COUNT_JOINED), THREADS - 1);
}

/* Fails when all threads are waiting for it: so it is one call for all. */
static fg_status fail_late(void *context, fg_product *product) {
  (void)context, (void)product;
  atomic_fetch_add(cache_made, 1);
  while (count(FG_COUNT_JOINED) < THREADS - 1) pause_ms(1);
  return fg_fail(FG_ECOMPILER, "line 3 is wrong");
}

static void *ask_failing(void *argument) {
  (void)argument;
  fg_key key;
  const fg_entry *entry;
  case_key(1, &key);
  pthread_barrier_wait(&together);
  ck_assert_int_eq(fg_cache_produce(cache, &key, fail_late, NULL, &entry), FG_ECOMPILER);
  ck_assert_str_eq(fg_error(), "line 3 is wrong");
  fg_key_free(&key);
  return NULL;
}

TEST(test_threads_one_failure) {
  case_open("c");
  run_threads(THREADS, ask_failing);
  ck_assert_int_eq(*cache_made, 1);
  case_counts(0, 1, 0, 0);
  ck_assert_uint_eq(count(FG_COUNT_JOINED), THREADS - 1);
  case_ask(cache, 1); /* a failure is not kept */
  case_counts(0, 2, 0, 1);
}

/* All keys are being produced at once: each producer waits for the others. */
static void meet(void) { pthread_barrier_wait(&together); }

static void *ask_own(void *argument) {
  case_ask(cache, (int)(intptr_t)argument);
  return NULL;
}

TEST(test_threads_own_keys) {
  case_hook = meet;
  case_open("c");
  run_threads(THREADS, ask_own);
  case_counts(0, THREADS, 0, THREADS);
  ck_assert_int_eq(case_files("c"), THREADS);
}

/* A producer may ask for another key. */
static void ask_two(void) {
  case_hook = NULL;
  case_ask(cache, 2);
}

TEST(test_nested) {
  case_hook = ask_two;
  case_open("c");
  case_ask(cache, 1);
  case_counts(0, 2, 0, 2);
}

TEST_FIXTURE(enter, leave)
