/* shadow.h - shared memory, with a record of who last wrote and read each 4 bytes of it.
 *
 * The blocks of a cluster have FGH_GRANULES granules each, one block's behind the other's; a
 * granule is known by its number among all. Addresses are those of the running thread's block. */
#ifndef FG_HOST_SHADOW_H
#define FG_HOST_SHADOW_H

#include "clock.h"
#include "engine.h"
#include "recipe/arch.h"

enum {
  FGH_SHARED_MAX = FG_ARCH_HOST_BLOCK_KB << 10, /* bytes that a block may have */
  FGH_GRANULE = 4,
  FGH_GRANULES = FGH_SHARED_MAX / FGH_GRANULE,
  /* who has read, where it is no lane: several of them, all of the warp (a wgmma that has ended);
   * and the whole record of a read that goes on */
  FGH_SEVERAL = 32,
  FGH_WHOLE_WARP = 33
};
#define FGH_READING 0xffffffffu

typedef struct fgh_writer {
  u32 stamp, thread;
} fgh_writer;

/* fenced: the low bits of how many fence_async the writer had called. readers: by granule and warp,
 * dense in the warps that run, stamp * 64 + lane. */
extern u8 *fgh_shared;
extern fgh_writer *fgh_writers;
extern u32 *fgh_mbarrier_at; /* the granule of an mbarrier, by its slot */
extern u16 *fgh_fenced;
extern u32 *fgh_readers;
/* The last read of a bulk copy to another block: FGH_READING, or stamp * 64 + slot of the mbarrier
 * that it completed on; 0: none. fgh_copies_made: the launch has made one. */
extern u32 *fgh_copied;
extern int fgh_copies_made;
extern u32 fgh_shared_bytes, fgh_shared_warps; /* of a block; of a seat */

void fgh_shared_launch(u32 bytes, u32 warps);
/* Blocks begin: nothing is written, the base address is drawn anew. */
void fgh_shared_block(void);
void fgh_shared_seat(u32 seat);

void fgh_shared_forget(void); /* a launch has ended in a fault: what it left in flight is gone */

u32 fgh_shared_base(void);
void fgh_shared_load(u32 address, void *value, int bytes);
void fgh_shared_store(u32 address, const void *value, int bytes);

/* The load and the store of a primitive that does more. */
void fgh_shared_read(u32 address, void *value, int bytes);
void fgh_shared_write(u32 address, const void *value, int bytes, const char *what);

/* Takes 4, 8 or 16 bytes as a store does, and returns their first granule. */
u32 fgh_shared_take(u32 address, int bytes, const char *what);

/* The byte of its block that a granule is, for messages. */
static inline u32 fgh_byte_of(u32 granule) { return granule % FGH_GRANULES * FGH_GRANULE; }

/* An asynchronous copy, known by its first granule, is a store by the running thread twice: when it
 * is issued, for what others did before, and when it lands, for what they do then. Between the two
 * every access is a fault. */
u32 fgh_shared_issue(u32 address, int bytes);
void fgh_shared_land(u32 granule, const void *value, int bytes);
void fgh_shared_abandon(u32 granule, int bytes); /* it never landed, and its launch has ended */

/* Faults of an access: nothing may come between these and what they say. */
void fgh_judge_load(u32 granule, const char *what);
void fgh_judge_store(u32 granule, const char *what);

/* region.c: accesses of the asynchronous proxy. A region lies in the running thread's block or, of
 * the same addresses, in another one of its cluster. */
u32 fgh_region(u32 address, u32 bytes, u32 align, const char *what);
u32 fgh_region_in(u32 rank, u32 granule);

/* What TMA fills for the mbarrier in a slot: from the issue on no other access may touch it. */
void fgh_fill_issue(u32 granule, u32 bytes, u32 slot, const char *what);
void fgh_fill_land(u32 granule, u32 bytes, const void *data, u32 slot, u32 stamp);

/* What wgmma and TMA's stores read for the running warp: from the begin to the end no access may
 * change it. The end's reader is a lane or FGH_WHOLE_WARP. */
void fgh_async_read_begin(u32 granule, u32 bytes, const char *what);
void fgh_async_read_again(u32 granule, u32 bytes); /* goes on after all */
void fgh_async_read_end(u32 granule, u32 bytes, u32 stamp, u32 reader);

/* The same of a bulk copy to another block. It ends with what it filled, at the stamp of that. */
void fgh_copy_read_begin(u32 granule, u32 bytes, const char *what);
void fgh_copy_read_again(u32 granule, u32 bytes);
void fgh_copy_read_end(u32 granule, u32 bytes, u32 stamp, u32 slot);

/* Whether a store may meet such a read. */
static inline u32 fgh_copy_reads(u32 granule) { return fgh_copies_made && fgh_copied[granule]; }

#endif
