/* context.h - what a context holds: its device, cache, zoos and wisdom, the state of templates, and
 * what it says. ops.h has the ops above it, kernels.h how their kernels come. */
#ifndef FG_CONTEXT_H
#define FG_CONTEXT_H

#include "cache/cache.h"
#include "device/compile.h"
#include "wisdom/wisdom.h"
#include "zoo/zoo.h"

#include <pthread.h>
#include <stdatomic.h>

/* Ops by what they compute: chains. */
typedef struct fg_ops {
  fg_op **bucket;
  size_t n_buckets, n; /* n_buckets: 0, or a power of 2 */
} fg_ops;

struct fg_context {
  fg_device *device;
  fg_cache *cache;
  fg_zoo_reader **zoo;
  int n_zoos;
  fg_wisdom *wisdom;      /* files; of two lines for one thing the first file's counts */
  fg_wisdom_index *index; /* of each */
  int n_wisdom;
  bool shipped;                   /* behind them comes what is built in */
  fg_gen *gen;                    /* opened when first needed, used under gen_lock */
  pthread_mutex_t gen_lock, lock; /* lock: of the table of ops */
  char *templates, *plan;
  int no_fallback;
  bool jit;
  bool zoos_alone; /* the cache is not looked into either */
  unsigned topics; /* of FLASHGEN_VERBOSE: a set of fg_topic */
  void (*warn)(void *context, const char *sentence);
  void *warn_context;
  atomic_flag slow;     /* it has been said that simt is */
  atomic_flag unforced; /* ... that a forced plan is none of a spec's */
  fg_ops ops;
  unsigned fork_generation;       /* of the process that opened it */
  bool identified;                /* the next two are known; under gen_lock */
  bool recalled;                  /* there is no compiler: its name is the cache's */
  char digest[40];                /* of templates and gen: part of every key */
  char compiler[FG_COMPILER_MAX]; /* its identity, or the last one's: part of a kernel's key */
  _Atomic uint64_t choices, compiles, loads, zoo_hits;
};

/* Ties the context to the process; then FG_EARGUMENT in a child of it. */
void fg_context_tie(fg_context *context);
extern _Atomic unsigned fg_fork_generation; /* of this process */
fg_status fg_context_refuse(void);
static inline fg_status fg_context_check(const fg_context *context) {
  return context->fork_generation == fg_fork_generation ? FG_OK : fg_context_refuse();
}

/* What a caller must give: FG_EARGUMENT names the first that is NULL. */
typedef struct fg_must_be {
  const char *name;
  const void *given;
} fg_must_be;
fg_status fg_given(size_t n, const fg_must_be *list);
#define FG_GIVEN(...)                                                                              \
  fg_given(sizeof((fg_must_be[]){__VA_ARGS__}) / sizeof(fg_must_be), (fg_must_be[]){__VA_ARGS__})

/* The template state, opened by the first call; the caller holds gen_lock. */
fg_status fg_context_gen(fg_context *context);

/* Through the caller's function, or a line on stderr. */
void fg_context_warn(const fg_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What FLASHGEN_VERBOSE asks for, a set; fg_context_tell writes a line on stderr if it asks for the
 * topic. */
typedef enum fg_topic { FG_DISPATCH, FG_CACHE, FG_COMPILE, FG_TOPICS } fg_topic;
unsigned fg_context_topics(void);
bool fg_context_tells(const fg_context *context, fg_topic topic);
void fg_context_tell(const fg_context *context, fg_topic topic, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
