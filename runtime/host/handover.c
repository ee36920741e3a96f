/* handover.c - what blocks of a grid give each other by words of memory. Nothing else orders
 * blocks.
 *
 * A gift is what a thread knew of when it released: its own block, exactly, and the gifts that it
 * knew of. Who acquires a word takes the gifts of all releases on it since it was last stored to,
 * and with them those that their givers knew. A release is one access (red_release_u32), or an
 * atomic behind a fence_device; an acquire is one access, or an atomic before a fence_device.
 *
 * A block gives of TMA's stores more than it may, those whose reads alone have been waited for. */
#include "block.h"
#include "memory.h"

#include <stdlib.h>

/* Gifts, by their numbers. */
typedef struct set {
  u64 *bits;
  int n, room; /* words of bits */
} set;

typedef struct gift {
  const void *word; /* NULL: it has been stored to since */
  u32 seat, run;    /* of who gave it, and the first stamp of its blocks */
  fgh_release what;
  set knows;
} gift;

typedef struct fence {
  u32 thread;
  fgh_release what; /* the thread knew of */
  set knows;
} fence;

typedef struct take {
  u32 thread, stamp; /* the acquire's; 0: the fence behind the atomic has not come */
  set knows;
} take;

/* What the blocks of a seat have done for it. */
typedef struct seat {
  fence *fences;
  take *takes;
  int n_fences, n_takes, room_fences, room_takes;
  int last_take, last_gift; /* what told handed_over that all is well; -1: nothing has */
} seat;

static gift *gifts; /* of the launch */
static int n_gifts, room_gifts;
static seat seats[FGH_MAX_SEATS], *here = seats;

/* The list with room for one more; what is new of it is zero. */
static void *grown(void *list, int n, int *room, size_t size) {
  if (n < *room) return list;
  int more = *room + 8;
  list = realloc(list, (size_t)(*room + more) * size);
  if (!list) fgh_fault("no memory for what blocks give each other");
  memset((u8 *)list + (size_t)*room * size, 0, (size_t)more * size);
  *room += more;
  return list;
}

/* ---- sets: memory is kept from use to use ---- */

static void reach(set *s, int n) {
  if (n > s->room) {
    s->room = n + 8;
    s->bits = realloc(s->bits, (size_t)s->room * sizeof *s->bits);
    if (!s->bits) fgh_fault("no memory for what blocks give each other");
  }
  for (; s->n < n; s->n++) s->bits[s->n] = 0;
}

static void add(set *s, int i) {
  reach(s, i / 64 + 1);
  s->bits[i / 64] |= 1ull << i % 64;
}

static void join(set *to, const set *from) {
  reach(to, from->n);
  for (int i = 0; i < from->n; i++) to->bits[i] |= from->bits[i];
}

static int holds_all(const set *s, const set *of) {
  for (int i = 0; i < of->n; i++)
    if (of->bits[i] & ~(i < s->n ? s->bits[i] : 0)) return 0;
  return 1;
}

/* ---- giving and taking ---- */

void fgh_handover_launch(void) { n_gifts = 0; }

void fgh_handover_block(void) {
  here->n_fences = here->n_takes = 0;
  here->last_take = -1;
}

void fgh_handover_seat(u32 number) { here = &seats[number]; }

static int visible(const take *t) {
  return t->stamp && fgh_ordered(t->thread, t->stamp, fgh_self->id);
}

/* All that others gave and the running thread knows of. */
static void gather(set *to) {
  to->n = 0;
  for (int i = 0; i < here->n_takes; i++)
    if (visible(&here->takes[i])) join(to, &here->takes[i].knows);
}

static gift *new_gift(const void *word) {
  gifts = grown(gifts, n_gifts, &room_gifts, sizeof *gifts);
  gift *g = &gifts[n_gifts++];
  g->word = word;
  g->seat = fgh_seat;
  g->run = fgh_block_start;
  return g;
}

/* What threads of its own block gave orders the running lane as an mbarrier would. */
static void join_own(const take *t) {
  for (int i = 0; i < 64 * t->knows.n; i++)
    if (t->knows.bits[i / 64] >> i % 64 & 1 && gifts[i].run == fgh_block_start)
      fgh_clock_join_lane(&gifts[i].what);
}

/* Of the word as it is now. A take that adds nothing to one of the thread's is none. */
static void new_take(const void *word, u32 stamp) {
  here->takes = grown(here->takes, here->n_takes, &here->room_takes, sizeof *here->takes);
  take *t = &here->takes[here->n_takes];
  *t = (take){fgh_self->id, stamp, {t->knows.bits, 0, t->knows.room}};
  for (int i = 0; i < n_gifts; i++)
    if (gifts[i].word == word) {
      add(&t->knows, i);
      join(&t->knows, &gifts[i].knows);
    }
  if (t->knows.n == 0) return;
  for (int i = 0; i < here->n_takes; i++)
    if (here->takes[i].thread == t->thread && (here->takes[i].stamp || !stamp) &&
        holds_all(&here->takes[i].knows, &t->knows))
      return;
  here->n_takes++;
  if (stamp) join_own(t);
}

static fence *fence_of(u32 thread) {
  for (int i = 0; i < here->n_fences; i++)
    if (here->fences[i].thread == thread) return &here->fences[i];
  return NULL;
}

void fgh_fence_device(void) {
  FGH_ENTER();
  fgh_preempt();
  fence *f = fence_of(fgh_self->id);
  if (!f) {
    here->fences = grown(here->fences, here->n_fences, &here->room_fences, sizeof *here->fences);
    f = &here->fences[here->n_fences++];
    f->thread = fgh_self->id;
  }
  for (int i = 0; i < here->n_takes; i++) {
    if (here->takes[i].thread != fgh_self->id || here->takes[i].stamp) continue;
    here->takes[i].stamp = fgh_clocks[fgh_self->warp].stamp[fgh_self->lane];
    join_own(&here->takes[i]);
  }
  memset(&f->what, 0, sizeof f->what);
  fgh_clock_release_lane(&f->what);
  gather(&f->knows);
}

void fgh_handover(const void *word, int writes) {
  new_take(word, 0);
  const fence *f = fence_of(fgh_self->id);
  if (!f || !writes) return;
  gift *g = new_gift(word);
  g->what = f->what;
  g->knows.n = 0;
  join(&g->knows, &f->knows);
}

void fgh_handover_acquire(const void *word) {
  new_take(word, fgh_clocks[fgh_self->warp].stamp[fgh_self->lane]);
}

void fgh_handover_release(const void *word, int stores) {
  for (int i = 0; stores && i < n_gifts; i++)
    if (gifts[i].word == word) gifts[i].word = NULL;
  gift *g = new_gift(word);
  memset(&g->what, 0, sizeof g->what);
  fgh_clock_release_lane(&g->what);
  gather(&g->knows);
}

/* ---- what has been given ---- */

static int knew(const gift *g, u32 thread, u32 stamp) {
  const u32 warp = thread % FGH_SEAT_THREADS / 32;
  if (thread / FGH_SEAT_THREADS != g->seat || stamp < g->run) return 0;
  return stamp < g->what.all[warp] ||
         (warp < FGH_MAX_WARPS && stamp < g->what.lanes[warp][thread % 32]);
}

/* Threads touch what others gave them in long runs: what was found last is tried first. */
int fgh_handed_over(u32 thread, u32 stamp) {
  if (here->last_take >= 0 && visible(&here->takes[here->last_take]) &&
      knew(&gifts[here->last_gift], thread, stamp))
    return 1;
  for (int i = here->n_takes - 1; i >= 0; i--) {
    if (!visible(&here->takes[i])) continue;
    const set *s = &here->takes[i].knows;
    for (int w = 0; w < s->n; w++)
      for (u64 rest = s->bits[w]; rest; rest &= rest - 1) {
        int g = 64 * w + __builtin_ctzll(rest);
        if (!knew(&gifts[g], thread, stamp)) continue;
        here->last_take = i;
        here->last_gift = g;
        return 1;
      }
  }
  return 0;
}
