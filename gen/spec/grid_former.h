/* grid_former.h - former names of fields in the tables of a grid. */
#ifndef FG_GRID_FORMER_H
#define FG_GRID_FORMER_H

#include "table.h"

/* field: a table's texts by the rows of fg_fields; `words`, by the same rows, holds those that come
 * from words, which replace the table's own. Gives what stands under a former name to the field
 * that has it now: of several the one that a family of the table has. Reports a name that may be
 * that of several, and one whose field is given too. */
void fg_grid_take_former(const fg_texts *field[FG_FIELD_ROWS], const fg_texts *words,
                         const char *where, fg_report *errors);

#endif
