/* tree_rough.c - which tanh of a score may be off by 1e-7 of 1, and which must be of itself: all of
 * a score that is a weight must be. */
#include "tree_emitter.h"

#include <math.h>

enum { ROUGH = 1, EXACT = 2 };

/* Follows what adds, chooses, and scales by constants, whose product is `factor`; it is infinite
 * where anything else is made of the value. */
static void mark(fg_emitter *e, int node, double factor) {
  const fg_node *x = fg_at(e, node), *last = x->arg[1] ? fg_at(e, x->arg[1]) : x;
  double inner = INFINITY;
  if (x->op == FG_NODE_TANH) e->tanhs[node] |= factor <= FG_ROUGH_TANH_MOST ? ROUGH : EXACT;
  switch (x->op) {
  case FG_NODE_NEGATE:
  case FG_NODE_ADD:
  case FG_NODE_SUBTRACT:
  case FG_NODE_CHOOSE:
  case FG_NODE_MIN:
  case FG_NODE_MAX:
    inner = factor;
    break;
  case FG_NODE_MULTIPLY:
    if (last->op == FG_NODE_CONSTANT) inner = factor * fabs(last->number);
    break;
  case FG_NODE_DIVIDE:
    if (last->op == FG_NODE_CONSTANT) inner = factor / fabs(last->number);
    break;
  default:
    break;
  }
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++)
    mark(e, x->arg[i], x->op == FG_NODE_CHOOSE && i == 0 ? INFINITY : inner);
}

void fg_mark_tanhs(fg_emitter *e) {
  mark(e, e->f->score, e->names->score_is_weight ? INFINITY : 1);
  mark(e, e->f->mask, INFINITY);
}

bool fg_is_rough(const fg_emitter *e, int node) { return e->tanhs[node] == ROUGH; }
