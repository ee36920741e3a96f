/* deadlock.h - what is said when no thread of the blocks that run can. */
#ifndef FG_HOST_DEADLOCK_H
#define FG_HOST_DEADLOCK_H

#include "engine.h"

/* Reports who waits for what in so many seats, as a fault, and that so many clusters of blocks have
 * not begun. enter: what is of a seat is that of this one from here on. */
void fgh_deadlock(const u32 *seats, u32 n, u32 not_begun, void (*enter)(u32 seat));

#endif
