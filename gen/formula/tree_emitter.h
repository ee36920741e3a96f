/* tree_emitter.h - what the parts of tree_emit share: a text that grows, and what is known of
 * nodes. */
#ifndef FG_TREE_EMITTER_H
#define FG_TREE_EMITTER_H

#include "tree_emit.h"
#include "tree_extent.h"
#include "tree_term.h"

enum { FG_EMIT_MAX = 1 << 18 }; /* bytes of one text */

/* A text that grows; `failed` when memory ran out or it grew too long. */
typedef struct {
  char *text;
  size_t n, room;
  bool failed, no_memory;
} fg_buffer;

typedef struct {
  const fg_formula *f;
  const fg_emit_names *names;
  fg_buffer out, declared[2]; /* declarations of HEAD and ROW */
  fg_level context;           /* of what is being written */
  int lazy;                   /* inside what may not be evaluated */
  int exact;                  /* inside a test or an int: what float32 holds comes out exactly */
  bool at_base;               /* k stands for its base */
  fg_extent *extent;          /* of each node */
  int *hoisted, *based;       /* of each node, the number of its declaration, from 1 */
  unsigned char *tanhs;       /* of each node: see tree_rough.c */
  int count[2];
  int reads[3]; /* of memory, in declarations of HEAD and ROW and in values */
} fg_emitter;

/* How tightly a text holds together: what need not stand in parentheses under an operator. */
enum { LOOSE, CHOOSE, OR, AND, EQUAL, ORDER, SUM, PRODUCT, UNARY, PRIMARY };

static inline const fg_node *fg_at(const fg_emitter *e, int node) { return &e->f->tree.node[node]; }

void fg_put(fg_emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fg_put_float(fg_emitter *e, double x);
void fg_put_node(fg_emitter *e, int node, int rank);
void fg_write_node(fg_emitter *e, int node); /* without parentheses, nothing taken out */

/* Once a head the compiler's own operators are exact, and cheap enough. */
static inline bool fg_is_exact(const fg_emitter *e) { return e->exact && e->context != HEAD; }

bool fg_too_big(fg_emitter *e, int node); /* fg_extent's big, and wide */
bool fg_is_wide(fg_emitter *e, int node);
fg_level fg_level_of(const fg_emitter *e, int node);

/* Is it a tanh that is to be that of small numbers? And that, times a constant if it is rough. */
bool fg_is_small_tanh(const fg_emitter *e, int node);
void fg_put_small_tanh(fg_emitter *e, int node, double factor);

/* tree_rough.c. The first looks at the formula's score and mask, for the second: may this tanh, and
 * that of its slope, be off by 1e-7 of 1, and not of itself? */
void fg_mark_tanhs(fg_emitter *e);
bool fg_is_rough(const fg_emitter *e, int node);

/* tree_hoist.c. Each puts the node's text and returns true, or leaves it to the caller. */
bool fg_put_hoisted(fg_emitter *e, int node);
bool fg_put_by_increments(fg_emitter *e, int node);
bool fg_put_scaled_s(fg_emitter *e, int node);
void fg_put_quotient(fg_emitter *e, int node);
int fg_rank_of_quotient(const fg_emitter *e, int node);
void fg_put_read(fg_emitter *e, int node);

/* Puts the name of the declaration that has this number, from 1. */
void fg_put_declared(fg_emitter *e, fg_level level, int number);
/* A declaration; returns its number, from 1. */
int fg_declare_text(fg_emitter *e, fg_level to, const char *type, const char *text);
/* What s_raw is multiplied by in a multiple of s (fg_tree_is_scaled_s). */
void fg_write_unit(fg_emitter *e, int node);
/* tree_sum.c: log2 e times the node, less names->origin. */
void fg_put_log2(fg_emitter *e, int node);

#endif
