/* work.h - what `check`, `bench` and `tune` know of a kind of kernel: shapes that are worth a try,
 * and what a launch has to do, whatever the plan. One row a kind. */
#ifndef FG_CLI_WORK_H
#define FG_CLI_WORK_H

#include "cli.h"

enum { CLI_CHECK_SHAPES = 5, CLI_BENCH_SHAPES = 2 };

typedef struct cli_work {
  fg_shape check[CLI_CHECK_SHAPES]; /* of a check that names none */
  fg_shape one;                     /* what words leave out of the one shape that they name there */
  fg_shape many;                    /* of many sequences, tried where integers are drawn */
  fg_shape far;                     /* small, for offsets beyond 32 bits on the host device */
  fg_shape tune;                    /* at which `tune` judges a plan's numbers */
  /* What `bench` measures: on a GPU as much as fills one, on the host device one small problem;
   * returns how many. */
  int (*bench)(const fg_point *point, bool host, fg_shape shapes[CLI_BENCH_SHAPES]);
  /* Operations of a launch, and whether they are known. */
  double (*flops)(const cli *c, const fg_point *point, const fg_shape *shape);
  bool (*flops_known)(const cli *c, const fg_point *point);
  /* A sentence each for people: how a shape reads, and what counts as operations. */
  const char *shape_words, *operation_words;
  /* The share of the keys in memory that some row sees; NULL: there are no keys. */
  double (*seen_keys)(const cli *c, const fg_point *point, const fg_shape *shape);
  /* The share of kept outputs that is written; NULL: there are none. */
  double (*written)(const fg_shape *shape);
} cli_work;

/* The row of a point's kind. */
const cli_work *cli_work_of(const fg_point *point);
extern const cli_work cli_work_attention, cli_work_logsoftmax, cli_work_combine, cli_work_append,
    cli_work_layernorm, cli_work_linear;

/* The shape that words name for the point: an extent that no word gives is that of its fellow (hk
 * of h, nk of nq, and back), else that of `usual`; a batch is 1. FG_EARGUMENT: the kind has no such
 * extent, or there is no such shape. */
fg_status cli_shape_fill(const cli *c, const fg_point *point, const fg_shape *usual,
                         fg_shape *shape);

/* Gives such a shape, or one of `bench`, the extents of the point's layout that no word gives:
 * sequences as long as each other, pages of 16 keys and as many as there are keys. FG_EARGUMENT:
 * its layout has no extent that a word gives. */
fg_status cli_shape_lay_out(const cli *c, const fg_point *point, fg_shape *shape);

#endif
