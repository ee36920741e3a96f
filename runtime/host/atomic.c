/* atomic.c - the atomic accesses to global memory. */
#include "block.h"
#include "memory.h"

float fgh_atomic_add_f32(float *to, float value) {
  FGH_ENTER();
  fgh_preempt();
  fgh_global_touch(FGH_ATOMIC, to, 4);
  float old = *to;
  *to = old + value;
  return old;
}

/* One access, but each sum is atomic by itself. */
void fgh_reduce_f32(float *to, const float *values, int n) {
  FGH_ENTER();
  fgh_preempt();
  fgh_global_touch(FGH_ATOMIC, to, 4 * n);
  for (int i = 0; i < n; i++) to[i] += values[i];
}

void fgh_reduce_max_f32(float *to, float value) {
  FGH_ENTER();
  fgh_preempt();
  fgh_global_touch(FGH_ATOMIC, to, 4);
  if (value > *to) *to = value;
}

u64 fgh_atomic_add_u64(u64 *to, u64 value) {
  FGH_ENTER();
  fgh_preempt();
  fgh_global_touch(FGH_ATOMIC, to, 8);
  u64 old = *to;
  *to = old + value;
  fgh_handover(to, 1);
  return old;
}

/* May meet what nobody wrote, which then is written if it is exchanged. */
u64 fgh_atomic_cas_u64(u64 *to, u64 from, u64 value) {
  FGH_ENTER();
  fgh_preempt();
  const fgh_tensor *t = fgh_global_touch(FGH_SWAP, to, 8);
  u64 old = *to;
  fgh_handover(to, old == from);
  if (old != from) return old;
  *to = value;
  fgh_global_mark(t, to, 8);
  return old;
}
