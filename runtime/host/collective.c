/* collective.c - where threads meet: warp_sync, shuffle, ballot, and the block's sixteen barriers.
 *
 * The lanes of a mask meet when each has made the same call; the last to come acts for all and
 * goes on. Several meetings may be open in one warp. A lane may go through one of fewer lanes
 * while others wait for it in another, as hardware since sm_70 allows; what is wrong for certain
 * is reported at once (equal masks and different calls, two lanes that wait for each other in
 * different calls, a lane that returned) and the rest when nothing can run: deadlock. */
#include "block.h"
#include "cluster.h"
#include "shadow.h"

#include <stdio.h>

enum { BARRIERS = 16 };

typedef struct meeting {
  fgh_call call;
  u32 arrived;
} meeting;

typedef struct warp_state {
  u32 alive; /* lanes that have not returned */
  u32 open;  /* meetings in use */
  meeting meetings[32];
  u32 value[32], result[32]; /* of a shuffle, by lane */
  u8 from[32];
} warp_state;

typedef struct barrier {
  int expected, arrived; /* threads; both zero between uses */
  fgh_warps came, waits; /* arrived or waiting; waiting */
  fgh_release clock;
} barrier;

static warp_state teams[FGH_MAX_SEATS][FGH_MAX_WARPS], *team = teams[0];
static barrier all_barriers[FGH_MAX_SEATS][FGH_MAX_CLUSTER][BARRIERS];
static barrier (*barriers)[BARRIERS] = all_barriers[0]; /* by block of the cluster */
static u32 threads_in_block, all_warps;

void fgh_collective_seat(u32 seat) {
  team = teams[seat];
  barriers = all_barriers[seat];
}

static void reset(barrier *b) {
  b->expected = b->arrived = 0;
  b->came = b->waits = 0;
  fgh_release_clear(&b->clock);
}

void fgh_collective_block(u32 block_threads, u32 warps) {
  threads_in_block = block_threads;
  all_warps = warps;
  for (u32 w = 0; w < warps; w++) {
    team[w].alive = ~0u;
    team[w].open = 0;
  }
  for (u32 rank = 0; rank < fgh_cluster_blocks; rank++)
    for (int i = 0; i < BARRIERS; i++) reset(&barriers[rank][i]);
}

typedef struct words {
  char text[48];
} words;

static words name(fgh_call call) {
  static const char *const kind[] = {
      "warp_sync",    "shuffle",       "ballot",     "ldmatrix_x4",  "ldmatrix_x4_trans",
      "mma_bf16",     "mma_f16",       "mma_e4m3",   "stmatrix_x4",  "stmatrix_x4_trans",
      "elect_one",    "wgmma",         "wgmma_wait", "setmaxnreg",   "cluster_arrive",
      "cluster_wait", "mbarrier_wait", "flag_wait",  "barrier_sync", "barrier_arrive"};
  words w;
  if (call.kind == FGH_MBARRIER_WAIT)
    snprintf(w.text, sizeof w.text, "mbarrier_wait(byte %d, parity %d)", call.id, call.threads);
  else if (call.kind == FGH_FLAG_WAIT)
    snprintf(w.text, sizeof w.text, "flag_wait(until %u)", (u32)call.id);
  else if (call.kind == FGH_SETMAXNREG)
    snprintf(w.text, sizeof w.text, "setmaxnreg_%s_%d", call.threads ? "inc" : "dec", call.id);
  else if (call.kind >= FGH_BARRIER_SYNC)
    snprintf(w.text, sizeof w.text, "%s(%d, %d)", kind[call.kind], call.id, call.threads);
  else
    snprintf(w.text, sizeof w.text, "%s(%#x)", kind[call.kind], call.lanes);
  return w;
}

/* ---- meetings ---- */

static int same(fgh_call a, fgh_call b) {
  return a.kind == b.kind && a.lanes == b.lanes && a.id == b.id && a.threads == b.threads;
}

/* The open meeting that the call joins, NULL if it is the first to come. */
static meeting *find_meeting(warp_state *w, fgh_call call) {
  u32 me = 1u << fgh_self->lane;
  meeting *mine = NULL;
  for (u32 rest = w->open; rest; rest &= rest - 1) {
    meeting *m = &w->meetings[__builtin_ctz(rest)];
    if (same(m->call, call))
      mine = m;
    else if ((m->call.lanes & me) && (m->arrived & call.lanes))
      fgh_fault("divergence: lane %u calls %s while lanes %#x of warp %u wait in %s",
                fgh_self->lane, name(call).text, m->arrived, fgh_self->warp, name(m->call).text);
  }
  return mine;
}

int fgh_meet(fgh_call call) {
  warp_state *w = &team[fgh_self->warp];
  u32 me = 1u << fgh_self->lane;
  fgh_self->call = call;
  if (!(call.lanes & me))
    fgh_fault("%s by lane %u, which is not in its mask", name(call).text, fgh_self->lane);
  if (call.lanes & ~w->alive)
    fgh_fault("divergence: lane %u calls %s, but lanes %#x of warp %u have returned",
              fgh_self->lane, name(call).text, call.lanes & ~w->alive, fgh_self->warp);
  if (call.lanes == me) return 1;
  meeting *m = find_meeting(w, call);
  if (!m) {
    u32 slot = (u32)__builtin_ctz(~w->open);
    w->open |= 1u << slot;
    m = &w->meetings[slot];
    *m = (meeting){.call = call};
  }
  m->arrived |= me;
  if (m->arrived == call.lanes) {
    w->open &= ~(1u << (m - w->meetings));
    fgh_progress++;
    return 1;
  }
  fgh_wait();
  return 0;
}

void fgh_wake_others(u32 lanes) { fgh_wake(fgh_self->warp, lanes & ~(1u << fgh_self->lane)); }

void fgh_warp_sync(u32 lanes) {
  FGH_ENTER();
  if (!fgh_meet((fgh_call){.kind = FGH_WARP_SYNC, .lanes = lanes})) return;
  fgh_clock_lanes(fgh_self->warp, lanes);
  fgh_wake_others(lanes);
}

u32 fgh_shuffle(u32 lanes, u32 value, int from) {
  FGH_ENTER();
  u32 lane = fgh_self->lane;
  warp_state *w = &team[fgh_self->warp];
  if (from < 0 || from > 31 || !(lanes >> from & 1))
    fgh_fault("shuffle(%#x) takes the value of lane %d, which is not in the mask", lanes, from);
  w->value[lane] = value;
  w->from[lane] = (u8)from;
  if (fgh_meet((fgh_call){.kind = FGH_SHUFFLE, .lanes = lanes})) {
    for (u32 rest = lanes; rest; rest &= rest - 1) {
      int i = __builtin_ctz(rest);
      w->result[i] = w->value[w->from[i]];
    }
    fgh_wake_others(lanes);
  }
  return w->result[lane];
}

u32 fgh_ballot(u32 lanes, int predicate) {
  FGH_ENTER();
  u32 lane = fgh_self->lane, votes = 0;
  warp_state *w = &team[fgh_self->warp];
  w->value[lane] = predicate != 0;
  if (fgh_meet((fgh_call){.kind = FGH_BALLOT, .lanes = lanes})) {
    for (u32 rest = lanes; rest; rest &= rest - 1) {
      int i = __builtin_ctz(rest);
      votes |= w->value[i] << i;
    }
    for (u32 rest = lanes; rest; rest &= rest - 1) w->result[__builtin_ctz(rest)] = votes;
    fgh_wake_others(lanes);
  }
  return w->result[lane];
}

/* ---- barriers ---- */

static void check_barrier(fgh_call call) {
  if (call.id < 0 || call.id >= BARRIERS) fgh_fault("%s: barriers are 0 to 15", name(call).text);
  if (call.threads <= 0 || call.threads % 32 || (u32)call.threads > threads_in_block)
    fgh_fault("%s: want a multiple of 32 threads, at most the block's %u", name(call).text,
              threads_in_block);
}

/* The warp comes to the barrier; returns 1 when that completes it. */
static int arrive(barrier *b, fgh_call call) {
  u32 warp = fgh_self->warp;
  if (b->arrived && b->expected != call.threads)
    fgh_fault("%s: earlier arrivals expect %d threads", name(call).text, b->expected);
  if (b->came >> warp & 1)
    fgh_fault("%s: warp %u comes a second time before the barrier completes, %d of %d threads have",
              name(call).text, warp, b->arrived, b->expected);
  fgh_clock_release(warp, &b->clock);
  b->expected = call.threads;
  b->arrived += 32;
  b->came |= fgh_warp_bit(warp);
  if (call.kind == FGH_BARRIER_SYNC) b->waits |= fgh_warp_bit(warp);
  return b->arrived == b->expected;
}

static void complete(barrier *b) {
  for (fgh_warps rest = b->waits; rest; rest &= rest - 1) {
    u32 warp = fgh_first_warp(rest);
    fgh_clock_join(warp, &b->clock);
    if (warp != fgh_self->warp) fgh_wake(warp, ~0u);
  }
  reset(b);
}

static void come(fgh_kind kind, int id, int threads) {
  fgh_call call = {.kind = kind, .lanes = ~0u, .id = id, .threads = threads};
  check_barrier(call);
  if (!fgh_meet(call)) return;
  barrier *b = &barriers[fgh_self->rank][id];
  if (arrive(b, call))
    complete(b);
  else if (kind == FGH_BARRIER_SYNC) {
    fgh_wait(); /* the other lanes are waiting too; `complete` wakes all 32 */
    return;
  }
  fgh_wake_others(~0u);
}

void fgh_barrier_sync(int id, int threads) {
  FGH_ENTER();
  come(FGH_BARRIER_SYNC, id, threads);
}

void fgh_barrier_arrive(int id, int threads) {
  FGH_ENTER();
  come(FGH_BARRIER_ARRIVE, id, threads);
}

/* ---- threads that end, threads that cannot go on ---- */

void fgh_collective_return(void) {
  warp_state *w = &team[fgh_self->warp];
  w->alive &= ~(1u << fgh_self->lane);
  for (u32 rest = w->open; rest; rest &= rest - 1) {
    const meeting *m = &w->meetings[__builtin_ctz(rest)];
    if (!(m->call.lanes & ~w->alive)) continue;
    fgh_self->path = fgh_place(&fgh_threads[fgh_self->warp * 32 + (u32)__builtin_ctz(m->arrived)]);
    fgh_fault("divergence: lane %u returned while lanes %#x of warp %u wait in %s", fgh_self->lane,
              m->arrived, fgh_self->warp, name(m->call).text);
  }
}

/* The lanes that a waiting thread's call still misses in its own warp; 0: it waits for others. */
static u32 missing(const fgh_thread *t) {
  const warp_state *w = &team[t->warp];
  for (u32 rest = w->open; rest; rest &= rest - 1) {
    const meeting *m = &w->meetings[__builtin_ctz(rest)];
    if (m->arrived >> t->lane & 1) return m->call.lanes & ~m->arrived;
  }
  return 0;
}

static int alike(fgh_thread *a, fgh_thread *b) {
  u32 here_a = team[a->warp].alive >> a->lane & 1, here_b = team[b->warp].alive >> b->lane & 1;
  return here_a == here_b && (!here_a || (same(a->call, b->call) && fgh_place(a) == fgh_place(b)));
}

/* One line for each run of lanes that wait in the same call. Returns the first waiting lane's path.
 */
static const fgh_path *report_warp(u32 warp) {
  fgh_thread *first = &fgh_threads[warp * 32];
  const fgh_path *path = NULL;
  for (u32 lane = 0, end; lane < 32; lane = end) {
    for (end = lane + 1; end < 32 && alike(first + lane, first + end);) end++;
    if (fgh_cluster_blocks > 1)
      fgh_report("\n  block %u", first->rank);
    else
      fgh_report("\n ");
    fgh_report(" warp %u lanes %u-%u ", first->local / 32, lane, end - 1);
    if (!(team[warp].alive >> lane & 1)) {
      fgh_report("returned");
      continue;
    }
    if (!path) path = fgh_place(&first[lane]);
    fgh_report("wait in %s", name(first[lane].call).text);
    u32 without = missing(first + lane);
    if (without) fgh_report(" for lanes %#x", without);
  }
  return path;
}

void fgh_barriers_report(void) {
  for (int i = 0; i < (int)fgh_cluster_blocks * BARRIERS; i++) {
    const barrier *b = &barriers[i / BARRIERS][i % BARRIERS];
    if (!b->arrived) continue;
    fgh_report("\n  barrier %d: %d of %d threads have come", i % BARRIERS, b->arrived, b->expected);
  }
}

const fgh_path *fgh_waiting_report(void) {
  const fgh_path *path = NULL;
  for (u32 w = 0; w < all_warps; w++) {
    const fgh_path *waiting = report_warp(w);
    if (!path) path = waiting;
  }
  return path;
}
