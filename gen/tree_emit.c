/* tree_emit.c - C text of trees: types, precedence, hoisting, increments. */
#include "tree_emit.h"

#include "tree_extent.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EMIT_MAX = 1 << 18 }; /* bytes of one text */

/* A text that grows; `failed` when memory ran out or it grew too long. */
typedef struct {
  char *text;
  size_t n, room;
  bool failed, no_memory;
} buffer;

/* How often a value changes: once a head, a row, or a pair. */
typedef enum { HEAD, ROW, PAIR } level;

typedef struct {
  const fg_formula *f;
  const fg_emit_names *names;
  buffer out, declared[2]; /* declarations of HEAD and ROW */
  level context;           /* of what is being written */
  int lazy;                /* inside what may not be evaluated */
  bool at_base;            /* k stands for its base */
  fg_extent *extent;       /* of each node */
  int *hoisted, *based;    /* of each node, the number of its declaration + 1 */
  int count[2];
} emitter;

static void add(emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(emitter *e, const char *format, ...) {
  buffer *b = &e->out;
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (b->n + (size_t)n + 1 > b->room && !b->failed) {
    size_t room = 2 * b->room + (size_t)n + 256;
    char *grown = room > EMIT_MAX ? NULL : realloc(b->text, room);
    b->failed = grown == NULL;
    b->no_memory = !grown && room <= EMIT_MAX;
    if (grown) b->text = grown, b->room = room;
  }
  if (!b->failed) {
    vsnprintf(b->text + b->n, b->room - b->n, format, again);
    b->n += (size_t)n;
  }
  va_end(again);
}

static const fg_node *at(const emitter *e, int node) { return &e->f->tree.node[node]; }

/* ---- what is known of a node ---- */

static bool too_big(emitter *e, int node) {
  fg_extent x = fg_tree_extent(&e->f->tree, node, e->extent);
  return x.hi > 0x1p31 - 1 || x.lo < -0x1p31;
}

/* Is its text one of 64 bits? */
static bool is_wide(emitter *e, int node) {
  const fg_node *x = at(e, node);
  if (!e->names->wide || x->type != FG_TYPE_INT || x->op <= FG_NODE_READ) return false;
  if (x->op == FG_NODE_CHOOSE) return is_wide(e, x->arg[1]) || is_wide(e, x->arg[2]);
  return too_big(e, node) || is_wide(e, x->arg[0]) || (x->arg[1] && is_wide(e, x->arg[1]));
}

static level level_of(const emitter *e, int node) {
  unsigned uses = at(e, node)->uses;
  if (uses >> FG_NAME_S & 1 || (uses >> FG_NAME_K & 1 && !e->at_base)) return PAIR;
  bool row = (uses >> FG_NAME_Q | uses >> FG_NAME_P | uses >> FG_NAME_K) & 1;
  return row ? ROW : HEAD;
}

static bool is_plain(const emitter *e, int node) {
  const fg_node *x = at(e, node);
  return x->op == FG_NODE_CONSTANT || x->op == FG_NODE_SCALAR ||
         (x->op == FG_NODE_NAME && x->which != FG_NAME_P);
}

/* Is node = factor * k + something without k? */
static bool linear_in_k(const emitter *e, int node, double *factor) {
  const fg_node *x = at(e, node);
  double a = 0, b = 0;
  *factor = 0;
  if (!fg_tree_uses(&e->f->tree, node, FG_NAME_K)) return true;
  if (x->op == FG_NODE_NAME) {
    *factor = 1;
    return true;
  }
  bool sum = x->op == FG_NODE_ADD || x->op == FG_NODE_SUBTRACT || x->op == FG_NODE_NEGATE;
  bool product = x->op == FG_NODE_MULTIPLY && at(e, x->arg[1])->op == FG_NODE_CONSTANT;
  if ((!sum && !product) || !linear_in_k(e, x->arg[0], &a)) return false;
  if (sum && x->arg[1] && !linear_in_k(e, x->arg[1], &b)) return false;
  if (product)
    *factor = a * at(e, x->arg[1])->number;
  else
    *factor = x->op == FG_NODE_ADD ? a + b : x->op == FG_NODE_SUBTRACT ? a - b : -a;
  return fabs(*factor) < 0x1p20;
}

/* ---- text ---- */

enum { LOOSE, CHOOSE, OR, AND, EQUAL, ORDER, SUM, PRODUCT, UNARY, PRIMARY };
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

static void emit(emitter *e, int node, int rank);

static void emit_float(emitter *e, double x) {
  char text[48];
  snprintf(text, sizeof text, "%.9g", x);
  add(e, "%s%sf", text, strpbrk(text, ".e") ? "" : ".0");
}

static void emit_constant(emitter *e, const fg_node *x) {
  if (x->type == FG_TYPE_FLOAT)
    emit_float(e, x->number);
  else if (x->number <= -0x1p31)
    add(e, "(-2147483647 - 1)");
  else
    add(e, "%.0f", x->number);
}

/* Integer arithmetic that may exceed 32 bits: in 64, or wrapping as the language says. */
static void emit_big(emitter *e, const fg_node *x) {
  bool wide = e->names->wide;
  const char *cast = wide ? "(i64)" : "(u32)";
  if (!wide) add(e, "(int)(");
  add(e, "%s", x->arg[1] ? cast : wide ? "-(i64)" : "-(u32)");
  emit(e, x->arg[0], UNARY);
  if (x->arg[1]) {
    add(e, "%s%s", ops[x->op].text, cast);
    emit(e, x->arg[1], UNARY);
  }
  if (!wide) add(e, ")");
}

static int big_rank(const emitter *e, const fg_node *x) {
  return e->names->wide ? ops[x->op].rank : UNARY;
}

static void emit_call(emitter *e, const fg_node *x, const char *name) {
  add(e, "%s(", name);
  for (int i = 0; i < 2 && x->arg[i]; i++) {
    add(e, "%s", i ? ", " : "");
    emit(e, x->arg[i], LOOSE);
  }
  add(e, ")");
}

/* A constant power of 2 divides by a shift, which floors. */
static int shift_of(const emitter *e, const fg_node *x) {
  const fg_node *m = at(e, x->arg[1]);
  int bits = 1;
  if (x->op != FG_NODE_DIVIDE && x->op != FG_NODE_MODULO) return 0;
  if (m->op != FG_NODE_CONSTANT || m->type != FG_TYPE_INT || !(m->number >= 2)) return 0;
  while (bits < 30 && (double)(1 << bits) < m->number) bits++;
  return (double)(1 << bits) > m->number ? 0 : bits;
}

/* ---- hoisting ---- */

static const char *c_type(emitter *e, int node) {
  return at(e, node)->type == FG_TYPE_FLOAT ? "float" : is_wide(e, node) ? "i64" : "int";
}

/* Has it a read that differs from row to row? */
static bool reads_of_row(const emitter *e, int node) {
  const fg_node *x = at(e, node);
  if (x->op == FG_NODE_READ && level_of(e, node) == ROW) return true;
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++)
    if (reads_of_row(e, x->arg[i])) return true;
  return false;
}

/* Declares a value of the node's at a level; `write` puts it. */
static int declare(emitter *e, level to, int node, const char *type,
                   void (*write)(emitter *e, int node)) {
  const level outside_context = e->context;
  const int outside_lazy = e->lazy;
  buffer outside = e->out;
  e->out = (buffer){0};
  e->context = to, e->lazy = 0;
  write(e, node);
  buffer value = e->out;
  e->out = e->declared[to];
  int number = e->count[to]++;
  const char *space = strchr(type, '*') ? "" : " ";
  add(e, "const %s%s%s%d = ", type, space, to == HEAD ? "of_head" : "of_row", number);
  bool guarded = to == ROW && reads_of_row(e, node); /* a tile has rows that are none */
  if (guarded) add(e, "%s < %s ? ", e->names->name[FG_NAME_Q], e->names->name[FG_NAME_NQ]);
  add(e, "%s%s%s;\n", guarded ? "(" : "", value.text ? value.text : "0", guarded ? ") : 0" : "");
  e->out.failed |= value.failed;
  e->out.no_memory |= value.no_memory;
  e->declared[to] = e->out;
  free(value.text);
  e->out = outside, e->context = outside_context, e->lazy = outside_lazy;
  return number + 1;
}

static void write_node(emitter *e, int node);

static bool emit_hoisted(emitter *e, int node) {
  level own = level_of(e, node);
  bool lazy_read = e->lazy && fg_tree_reads(&e->f->tree, node);
  if (!e->names->hoist || e->at_base || own >= e->context || is_plain(e, node) || lazy_read)
    return false;
  if (!e->hoisted[node]) e->hoisted[node] = declare(e, own, node, c_type(e, node), write_node);
  add(e, "%s%d", own == HEAD ? "of_head" : "of_row", e->hoisted[node] - 1);
  return true;
}

static void write_at_base(emitter *e, int node) {
  e->at_base = true;
  write_node(e, node);
  e->at_base = false;
}

/* "of_row0 + A * (float)(3 * (offset))" for A * float(linear in k), A the same for a row. */
static bool emit_by_increments(emitter *e, int node) {
  const fg_node *x = at(e, node);
  double factor;
  int a = 0, number = node;
  if (!e->names->hoist || !e->names->k_base || e->at_base || e->context != PAIR || e->lazy)
    return false;
  if (x->op == FG_NODE_MULTIPLY) {
    int first = at(e, x->arg[0])->op == FG_NODE_FLOAT;
    a = x->arg[first], number = x->arg[!first];
    if (level_of(e, a) == PAIR) return false;
  }
  if (at(e, number)->op != FG_NODE_FLOAT || !linear_in_k(e, at(e, number)->arg[0], &factor) ||
      !(fabs(factor) > 0))
    return false;
  if (!e->based[node]) e->based[node] = declare(e, ROW, node, c_type(e, node), write_at_base);
  add(e, "(of_row%d + ", e->based[node] - 1);
  if (a) {
    emit(e, a, PRODUCT);
    add(e, " * ");
  }
  add(e, "(float)(%.0f * (%s)))", factor, e->names->k_offset);
  return true;
}

/* ---- elements of inputs ---- */

/* Puts the address of an element; where k stands for its base, that of the key there. */
static void write_address(emitter *e, int node) {
  const fg_node *x = at(e, node);
  const fg_input *input = &e->f->input[x->which];
  char *index[FG_NODE_ARGS] = {NULL}, address[4096];
  buffer outside = e->out;
  for (int i = 0; i < input->rank; i++) {
    e->out = (buffer){0};
    emit(e, x->arg[i], LOOSE);
    outside.failed |= e->out.failed || !e->out.text;
    outside.no_memory |= e->out.no_memory;
    index[i] = e->out.text;
  }
  e->out = outside;
  if (!outside.failed) {
    int n = fg_input_address(input, false, (const char *const *)index, sizeof address, address);
    e->out.failed = (size_t)n >= sizeof address;
    add(e, "%s", address);
  }
  for (int i = 0; i < FG_NODE_ARGS; i++) free(index[i]);
}

static void write_address_at_base(emitter *e, int node) {
  e->at_base = true;
  write_address(e, node);
  e->at_base = false;
}

/* "of_row0 + 2 * (offset)": the elements of a row by one pointer, where the last index is linear in
 * k and the others have no k. No index is read from memory: a row that is none has none. */
static bool emit_address_by_increments(emitter *e, int node) {
  const fg_node *x = at(e, node);
  const fg_input *input = &e->f->input[x->which];
  int last = x->arg[input->rank - 1];
  double factor;
  if (!e->names->hoist || !e->names->k_base || e->at_base || e->context != PAIR) return false;
  for (int i = 0; i < input->rank; i++)
    if (fg_tree_reads(&e->f->tree, x->arg[i]) || is_wide(e, x->arg[i]) ||
        (i < input->rank - 1 && level_of(e, x->arg[i]) == PAIR))
      return false;
  if (!strcmp(input->extent[input->rank - 1], "1") || level_of(e, last) != PAIR ||
      too_big(e, last) || !linear_in_k(e, last, &factor))
    return false;
  if (!e->based[node]) {
    static const char *const type[] = {[FG_ELEM_BF16] = "u16 *",
                                       [FG_ELEM_F16] = "u16 *",
                                       [FG_ELEM_F32] = "float *",
                                       [FG_ELEM_I32] = "int *"};
    e->based[node] = declare(e, ROW, node, type[input->elem], write_address_at_base);
  }
  add(e, "of_row%d + ", e->based[node] - 1);
  if (factor != 1) add(e, "%.0f * ", factor);
  add(e, strpbrk(e->names->k_offset, " ") ? "(%s)" : "%s", e->names->k_offset);
  return true;
}

static void emit_read(emitter *e, int node) {
  const fg_node *x = at(e, node);
  const fg_input *input = &e->f->input[x->which];
  const char *staged = e->names->staged[x->which];
  bool halves = input->elem != FG_ELEM_I32 && input->elem != FG_ELEM_F32;
  if (staged) {
    add(e, "%s", staged);
    return;
  }
  if (input->elem == FG_ELEM_I32)
    add(e, "(int)ldg_u32(");
  else if (input->elem == FG_ELEM_F32)
    add(e, "ldg_f32(");
  else
    add(e, "%s_to_f32(ldg_u16(", fg_elem_name(input->elem));
  if (!emit_address_by_increments(e, node)) write_address(e, node);
  add(e, halves ? "))" : ")");
}

/* The product of s and of what is the same all over a head, "of_head0 * s[e]", times `extra`. */
static bool is_scaled_s(const emitter *e, int node) {
  const fg_node *x = at(e, node);
  if (x->op == FG_NODE_NAME) return x->which == FG_NAME_S;
  if (x->op != FG_NODE_MULTIPLY && x->op != FG_NODE_DIVIDE) return false;
  bool first = is_scaled_s(e, x->arg[0]), second = is_scaled_s(e, x->arg[1]);
  if (x->op == FG_NODE_DIVIDE) return first && level_of(e, x->arg[1]) == HEAD;
  return (first && level_of(e, x->arg[1]) == HEAD) || (second && level_of(e, x->arg[0]) == HEAD);
}

static void write_unit(emitter *e, int node) {
  const fg_node *x = at(e, node);
  if (x->op == FG_NODE_NAME) {
    add(e, "%s", e->names->s_unit);
    return;
  }
  bool first = is_scaled_s(e, x->arg[0]);
  write_unit(e, x->arg[!first]);
  add(e, x->op == FG_NODE_DIVIDE ? " / " : " * ");
  emit(e, x->arg[first], UNARY);
}

static bool emit_scaled_s(emitter *e, int node) {
  const fg_node *x = at(e, node);
  if (!e->names->hoist || !e->names->s_unit || x->op == FG_NODE_NAME || !is_scaled_s(e, node) ||
      fg_tree_reads(&e->f->tree, node))
    return false;
  if (!e->based[node]) e->based[node] = declare(e, HEAD, node, c_type(e, node), write_unit);
  add(e, "of_head%d * %s", e->based[node] - 1, e->names->s_raw);
  return true;
}

static void write_inverse(emitter *e, int node) {
  add(e, "1.0f / ");
  emit(e, at(e, node)->arg[1], UNARY);
}

/* x / m, m the same for a row or a constant: times its inverse. */
static void emit_quotient(emitter *e, int node) {
  const fg_node *x = at(e, node), *m = at(e, x->arg[1]);
  if (m->op == FG_NODE_CONSTANT) {
    emit(e, x->arg[0], PRODUCT);
    add(e, " * ");
    emit_float(e, 1 / m->number);
    return;
  }
  level own = level_of(e, x->arg[1]);
  bool lazy_read = e->lazy && fg_tree_reads(&e->f->tree, x->arg[1]);
  bool hoist = e->names->hoist && !e->at_base && own < e->context && !lazy_read;
  if (hoist && !e->based[node])
    e->based[node] = declare(e, own, node, c_type(e, node), write_inverse);
  emit(e, x->arg[0], PRODUCT);
  if (hoist) {
    add(e, " * %s%d", own == HEAD ? "of_head" : "of_row", e->based[node] - 1);
  } else {
    add(e, " / ");
    emit(e, x->arg[1], UNARY);
  }
}

/* ---- nodes ---- */

static void emit_operator(emitter *e, int node) {
  const fg_node *x = at(e, node);
  int rank = ops[x->op].rank;
  bool logic = x->op == FG_NODE_AND || x->op == FG_NODE_OR;
  if (logic && x->op == FG_NODE_OR) rank = AND + 1; /* gcc wants parentheses around && in || */
  emit(e, x->arg[0], logic ? EQUAL : rank);
  add(e, "%s", ops[x->op].text);
  e->lazy += logic;
  bool chain = logic && at(e, x->arg[1])->op == x->op;
  emit(e, x->arg[1], chain ? ops[x->op].rank : logic ? EQUAL : rank + 1);
  e->lazy -= logic;
}

static void emit_choose(emitter *e, const fg_node *x) {
  emit(e, x->arg[0], EQUAL);
  e->lazy++;
  add(e, " ? ");
  emit(e, x->arg[1], OR);
  add(e, " : ");
  emit(e, x->arg[2], OR);
  e->lazy--;
}

static void emit_name(emitter *e, const fg_node *x) {
  bool base = x->which == FG_NAME_K && e->at_base;
  add(e, "%s", base ? e->names->k_base : e->names->name[x->which]);
}

static int rank_of(emitter *e, int node) {
  const fg_node *x = at(e, node);
  bool integers = x->type == FG_TYPE_INT;
  bool arithmetic = x->op == FG_NODE_ADD || x->op == FG_NODE_SUBTRACT ||
                    x->op == FG_NODE_MULTIPLY || x->op == FG_NODE_NEGATE;
  if (x->op == FG_NODE_CONSTANT) return x->number < 0 ? UNARY : PRIMARY;
  if (x->op == FG_NODE_NAME) {
    const char *text =
        x->which == FG_NAME_K && e->at_base ? e->names->k_base : e->names->name[x->which];
    return strpbrk(text, "+-") ? SUM : strchr(text, '*') ? PRODUCT : PRIMARY;
  }
  if (x->op <= FG_NODE_READ) return UNARY;
  if (x->op == FG_NODE_GIVEN) return rank_of(e, x->arg[1]);
  if (integers && arithmetic && too_big(e, node)) return big_rank(e, x);
  if (x->op == FG_NODE_DIVIDE && !integers) return PRODUCT;
  if (!is_wide(e, node) && shift_of(e, x)) return x->op == FG_NODE_DIVIDE ? ORDER : LOOSE;
  return ops[x->op].rank;
}

static void write_node(emitter *e, int node) {
  const fg_node *x = at(e, node);
  bool integers = x->type == FG_TYPE_INT, wide = is_wide(e, node);
  switch (x->op) {
  case FG_NODE_CONSTANT:
    emit_constant(e, x);
    return;
  case FG_NODE_NAME:
    emit_name(e, x);
    return;
  case FG_NODE_SCALAR:
    add(e, "p.in_%s", e->f->input[x->which].name);
    return;
  case FG_NODE_READ:
    emit_read(e, node);
    return;
  case FG_NODE_GIVEN:
    emit(e, x->arg[1], rank_of(e, x->arg[1]));
    return;
  case FG_NODE_CHOOSE:
    emit_choose(e, x);
    return;
  case FG_NODE_NOT:
  case FG_NODE_FLOAT:
  case FG_NODE_NEGATE:
    if (x->op == FG_NODE_NEGATE && integers && too_big(e, node)) break;
    add(e, "%s", ops[x->op].text);
    emit(e, x->arg[0], PRIMARY);
    return;
  default:
    break;
  }
  if (x->op == FG_NODE_DIVIDE && !integers)
    emit_quotient(e, node);
  else if (integers && ops[x->op].rank != PRIMARY && too_big(e, node))
    emit_big(e, x);
  else if (ops[x->op].rank != PRIMARY)
    emit_operator(e, node);
  else if (!wide && shift_of(e, x)) {
    emit(e, x->arg[0], SUM);
    if (x->op == FG_NODE_DIVIDE)
      add(e, " >> %d", shift_of(e, x));
    else
      add(e, " & %d", (1 << shift_of(e, x)) - 1);
  } else {
    bool floats = at(e, x->arg[0])->type == FG_TYPE_FLOAT;
    emit_call(e, x, floats ? ops[x->op].floats : wide ? ops[x->op].wides : ops[x->op].text);
  }
}

static void emit(emitter *e, int node, int rank) {
  if (e->out.failed || emit_hoisted(e, node)) return;
  const fg_node *x = at(e, node);
  if (x->op == FG_NODE_MULTIPLY || x->op == FG_NODE_FLOAT)
    if (emit_by_increments(e, node)) return;
  bool bare = rank_of(e, node) >= rank;
  if (!bare) add(e, "(");
  if (!emit_scaled_s(e, node)) write_node(e, node);
  if (!bare) add(e, ")");
}

static fg_status take(emitter *e, int n, const int *node, fg_emitted *out) {
  bool failed = false, no_memory = false;
  for (int i = 0; i < n; i++) {
    e->out = (buffer){0};
    e->context = PAIR;
    if (node[i])
      emit(e, node[i], LOOSE);
    else
      add(e, "0");
    failed |= e->out.failed || !e->out.text;
    no_memory |= e->out.no_memory;
    out->value[i] = e->out.text;
  }
  for (int l = HEAD; l <= ROW; l++) {
    e->out = e->declared[l];
    add(e, "%s", "");
    failed |= e->out.failed || !e->out.text;
    no_memory |= e->out.no_memory;
    e->declared[l] = e->out;
  }
  out->head = e->declared[HEAD].text, out->row = e->declared[ROW].text;
  if (!failed) return FG_OK;
  if (no_memory) return fg_fail(FG_EMEMORY, "no memory for the text of an expression");
  return fg_fail(FG_ESPEC, "an expression or its derivative is longer than %d bytes of C",
                 EMIT_MAX / 2);
}

fg_status fg_formula_emit(const fg_formula *f, int n, const int *node, const fg_emit_names *names,
                          fg_emitted *emitted) {
  size_t nodes = (size_t)f->tree.n + 1;
  fg_emitted out = {.value = calloc((size_t)n + 1, sizeof *out.value), .n = n};
  emitter e = {.f = f, .names = names};
  e.extent = calloc(nodes, sizeof *e.extent);
  e.hoisted = calloc(nodes, sizeof *e.hoisted);
  e.based = calloc(nodes, sizeof *e.based);
  fg_status status = fg_fail(FG_EMEMORY, "no memory for the text of an expression");
  if (out.value && e.extent && e.hoisted && e.based) status = take(&e, n, node, &out);
  free(e.extent);
  free(e.hoisted);
  free(e.based);
  if (status == FG_OK)
    *emitted = out;
  else
    fg_emitted_free(&out);
  return status;
}
