/* support.h - every value of every spec field, as a case: words that give a spec with it.
 *
 * Cases come from the tables of kinds and fields, so that a new field or value is a case at once.
 */
#ifndef FG_CLI_SUPPORT_H
#define FG_CLI_SUPPORT_H

#include "cli.h"

#define CLI_PASSES 2

typedef struct cli_case {
  const fg_kind *kind;
  char words[160];         /* a spec of the forward pass */
  char label[80];          /* the word that it is about; of a kind's plainest spec its words */
  bool has[CLI_PASSES];    /* there is such a spec of the pass, other than the plainest one */
  fg_point at[CLI_PASSES]; /* and its point */
} cli_case;

/* Makes them, the plainest spec of a kind before its other cases; *list is the caller's to free. */
fg_status cli_cases_make(cli_case **list, int *n);

#endif
