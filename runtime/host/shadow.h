/* shadow.h - shared memory, with a record of who last wrote and read each 4 bytes of it. */
#ifndef FG_HOST_SHADOW_H
#define FG_HOST_SHADOW_H

#include "engine.h"

enum { FGH_SHARED_MAX = 227 << 10 }; /* bytes a block may have: sm_90 */

/* A block begins: nothing is written, the base address is drawn anew. */
void fgh_shared_block(u32 bytes, u32 warps);

u32 fgh_shared_base(void);
void fgh_shared_load(u32 address, void *value, int bytes);
void fgh_shared_store(u32 address, const void *value, int bytes);

#endif
