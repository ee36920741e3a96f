/* clock.c - the clocks of clock.h: exact, with no false order and no missing one. */
#include "clock.h"

#include "block.h"

fgh_clock fgh_clocks[FGH_MAX_WARPS];
u32 fgh_launch_start, fgh_block_start, fgh_era;

static u32 highest =
    FGH_IN_FLIGHT; /* no warp has given out a higher stamp, but for those of this block */

static void gather(void) {
  for (int i = 0; i < FGH_MAX_WARPS; i++)
    if (fgh_clocks[i].last > highest) highest = fgh_clocks[i].last;
}

void fgh_clock_launch(void) {
  gather();
  if (highest >= 1u << (FGH_STAMP_BITS - 1)) {
    fgh_era++;
    highest = FGH_IN_FLIGHT;
    for (int i = 0; i < FGH_MAX_WARPS; i++) fgh_clocks[i] = (fgh_clock){0};
  }
  fgh_launch_start = highest + 1;
}

/* lane_seen needs no clearing: what it holds is older than the block. */
void fgh_clock_block(u32 warps) {
  gather();
  fgh_block_start = highest + 1;
  for (u32 w = 0; w < warps; w++) {
    fgh_clock *clock = &fgh_clocks[w];
    clock->last = fgh_block_start;
    clock->parted = 0;
    for (int i = 0; i < 32; i++) clock->stamp[i] = clock->seen[i] = fgh_block_start;
  }
}

static u32 tick(fgh_clock *clock) {
  if (++clock->last >> FGH_STAMP_BITS)
    fgh_fault("more than %d million synchronisations in one launch", 1 << (FGH_STAMP_BITS - 20));
  return clock->last;
}

void fgh_clock_lanes(u32 warp, u32 lanes) {
  fgh_clock *clock = &fgh_clocks[warp];
  u32 now = tick(clock);
  if (lanes == ~0u) {
    for (int i = 0; i < 32; i++) clock->stamp[i] = now;
    clock->seen[warp] = now;
    clock->parted = 0;
    return;
  }
  u32 seen[32] = {0}; /* by any of them before, hence by all of them now */
  for (u32 rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    for (int i = 0; i < 32; i++)
      if (clock->lane_seen[lane][i] > seen[i]) seen[i] = clock->lane_seen[lane][i];
  }
  for (u32 rest = lanes; rest; rest &= rest - 1) seen[__builtin_ctz(rest)] = now;
  for (u32 rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    clock->stamp[lane] = now;
    for (int i = 0; i < 32; i++) clock->lane_seen[lane][i] = seen[i];
  }
  clock->parted |= lanes;
}

/* The lanes' stamps rise, so that later accesses are not taken for released ones; seen[warp] does
 * not, because arriving alone orders no lane after another. */
void fgh_clock_release(u32 warp, u32 *barrier) {
  fgh_clock *clock = &fgh_clocks[warp];
  u32 now = tick(clock);
  for (int i = 0; i < FGH_MAX_WARPS; i++)
    if (clock->seen[i] > barrier[i]) barrier[i] = clock->seen[i];
  barrier[warp] = now;
  for (int i = 0; i < 32; i++) clock->stamp[i] = now;
}

/* Who waits has released, after all that its lanes did: so seen[warp] rises above that. */
void fgh_clock_join(u32 warp, const u32 *barrier) {
  fgh_clock *clock = &fgh_clocks[warp];
  for (int i = 0; i < FGH_MAX_WARPS; i++)
    if (barrier[i] > clock->seen[i]) clock->seen[i] = barrier[i];
  clock->parted = 0;
}
