/* formula_lua_inputs.c - what templates know of an input: its type, extents, and reads. */
#include "formula/formula_parse.h"
#include "formula/tree_diff.h"
#include "formula/tree_linear.h"
#include "formula_lua_set.h"

#include <math.h>
#include <string.h>

/* How an axis of an input is read: by "b", "h", "q" or "k" where the index is just that name and
 * the extent is its own; "1" where it is broadcast; else "other". */
static const char *axis_of(const fg_formula *f, const fg_input *input, int axis, int index) {
  static const struct {
    const char *extent;
    fg_name name;
  } own[] = {{"b", FG_NAME_B}, {"h", FG_NAME_H}, {"q", FG_NAME_Q}, {"k", FG_NAME_K}};
  const fg_node *x = &f->tree.node[index];
  if (!strcmp(input->extent[axis], "1")) return "1";
  for (int i = 0; i < 4; i++)
    if (!strcmp(own[i].extent, input->extent[axis]) && x->op == FG_NODE_NAME &&
        x->which == (int)own[i].name)
      return own[i].extent;
  return "other";
}

/* read.linear, where each index is: its factors of q and k. */
static void push_factors(lua_State *L, const fg_formula *f, const fg_node *read, int rank) {
  double q, k;
  lua_createtable(L, rank, 0);
  for (int i = 0; i < rank; i++) {
    if (!fg_linear_in_q_and_k(&f->tree, read->arg[i], &q, &k)) {
      lua_pop(L, 1);
      return;
    }
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, (lua_Integer)q);
    lua_setfield(L, -2, "q");
    lua_pushinteger(L, (lua_Integer)k);
    lua_setfield(L, -2, "k");
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "linear");
}

/* One place where the score reads the input: its indices, what each follows, its factors in the
 * score and, of an input with a gradient, the derivative there. `affine` and `affine_axis` are
 * set where one other axis is read by k - q or q - k alone. */
static void push_read(lua_State *L, fg_formula *f, int node) {
  const fg_node x = f->tree.node[node];
  const fg_input *input = &f->input[x.which];
  int other = 0, others = 0, batches = 0, heads = 0;
  bool by_distance = true, plain = true;
  lua_createtable(L, 0, 8);
  set_node(L, "node", node);
  push_factors(L, f, &x, input->rank);
  if (input->grad) {
    int slope = fg_tree_diff(&f->tree, f->score, node);
    fg_status status = fg_tree_check(&f->tree, slope);
    if (status != FG_OK) fg_lua_raise(L, status, false);
    set_node(L, "slope", slope);
  }
  lua_createtable(L, input->rank, 0);
  lua_createtable(L, input->rank, 0);
  for (int i = 0; i < input->rank; i++) {
    lua_pushinteger(L, x.arg[i]);
    lua_rawseti(L, -3, i + 1);
    const char *axis = axis_of(f, input, i, x.arg[i]);
    lua_pushstring(L, axis);
    lua_rawseti(L, -2, i + 1);
    if (!strcmp(axis, "other")) other = i, others++;
    batches += !strcmp(axis, "b"), heads += !strcmp(axis, "h");
    plain &= strcmp(axis, "q") && strcmp(axis, "k") && batches < 2 && heads < 2;
    by_distance &= fg_tree_by_distance(&f->tree, x.arg[i]);
  }
  lua_setfield(L, -3, "axis");
  lua_setfield(L, -2, "index");
  set_bool(L, "is_by_distance", by_distance);
  double q, k;
  if (others != 1 || !plain || !fg_linear_in_q_and_k(&f->tree, x.arg[other], &q, &k)) return;
  if (fabs(k) > 1 || fabs(k) < 1 || q + k > 0 || q + k < 0) return;
  lua_pushinteger(L, k > 0 ? 1 : -1);
  lua_setfield(L, -2, "affine");
  lua_pushinteger(L, other + 1);
  lua_setfield(L, -2, "affine_axis");
}

/* Is node a part of root? */
static bool occurs(const fg_tree *t, int root, int node) {
  if (root == node) return true;
  for (int i = 0; i < FG_NODE_ARGS && t->node[root].arg[i]; i++)
    if (occurs(t, t->node[root].arg[i], node)) return true;
  return false;
}

/* The list of places where the score reads the input. */
static void push_reads(lua_State *L, fg_formula *f, int input) {
  int count = 0, n = f->tree.n;
  lua_newtable(L);
  for (int i = 1; i < n; i++) {
    const fg_node *x = &f->tree.node[i];
    if (x->op != FG_NODE_READ || x->which != input || !occurs(&f->tree, f->score, i)) continue;
    push_read(L, f, i);
    lua_rawseti(L, -2, ++count);
  }
}

/* Is an extent the length of an axis, or 1, and no expression? */
static bool is_axis(const char *extent) {
  static const char *const axes[] = {"b", "h", "hk", "q", "k", "1"};
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
    if (!strcmp(axes[i], extent)) return true;
  return false;
}

/* The list of an input's extents: a text for an axis, a node for an expression. */
static void push_lengths(lua_State *L, fg_formula *f, const fg_input *x) {
  static const fg_definitions none[2];
  int node;
  lua_createtable(L, x->rank, 0);
  for (int a = 0; a < x->rank; a++) {
    if (is_axis(x->extent[a])) {
      lua_pushstring(L, x->extent[a]);
    } else {
      fg_status status = fg_formula_parse(f, none, "inputs", FG_IN_EXTENT, x->extent[a], &node);
      if (status != FG_OK) fg_lua_raise(L, status, false);
      lua_pushinteger(L, node);
    }
    lua_rawseti(L, -2, a + 1);
  }
}

void fg_formula_push_input(lua_State *L, fg_formula *f, int i) {
  const fg_input *x = &f->input[i];
  lua_createtable(L, 0, 8);
  set_text(L, "name", x->name);
  set_text(L, "type", x->type == FG_TYPE_INT ? "int" : "float");
  if (x->tensor) set_text(L, "elem", fg_elem_name(x->elem));
  set_bool(L, "tensor", x->tensor);
  set_bool(L, "grad", x->grad);
  lua_createtable(L, x->rank, 0);
  for (int a = 0; a < x->rank; a++) {
    lua_pushstring(L, x->extent[a]);
    lua_rawseti(L, -2, a + 1);
  }
  lua_setfield(L, -2, "extents");
  push_lengths(L, f, x);
  lua_setfield(L, -2, "lengths");
  push_reads(L, f, i);
  lua_setfield(L, -2, "reads");
}
