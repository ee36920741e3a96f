/* context.h - what a context holds: shared by context.c (life, ops), dispatch.c (choosing) and
 * produce.c (making). */
#ifndef FG_CONTEXT_H
#define FG_CONTEXT_H

#include "cache.h"
#include "device.h"

#include <pthread.h>
#include <stdatomic.h>

/* What there is to choose from for an op: plans with their recipes, made once. */
typedef struct fg_candidate {
  fg_plan plan;
  fg_recipe recipe;
  _Atomic(fg_kernel *) kernel; /* once loaded */
} fg_candidate;

/* The bounded memo of choices: open addressing, slots filled once and never changed. */
enum { FG_MEMO = 256 };
typedef struct fg_choice {
  uint64_t shape_class;
  fg_kernel *kernel;
} fg_choice;

struct fg_op {
  fg_context *context;
  fg_op *next;
  fg_point point;
  fg_limits limits;
  pthread_mutex_t lock; /* of candidates, and of filling the memo */
  fg_candidate *candidate;
  int n_candidates; /* 0: not listed yet */
  _Atomic(fg_choice *) memo[FG_MEMO];
};

struct fg_kernel {
  fg_op *op;
  fg_variant variant;
  fg_source *source; /* recipe and line map; its text only if it was compiled here */
  fg_module *module;
  char name[FG_NAME_MAX];
  char figures[1024];
  int from_cache;
};

struct fg_context {
  fg_device *device;
  fg_cache *cache;
  fg_gen *gen;                    /* opened when first needed, used under gen_lock */
  pthread_mutex_t gen_lock, lock; /* lock: of the list of ops */
  char *templates, *plan;
  int no_fallback;
  fg_op *ops;
  unsigned fork_generation; /* of the process that opened it */
  char digest[40];          /* of templates and gen: part of every key */
  char compiler[512];       /* identity of the compiler: part of every key */
  _Atomic uint64_t choices, compiles, loads;
};

/* FG_EARGUMENT in a child of the process that opened the context. */
fg_status fg_context_check(const fg_context *context);

/* The template state, opened by the first call; the caller holds gen_lock. */
fg_status fg_context_gen(fg_context *context);

/* The op's candidates, listed by the first call; the caller holds op->lock. */
fg_status fg_op_candidates(fg_op *op);

/* The keys of a variant's kernel, and of the op's list of candidates. Freed with fg_key_free, also
 * after a failure. */
fg_status fg_kernel_key(const fg_context *context, const char *name, fg_key *key);
fg_status fg_plans_key(const fg_op *op, fg_key *key);

/* Makes the candidate's kernel: from the cache, else expanded and compiled; loads it. Not under
 * op->lock; several threads may end up with one each, and all but one are freed. */
fg_status fg_kernel_produce(fg_op *op, const fg_plan *plan, fg_kernel **kernel);
void fg_kernel_free(fg_kernel *kernel);

/* The candidate that is expected to be fastest for the shape: an index. */
int fg_op_choose(const fg_op *op, const fg_shape *shape);

#endif
