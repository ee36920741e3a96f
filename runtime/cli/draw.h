/* draw.h - pictures of masks, which pairs of a query and a key they show: `flashgen draw`, and
 * help.
 *
 * Pairs are judged as the oracle judges them, by which `check` judges kernels. */
#ifndef FG_CLI_DRAW_H
#define FG_CLI_DRAW_H

#include "cli.h"

/* A mask at a shape: the pairs of each batch and head. */
typedef struct cli_picture {
  const char *mask; /* as its point has it: lives as long as the process */
  fg_shape shape;
  bool *visible;  /* [b, h, nq, nk] */
  int64_t seen;   /* pairs that are visible */
  bool is_causal; /* no key behind the place of its query is visible */
} cli_picture;

/* The picture that the command line asks for; a length that no word gives is 8, a batch and heads
 * are 1. Words "ids=0,0,1" are the numbers of a tensor that the mask declares. FG_EARGUMENT,
 * FG_ESPEC. */
fg_status cli_picture_new(const cli *c, cli_picture *picture);
void cli_picture_free(cli_picture *picture);

/* Rows of # and . for a terminal. */
void cli_picture_text(const cli_picture *picture, FILE *to);
void cli_picture_svg(const cli_picture *picture, FILE *to);

#endif
