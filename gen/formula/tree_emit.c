/* tree_emit.c - C text of trees: types, precedence, hoisting, increments. */
#include "tree_emitter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fg_put(fg_emitter *e, const char *format, ...) {
  fg_buffer *b = &e->out;
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (b->n + (size_t)n + 1 > b->room && !b->failed) {
    size_t room = 2 * b->room + (size_t)n + 256;
    char *grown = room > FG_EMIT_MAX ? NULL : realloc(b->text, room);
    b->failed = grown == NULL;
    b->no_memory = !grown && room <= FG_EMIT_MAX;
    if (grown) b->text = grown, b->room = room;
  }
  if (!b->failed) {
    vsnprintf(b->text + b->n, b->room - b->n, format, again);
    b->n += (size_t)n;
  }
  va_end(again);
}

/* ---- what is known of a node ---- */

bool fg_too_big(fg_emitter *e, int node) {
  return fg_tree_extent(&e->f->tree, node, e->extent).big;
}

bool fg_is_wide(fg_emitter *e, int node) {
  return fg_tree_extent(&e->f->tree, node, e->extent).wide;
}

fg_level fg_level_of(const fg_emitter *e, int node) {
  unsigned uses = fg_at(e, node)->uses;
  if (uses >> FG_NAME_S & 1 || (uses >> FG_NAME_K & 1 && !e->at_base)) return PAIR;
  bool row = (uses >> FG_NAME_Q | uses >> FG_NAME_P | uses >> FG_NAME_K) & 1;
  return row ? ROW : HEAD;
}

/* ---- text ---- */

static const struct {
  const char *text; /* of an operator, or of a function of ints */
  int rank;
  const char *floats, *wides; /* functions of floats and of 64-bit ints */
} ops[FG_NODE_OPS] = {
    [FG_NODE_NEGATE] = {"-", UNARY, 0, 0},
    [FG_NODE_NOT] = {"!", UNARY, 0, 0},
    [FG_NODE_ADD] = {" + ", SUM, 0, 0},
    [FG_NODE_SUBTRACT] = {" - ", SUM, 0, 0},
    [FG_NODE_MULTIPLY] = {" * ", PRODUCT, 0, 0},
    [FG_NODE_DIVIDE] = {"floor_div", PRIMARY, 0, "floor_div64"},
    [FG_NODE_MODULO] = {"floor_mod", PRIMARY, 0, "floor_mod64"},
    [FG_NODE_LESS] = {" < ", ORDER, 0, 0},
    [FG_NODE_AT_MOST] = {" <= ", ORDER, 0, 0},
    [FG_NODE_EQUAL] = {" == ", EQUAL, 0, 0},
    [FG_NODE_DIFFERENT] = {" != ", EQUAL, 0, 0},
    [FG_NODE_AND] = {" && ", AND, 0, 0},
    [FG_NODE_OR] = {" || ", OR, 0, 0},
    [FG_NODE_CHOOSE] = {"?", CHOOSE, 0, 0},
    [FG_NODE_MIN] = {"imin", PRIMARY, "least_f32", "min64"},
    [FG_NODE_MAX] = {"imax", PRIMARY, "max_f32", "max64"},
    [FG_NODE_ABS] = {"iabs", PRIMARY, "abs_f32", "abs64"},
    [FG_NODE_EXP] = {0, PRIMARY, "exp_f32", 0},
    [FG_NODE_LOG] = {0, PRIMARY, "log_f32", 0},
    [FG_NODE_TANH] = {0, PRIMARY, "tanh_f32", 0},
    [FG_NODE_SQRT] = {0, PRIMARY, "sqrt_f32", 0},
    [FG_NODE_SIGMOID] = {0, PRIMARY, "sigmoid_f32", 0},
    [FG_NODE_FLOOR] = {0, PRIMARY, "floor_i32", 0},
    [FG_NODE_FLOAT] = {"(float)", UNARY, 0, 0},
};

void fg_put_float(fg_emitter *e, double x) {
  char text[48];
  snprintf(text, sizeof text, "%.9g", x);
  fg_put(e, "%s%sf", text, strpbrk(text, ".e") ? "" : ".0");
}

/* C has no literal for -2^31: it negates a number that does not fit. */
static void emit_constant(fg_emitter *e, const fg_node *x) {
  if (x->type == FG_TYPE_FLOAT)
    fg_put_float(e, x->number);
  else if (x->number <= -0x1p31 && x->number >= -0x1p31)
    fg_put(e, "(-2147483647 - 1)");
  else
    fg_put(e, "%.0f", x->number);
}

/* Integer arithmetic that may exceed 32 bits, in 64. */
static void emit_big(fg_emitter *e, const fg_node *x) {
  fg_put(e, x->arg[1] ? "(i64)" : "-(i64)");
  fg_put_node(e, x->arg[0], UNARY);
  if (!x->arg[1]) return;
  fg_put(e, "%s(i64)", ops[x->op].text);
  fg_put_node(e, x->arg[1], UNARY);
}

/* NAME(first, second), of as many arguments as the node has. */
static void emit_call(fg_emitter *e, const fg_node *x, const char *name) {
  fg_put(e, "%s(", name);
  for (int i = 0; i < 2 && x->arg[i]; i++) {
    fg_put(e, "%s", i ? ", " : "");
    fg_put_node(e, x->arg[i], LOOSE);
  }
  fg_put(e, ")");
}

bool fg_is_small_tanh(const fg_emitter *e, int node) {
  return fg_at(e, node)->op == FG_NODE_TANH && e->names->reach && fg_level_of(e, node) == PAIR;
}

void fg_put_small_tanh(fg_emitter *e, int node, double factor) {
  const char *reach = e->names->reach;
  bool alone = !(fabs(factor - 1) > 0);
  fg_put(e, !alone                 ? "tanh_small_times_f32("
            : fg_is_rough(e, node) ? "tanh_small_f32("
                                   : "tanh_small_exact_f32(");
  if (*reach) fg_put(e, "reaching_f32(&%s, ", reach);
  fg_put_node(e, fg_at(e, node)->arg[0], LOOSE);
  if (*reach) fg_put(e, ")");
  if (!alone) {
    fg_put(e, ", ");
    fg_put_float(e, factor);
  }
  fg_put(e, ")");
}

/* A constant power of 2 divides by a shift, which floors. */
static int shift_of(const fg_emitter *e, const fg_node *x) {
  const fg_node *m = fg_at(e, x->arg[1]);
  int bits = 1;
  if (x->op != FG_NODE_DIVIDE && x->op != FG_NODE_MODULO) return 0;
  if (m->op != FG_NODE_CONSTANT || m->type != FG_TYPE_INT || !(m->number >= 2)) return 0;
  while (bits < 30 && (double)(1 << bits) < m->number) bits++;
  return (double)(1 << bits) > m->number ? 0 : bits;
}

/* ---- nodes ---- */

/* Operands of a lower rank get parentheses. What && and || guard may not be computed before
 * them: `lazy`. */
static void emit_operator(fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node);
  int rank = ops[x->op].rank;
  bool logic = x->op == FG_NODE_AND || x->op == FG_NODE_OR;
  if (logic && x->op == FG_NODE_OR) rank = AND + 1; /* gcc wants parentheses around && in || */
  fg_put_node(e, x->arg[0], logic ? EQUAL : rank);
  fg_put(e, "%s", ops[x->op].text);
  e->lazy += logic;
  bool chain = logic && fg_at(e, x->arg[1])->op == x->op;
  fg_put_node(e, x->arg[1], chain ? ops[x->op].rank : logic ? EQUAL : rank + 1);
  e->lazy -= logic;
}

/* Neither arm may be computed before the test: `lazy`. */
static void emit_choose(fg_emitter *e, const fg_node *x) {
  fg_put_node(e, x->arg[0], EQUAL);
  e->lazy++;
  fg_put(e, " ? ");
  fg_put_node(e, x->arg[1], OR);
  fg_put(e, " : ");
  fg_put_node(e, x->arg[2], OR);
  e->lazy--;
}

static void emit_name(fg_emitter *e, const fg_node *x) {
  bool base = x->which == FG_NAME_K && e->at_base;
  fg_put(e, "%s", base ? e->names->k_base : e->names->name[x->which]);
}

/* How tight the text of the node binds. Names and quotients bind as the text does that stands
 * for them. */
static int rank_of(fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node);
  bool integers = x->type == FG_TYPE_INT;
  if (x->op == FG_NODE_CONSTANT) return x->number < 0 ? UNARY : PRIMARY;
  if (x->op == FG_NODE_NAME) {
    const char *text =
        x->which == FG_NAME_K && e->at_base ? e->names->k_base : e->names->name[x->which];
    return strpbrk(text, "+-") ? SUM : strchr(text, '*') ? PRODUCT : PRIMARY;
  }
  if (x->op <= FG_NODE_READ) return UNARY;
  if (x->op == FG_NODE_GIVEN) return rank_of(e, x->arg[1]);
  if (x->op == FG_NODE_DIVIDE && !integers) return fg_rank_of_quotient(e, node);
  if (!fg_is_wide(e, node) && shift_of(e, x)) return x->op == FG_NODE_DIVIDE ? ORDER : LOOSE;
  return ops[x->op].rank;
}

void fg_write_node(fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node);
  bool integers = x->type == FG_TYPE_INT, wide = fg_is_wide(e, node);
  switch (x->op) {
  case FG_NODE_CONSTANT:
    emit_constant(e, x);
    return;
  case FG_NODE_NAME:
    emit_name(e, x);
    return;
  case FG_NODE_SCALAR:
    fg_put(e, "p.in_%s", e->f->input[x->which].name);
    return;
  case FG_NODE_READ:
    fg_put_read(e, node);
    return;
  case FG_NODE_GIVEN:
    fg_put_node(e, x->arg[1], rank_of(e, x->arg[1]));
    return;
  case FG_NODE_CHOOSE:
    emit_choose(e, x);
    return;
  case FG_NODE_NOT:
  case FG_NODE_FLOAT:
  case FG_NODE_NEGATE:
    if (x->op == FG_NODE_NEGATE && integers && fg_too_big(e, node)) break;
    fg_put(e, "%s", ops[x->op].text);
    fg_put_node(e, x->arg[0], PRIMARY);
    return;
  default:
    break;
  }
  if (x->op == FG_NODE_DIVIDE && !integers)
    fg_put_quotient(e, node);
  else if (integers && ops[x->op].rank != PRIMARY && fg_too_big(e, node))
    emit_big(e, x);
  else if (ops[x->op].rank != PRIMARY)
    emit_operator(e, node);
  else if (!wide && shift_of(e, x)) {
    fg_put_node(e, x->arg[0], SUM);
    if (x->op == FG_NODE_DIVIDE)
      fg_put(e, " >> %d", shift_of(e, x));
    else
      fg_put(e, " & %d", (1 << shift_of(e, x)) - 1);
  } else {
    bool floats = fg_at(e, x->arg[0])->type == FG_TYPE_FLOAT;
    if (fg_is_small_tanh(e, node))
      fg_put_small_tanh(e, node, 1);
    else if (x->op == FG_NODE_TANH && !fg_is_rough(e, node))
      emit_call(e, x, "tanh_exact_f32");
    else if (x->op == FG_NODE_LOG && !e->exact) /* the compiler's has a slow path */
      emit_call(e, x, "log_approx_f32");
    else if (x->op == FG_NODE_SQRT && fg_is_exact(e))
      emit_call(e, x, "exact_root_f32");
    else
      emit_call(e, x, floats ? ops[x->op].floats : wide ? ops[x->op].wides : ops[x->op].text);
  }
}

void fg_put_node(fg_emitter *e, int node, int rank) {
  if (e->out.failed || fg_put_hoisted(e, node)) return;
  const fg_node *x = fg_at(e, node);
  if (x->op == FG_NODE_MULTIPLY || x->op == FG_NODE_FLOAT)
    if (fg_put_by_increments(e, node)) return;
  bool bare = rank_of(e, node) >= rank, exact = x->type != FG_TYPE_FLOAT;
  if (!bare) fg_put(e, "(");
  e->exact += exact;
  if (!fg_put_scaled_s(e, node)) fg_write_node(e, node);
  e->exact -= exact;
  if (!bare) fg_put(e, ")");
}

static fg_status text_failed(bool no_memory) {
  if (no_memory) return fg_fail(FG_EMEMORY, "no memory for the text of an expression");
  return fg_fail(FG_ESPEC, "an expression or its derivative is longer than %d bytes of C",
                 FG_EMIT_MAX / 2);
}

/* The texts of the nodes, then the declarations that they brought about, which `out` owns even
 * on failure. */
static fg_status take(fg_emitter *e, int n, const int *node, fg_emitted *out) {
  bool failed = false, no_memory = false;
  for (int i = 0; i < n; i++) {
    e->out = (fg_buffer){0};
    e->context = PAIR;
    e->reads[PAIR] = 0;
    if (node[i] && i + 1 == e->names->log2)
      fg_put_log2(e, node[i]);
    else if (node[i])
      fg_put_node(e, node[i], LOOSE);
    else
      fg_put(e, "0");
    failed |= e->out.failed || !e->out.text;
    no_memory |= e->out.no_memory;
    out->value[i] = e->out.text;
    out->reads[i] = e->reads[PAIR] > 0;
  }
  for (int l = HEAD; l <= ROW; l++) {
    e->out = e->declared[l];
    fg_put(e, "%s", "");
    failed |= e->out.failed || !e->out.text;
    no_memory |= e->out.no_memory;
    e->declared[l] = e->out;
  }
  out->head = e->declared[HEAD].text, out->row = e->declared[ROW].text;
  out->row_reads = e->reads[ROW] > 0;
  return failed ? text_failed(no_memory) : FG_OK;
}

/* ---- emitters ---- */

static void close_emitter(fg_emitter *e) {
  free(e->extent);
  free(e->hoisted);
  free(e->based);
  free(e->tanhs);
}

/* Room for what is known of each node; nothing is kept on failure. */
static fg_status open_emitter(fg_emitter *e, const fg_formula *f, const fg_emit_names *names) {
  size_t nodes = (size_t)f->tree.n + 1;
  *e = (fg_emitter){.f = f, .names = names};
  e->extent = calloc(nodes, sizeof *e->extent);
  e->hoisted = calloc(nodes, sizeof *e->hoisted);
  e->based = calloc(nodes, sizeof *e->based);
  e->tanhs = calloc(nodes, 1);
  if (e->extent && e->hoisted && e->based && e->tanhs) {
    fg_mark_tanhs(e);
    return FG_OK;
  }
  close_emitter(e);
  return fg_fail(FG_EMEMORY, "no memory for the text of an expression");
}

fg_status fg_formula_emit(const fg_formula *f, int n, const int *node, const fg_emit_names *names,
                          fg_emitted *emitted) {
  fg_emitted out = {.value = calloc((size_t)n + 1, sizeof *out.value),
                    .reads = calloc((size_t)n + 1, sizeof *out.reads),
                    .n = n};
  fg_emitter e;
  fg_status status = FG_OK;
  if (!out.value || !out.reads)
    status = fg_fail(FG_EMEMORY, "no memory for the text of an expression");
  if (status == FG_OK) status = open_emitter(&e, f, names);
  if (status == FG_OK) {
    status = take(&e, n, node, &out);
    close_emitter(&e);
  }
  if (status == FG_OK)
    *emitted = out;
  else
    fg_emitted_free(&out);
  return status;
}

fg_status fg_formula_emit_unit(const fg_formula *f, int node, const fg_emit_names *names,
                               char **text) {
  fg_emitter e;
  TRY(open_emitter(&e, f, names));
  e.context = HEAD;
  fg_write_unit(&e, node);
  close_emitter(&e);
  if (!e.out.failed) {
    *text = e.out.text;
    return FG_OK;
  }
  free(e.out.text);
  return text_failed(e.out.no_memory);
}
