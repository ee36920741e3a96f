/* flag.c - counters in global memory by which blocks tell each other: u32 words that are written
 * and read by single atomic accesses, and threads that wait for one. */
#include "flag.h"

#include "block.h"
#include "memory.h"

typedef struct wait {
  const u32 *word;
  u32 until, seat, thread;
} wait;

static wait waits[FGH_MAX_SEATS * FGH_MAX_THREADS]; /* of the launch */
static u32 n_waits;

void fgh_flag_launch(void) { n_waits = 0; }

int fgh_flag_waits(void) {
  for (u32 i = 0; i < n_waits; i++)
    if (waits[i].seat == fgh_seat) return 1;
  return 0;
}

static int reached(u32 word, u32 until) { return (int)(word - until) >= 0; }

/* Who waits for less goes on. */
static void written(const u32 *word) {
  u32 kept = 0;
  for (u32 i = 0; i < n_waits; i++)
    if (waits[i].word == word && reached(*word, waits[i].until))
      fgh_wake_in(waits[i].seat, waits[i].thread / 32, 1u << waits[i].thread % 32);
    else
      waits[kept++] = waits[i];
  n_waits = kept;
}

/* Adds, gives what the thread knows of if it releases, and wakes who waits for the sum. */
u32 fgh_atomic_add_u32(u32 *to, u32 value, int release) {
  FGH_ENTER();
  fgh_step_aside();
  fgh_preempt();
  fgh_global_touch(FGH_ATOMIC, to, 4);
  u32 old = *to;
  *to = old + value;
  if (release)
    fgh_handover_release(to, 0);
  else
    fgh_handover(to, 1);
  written(to);
  return old;
}

/* Gifts that came with the word before are no longer got with it. */
void fgh_store_release_u32(u32 *to, u32 value) {
  FGH_ENTER();
  fgh_step_aside();
  fgh_preempt();
  fgh_global_touch(FGH_RELEASE, to, 4);
  *to = value;
  fgh_handover_release(to, 1);
  written(to);
}

/* A lane that asks again and again lets others run, and TMA where no other can. */
u32 fgh_load_acquire_u32(const u32 *from) {
  FGH_ENTER();
  fgh_step_aside();
  fgh_yield();
  if (!fgh_can_run(fgh_seat) && fgh_random_below(8) == 0) fgh_land();
  fgh_global_touch(FGH_ACQUIRE, from, 4);
  fgh_handover_acquire(from);
  return *from;
}

/* Returns when the word has reached `until`, and gets what was given with it. */
void fgh_flag_wait(const u32 *flag, u32 until) {
  FGH_ENTER();
  fgh_step_aside();
  fgh_preempt();
  fgh_self->call = (fgh_call){.kind = FGH_FLAG_WAIT, .id = (int)until};
  for (fgh_global_touch(FGH_ACQUIRE, flag, 4); !reached(*flag, until);) {
    waits[n_waits++] = (wait){flag, until, fgh_seat, fgh_self->id};
    fgh_wait();
    fgh_global_touch(FGH_ACQUIRE, flag, 4);
  }
  fgh_handover_acquire(flag);
  fgh_progress++;
}

/* Each flag once for each number that is awaited. */
void fgh_flag_report(void) {
  for (u32 i = 0; i < n_waits; i++) {
    char place[160];
    u32 before = 0;
    while (waits[before].word != waits[i].word || waits[before].until != waits[i].until) before++;
    if (before < i) continue;
    fgh_global_place(waits[i].word, place, sizeof place);
    fgh_report("\n  flag at %s: it is %u, awaited is %u", place, *waits[i].word, waits[i].until);
  }
}
