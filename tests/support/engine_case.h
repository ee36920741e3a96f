/* engine_case.h - what the engine's suites share: five tensors, short words for kernels, launches.
 *
 * A kernel is a C function of `const tensors *` that runs once a thread and calls through `api`. */
#ifndef FG_TESTS_ENGINE_CASE_H
#define FG_TESTS_ENGINE_CASE_H

#include "host/engine.h"
#include "suite.h"

enum { SEEDS = 20, ALL = 64, ROWS = 4, COLS = 8, PITCH = 12 };

/* `in` is registered twice, as "in" and "twin": inputs may alias. */
typedef struct tensors {
  const float *in; /* [64], read-only, element i is i */
  float *out;      /* [64], not initialised */
  float *strided;  /* [4, 8], rows 12 apart, NaN */
  u32 *count;      /* [64], zero */
  float *orphan;   /* [64], guarded, registered as nothing */
} tensors;

typedef struct job {
  void (*kernel)(const void *);
  u32 block, grid;
} job;

/* What launches have besides their jobs; 0: 1 block, not early, 1 cluster at a time. */
typedef struct case_extras {
  u32 cluster, early, resident;
} case_extras;
extern case_extras case_extra;

/* What a wrong kernel's fault says: a pattern of fnmatch, or some, parted by "|". */
typedef struct case_fault {
  job job;
  const char *text;
  case_extras extra;
} case_fault;

/* What a right kernel leaves in `out`, at most an element a thread; NaN: nothing. */
typedef struct case_fine {
  job job;
  float (*expected)(u32 i);
  case_extras extra;
} case_fine;

extern fgh_api *api;
extern tensors made;
extern fg_host_fault fault; /* of the last launch */

/* Makes and fills `made`; frees it. Between guard pages, at the end that the seed says. */
fg_host_memory *case_make(u64 seed);
void case_drop(fg_host_memory *memory);

/* With 4096 bytes of shared memory. */
fg_status case_launch(job j, u64 seed, fg_host_memory *memory);

/* The launch fails with that sentence and a pc, and leaves all clean for the next: under one seed;
 * under every one; under those where copies do not land at random, as with every third: there they
 * may have landed before. */
void case_expect_once(case_fault wrong, u64 seed);
void case_expect(case_fault wrong);
void case_expect_if_late(case_fault wrong);

/* The launch gives what is expected under every seed. */
void case_right(case_fine right);

/* A registered [64] of floats. */
fg_host_tensor case_vector(const char *name, const void *base, int writable, int initialised);

/* Of a kernel of 3 blocks of 64 threads: each writes 16 elements of `out`, and the one that comes
 * last, by a count, adds them up behind those. `skip` leaves one of what orders them out. */
typedef enum case_order { ALL_ORDERED, BARRIER_BEFORE, FENCE_BEFORE, FENCE_BEHIND } case_order;
void case_hand_over(const tensors *t, case_order skip);

/* For kernels: the thread, a word of shared memory, an element of global memory. */
u32 tid(void);
u32 lane(void);
u32 at(u32 word);
u32 get(u32 word);
void put(u32 word, u32 x);
float fetch(const float *from);
void keep(float *to, float x);
void sync_all(void);

/* The number of the block in the order in which they begin, for all threads. Takes the first
 * element of `count` and the first word of shared memory. */
u32 ticket(const tensors *t);

#endif
