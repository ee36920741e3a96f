/* deadlock.h - what is said when no thread of a block can run. */
#ifndef FG_HOST_DEADLOCK_H
#define FG_HOST_DEADLOCK_H

/* Reports who waits for what, as a fault. */
__attribute__((noreturn)) void fgh_deadlock(void);

#endif
