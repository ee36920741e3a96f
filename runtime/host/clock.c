/* clock.c - the clocks of clock.h: exact, with no false order and no missing one. */
#include "clock.h"

#include "block.h"
#include "gift.h"

#include <stdlib.h>

static fgh_clock clocks[FGH_MAX_SEATS][FGH_MAX_WARPS];
static u32 all_fills[FGH_MAX_SEATS][FGH_MAX_MBARRIERS], starts[FGH_MAX_SEATS];

u32 fgh_seat;
fgh_clock *fgh_clocks = clocks[0];
u32 fgh_launch_start, fgh_block_start, fgh_era;

/* The first stamps of the launch's blocks, by seat, ascending. */
static struct runs {
  u32 *first;
  u32 n, room;
} runs[FGH_MAX_SEATS];

static u32 highest =
    FGH_MBARRIER;                 /* when a block last began, nobody had given out a higher stamp */
static u32 *fills = all_fills[0]; /* the last stamps of what TMA filled */

void fgh_clock_seat(u32 seat) {
  fgh_seat = seat;
  fgh_clocks = clocks[seat];
  fills = all_fills[seat];
  fgh_block_start = starts[seat];
}

static void gather(void) {
  for (int s = 0; s < FGH_MAX_SEATS; s++) {
    for (int i = 0; i < FGH_MAX_WARPS; i++)
      if (clocks[s][i].last > highest) highest = clocks[s][i].last;
    for (int i = 0; i < FGH_MAX_MBARRIERS; i++)
      if (all_fills[s][i] > highest) highest = all_fills[s][i];
  }
}

void fgh_clock_launch(void) {
  gather();
  if (highest >= 1u << (FGH_STAMP_BITS - 1)) {
    fgh_era++;
    highest = FGH_MBARRIER;
    memset(clocks, 0, sizeof clocks);
    memset(all_fills, 0, sizeof all_fills);
  }
  fgh_launch_start = highest + 1;
  for (int s = 0; s < FGH_MAX_SEATS; s++) runs[s].n = 0;
}

static void add_run(struct runs *r, u32 first) {
  if (r->n == r->room) {
    r->room = 2 * r->n + 8;
    r->first = realloc(r->first, r->room * sizeof *r->first);
    if (!r->first) fgh_fault("no memory for a list of blocks");
  }
  r->first[r->n++] = first;
}

/* Looks for the last block that began at the stamp or before. */
u32 fgh_clock_run(u32 seat, u32 stamp) {
  const struct runs *r = &runs[seat];
  u32 low = 0, high = r->n; /* the run is one of these, the last of them most often */
  if (stamp >= starts[seat]) return starts[seat];
  while (high - low > 1) {
    u32 middle = (low + high) / 2;
    if (r->first[middle] <= stamp)
      low = middle;
    else
      high = middle;
  }
  return r->first[low];
}

/* The rest needs no clearing: what it holds is older than the block. */
void fgh_clock_block(u32 warps) {
  gather();
  fgh_block_start = starts[fgh_seat] = highest + 1;
  add_run(&runs[fgh_seat], fgh_block_start);
  for (u32 w = 0; w < warps; w++) {
    fgh_clock *clock = &fgh_clocks[w];
    clock->last = fgh_block_start;
    clock->parted = clock->apart = clock->gifts = 0;
    memset(clock->lane_gifts, 0, sizeof clock->lane_gifts);
    for (int i = 0; i < 32; i++) clock->stamp[i] = fgh_block_start;
    for (int i = 0; i < FGH_ACTORS; i++) clock->seen[i] = fgh_block_start;
  }
  for (int i = 0; i < FGH_MAX_MBARRIERS; i++) fills[i] = fgh_block_start;
}

static inline void raise(u32 *to, const u32 *from, int n) {
  for (int i = 0; i < n; i++) to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* All lanes of the warp meet: each sees what any of them saw. */
static void fold(fgh_clock *clock) {
  for (; clock->apart; clock->apart &= clock->apart - 1) {
    int lane = __builtin_ctz(clock->apart);
    raise(clock->seen, clock->lane_actors[lane], FGH_ACTORS);
    clock->gifts = fgh_gifts_join(clock->gifts, clock->lane_gifts[lane]);
    clock->lane_gifts[lane] = 0;
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
    fold(clock);
    for (int i = 0; i < 32; i++) clock->stamp[i] = now;
    clock->seen[warp] = now;
    clock->parted = 0;
    return;
  }
  u32 seen[32] = {0}, actors[FGH_ACTORS] = {0}; /* by any before, hence by all of them now */
  u32 gifts = 0;
  for (u32 rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    raise(seen, clock->lane_seen[lane], 32);
    raise(actors, clock->lane_actors[lane], FGH_ACTORS);
    gifts = fgh_gifts_join(gifts, clock->lane_gifts[lane]);
  }
  for (u32 rest = lanes; rest; rest &= rest - 1) seen[__builtin_ctz(rest)] = now;
  for (u32 rest = lanes; rest; rest &= rest - 1) {
    int lane = __builtin_ctz(rest);
    clock->stamp[lane] = now;
    memcpy(clock->lane_seen[lane], seen, sizeof seen);
    memcpy(clock->lane_actors[lane], actors, sizeof actors);
    clock->lane_gifts[lane] = gifts;
  }
  clock->parted |= lanes;
  clock->apart |= lanes;
}

void fgh_release_clear(fgh_release *release) {
  release->gifts = 0;
  memset(release->all, 0, sizeof release->all);
  for (; release->lone; release->lone &= release->lone - 1) {
    u32 w = fgh_first_warp(release->lone);
    memset(release->lanes[w], 0, sizeof release->lanes[w]);
    release->any[w] = 0;
  }
}

/* What the warp knows of single lanes of others. */
static void pass_lanes(const fgh_clock *clock, fgh_release *to) {
  for (u32 w = 0; w < FGH_MAX_WARPS; w++) {
    if (clock->any[w] < fgh_block_start) continue;
    raise(to->lanes[w], clock->known[w], 32);
    if (clock->any[w] > to->any[w]) to->any[w] = clock->any[w];
    to->lone |= fgh_warp_bit(w);
  }
}

static void take_lanes(fgh_clock *clock, const fgh_release *from) {
  for (fgh_warps rest = from->lone; rest; rest &= rest - 1) {
    u32 w = fgh_first_warp(rest);
    raise(clock->known[w], from->lanes[w], 32);
    if (from->any[w] > clock->any[w]) clock->any[w] = from->any[w];
  }
}

/* The lanes' stamps rise, so that later accesses are not taken for released ones; seen[warp] does
 * not, because arriving alone orders no lane after another. */
void fgh_clock_release(u32 warp, fgh_release *to) {
  fgh_clock *clock = &fgh_clocks[warp];
  u32 now = tick(clock);
  fold(clock);
  raise(to->all, clock->seen, FGH_ACTORS);
  to->all[warp] = now;
  to->gifts = fgh_gifts_join(to->gifts, clock->gifts);
  pass_lanes(clock, to);
  for (int i = 0; i < 32; i++) clock->stamp[i] = now;
}

/* Who waits has released, after all that its lanes did: so seen[warp] rises above that. */
void fgh_clock_join(u32 warp, const fgh_release *from) {
  fgh_clock *clock = &fgh_clocks[warp];
  raise(clock->seen, from->all, FGH_ACTORS);
  clock->gifts = fgh_gifts_join(clock->gifts, from->gifts);
  take_lanes(clock, from);
  clock->parted = 0;
}

/* In the lane's own warp: what all lanes did before they last met, and what the lane itself did or
 * saw of others. */
void fgh_clock_release_lane(fgh_release *to) {
  u32 warp = fgh_self->warp, lane = fgh_self->lane;
  fgh_clock *clock = &fgh_clocks[warp];
  u32 now = tick(clock);
  raise(to->all, clock->seen, FGH_ACTORS);
  raise(to->all, clock->lane_actors[lane], FGH_ACTORS);
  to->gifts = fgh_gifts_join(to->gifts, fgh_clock_gifts());
  pass_lanes(clock, to);
  raise(to->lanes[warp], clock->lane_seen[lane], 32);
  to->lanes[warp][lane] = to->any[warp] = now;
  to->lone |= fgh_warp_bit(warp);
  clock->stamp[lane] = now;
}

void fgh_clock_join_lane(const fgh_release *from) {
  fgh_clock *clock = &fgh_clocks[fgh_self->warp];
  raise(clock->lane_actors[fgh_self->lane], from->all, FGH_ACTORS);
  fgh_clock_learn(from->gifts);
  take_lanes(clock, from);
}

void fgh_clock_join_warp(const fgh_release *from) {
  fgh_clock *clock = &fgh_clocks[fgh_self->warp];
  raise(clock->seen, from->all, FGH_ACTORS);
  clock->gifts = fgh_gifts_join(clock->gifts, from->gifts);
}

u32 fgh_clock_gifts(void) {
  const fgh_clock *clock = &fgh_clocks[fgh_self->warp];
  return fgh_gifts_join(clock->gifts, clock->lane_gifts[fgh_self->lane]);
}

void fgh_clock_learn(u32 gifts) {
  fgh_clock *clock = &fgh_clocks[fgh_self->warp];
  u32 *own = &clock->lane_gifts[fgh_self->lane];
  *own = fgh_gifts_join(*own, gifts);
  clock->apart |= 1u << fgh_self->lane;
}

u32 fgh_clock_fill(u32 slot, fgh_release *to) {
  u32 now = fills[slot]++;
  if (fills[slot] >> FGH_STAMP_BITS)
    fgh_fault("more than %d million copies in one launch", 1 << (FGH_STAMP_BITS - 20));
  if (to->all[FGH_MAX_WARPS + slot] <= now) to->all[FGH_MAX_WARPS + slot] = now + 1;
  return now;
}
