/* tree.h - typed expressions as shared nodes: equal expressions are equal indices.
 *
 * Nodes are made by constructors that bring them into canonical form: constants folded, commutative
 * operands in one order, one spelling of each comparison. What a node means is fixed here: integers
 * are exact, of at most 64 bits (tree_extent.h finds what may exceed them), `/` and `%` of integers
 * floor and give 0 for a divisor of 0, `&&`, `||` and `?:` evaluate only what they need; a NaN
 * loses in min and max. Index 0 is no node: memory ran out, or the tree grew too large;
 * constructors pass it on, so that only the end of a construction need look at it. */
#ifndef FG_TREE_H
#define FG_TREE_H

#include "base/error.h"

#include <stdbool.h>

typedef enum fg_type { FG_TYPE_BOOL, FG_TYPE_INT, FG_TYPE_FLOAT } fg_type;

/* FG_NODE_READ is a tensor's element; FG_NODE_GIVEN states of its second operand, a test, that it
 * can hold only where the first one does: it has the second's value, and the first's bounds. */
typedef enum fg_node_op {
  FG_NODE_NONE,
  FG_NODE_CONSTANT,
  FG_NODE_NAME,
  FG_NODE_SCALAR,
  FG_NODE_READ,
  FG_NODE_NEGATE,
  FG_NODE_NOT,
  FG_NODE_ADD,
  FG_NODE_SUBTRACT,
  FG_NODE_MULTIPLY,
  FG_NODE_DIVIDE,
  FG_NODE_MODULO,
  FG_NODE_LESS,
  FG_NODE_AT_MOST,
  FG_NODE_EQUAL,
  FG_NODE_DIFFERENT,
  FG_NODE_AND,
  FG_NODE_OR,
  FG_NODE_CHOOSE,
  FG_NODE_MIN,
  FG_NODE_MAX,
  FG_NODE_ABS,
  FG_NODE_EXP,
  FG_NODE_LOG,
  FG_NODE_TANH,
  FG_NODE_SQRT,
  FG_NODE_SIGMOID,
  FG_NODE_FLOOR, /* of a float: the integer below it; of NaN 0, saturating at 32 bits */
  FG_NODE_FLOAT,
  FG_NODE_GIVEN,
  FG_NODE_OPS
} fg_node_op;

/* What an expression may name. The last four are bounds of a tile, first and last index: they stand
 * in derived expressions only. */
typedef enum fg_name {
  FG_NAME_S,
  FG_NAME_Q,
  FG_NAME_K,
  FG_NAME_P,
  FG_NAME_B,
  FG_NAME_H,
  FG_NAME_HK,
  FG_NAME_NQ,
  FG_NAME_NK,
  FG_NAME_NH,
  FG_NAME_Q0,
  FG_NAME_Q1,
  FG_NAME_K0,
  FG_NAME_K1,
  FG_NAMES
} fg_name;
extern const char *const fg_name_text[FG_NAMES];

/* The largest constant of an int: a node has it as a double. */
#define FG_INT_MOST 9007199254740991.0

enum { FG_NODE_ARGS = 4, FG_TREE_DEPTH = 400, FG_TREE_SIZE = 1 << 16 };
typedef struct fg_node {
  unsigned char op, type;
  short depth;
  int arg[FG_NODE_ARGS]; /* 0 = none; those of a read are its indices */
  int which;             /* a fg_name, or an input */
  int size;              /* nodes below and with it, shared ones counted each time */
  unsigned uses;         /* bit i: fg_name i occurs; bit FG_NAMES: a read does */
  double number;         /* of a constant; integers and booleans too */
} fg_node;

typedef struct fg_tree {
  fg_node *node;
  int n, room;
  int *slot;                 /* hash table of indices, 0 = free */
  int slots;                 /* a power of two */
  bool no_memory, too_large; /* why a node could not be made; both stay set */
} fg_tree;

void fg_tree_free(fg_tree *tree);

int fg_tree_constant(fg_tree *tree, fg_type type, double number);
int fg_tree_name(fg_tree *tree, fg_name name);
/* A scalar input, or an element of a tensor input by n indices. */
int fg_tree_scalar(fg_tree *tree, int input, fg_type type);
int fg_tree_read(fg_tree *tree, int input, fg_type type, int n, const int *index);

/* The operators; operands have the types that the operator takes, a mixed pair is two floats. */
int fg_tree_make(fg_tree *tree, fg_node_op op, int a, int b, int c);
int fg_tree_unary(fg_tree *tree, fg_node_op op, int a);
int fg_tree_binary(fg_tree *tree, fg_node_op op, int a, int b);

/* The same tree with a name's or scalar's every occurrence, or a read, replaced by another node. */
int fg_tree_replace(fg_tree *tree, int root, int from, int to);

bool fg_tree_uses(const fg_tree *tree, int root, fg_name name);
/* Has it a read, whose index may leave its tensor where it is not needed? */
bool fg_tree_reads(const fg_tree *tree, int root);
/* Does the input occur in it? */
bool fg_tree_takes(const fg_tree *tree, int root, int input);

/* FG_EMEMORY or FG_ESPEC for an index of 0. */
fg_status fg_tree_check(const fg_tree *tree, int root);

/* The canonical text, which reads back as the same node; `inputs` are the names of the inputs.
 * Returns the length, which may exceed `size`. */
int fg_tree_print(const fg_tree *tree, int root, const char *const *inputs, size_t size,
                  char *text);

#endif
