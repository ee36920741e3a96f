/* flag.h - counters in global memory that blocks write, read and wait for. */
#ifndef FG_HOST_FLAG_H
#define FG_HOST_FLAG_H

#include "engine.h"

void fgh_flag_launch(void);
int fgh_flag_waits(void);   /* a thread of the seat waits for one */
void fgh_flag_report(void); /* the flags that threads wait for */

u32 fgh_atomic_add_u32(u32 *to, u32 value, int release);
void fgh_store_release_u32(u32 *to, u32 value);
u32 fgh_load_acquire_u32(const u32 *from);
void fgh_flag_wait(const u32 *flag, u32 until);

#endif
