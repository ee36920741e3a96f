/* clock.h - happens-before between the threads of a block: logical clocks of warps and lanes.
 *
 * An access is known by (thread, stamp). A warp's stamps grow at its synchronisations, and go on
 * growing from block to block and launch to launch: so a record left by an earlier block is older
 * than fgh_block_start and no shadow need be cleared. Barriers order whole warps, because all 32
 * lanes come to them; lanes of one warp are ordered by barrier_sync and warp_sync alone: shuffles
 * and ballots do not order memory, and barrier_arrive orders a warp only before those who sync. */
#ifndef FG_HOST_CLOCK_H
#define FG_HOST_CLOCK_H

#include "engine.h"

enum {
  FGH_MAX_WARPS = 32,
  FGH_IN_FLIGHT = 1, /* no access has this stamp, nor 0: all are younger */
  /* the shadow packs a stamp with a lane: 33 million syncs a launch at least */
  FGH_STAMP_BITS = 26
};

typedef struct fgh_clock {
  u32 stamp[32]; /* of each lane's accesses now */
  /* What all its lanes see: accesses of warp i with stamps below seen[i] happened before. Of its
   * own warp: those before the last synchronisation of all lanes. */
  u32 seen[FGH_MAX_WARPS];
  u32 last;              /* the last stamp given out */
  u32 parted;            /* lanes that joined in a warp_sync of some lanes since one of all */
  u32 lane_seen[32][32]; /* [observer][lane], likewise, through warp_syncs of some lanes */
} fgh_clock;

extern fgh_clock fgh_clocks[FGH_MAX_WARPS];
extern u32 fgh_launch_start, fgh_block_start; /* the first stamps of the launch, the block */
extern u32 fgh_era; /* grows when stamps start again: older records must be cleared */

void fgh_clock_launch(void);
void fgh_clock_block(u32 warps);

/* The lanes of the mask have met in warp_sync. */
void fgh_clock_lanes(u32 warp, u32 lanes);

/* A barrier's clock, zero at first: gathers what arriving warps have seen and done, and gives it
 * to those who wait. */
void fgh_clock_release(u32 warp, u32 *barrier);
void fgh_clock_join(u32 warp, const u32 *barrier);

/* Whether an access of this block by `thread` happened before what `by` does now. */
static inline int fgh_ordered(u32 thread, u32 stamp, u32 by) {
  const fgh_clock *clock = &fgh_clocks[by / 32];
  if (stamp < clock->seen[thread / 32] || thread == by) return 1;
  return thread / 32 == by / 32 && stamp < clock->lane_seen[by % 32][thread % 32];
}

#endif
