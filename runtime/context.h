/* context.h - what a context holds: shared by context.c (life), ops.c, candidates.c (what there is
 * to choose from), recall.c (what is known of it), dispatch.c (choosing), produce.c (making) and
 * report.c (what it says of all that).
 */
#ifndef FG_CONTEXT_H
#define FG_CONTEXT_H

#include "cache.h"
#include "compile.h"
#include "recall.h"
#include "zoo.h"

#include <pthread.h>
#include <stdatomic.h>

/* What there is to choose from for an op: plans with their recipes, made once. */
typedef struct fg_candidate {
  fg_plan plan;
  fg_recipe recipe;
  _Atomic(fg_kernel *) kernel; /* once loaded */
  atomic_bool refused;         /* by the compiler, or for its spills */
  atomic_bool late;            /* a compile of it took as long as it may */
  bool bad;                    /* wisdom has it that its numbers are wrong or its launches break */
} fg_candidate;

/* The bounded memo of choices: open addressing, slots filled once and never changed. */
enum { FG_MEMO = 256 };
typedef struct fg_choice {
  uint64_t shape_class;
  fg_kernel *kernel;
} fg_choice;

struct fg_op {
  fg_context *context;
  fg_op *next; /* of the same bucket; under context->lock, as `users` is */
  int users;   /* calls of fg_define that fg_release has not taken back */
  fg_point point;
  fg_limits limits;
  pthread_mutex_t lock; /* of candidates, and of filling the memo */
  fg_candidate *candidate;
  int n_candidates;  /* 0: not listed yet */
  fg_memory *memory; /* times of theirs; listed with them */
  int n_memory;
  bool from_zoo;      /* the candidates are a zoo's */
  fg_op *maskless;    /* the spec without its mask, once a shape has proved that it hides nothing */
  fg_kernel *adopted; /* of its kernels, those that are this op's too */
  _Atomic(fg_choice *) memo[FG_MEMO];
};

/* Ops by what they compute: chains. */
typedef struct fg_ops {
  fg_op **bucket;
  size_t n_buckets, n; /* n_buckets: 0, or a power of 2 */
} fg_ops;
void fg_ops_free(fg_ops *ops);

struct fg_kernel {
  fg_op *op;
  fg_variant variant;
  fg_source *source; /* recipe and line map; its text only if it was compiled here */
  fg_module *module;
  char name[FG_NAME_MAX];
  char figures[1024];
  int from_cache;
  bool adopted;    /* its source and module are those of a kernel of op->maskless */
  fg_kernel *next; /* of op->adopted */
};

struct fg_context {
  fg_device *device;
  fg_cache *cache;
  fg_zoo_reader **zoo;
  int n_zoos;
  fg_wisdom *wisdom; /* files; of two lines for one thing the first file's counts */
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

/* FG_EARGUMENT in a child of the process that opened the context. */
fg_status fg_context_check(const fg_context *context);

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

/* Looks up what parts this machine's kernels from others', once. */
fg_status fg_context_identify(fg_context *context);

/* The compiler that made a kernel is remembered in the cache; where there is none now, the one that
 * made the last kernel for the arch and options stands for it in keys: what is cached is found. */
void fg_context_remember(fg_context *context);
fg_status fg_context_recall(fg_context *context);
/* The kernel that the one remembered made, for when the one that is here cannot be used. */
bool fg_context_earlier(fg_context *context, const char *name, const fg_entry **entry);

/* The op of a point within restrictions, made by the first call; each call is a use of it. */
fg_status fg_context_op(fg_context *context, const fg_point *point, const fg_limits *limits,
                        fg_op **op);

/* A variant's code in the context's zoos; NULL: none has it. */
const fg_zoo_item *fg_context_zoo(const fg_context *context, const fg_variant *variant,
                                  const fg_zoo_reader **zoo);

/* The entry of a key: from the cache, else, if compiling is allowed, from the producer. `what`
 * names it in a line of FLASHGEN_VERBOSE; *entry = NULL: there is none and it may not be produced.
 */
fg_status fg_context_entry(fg_context *context, const char *what, const fg_key *key,
                           fg_producer *producer, void *producer_context, const fg_entry **entry);

/* Fails for what would have to be made and may not be: "the plans of attn_fwd-...", and the name in
 * it that others may be near. */
fg_status fg_op_missing(fg_op *op, const char *what, const char *name);

/* The op's candidates, listed by the first call; the caller holds op->lock. */
fg_status fg_op_candidates(fg_op *op);

/* FG_EARGUMENT with the reason when the plan that is forced names a family that the op's spec
 * allows and that cannot compute it. */
fg_status fg_op_check_forced(fg_op *op);

/* Is one of the op's candidates forced? */
bool fg_op_has_forced(const fg_op *op);

/* What every key holds; `what` parts kernels from lists of candidates. The keys of a variant's
 * kernel, and of the op's list of candidates. Freed with fg_key_free, also after a failure. */
fg_status fg_key_start(fg_context *context, const char *what, const char *name, fg_key *key);
fg_status fg_kernel_key(fg_context *context, const char *name, fg_key *key);
fg_status fg_plans_key(const fg_op *op, fg_key *key);

/* The op whose kernels are right at all shapes of the shape's class: the spec without its mask
 * where this hides nothing there, kernels may be compiled, no zoo has chosen the op's, and wisdom
 * does not know the op's plans alone; else the op itself. Both have candidates then. */
fg_op *fg_op_proved(fg_op *op, const fg_shape *shape);
/* A kernel of op->maskless as one of op's, which fg_launch asks about each shape. */
fg_status fg_op_adopt(fg_op *op, fg_kernel *of, fg_kernel **kernel);
fg_status fg_kernel_check_proved(const fg_kernel *kernel, const fg_shape *shape);

/* Makes a plan's kernel, whether dispatch would choose it or not: from a zoo, from the cache, else
 * expanded and compiled; loads it. Not under op->lock; several threads may end up with one each,
 * which is theirs to free. */
fg_status fg_kernel_produce(fg_op *op, const fg_plan *plan, fg_kernel **kernel);
void fg_kernel_free(fg_kernel *kernel);

/* The candidate that is expected to be fastest for the shape: an index. FG_EARGUMENT: as
 * fg_op_check_forced. */
fg_status fg_op_choose(fg_op *op, const fg_shape *shape, int *index);

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
