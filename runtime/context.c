/* context.c - what stands below all that works on a context: the process it is of, its state of
 * templates, arguments that are missing. */
#include "context.h"

/* Children count themselves, so that a context knows that it is on the wrong side of a fork without
 * asking the kernel for its pid at every call. */
_Atomic unsigned fg_fork_generation;
static pthread_once_t watch = PTHREAD_ONCE_INIT;
static void in_child(void) { fg_fork_generation++; }
static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

void fg_context_tie(fg_context *context) {
  pthread_once(&watch, watch_forks);
  context->fork_generation = fg_fork_generation;
}

fg_status fg_context_refuse(void) {
  return fg_fail(FG_EARGUMENT, "this context was opened before a fork: the child opens its own");
}

fg_status fg_given(size_t n, const fg_must_be *list) {
  for (size_t i = 0; i < n; i++)
    if (!list[i].given) return fg_fail(FG_EARGUMENT, "%s is NULL", list[i].name);
  return FG_OK;
}

fg_status fg_context_gen(fg_context *c) {
  return c->gen ? FG_OK : fg_gen_new(c->templates, &c->gen);
}
