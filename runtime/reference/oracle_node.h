/* oracle_node.h - what an expression is to the oracle, between its reader and its evaluation. */
#ifndef FG_TESTS_ORACLE_NODE_H
#define FG_TESTS_ORACLE_NODE_H

#include "oracle_formula.h"

enum { ORACLE_FAULT = 320 };
enum { BOOLEAN, INTEGER, REAL };

typedef struct node {
  char op; /* see the tables of oracle_read.c */
  int type, name, n;
  struct node *arg[ORACLE_RANK];
  double value;
  int64_t element; /* that a read gave, -1: none */
  const char *from, *end;
  char of_s, of_inputs, of_positions; /* its value depends on them */
} node;

struct oracle_formula {
  char *text;
  const char *at;
  int failed, has_tanh, n_inputs, n, depth;
  const oracle_input *inputs;
  node *all, *root;
  const double *names;
  char fault[ORACLE_FAULT], claim[ORACLE_FAULT];
};

#endif
