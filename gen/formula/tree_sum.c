/* tree_sum.c - an exponent of 2 from a score: a sum whose constants are folded. Its terms that are
 * the same for a row, the origin too, become one number of the row; log2 e joins the factor of each
 * of the others, which then costs one fused multiply-add. */
#include "tree_emitter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS = 16 };
static const double LOG2_E = 1.4426950408889634;

typedef struct {
  fg_emitter *e;
  fg_buffer once;    /* the sum of what a row has once */
  char *term[TERMS]; /* of a pair */
  int n, of_s;       /* terms; the last one that is a multiple of s */
} sum;

/* Between the two, e->out is a text of its own. */
static fg_buffer begin(fg_emitter *e) {
  fg_buffer outside = e->out;
  e->out = (fg_buffer){0};
  return outside;
}

static char *end(fg_emitter *e, fg_buffer outside) {
  char *text = e->out.text;
  outside.failed |= e->out.failed || !text;
  outside.no_memory |= e->out.no_memory;
  e->out = outside;
  return text;
}

static void put_factor(fg_emitter *e, double factor) {
  if (factor == 1) return;
  fg_put_float(e, factor);
  fg_put(e, " * ");
}

/* Goes on with the row's sum. */
static fg_buffer begin_once(sum *s) {
  fg_buffer outside = s->e->out;
  s->e->out = s->once;
  if (s->once.n) fg_put(s->e, " + ");
  return outside;
}

static void end_once(sum *s, fg_buffer outside) {
  s->once = s->e->out;
  s->e->out = outside;
}

/* The last place takes what there is no room for. */
static void add_term(sum *s, char *text) {
  if (s->n < TERMS) {
    s->term[s->n++] = text;
    return;
  }
  char **last = &s->term[TERMS - 1];
  fg_buffer outside = begin(s->e);
  fg_put(s->e, "%s + %s", *last ? *last : "0", text ? text : "0");
  free(*last);
  free(text);
  *last = end(s->e, outside);
}

/* Declares factor * node, or the factor alone; puts its name, or the number. */
static void put_declared(fg_emitter *e, double factor, int node) {
  if (!node) {
    fg_put_float(e, factor);
    return;
  }
  fg_level level = fg_level_of(e, node);
  fg_buffer outside = begin(e);
  put_factor(e, factor);
  fg_put_node(e, node, UNARY);
  char *text = end(e, outside);
  fg_put_declared(e, level, fg_declare_text(e, level, "float", text));
  free(text);
}

/* factor * unit * s. */
static void add_score(sum *s, int node, double factor) {
  fg_emitter *e = s->e;
  fg_buffer outside = begin(e);
  put_factor(e, factor);
  fg_write_unit(e, node);
  char *unit = end(e, outside);
  outside = begin(e);
  fg_put_declared(e, HEAD, fg_declare_text(e, HEAD, "float", unit));
  fg_put(e, " * %s", e->names->s_raw);
  free(unit);
  s->of_s = s->n;
  add_term(s, end(e, outside));
}

/* factor * a * float(linear in k): at the base of k once, by the offset for each pair. */
static bool add_linear(sum *s, int node, double factor) {
  fg_emitter *e = s->e;
  fg_multiple_of_k m;
  if (!e->names->k_base || fg_tree_reads_of_row(&e->f->tree, node) ||
      !fg_tree_multiple_of_k(&e->f->tree, node, &m) || fg_is_steep(factor * m.step / LOG2_E))
    return false;
  fg_buffer outside = begin_once(s);
  put_factor(e, factor);
  e->at_base = true;
  fg_put_node(e, node, UNARY);
  e->at_base = false;
  end_once(s, outside);
  outside = begin(e);
  put_declared(e, factor * m.step, m.by);
  fg_put(e, " * (float)(%s)", e->names->k_offset);
  add_term(s, end(e, outside));
  return true;
}

/* Adds factor * node. What is the same for a head or row is summed once outside; a scaled s and
 * what is linear in k go to sums of their own. */
static void add_node(void *to, int node, double factor) {
  sum *s = to;
  fg_emitter *e = s->e;
  const fg_node *x = fg_at(e, node);
  if (fg_level_of(e, node) != PAIR) {
    fg_buffer outside = begin_once(s);
    put_factor(e, factor);
    fg_put_node(e, node, UNARY);
    end_once(s, outside);
    return;
  }
  if (e->names->s_unit && fg_tree_is_scaled_s(&e->f->tree, node) &&
      !fg_tree_reads(&e->f->tree, node))
    return add_score(s, node, factor);
  if (add_linear(s, node, factor)) return;
  int same = 0; /* which factor of a product is the same for a row */
  if (x->op == FG_NODE_MULTIPLY)
    for (int i = 0; i < 2; i++)
      if (fg_level_of(e, x->arg[i]) != PAIR && !fg_tree_reads_of_row(&e->f->tree, x->arg[i]))
        same = x->arg[i];
  fg_buffer outside = begin(e);
  if (same) {
    put_declared(e, factor, same);
    fg_put(e, " * ");
    fg_put_node(e, same == x->arg[0] ? x->arg[1] : x->arg[0], UNARY);
  } else if (e->names->join && fg_is_small_tanh(e, node) &&
             fg_is_rough(e, node)) { /* a last product and sum are one */
    fg_put_small_tanh(e, node, factor);
  } else {
    put_factor(e, factor);
    fg_put_node(e, node, UNARY);
  }
  add_term(s, end(e, outside));
}

static void swap(char **a, char **b) {
  char *kept = *a;
  *a = *b, *b = kept;
}

/* The last term of a pair comes first, and the row's sum last: each addition is then one of a pair
 * to what the terms behind it gave. */
void fg_put_log2(fg_emitter *e, int node) {
  sum s = {.e = e};
  const char *origin = e->names->origin;
  fg_tree_each_term(&e->f->tree, node, LOG2_E, add_node, &s);
  if (origin && *origin) {
    fg_buffer outside = begin_once(&s);
    fg_put(e, "-%s", origin);
    end_once(&s, outside);
  }
  int row = s.once.n ? fg_declare_text(e, ROW, "float", s.once.text) : 0;
  e->out.failed |= s.once.failed;
  e->out.no_memory |= s.once.no_memory;
  if (e->names->s_first && s.n) swap(&s.term[s.of_s], &s.term[s.n - 1]);
  for (int i = s.n - 1; i >= 0; i--)
    fg_put(e, "%s%s%s", s.term[i] ? s.term[i] : "0", i || row ? " + " : "", i ? "(" : "");
  if (row) fg_put_declared(e, ROW, row);
  for (int i = 1; i < s.n; i++) fg_put(e, ")");
  if (!s.n && !row) fg_put(e, "0.0f");
  for (int i = 0; i < s.n; i++) free(s.term[i]);
  free(s.once.text);
}
