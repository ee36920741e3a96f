/* ops.h - the ops of a context: what each computes, the candidates that there are for it, and which
 * of them is taken. */
#ifndef FG_OPS_H
#define FG_OPS_H

#include "context.h"
#include "wisdom/recall.h"

/* What there is to choose from for an op: plans with their recipes, made once. */
typedef struct fg_candidate {
  fg_plan plan;
  fg_recipe recipe;
  _Atomic(fg_kernel *) kernel; /* once loaded */
  atomic_bool refused;         /* by the compiler, or for its spills */
  atomic_bool late;            /* a compile of it took as long as it may */
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
  fg_form_rule form;    /* of its shapes */
  int n_inputs;         /* of the point, which are the places in fg_args.inputs */
  pthread_mutex_t lock; /* of candidates, and of filling the memo */
  fg_candidate *candidate;
  int n_candidates;     /* 0: not listed yet */
  fg_memories memories; /* what wisdom has of them; read when they are listed */
  bool from_zoo;        /* the candidates are a zoo's */
  fg_op *maskless;    /* the spec without its mask, once a shape has proved that it hides nothing */
  fg_kernel *adopted; /* of its kernels, those that are this op's too */
  _Atomic(fg_choice *) memo[FG_MEMO];
};

void fg_ops_free(fg_ops *ops);

/* remember.c: reads the context's files, config's or those of FLASHGEN_WISDOM. FG_EIO: a file
 * cannot be read; only those of FLASHGEN_WISDOM may be missing. */
fg_status fg_context_wisdom(fg_context *context, int n, const char *const *files);
void fg_context_forget(fg_context *context);

/* Fills op->memories; the caller holds op->lock. FG_EMEMORY. */
fg_status fg_op_remember(fg_op *op);
/* Has wisdom it that the candidate's numbers are wrong or its launches break? */
bool fg_op_is_bad(const fg_op *op, int candidate);

/* The op of a point within restrictions, made by the first call; each call is a use of it. */
fg_status fg_context_op(fg_context *context, const fg_point *point, const fg_limits *limits,
                        fg_op **op);

/* The op's candidates, listed by the first call; the caller holds op->lock. */
fg_status fg_op_candidates(fg_op *op);

/* FG_EARGUMENT with the reason when the plan that is forced names a family that the op's spec
 * allows and that cannot compute it. */
fg_status fg_op_check_forced(fg_op *op);

/* Is one of the op's candidates forced? */
bool fg_op_has_forced(const fg_op *op);

/* What the list of candidates is kept under; freed with fg_key_free, also after a failure. */
fg_status fg_plans_key(const fg_op *op, fg_key *key);

/* The op whose kernels are right at all shapes of the shape's class: the spec without its mask
 * where this hides nothing there, kernels may be compiled, no zoo has chosen the op's, and wisdom
 * does not know the op's plans alone; else the op itself. Both have candidates then. */
fg_op *fg_op_proved(fg_op *op, const fg_shape *shape);
/* A kernel of op->maskless as one of op's, which fg_launch asks about each shape. */
fg_status fg_op_adopt(fg_op *op, fg_kernel *of, fg_kernel **kernel);
fg_status fg_kernel_check_proved(const fg_kernel *kernel, const fg_shape *shape);

/* The candidate that is expected to be fastest for the shape: an index. FG_EARGUMENT: as
 * fg_op_check_forced. */
fg_status fg_op_choose(fg_op *op, const fg_shape *shape, int *index);
/* The same of the candidates that have not failed; failed, by candidate: NULL: none has. */
fg_status fg_op_choose_but(fg_op *op, const fg_shape *shape, const bool *failed, int *index);

#endif
