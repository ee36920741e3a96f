/* shadow.h - shared memory, with a record of who last wrote and read each 4 bytes of it. */
#ifndef FG_HOST_SHADOW_H
#define FG_HOST_SHADOW_H

#include "engine.h"

enum {
  FGH_SHARED_MAX = 227 << 10, /* bytes a block may have: sm_90 */
  FGH_GRANULE = 4,
  FGH_GRANULES = FGH_SHARED_MAX / FGH_GRANULE
};

/* A block begins: nothing is written, the base address is drawn anew. */
void fgh_shared_block(u32 bytes, u32 warps);

u32 fgh_shared_base(void);
void fgh_shared_load(u32 address, void *value, int bytes);
void fgh_shared_store(u32 address, const void *value, int bytes);

/* The load of a primitive that does more than load. */
void fgh_shared_read(u32 address, void *value, int bytes);

/* An asynchronous copy, known by its first granule, is a store by the running thread twice: when it
 * is issued, for what others did before, and when it lands, for what they do then. Between the two
 * every access is a fault. */
u32 fgh_shared_issue(u32 address, int bytes);
void fgh_shared_land(u32 granule, const void *value, int bytes);
void fgh_shared_abandon(u32 granule, int bytes); /* it never landed, and its launch has ended */

#endif
