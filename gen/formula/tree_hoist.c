/* tree_hoist.c - what of an expression is made once a head or once a row, and linear terms in k. */
#include "tree_emitter.h"
#include "tree_linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain(const fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node);
  return x->op == FG_NODE_CONSTANT || x->op == FG_NODE_SCALAR ||
         (x->op == FG_NODE_NAME && x->which != FG_NAME_P);
}

static const char *c_type(fg_emitter *e, int node) {
  return fg_at(e, node)->type == FG_TYPE_FLOAT ? "float" : fg_is_wide(e, node) ? "i64" : "int";
}

static const char *name_of(const fg_emitter *e, fg_level level) {
  const char *own = level == HEAD ? e->names->of_head : e->names->of_row;
  return own ? own : level == HEAD ? "of_head" : "of_row";
}

void fg_put_declared(fg_emitter *e, fg_level level, int number) {
  fg_put(e, "%s%d", name_of(e, level), number - 1);
}

int fg_declare_text(fg_emitter *e, fg_level to, const char *type, const char *text) {
  fg_buffer outside = e->out;
  const char *space = strchr(type, '*') ? "" : " ";
  e->out = e->declared[to];
  fg_put(e, "const %s%s%s%d = %s;\n", type, space, name_of(e, to), e->count[to], text ? text : "0");
  e->out.failed |= !text;
  e->declared[to] = e->out;
  e->out = outside;
  return ++e->count[to];
}

/* Declares a value of the node's at a level; `write` puts it. */
static int declare(fg_emitter *e, fg_level to, int node, const char *type,
                   void (*write)(fg_emitter *e, int node)) {
  const fg_level outside_context = e->context;
  const int outside_lazy = e->lazy;
  fg_buffer outside = e->out;
  e->out = (fg_buffer){0};
  e->context = to, e->lazy = 0;
  bool guarded =
      to == ROW && fg_tree_reads_of_row(&e->f->tree, node); /* a tile has rows that are none */
  if (guarded && e->names->has_row)
    fg_put(e, "%s ? (", e->names->has_row);
  else if (guarded)
    fg_put(e, "%s < %s ? (", e->names->name[FG_NAME_Q], e->names->name[FG_NAME_NQ]);
  write(e, node);
  if (guarded) fg_put(e, ") : 0");
  fg_buffer value = e->out;
  e->out = outside, e->context = outside_context, e->lazy = outside_lazy;
  e->out.failed |= value.failed;
  e->out.no_memory |= value.no_memory;
  int number = fg_declare_text(e, to, type, value.failed ? NULL : value.text);
  free(value.text);
  return number;
}

bool fg_put_hoisted(fg_emitter *e, int node) {
  fg_level own = fg_level_of(e, node);
  bool lazy_read = e->lazy && fg_tree_reads(&e->f->tree, node);
  if (!e->names->hoist || (e->at_base && fg_tree_uses(&e->f->tree, node, FG_NAME_K)) ||
      own >= e->context || is_plain(e, node) || lazy_read)
    return false;
  if (!e->hoisted[node]) e->hoisted[node] = declare(e, own, node, c_type(e, node), fg_write_node);
  fg_put_declared(e, own, e->hoisted[node]);
  return true;
}

static void write_at_base(fg_emitter *e, int node) {
  e->at_base = true;
  fg_write_node(e, node);
  e->at_base = false;
}

/* "of_row0 + A * (float)(3 * (offset))" for A * float(linear in k), A the same for a row. */
bool fg_put_by_increments(fg_emitter *e, int node) {
  fg_multiple_of_k m;
  if (!e->names->hoist || !e->names->k_base || e->at_base || e->context != PAIR || e->lazy ||
      !fg_tree_multiple_of_k(&e->f->tree, node, &m) || !fg_goes_by_increments(&e->f->tree, &m))
    return false;
  if (!e->based[node]) e->based[node] = declare(e, ROW, node, c_type(e, node), write_at_base);
  fg_put(e, "(");
  fg_put_declared(e, ROW, e->based[node]);
  fg_put(e, " + ");
  if (m.by) {
    fg_put_node(e, m.by, PRODUCT);
    fg_put(e, " * ");
  }
  fg_put(e, "(float)(%.0f * (%s)))", m.step, e->names->k_offset);
  return true;
}

/* ---- elements of inputs ---- */

/* Puts the address of an element; where k stands for its base, that of the key there. */
static void write_address(fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node);
  const fg_input *input = &e->f->input[x->which];
  char *index[FG_NODE_ARGS] = {NULL}, address[4096];
  fg_buffer outside = e->out;
  for (int i = 0; i < input->rank; i++) {
    e->out = (fg_buffer){0};
    fg_put_node(e, x->arg[i], LOOSE);
    outside.failed |= e->out.failed || !e->out.text;
    outside.no_memory |= e->out.no_memory;
    index[i] = e->out.text;
  }
  e->out = outside;
  if (!outside.failed) {
    int n = fg_input_address(input, false, (const char *const *)index, e->names, sizeof address,
                             address);
    e->out.failed = (size_t)n >= sizeof address;
    fg_put(e, "%s", address);
  }
  for (int i = 0; i < FG_NODE_ARGS; i++) free(index[i]);
}

static void write_address_at_base(fg_emitter *e, int node) {
  e->at_base = true;
  write_address(e, node);
  e->at_base = false;
}

/* "of_row0 + 2 * (offset)": the elements of a row by one pointer, where the last index is linear in
 * k and the others have no k. No index is read from memory: a row that is none has none. */
static bool emit_address_by_increments(fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node);
  const fg_input *input = &e->f->input[x->which];
  int last = x->arg[input->rank - 1];
  double factor;
  if (!e->names->hoist || !e->names->k_base || e->at_base || e->context != PAIR) return false;
  for (int i = 0; i < input->rank; i++)
    if (fg_tree_reads(&e->f->tree, x->arg[i]) || fg_is_wide(e, x->arg[i]) ||
        (i < input->rank - 1 && fg_level_of(e, x->arg[i]) == PAIR))
      return false;
  if (!strcmp(input->extent[input->rank - 1], "1") || fg_level_of(e, last) != PAIR ||
      fg_too_big(e, last) || !fg_linear_in_k(&e->f->tree, last, &factor))
    return false;
  if (!e->based[node]) {
    static const char *const type[] = {[FG_ELEM_BF16] = "u16 *",
                                       [FG_ELEM_F16] = "u16 *",
                                       [FG_ELEM_F32] = "float *",
                                       [FG_ELEM_I32] = "int *"};
    e->based[node] = declare(e, ROW, node, type[input->elem], write_address_at_base);
  }
  fg_put_declared(e, ROW, e->based[node]);
  fg_put(e, " + ");
  if (factor != 1) fg_put(e, "%.0f * ", factor);
  fg_put(e, strpbrk(e->names->k_offset, " ") ? "(%s)" : "%s", e->names->k_offset);
  return true;
}

void fg_put_read(fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node);
  const fg_input *input = &e->f->input[x->which];
  const char *staged = e->names->staged[x->which];
  bool halves = input->elem != FG_ELEM_I32 && input->elem != FG_ELEM_F32;
  if (staged) {
    fg_put(e, "%s", staged);
    return;
  }
  e->reads[e->context]++;
  if (input->elem == FG_ELEM_I32)
    fg_put(e, "(int)ldg_u32(");
  else if (input->elem == FG_ELEM_F32)
    fg_put(e, "ldg_f32(");
  else
    fg_put(e, "%s_to_f32(ldg_u16(", fg_elem_name(input->elem));
  if (!emit_address_by_increments(e, node)) write_address(e, node);
  fg_put(e, halves ? "))" : ")");
}

void fg_write_unit(fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node);
  if (x->op == FG_NODE_NAME) {
    fg_put(e, "%s", e->names->s_unit);
    return;
  }
  bool first = fg_tree_is_scaled_s(&e->f->tree, x->arg[0]);
  fg_write_unit(e, x->arg[!first]);
  fg_put(e, x->op == FG_NODE_DIVIDE ? " / " : " * ");
  fg_put_node(e, x->arg[first], UNARY);
}

bool fg_put_scaled_s(fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node);
  if (!e->names->hoist || !e->names->s_unit || x->op == FG_NODE_NAME ||
      !fg_tree_is_scaled_s(&e->f->tree, node) || fg_tree_reads(&e->f->tree, node))
    return false;
  if (!e->based[node]) e->based[node] = declare(e, HEAD, node, c_type(e, node), fg_write_unit);
  fg_put_declared(e, HEAD, e->based[node]);
  fg_put(e, " * %s", e->names->s_raw);
  return true;
}

static void write_inverse(fg_emitter *e, int node) {
  fg_put(e, "1.0f / ");
  fg_put_node(e, fg_at(e, node)->arg[1], UNARY);
}

/* How a quotient is made. */
typedef enum { BY_CONSTANT, BY_INVERSE, BY_OPERATOR, BY_CALL, EXACTLY } division;

/* How a float division is done: exactly where a result decides a test, else by what is cheapest
 * where the divisor is known. */
static division division_of(const fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node), *m = fg_at(e, x->arg[1]);
  int power;
  if (m->op == FG_NODE_CONSTANT) /* of an integer a tie matters, and powers of 2 keep it */
    return fg_is_exact(e) && fg_at(e, x->arg[0])->op == FG_NODE_FLOAT &&
                   fabs(frexp(m->number, &power)) > 0.5
               ? EXACTLY
               : BY_CONSTANT;
  if (fg_is_exact(e)) return EXACTLY;
  bool lazy_read = e->lazy && fg_tree_reads(&e->f->tree, x->arg[1]);
  bool hoist = e->names->hoist && !e->at_base && !lazy_read;
  if (hoist && fg_level_of(e, x->arg[1]) < e->context) return BY_INVERSE;
  return e->context == PAIR ? BY_CALL : BY_OPERATOR;
}

int fg_rank_of_quotient(const fg_emitter *e, int node) {
  return division_of(e, node) < BY_CALL ? PRODUCT : PRIMARY;
}

/* x / m: times its inverse where m is a constant or the same for a row. A pair's own is a call: the
 * compiler's division has a slow path, which unrolled over pairs takes half a minute to compile. */
void fg_put_quotient(fg_emitter *e, int node) {
  const fg_node *x = fg_at(e, node), *m = fg_at(e, x->arg[1]);
  fg_level own = fg_level_of(e, x->arg[1]);
  division by = division_of(e, node);
  if (by == BY_INVERSE && !e->based[node])
    e->based[node] = declare(e, own, node, c_type(e, node), write_inverse);
  if (by >= BY_CALL) fg_put(e, "%s(", by == EXACTLY ? "exact_quotient_f32" : "divide_f32");
  fg_put_node(e, x->arg[0], by < BY_CALL ? PRODUCT : LOOSE);
  fg_put(e, by < BY_OPERATOR ? " * " : by == BY_OPERATOR ? " / " : ", ");
  if (by == BY_CONSTANT)
    fg_put_float(e, 1 / m->number);
  else if (by == BY_INVERSE)
    fg_put_declared(e, own, e->based[node]);
  else
    fg_put_node(e, x->arg[1], by == BY_OPERATOR ? UNARY : LOOSE);
  if (by >= BY_CALL) fg_put(e, ")");
}
