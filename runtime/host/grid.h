/* grid.h - the blocks of a launch, one after another or some together. */
#ifndef FG_HOST_GRID_H
#define FG_HOST_GRID_H

#include "engine.h"

void fgh_grid_launch_begin(const fg_host_launch *launch);
void fgh_grid_run(void); /* until all blocks have ended, or one has a fault */

/* What is of a seat is that of this one from here on. */
void fgh_enter_seat(u32 seat);

#endif
