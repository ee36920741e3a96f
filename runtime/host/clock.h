/* clock.h - happens-before between the threads of a block: logical clocks of warps and lanes.
 *
 * A seat is the place of a cluster of blocks, or of one block, that runs; more than one is taken
 * where blocks wait for each other. Warps, threads and mbarriers are numbered in each anew.
 *
 * An access is known by (thread, stamp). A warp's stamps grow at its synchronisations, and go on
 * growing from block to block and launch to launch: so a record left by an earlier block is older
 * than fgh_block_start and no shadow need be cleared. Barriers order whole warps, because all 32
 * lanes come to them; lanes of one warp are ordered by barrier_sync and warp_sync alone: shuffles
 * and ballots do not order memory, and barrier_arrive orders a warp only before those who sync. An
 * mbarrier orders the lanes that arrive before the lanes that wait, each for itself.
 *
 * Besides the warps, each mbarrier is an actor: what TMA fills is written by the mbarrier that it
 * completes on, as if by its thread (FGH_MAX_WARPS + slot) * 32. */
#ifndef FG_HOST_CLOCK_H
#define FG_HOST_CLOCK_H

#include "engine.h"
#include "recipe/arch.h"

enum {
  FGH_MAX_WARPS = FG_ARCH_HOST_CLUSTER_THREADS / 32, /* of a seat */
  FGH_MAX_CLUSTER = 8,
  FGH_MAX_SEATS = FG_HOST_RESIDENT_MAX,
  FGH_MAX_BLOCKS = FG_HOST_BLOCKS_MAX, /* of all seats */
  FGH_MAX_MBARRIERS = 64,              /* of a seat */
  FGH_ACTORS = FGH_MAX_WARPS + FGH_MAX_MBARRIERS,
  FGH_IN_FLIGHT = 1, /* no access has one of these stamps, nor 0: all are younger */
  FGH_MBARRIER = 2,
  /* the shadow packs a stamp with a lane: 33 million syncs a launch at least */
  FGH_STAMP_BITS = 26
};

/* A set of warps of a seat, a bit each. */
typedef u64 fgh_warps;

static inline fgh_warps fgh_warp_bit(u32 warp) { return (fgh_warps)1 << warp; }
static inline u32 fgh_first_warp(fgh_warps set) { return (u32)__builtin_ctzll(set); }

typedef struct fgh_clock {
  u32 stamp[32]; /* of each lane's accesses now */
  /* What all its lanes see: accesses of warp i with stamps below seen[i] happened before. Of its
   * own warp: those before the last synchronisation of all lanes. */
  u32 seen[FGH_ACTORS];
  u32 last;              /* the last stamp given out */
  u32 apart;             /* lanes that waited for an mbarrier since all lanes met */
  u32 parted;            /* lanes that joined in a warp_sync of some lanes since one of all */
  u32 lane_seen[32][32]; /* [observer][lane], likewise, through warp_syncs of some lanes */
  u32 lane_actors[32][FGH_ACTORS]; /* [observer]: as seen, of a lane that waited for an mbarrier */
  /* What is known of single lanes of other warps, which arrived at mbarriers; `any`: the latest of
   * a warp's. Held for all lanes of the observing warp, though only those that waited know. */
  u32 known[FGH_MAX_WARPS][32], any[FGH_MAX_WARPS];
  /* What other blocks gave (gift.h): known to all lanes; to one that has joined by itself. */
  u32 gifts, lane_gifts[32];
} fgh_clock;

/* What arrivals at a barrier have handed over, zero at first: of whole warps and actors, and of
 * single lanes. */
typedef struct fgh_release {
  u32 all[FGH_ACTORS];
  fgh_warps lone; /* with single lanes */
  u32 lanes[FGH_MAX_WARPS][32], any[FGH_MAX_WARPS];
  u32 gifts;
} fgh_release;

/* Clocks are of the seat whose turn it is, as all is that no header says to be of the launch: each
 * module's function fgh_*_seat changes to another seat. */
extern u32 fgh_seat;
extern fgh_clock *fgh_clocks;
extern u32 fgh_launch_start, fgh_block_start; /* the first stamps of the launch, the block; no two
                                                 blocks of a launch begin with the same */
extern u32 fgh_era; /* grows when stamps start again: older records must be cleared */

void fgh_clock_launch(void);
void fgh_clock_block(u32 warps);
void fgh_clock_seat(u32 seat);

/* The first stamp of the blocks that were in a seat at a stamp of the launch. */
u32 fgh_clock_run(u32 seat, u32 stamp);

/* The lanes of the mask have met in warp_sync. */
void fgh_clock_lanes(u32 warp, u32 lanes);

/* Gathers what arriving warps have seen and done, and gives it to those who wait. */
void fgh_clock_release(u32 warp, fgh_release *to);
void fgh_clock_join(u32 warp, const fgh_release *from);
void fgh_release_clear(fgh_release *release);

/* The same of the running lane; and of its warp, once all lanes have joined each for itself. */
void fgh_clock_release_lane(fgh_release *to);
void fgh_clock_join_lane(const fgh_release *from);
void fgh_clock_join_warp(const fgh_release *from);

/* The gifts that the running lane knows of; it learns of more. */
u32 fgh_clock_gifts(void);
void fgh_clock_learn(u32 gifts);

/* TMA has filled memory and completes on the mbarrier in a slot: the stamp of what it wrote. */
u32 fgh_clock_fill(u32 slot, fgh_release *to);

/* Whether an access of this block by `thread` happened before what `by` does now. */
static inline int fgh_ordered(u32 thread, u32 stamp, u32 by) {
  const fgh_clock *clock = &fgh_clocks[by / 32];
  if (stamp < clock->seen[thread / 32] || thread == by) return 1;
  if (thread / 32 == by / 32 && stamp < clock->lane_seen[by % 32][thread % 32]) return 1;
  if (stamp < clock->lane_actors[by % 32][thread / 32]) return 1;
  return thread / 32 < FGH_MAX_WARPS && stamp < clock->known[thread / 32][thread % 32];
}

#endif
