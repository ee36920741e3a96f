/* fiber.h - stacks, context switches and seeded random numbers for the threads of a block.
 *
 * A context is a stopped thread of control; switching saves the callee-saved registers only (8 ns
 * on x86-64, where ucontext takes 228 ns: it saves the signal mask through the kernel). */
#ifndef FG_HOST_FIBER_H
#define FG_HOST_FIBER_H

#include "engine.h"
#include "recipe/arch.h"

enum {
  FGH_MAX_THREADS = FG_ARCH_HOST_CLUSTER_THREADS /* of a seat */,
  FGH_BLOCK_THREADS = 1024,
  FGH_STACK_BYTES = 64 << 10
};

typedef void *fgh_context;

/* Stops here, to be resumed when someone switches to *from; goes on with `to`. */
void fgh_context_switch(fgh_context *from, fgh_context to);

/* Maps the stacks of so many seats, FGH_MAX_THREADS each, above a guard page each: once a process.
 */
fg_status fgh_stacks_map(u32 seats);

/* A context that will call run(), which must not return, on stack `index` of a seat. What ran there
 * is gone. */
fgh_context fgh_context_new(u32 seat, u32 index, void (*run)(void));

/* Whether an address lies in a guard page below a stack. */
int fgh_stack_guards(const void *address);

/* xorshift64: every choice of a launch is drawn from this one sequence. */
extern u64 fgh_random_state;
void fgh_random_seed(u64 seed);

static inline u32 fgh_random(void) {
  u64 x = fgh_random_state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  fgh_random_state = x;
  return (u32)(x >> 24);
}

/* 0 <= result < n */
static inline u32 fgh_random_below(u32 n) { return (u32)((u64)fgh_random() * n >> 32); }

#endif
