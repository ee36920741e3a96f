/* tree.c - the arena of nodes: sharing, and the canonical form of what is made. */
#include "tree_fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const fg_name_text[FG_NAMES] = {"s",  "q",  "k",  "p",  "b",  "h",  "hk",
                                            "nq", "nk", "nh", "q0", "q1", "k0", "k1"};

void fg_tree_free(fg_tree *t) {
  free(t->node);
  free(t->slot);
  *t = (fg_tree){0};
}

static bool same(const fg_node *a, const fg_node *b) {
  return a->op == b->op && a->type == b->type && a->which == b->which &&
         !memcmp(a->arg, b->arg, sizeof a->arg) &&
         !memcmp(&a->number, &b->number, sizeof a->number);
}

static unsigned hash(const fg_node *x) {
  uint64_t bits, h = (uint64_t)x->op * 0x9e3779b97f4a7c15u + x->type;
  memcpy(&bits, &x->number, sizeof bits);
  h = (h ^ bits) * 0xbf58476d1ce4e5b9u ^ (uint64_t)x->which;
  for (int i = 0; i < FG_NODE_ARGS; i++)
    h = (h ^ h >> 29 ^ (uint64_t)x->arg[i]) * 0x94d049bb133111ebu;
  return (unsigned)(h >> 32);
}

static int *find(const fg_tree *t, const fg_node *x) {
  unsigned mask = (unsigned)t->slots - 1, i = hash(x) & mask;
  while (t->slot[i] && !same(&t->node[t->slot[i]], x)) i = (i + 1) & mask;
  return &t->slot[i];
}

/* Room for a node more: the hash table stays at most half full. */
static bool grow(fg_tree *t) {
  if (t->n + 1 < t->room) return true;
  int room = t->room ? 2 * t->room : 128;
  fg_node *node = realloc(t->node, (size_t)room * sizeof *node);
  if (node) t->node = node;
  int *slot = calloc((size_t)room * 2, sizeof *slot);
  if (!node || !slot) {
    free(slot);
    t->no_memory = true;
    return false;
  }
  free(t->slot);
  t->slot = slot, t->slots = 2 * room, t->room = room;
  if (!t->n) t->node[t->n++] = (fg_node){0};
  for (int i = 1; i < t->n; i++) *find(t, &t->node[i]) = i;
  return true;
}

/* The node's index: that of an equal one, if there is one. */
static int keep(fg_tree *t, fg_node x) {
  if (!grow(t)) return 0;
  x.size = 1;
  for (int i = 0; i < FG_NODE_ARGS && x.arg[i]; i++) {
    const fg_node *child = &t->node[x.arg[i]];
    if (child->depth >= x.depth) x.depth = (short)(child->depth + 1);
    x.size += child->size;
    x.uses |= child->uses;
  }
  if (x.depth > FG_TREE_DEPTH || x.size > FG_TREE_SIZE || t->n > FG_TREE_SIZE) {
    t->too_large = true;
    return 0;
  }
  if (x.op == FG_NODE_NAME) x.uses |= 1u << x.which;
  if (x.op == FG_NODE_READ) x.uses |= 1u << FG_NAMES;
  int *slot = find(t, &x);
  if (*slot) return *slot;
  t->node[t->n] = x;
  return *slot = t->n++;
}

int fg_tree_constant(fg_tree *t, fg_type type, double number) {
  if (number == 0) number = 0; /* no -0: equal constants have equal bits */
  return keep(t, (fg_node){.op = FG_NODE_CONSTANT, .type = (unsigned char)type, .number = number});
}

int fg_tree_name(fg_tree *t, fg_name name) {
  fg_type type = name == FG_NAME_S ? FG_TYPE_FLOAT : FG_TYPE_INT;
  return keep(t, (fg_node){.op = FG_NODE_NAME, .type = (unsigned char)type, .which = (int)name});
}

int fg_tree_scalar(fg_tree *t, int input, fg_type type) {
  return keep(t, (fg_node){.op = FG_NODE_SCALAR, .type = (unsigned char)type, .which = input});
}

int fg_tree_read(fg_tree *t, int input, fg_type type, int n, const int *index) {
  fg_node x = {.op = FG_NODE_READ, .type = (unsigned char)type, .which = input};
  for (int i = 0; i < n; i++) {
    if (!index[i]) return 0;
    x.arg[i] = index[i];
  }
  return keep(t, x);
}

/* The order of commutative operands: by what they are, never by when they were made. Constants come
 * last, as people write them. */
static int order(const fg_tree *t, int a, int b) {
  const fg_node *x = &t->node[a], *y = &t->node[b];
  if (a == b) return 0;
  if ((x->op == FG_NODE_CONSTANT) != (y->op == FG_NODE_CONSTANT))
    return x->op == FG_NODE_CONSTANT ? 1 : -1;
  if (x->op != y->op) return x->op < y->op ? -1 : 1;
  if (x->which != y->which) return x->which < y->which ? -1 : 1;
  if (x->type != y->type) return x->type < y->type ? -1 : 1;
  if (x->number < y->number || x->number > y->number) return x->number < y->number ? -1 : 1;
  for (int i = 0; i < FG_NODE_ARGS; i++) {
    if (!x->arg[i] || !y->arg[i]) return x->arg[i] ? 1 : -1;
    int o = order(t, x->arg[i], y->arg[i]);
    if (o) return o;
  }
  return 0;
}

/* ---- folding ---- */

static bool is_constant(const fg_tree *t, int i) { return t->node[i].op == FG_NODE_CONSTANT; }
static bool is_number(const fg_tree *t, int i, double x) {
  return is_constant(t, i) && t->node[i].number >= x && t->node[i].number <= x;
}

/* ---- canonical forms ---- */

static int boolean(fg_tree *t, bool value) { return fg_tree_constant(t, FG_TYPE_BOOL, value); }

/* Pushes the negation inwards. A comparison of floats is left under it: of a NaN both it and its
 * opposite fail. */
static int make_not(fg_tree *t, int a) {
  const fg_node x = t->node[a];
  bool integers = x.arg[0] && t->node[x.arg[0]].type != FG_TYPE_FLOAT; /* a NaN is not ordered */
  switch (x.op) {
  case FG_NODE_CONSTANT:
    return boolean(t, !(x.number > 0));
  case FG_NODE_NOT:
    return x.arg[0];
  case FG_NODE_EQUAL:
    return fg_tree_binary(t, FG_NODE_DIFFERENT, x.arg[0], x.arg[1]);
  case FG_NODE_DIFFERENT:
    return fg_tree_binary(t, FG_NODE_EQUAL, x.arg[0], x.arg[1]);
  case FG_NODE_AND:
  case FG_NODE_OR:
    return fg_tree_binary(t, x.op == FG_NODE_AND ? FG_NODE_OR : FG_NODE_AND, make_not(t, x.arg[0]),
                          make_not(t, x.arg[1]));
  case FG_NODE_LESS:
    if (integers) return fg_tree_binary(t, FG_NODE_AT_MOST, x.arg[1], x.arg[0]);
    break;
  case FG_NODE_AT_MOST:
    if (integers) return fg_tree_binary(t, FG_NODE_LESS, x.arg[1], x.arg[0]);
    break;
  default:
    break;
  }
  return keep(t, (fg_node){.op = FG_NODE_NOT, .type = FG_TYPE_BOOL, .arg = {a}});
}

/* `&&` and `||` without a read in them have no order of evaluation that shows. */
static int make_logic(fg_tree *t, fg_node_op op, int a, int b) {
  bool neutral = op == FG_NODE_AND;
  if (is_constant(t, a)) return (t->node[a].number > 0) == neutral ? b : a;
  if (is_constant(t, b) && (t->node[b].number > 0) == neutral) return a;
  if (is_constant(t, b) && !fg_tree_reads(t, a)) return b;
  if (a == b) return a;
  /* right-nested chains, sorted by insertion where nothing is read */
  if (t->node[a].op == op) {
    int first = t->node[a].arg[0], rest = t->node[a].arg[1];
    return make_logic(t, op, first, fg_tree_binary(t, op, rest, b));
  }
  bool chain = t->node[b].op == op;
  int next = chain ? t->node[b].arg[0] : b, after = chain ? t->node[b].arg[1] : 0;
  if (a == next) return b;
  if (!fg_tree_reads(t, a) && !fg_tree_reads(t, next) && order(t, next, a) < 0)
    return after ? make_logic(t, op, next, fg_tree_binary(t, op, a, after))
                 : make_logic(t, op, next, a);
  return keep(t, (fg_node){.op = (unsigned char)op, .type = FG_TYPE_BOOL, .arg = {a, b}});
}

static int make_choose(fg_tree *t, int test, int a, int b) {
  if (is_constant(t, test)) return t->node[test].number > 0 ? a : b;
  if (a == b && !fg_tree_reads(t, test)) return a;
  return keep(t, (fg_node){.op = FG_NODE_CHOOSE, .type = t->node[a].type, .arg = {test, a, b}});
}

/* Simplifications that hold for every value; 0: none does. */
static int simplify(fg_tree *t, fg_node_op op, int a, int b) {
  bool integers = t->node[a].type == FG_TYPE_INT;
  switch (op) {
  case FG_NODE_ADD:
    return is_number(t, b, 0) ? a : 0;
  case FG_NODE_SUBTRACT:
    if (is_number(t, b, 0)) return a;
    if (is_number(t, a, 0)) return fg_tree_unary(t, FG_NODE_NEGATE, b);
    if (integers && a == b && !fg_tree_reads(t, a)) return fg_tree_constant(t, FG_TYPE_INT, 0);
    if (is_constant(t, b))
      return fg_tree_binary(t, FG_NODE_ADD, a, fg_tree_unary(t, FG_NODE_NEGATE, b));
    return 0;
  case FG_NODE_MULTIPLY:
    if (is_number(t, b, 1)) return a;
    if (is_number(t, b, -1)) return fg_tree_unary(t, FG_NODE_NEGATE, a);
    return integers && is_number(t, b, 0) && !fg_tree_reads(t, a) ? b : 0;
  case FG_NODE_DIVIDE:
    return is_number(t, b, 1) ? a : 0;
  case FG_NODE_MIN:
  case FG_NODE_MAX:
    return a == b ? a : 0;
  case FG_NODE_NEGATE:
    return t->node[a].op == FG_NODE_NEGATE ? t->node[a].arg[0] : 0;
  case FG_NODE_FLOOR:
    if (integers) return a;
    return t->node[a].op == FG_NODE_FLOAT ? t->node[a].arg[0] : 0;
  case FG_NODE_FLOAT:
    return t->node[a].type == FG_TYPE_FLOAT ? a : 0;
  default:
    return 0;
  }
}

static fg_type type_of(const fg_tree *t, fg_node_op op, int a) {
  if (op >= FG_NODE_LESS && op <= FG_NODE_OR) return FG_TYPE_BOOL;
  if (op == FG_NODE_GIVEN) return FG_TYPE_BOOL;
  if (op == FG_NODE_FLOOR) return FG_TYPE_INT;
  if (op == FG_NODE_FLOAT) return FG_TYPE_FLOAT;
  return (fg_type)t->node[a].type;
}

static bool commutes(fg_node_op op) {
  return op == FG_NODE_ADD || op == FG_NODE_MULTIPLY || op == FG_NODE_EQUAL ||
         op == FG_NODE_DIFFERENT || op == FG_NODE_MIN || op == FG_NODE_MAX;
}

int fg_tree_make(fg_tree *t, fg_node_op op, int a, int b, int c) {
  if (!a || (op == FG_NODE_CHOOSE && !c)) return 0;
  if (op == FG_NODE_NOT) return make_not(t, a);
  if (op == FG_NODE_CHOOSE) return b ? make_choose(t, a, b, c) : 0;
  if (op == FG_NODE_AND || op == FG_NODE_OR) return b ? make_logic(t, op, a, b) : 0;
  if (op == FG_NODE_GIVEN && (is_constant(t, a) || is_constant(t, b))) return b;
  if (op == FG_NODE_NEGATE && is_constant(t, a))
    return fg_tree_constant(t, (fg_type)t->node[a].type, -t->node[a].number);
  if (commutes(op) && order(t, b, a) < 0) {
    int swapped = a;
    a = b, b = swapped;
  }
  bool constants = is_constant(t, a) && (!b || is_constant(t, b));
  int known = constants && op != FG_NODE_GIVEN ? fg_tree_fold(t, op, a, b) : 0;
  if (!known) known = simplify(t, op, a, b);
  if (known) return known;
  return keep(
      t,
      (fg_node){.op = (unsigned char)op, .type = (unsigned char)type_of(t, op, a), .arg = {a, b}});
}

int fg_tree_unary(fg_tree *t, fg_node_op op, int a) { return fg_tree_make(t, op, a, 0, 0); }

int fg_tree_binary(fg_tree *t, fg_node_op op, int a, int b) {
  return a && b ? fg_tree_make(t, op, a, b, 0) : 0;
}

/* ---- questions ---- */

int fg_tree_replace(fg_tree *t, int root, int from, int to) {
  if (root == from || !root || !to) return root == from ? to : 0;
  fg_node x = t->node[root];
  int arg[FG_NODE_ARGS], n = 0;
  bool changed = false;
  for (; n < FG_NODE_ARGS && x.arg[n]; n++) {
    arg[n] = fg_tree_replace(t, x.arg[n], from, to);
    if (!arg[n]) return 0;
    changed |= arg[n] != x.arg[n];
  }
  if (!changed) return root;
  if (x.op == FG_NODE_READ) return fg_tree_read(t, x.which, (fg_type)x.type, n, arg);
  return fg_tree_make(t, (fg_node_op)x.op, arg[0], n > 1 ? arg[1] : 0, n > 2 ? arg[2] : 0);
}

bool fg_tree_uses(const fg_tree *t, int root, fg_name name) {
  return t->node[root].uses >> name & 1;
}

bool fg_tree_reads(const fg_tree *t, int root) { return t->node[root].uses >> FG_NAMES & 1; }

bool fg_tree_takes(const fg_tree *t, int root, int input) {
  const fg_node *x = &t->node[root];
  if ((x->op == FG_NODE_READ || x->op == FG_NODE_SCALAR) && x->which == input) return true;
  for (int i = 0; i < FG_NODE_ARGS && x->arg[i]; i++)
    if (fg_tree_takes(t, x->arg[i], input)) return true;
  return false;
}

fg_status fg_tree_check(const fg_tree *t, int root) {
  if (root) return FG_OK;
  if (t->no_memory) return fg_fail(FG_EMEMORY, "no memory for an expression");
  return fg_fail(FG_ESPEC, "the expression is too large: more than %d operations, or %d nested",
                 FG_TREE_SIZE, FG_TREE_DEPTH);
}
