/* gift.c - gifts and their sets. A set holds of each thread of a block the last gift, which knows
 * of all that the ones before did; joined sets are remembered, and what a set knows of a block. */
#include "gift.h"

#include "block.h"

#include <stdlib.h>

enum { JOINS = 4096, SUMS = 256 };

typedef struct gift {
  u32 seat, run, thread; /* run: the first stamp of the giver's block */
  fgh_release what;
} gift;

/* Numbers of gifts, growing. */
typedef struct set {
  u32 first, n, hash; /* the place of the first in `members` */
} set;

static gift *gifts;
static set *sets; /* by number; the first is empty */
static u32 *members;
static u32 n_gifts, n_sets, n_members, room_gifts, room_sets, room_members;

static struct { u32 a, b, to; } joins[JOINS];

/* What the gifts in a set that come of one block know of it. */
static struct sum {
  u32 set, run; /* set 0: not in use */
  fgh_release what;
} sums[SUMS];

void fgh_gifts_launch(void) {
  n_gifts = n_sets = n_members = 0;
  memset(joins, 0, sizeof joins);
  for (int i = 0; i < SUMS; i++) sums[i].set = 0;
}

static void *grown(void *list, u32 n, u32 *room, size_t size) {
  if (n <= *room) return list;
  *room = 2 * n + 8;
  list = realloc(list, *room * size);
  if (!list) fgh_fault("no memory for what blocks give each other");
  return list;
}

/* ---- sets ---- */

/* The number of the set of the `n` gifts behind the last set's. */
static u32 find_set(u32 n) {
  u32 hash = n;
  const u32 *list = members + n_members;
  for (u32 i = 0; i < n; i++) hash = (hash ^ list[i]) * 0x9e3779b1u;
  if (n_sets == 0) n_sets = 1;
  for (u32 i = 1; i < n_sets; i++)
    if (sets[i].hash == hash && sets[i].n == n &&
        !memcmp(members + sets[i].first, list, n * sizeof *list))
      return i;
  sets = grown(sets, n_sets + 1, &room_sets, sizeof *sets);
  sets[n_sets] = (set){n_members, n, hash};
  n_members += n;
  return n_sets++;
}

static int from_one_thread(u32 a, u32 b) {
  return gifts[a].run == gifts[b].run && gifts[a].thread == gifts[b].thread;
}

/* Keeps the last gift of each thread, in order. Returns how many are left. */
static u32 prune(u32 *list, u32 n) {
  u32 kept = n;
  for (u32 i = n; i-- > 0;) {
    int again = 0;
    for (u32 j = kept; j < n && !again; j++) again = from_one_thread(list[i], list[j]);
    if (!again) list[--kept] = list[i];
  }
  memmove(list, list + kept, (n - kept) * sizeof *list);
  return n - kept;
}

/* Of two ascending lists, without repeats. Returns how many there are. */
static u32 merge(const u32 *a, u32 n_a, const u32 *b, u32 n_b, u32 *to) {
  u32 n = 0;
  while (n_a || n_b) {
    u32 least = !n_b || (n_a && *a < *b) ? *a : *b;
    if (n_a && *a == least) a++, n_a--;
    if (n_b && *b == least) b++, n_b--;
    to[n++] = least;
  }
  return n;
}

/* The set of all gifts of two sets, of which none is empty and which differ. */
u32 fgh_gifts_merge(u32 a, u32 b) {
  if (a > b) return fgh_gifts_merge(b, a);
  u32 at = (a * 31 + b) % JOINS;
  if (joins[at].a == a && joins[at].b == b) return joins[at].to;
  members = grown(members, n_members + sets[a].n + sets[b].n, &room_members, sizeof *members);
  u32 *to = members + n_members;
  u32 n = merge(members + sets[a].first, sets[a].n, members + sets[b].first, sets[b].n, to);
  joins[at].a = a;
  joins[at].b = b;
  return joins[at].to = find_set(prune(to, n));
}

u32 fgh_gift_new(const fgh_release *what) {
  gifts = grown(gifts, n_gifts + 1, &room_gifts, sizeof *gifts);
  gifts[n_gifts] = (gift){fgh_seat, fgh_block_start, fgh_self->id, *what};
  members = grown(members, n_members + 1, &room_members, sizeof *members);
  members[n_members] = n_gifts++;
  return fgh_gifts_join(find_set(1), what->gifts);
}

/* ---- what they know ---- */

void fgh_gifts_join_own(u32 number) {
  for (u32 i = 0; i < sets[number].n; i++) {
    const gift *g = &gifts[members[sets[number].first + i]];
    if (g->run == fgh_block_start) fgh_clock_join_lane(&g->what);
  }
}

static void raise(u32 *to, const u32 *from, int n) {
  for (int i = 0; i < n; i++) to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* What the gifts that come of one block knew together. */
static void add_up(struct sum *s, u32 number, u32 run) {
  s->set = number;
  s->run = run;
  memset(&s->what, 0, sizeof s->what);
  for (u32 i = 0; i < sets[number].n; i++) {
    const gift *g = &gifts[members[sets[number].first + i]];
    if (g->run != run) continue;
    raise(s->what.all, g->what.all, FGH_ACTORS);
    for (fgh_warps rest = g->what.lone; rest; rest &= rest - 1) {
      u32 w = fgh_first_warp(rest);
      raise(s->what.lanes[w], g->what.lanes[w], 32);
    }
  }
}

int fgh_gifts_have(u32 number, u32 seat, u32 thread, u32 stamp) {
  if (!number) return 0;
  const u32 run = fgh_clock_run(seat, stamp), warp = thread / 32;
  struct sum *s = &sums[(number * 7 + run) % SUMS];
  if (s->set != number || s->run != run) add_up(s, number, run);
  return stamp < s->what.all[warp] ||
         (warp < FGH_MAX_WARPS && stamp < s->what.lanes[warp][thread % 32]);
}
