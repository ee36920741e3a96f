/* seats.h - the blocks of a launch, one after another or some together. */
#ifndef FG_HOST_SEATS_H
#define FG_HOST_SEATS_H

#include "engine.h"

void fgh_seats_launch(const fg_host_launch *launch);
void fgh_seats_run(void); /* until all blocks have ended, or one has a fault */

/* What is of a seat is that of this one from here on. */
void fgh_seats_enter(u32 seat);

#endif
