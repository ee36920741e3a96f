/* gift.h - gifts of a launch: what threads knew of their own blocks when they released, for threads
 * of others; and sets of gifts, each known by a number: equal sets have one, that of none is 0. */
#ifndef FG_HOST_GIFT_H
#define FG_HOST_GIFT_H

#include "clock.h"

void fgh_gifts_launch(void);

/* The running thread gives what it knows of, or knew of: the set of that and of all it had got. */
u32 fgh_gift_new(const fgh_release *what);

u32 fgh_gifts_merge(u32 a, u32 b);

static inline u32 fgh_gifts_join(u32 a, u32 b) {
  return a == b || !b ? a : !a ? b : fgh_gifts_merge(a, b);
}

/* Orders the running lane behind all that its own block's gifts in the set knew of. */
void fgh_gifts_join_own(u32 set);

/* Whether a thread's access, in a seat at a stamp of the launch, is known by the set. */
int fgh_gifts_have(u32 set, u32 seat, u32 thread, u32 stamp);

#endif
