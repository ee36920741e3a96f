/* ops.c - the ops of a context: found by what they compute, counted by their users. */
#define XXH_INLINE_ALL
#include "ops.h"

#include "kernels.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static void free_op(fg_op *op) {
  for (fg_kernel *own = op->adopted, *next; own; own = next) {
    next = own->next;
    free(own);
  }
  for (int i = 0; i < op->n_candidates; i++) fg_kernel_free(op->candidate[i].kernel);
  for (int i = 0; i < FG_MEMO; i++) free(op->memo[i]);
  pthread_mutex_destroy(&op->lock);
  free(op->candidate);
  fg_memories_free(&op->memories);
  free(op);
}

void fg_ops_free(fg_ops *ops) {
  for (size_t i = 0; i < ops->n_buckets; i++)
    for (fg_op *op = ops->bucket[i], *next; op; op = next) {
      next = op->next;
      free_op(op);
    }
  free(ops->bucket);
  *ops = (fg_ops){0};
}

/* Points and limits are compared as bytes; a point's texts are interned. */
static fg_op **chain(fg_ops *ops, const fg_point *point, const fg_limits *limits) {
  uint64_t hash = XXH3_64bits_withSeed(limits, sizeof *limits, XXH3_64bits(point, sizeof *point));
  return &ops->bucket[hash & (ops->n_buckets - 1)];
}

static fg_op *find(fg_ops *ops, const fg_point *point, const fg_limits *limits) {
  fg_op *op = ops->n_buckets ? *chain(ops, point, limits) : NULL;
  while (op &&
         (!fg_point_equal(&op->point, point) || memcmp(&op->limits, limits, sizeof *limits) != 0))
    op = op->next;
  return op;
}

/* Room for one more; where there is no memory for it chains only get longer, if there are any. */
static void grow(fg_ops *ops) {
  enum { FIRST = 64 };
  fg_ops grown = {.n_buckets = ops->n_buckets ? 2 * ops->n_buckets : FIRST, .n = ops->n};
  if (ops->n < ops->n_buckets || !(grown.bucket = calloc(grown.n_buckets, sizeof(fg_op *)))) return;
  for (size_t i = 0; i < ops->n_buckets; i++)
    for (fg_op *op = ops->bucket[i], *next; op; op = next) {
      fg_op **at = chain(&grown, &op->point, &op->limits);
      next = op->next;
      op->next = *at;
      *at = op;
    }
  free(ops->bucket);
  *ops = grown;
}

/* Of declarations as a point has them: "cap=float, slope=f32[h] grad". */
static int count_inputs(const char *inputs) {
  int n = 0;
  for (; inputs && *inputs; inputs++) n += *inputs == '=';
  return n;
}

static fg_op *add(fg_context *c, const fg_point *point, const fg_limits *limits) {
  grow(&c->ops);
  fg_op *op = c->ops.n_buckets ? calloc(1, sizeof *op) : NULL;
  if (!op) return NULL;
  fg_op **at = chain(&c->ops, point, limits);
  *op = (fg_op){.context = c, .next = *at, .point = *point, .limits = *limits};
  op->form = fg_form_rule_of(fg_point_kind(point)->form);
  op->n_inputs = count_inputs(point->inputs);
  pthread_mutex_init(&op->lock, NULL);
  c->ops.n++;
  return *at = op;
}

fg_status fg_context_op(fg_context *c, const fg_point *point, const fg_limits *limits,
                        fg_op **result) {
  pthread_mutex_lock(&c->lock);
  fg_op *op = find(&c->ops, point, limits);
  if (!op) op = add(c, point, limits);
  if (op) op->users++;
  pthread_mutex_unlock(&c->lock);
  if (!op) return fg_fail(FG_EMEMORY, "no memory for an op");
  *result = op;
  return FG_OK;
}

void fg_release(fg_op *op) {
  if (!op) return;
  fg_context *c = op->context;
  pthread_mutex_lock(&c->lock);
  const bool last = --op->users == 0;
  if (last) {
    fg_op **at = chain(&c->ops, &op->point, &op->limits);
    while (*at != op) at = &(*at)->next;
    *at = op->next;
    c->ops.n--;
  }
  pthread_mutex_unlock(&c->lock);
  if (!last) return;
  fg_release(op->maskless); /* whose kernels the op's own may be */
  free_op(op);
}
