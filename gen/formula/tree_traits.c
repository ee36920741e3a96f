/* tree_traits.c - traits of scores and masks, found in their trees. */
#include "tree_traits.h"

#include "tree_diff.h"
#include "tree_emit.h"
#include "tree_extent.h"
#include "tree_term.h"

#include <math.h>
#include <string.h>

/* ---- what is evaluated ---- */

/* The first operand of a node that is evaluated: given(range, test) is its test. */
static int first_arg(const fg_node *x) { return x->op == FG_NODE_GIVEN ? 1 : 0; }

bool fg_tree_reads_memory(const fg_tree *t, int node) {
  const fg_node *x = &t->node[node];
  if (x->op == FG_NODE_READ) return true;
  for (int i = first_arg(x); i < FG_NODE_ARGS && x->arg[i]; i++)
    if (fg_tree_reads_memory(t, x->arg[i])) return true;
  return false;
}

bool fg_tree_uses_inputs(const fg_tree *t, int node) {
  const fg_node *x = &t->node[node];
  if (x->op == FG_NODE_READ || x->op == FG_NODE_SCALAR) return true;
  for (int i = first_arg(x); i < FG_NODE_ARGS && x->arg[i]; i++)
    if (fg_tree_uses_inputs(t, x->arg[i])) return true;
  return false;
}

/* ---- what a pair computes ---- */

/* A walk over it, and what was found. */
typedef struct {
  fg_formula *f;
  int lazy, in_read, in_multiple; /* how many such nodes the walk is inside of */
  int size, multiples_of_k;
  bool uses_k, chooses, has_wide_quotient, reads, calls;
} walk;

/* A constant, or a name that stands for itself: nothing is gained by naming it. */
static bool is_plain(const fg_node *x) {
  return x->op == FG_NODE_CONSTANT || x->op == FG_NODE_SCALAR ||
         (x->op == FG_NODE_NAME && x->which != FG_NAME_P);
}

/* Is it made once for the head or row? Not where it may be read only for some pairs. */
static bool is_made_before(const walk *w, int node) {
  const fg_tree *t = &w->f->tree;
  if (fg_tree_level(t, node) == PAIR || is_plain(&t->node[node])) return false;
  return !w->lazy || !fg_tree_reads(t, node);
}

static bool is_multiple_of_k(const walk *w, int node) {
  fg_multiple_of_k m;
  const fg_tree *t = &w->f->tree;
  return !w->lazy && fg_tree_multiple_of_k(t, node, &m) && fg_goes_by_increments(t, &m);
}

static bool is_wide_quotient(const walk *w, int node) {
  const fg_node *x = &w->f->tree.node[node];
  bool quotient = x->op == FG_NODE_DIVIDE || x->op == FG_NODE_MODULO;
  return quotient && x->type == FG_TYPE_INT && fg_tree_wide(&w->f->tree, node);
}

/* Is it a function of floats, or a quotient whose divisor is a pair's own? */
static bool is_call(const walk *w, int node) {
  const fg_tree *t = &w->f->tree;
  const fg_node *x = &t->node[node];
  if (x->type != FG_TYPE_FLOAT) return false;
  if (x->op == FG_NODE_DIVIDE) return fg_tree_level(t, x->arg[1]) == PAIR;
  return x->op >= FG_NODE_MIN && x->op <= FG_NODE_SIGMOID;
}

/* An index of an element is widened, multiplied by a stride, and added. */
enum { OPERATIONS_OF_INDEX = 3 };

/* Adds up what is computed for `node`: a size counts operations, and names. */
static void visit(walk *w, int node) {
  const fg_node *x = &w->f->tree.node[node];
  w->size += x->op != FG_NODE_GIVEN;
  if (is_made_before(w, node)) return;
  bool read = x->op == FG_NODE_READ, choice = x->op == FG_NODE_CHOOSE;
  bool multiple = is_multiple_of_k(w, node) && !w->in_multiple;
  bool both = x->op == FG_NODE_AND || x->op == FG_NODE_OR;
  w->reads |= read;
  w->calls |= is_call(w, node);
  w->uses_k |= x->op == FG_NODE_NAME && x->which == FG_NAME_K && !w->in_read && !w->in_multiple;
  w->chooses |= choice && !w->in_read;
  w->has_wide_quotient |= is_wide_quotient(w, node);
  w->multiples_of_k += multiple && !w->in_read;
  w->in_read += read, w->in_multiple += multiple;
  for (int i = first_arg(x); i < FG_NODE_ARGS && x->arg[i]; i++) {
    bool lazy = i > 0 && (choice || both);
    if (read && !strcmp(w->f->input[x->which].extent[i], "1")) continue;
    if (read) w->size += OPERATIONS_OF_INDEX;
    w->lazy += lazy;
    visit(w, x->arg[i]);
    w->lazy -= lazy;
  }
  w->in_read -= read, w->in_multiple -= multiple;
}

static walk visited(fg_formula *f, int node) {
  walk w = {.f = f};
  visit(&w, node);
  return w;
}

bool fg_formula_reads_or_calls(fg_formula *f, int node) {
  walk w = visited(f, node);
  return w.reads || w.calls;
}

/* ---- terms of a score ---- */

/* Is memory read for the value each time its row begins, not once for the head? */
static bool reads_by_row(const fg_tree *t, int node, bool lazy) {
  const fg_node *x = &t->node[node];
  if (!fg_tree_reads(t, node) || (fg_tree_level(t, node) == HEAD && !lazy)) return false;
  if (x->op == FG_NODE_READ) return true;
  bool some = x->op == FG_NODE_CHOOSE || x->op == FG_NODE_AND || x->op == FG_NODE_OR;
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++)
    if (reads_by_row(t, x->arg[i], lazy || (some && i > 0))) return true;
  return false;
}

/* Terms of each make. */
typedef struct {
  const fg_tree *t;
  int of_s, of_k, others;
  bool reads_by_row;
} terms;

static void count_term(void *to, int node, double factor) {
  terms *found = to;
  const fg_tree *t = found->t;
  fg_multiple_of_k m;
  if (fg_tree_level(t, node) != PAIR)
    found->reads_by_row |= reads_by_row(t, node, false);
  else if (fg_tree_is_scaled_s(t, node) && !fg_tree_reads(t, node))
    found->of_s++;
  else if (fg_tree_multiple_of_k(t, node, &m) && !fg_tree_reads_of_row(t, node) &&
           !fg_is_steep(factor * m.step) && (!m.by || fg_tree_level(t, m.by) == HEAD))
    found->of_k++;
  else
    found->others++;
}

static bool is_linear_in_s_and_k(const fg_tree *t, int score) {
  terms found = {.t = t};
  fg_tree_each_term(t, score, 1, count_term, &found);
  return found.of_s == 1 && found.of_k == 1 && !found.others && !found.reads_by_row;
}

/* ---- tanh ---- */

/* Counts the tanh of a node, and those that take a scaled s. */
static void count_tanhs(const fg_tree *t, int node, int *all, int *scaled) {
  const fg_node *x = &t->node[node];
  if (x->op == FG_NODE_TANH) {
    int of = x->arg[0];
    ++*all;
    *scaled +=
        t->node[of].op != FG_NODE_NAME && fg_tree_is_scaled_s(t, of) && !fg_tree_reads(t, of);
  }
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++) count_tanhs(t, x->arg[i], all, scaled);
}

/* The factor of a product with a constant whose other factor is a tanh. */
static double factor_of_tanh(const fg_tree *t, int node) {
  const fg_node *x = &t->node[node];
  if (x->op != FG_NODE_MULTIPLY || t->node[x->arg[0]].op != FG_NODE_TANH) return 0;
  return t->node[x->arg[1]].op == FG_NODE_CONSTANT ? t->node[x->arg[1]].number : 0;
}

fg_traits fg_formula_traits(fg_formula *f, int score) {
  fg_tree *t = &f->tree;
  int s = fg_tree_name(t, FG_NAME_S), tanhs = 0, of_scaled_s = 0;
  int slope = fg_tree_diff(t, f->score, s);
  walk of_mask = visited(f, f->mask), of_score = visited(f, score);
  bool unevenly = of_score.uses_k || of_score.multiples_of_k > 1;
  count_tanhs(t, score, &tanhs, &of_scaled_s);
  bool scaled = tanhs > 0 && tanhs == of_scaled_s;
  double cap = tanhs == 1 && scaled ? factor_of_tanh(t, score) : 0;
  return (fg_traits){
      .is_s = f->score == s,
      .adds_to_s = slope == fg_tree_constant(t, FG_TYPE_FLOAT, 1),
      .is_linear_in_s_and_k = is_linear_in_s_and_k(t, score),
      .is_uneven_in_k = unevenly,
      .chooses_unevenly = unevenly && of_score.chooses,
      .tanh_count = tanhs,
      .tanhs_are_of_scaled_s = scaled,
      .cap = fabs(cap) <= FG_ROUGH_TANH_MOST ? cap : 0,
      .mask_reads = fg_tree_reads_memory(t, f->mask),
      .mask_uses_inputs = fg_tree_uses_inputs(t, f->mask),
      .mask_size = of_mask.size,
      .score_size = of_score.size,
      .has_wide_quotient = of_mask.has_wide_quotient || of_score.has_wide_quotient,
  };
}
