/* t_engine_meet.c - the host device's engine on kernels whose threads do not meet, or go astray
 * outside primitives: found under every seed, never a hang; and the next launch works. */
#include "engine_case.h"

static void not_in_mask(const void *p) { api->warp_sync(0xfffffffe); }

static void wrong_mask(const void *p) {
  if (tid() < 16)
    api->shuffle(~0u, 1, 0);
  else
    api->shuffle(0xffff8000, 1, 31);
}

static void other_call(const void *p) {
  if (tid() == 5)
    api->ballot(~0u, 1);
  else
    api->warp_sync(~0u);
}

static void other_barrier(const void *p) { api->barrier_sync(tid() == 5, 32); }

static void outside_lane(const void *p) {
  if (tid() < 8) api->shuffle(0xff, 1, 8);
}

static void lane_returned(const void *p) {
  if (tid() != 11) sync_all();
}

static void warp_returned(const void *p) {
  if (tid() < 32) sync_all();
}

static void crossed(const void *p) {
  int first = tid() < 32;
  api->barrier_sync(first ? 1 : 2, 64);
  api->barrier_sync(first ? 2 : 1, 64);
}

static void ring(const void *p) {
  u32 pair[] = {3, 6, 5};
  if (tid() < 3) api->warp_sync(pair[tid()]);
}

static void twice(const void *p) {
  api->barrier_arrive(4, 96);
  api->barrier_arrive(4, 96);
}

static void other_count(const void *p) { api->barrier_arrive(4, tid() < 32 ? 64 : 96); }
static void bad_count(const void *p) { api->barrier_sync(1, 48); }
static void bad_barrier(const void *p) { api->barrier_sync(16, 32); }

static void spin(const void *p) {
  for (volatile int go = 1; go;) {
  }
}

static void spin_loading(const void *p) {
  while (fetch(((const tensors *)p)->in) == 0) {
  }
}

static void plain_past_guard(const void *p) {
  const tensors *t = p;
  volatile float *orphan = t->orphan;
  orphan[-1] = 1;
  orphan[ALL] = 1;
}

static void null_pointer(const void *p) {
  volatile float *volatile null = NULL;
  *null = 1;
}

static int fill(int depth) {
  volatile char block[1024];
  block[depth] = 1; /* an index that is not constant, or compilers keep one byte of it */
  return depth ? fill(depth - 1) + block[depth] : 0;
}

static void deep(const void *p) {
  if (tid() == 20) put(0, (u32)fill(80));
}

static void trap(const void *p) { __builtin_trap(); }

#if defined(__x86_64__)
static void divide(const void *p) {
  volatile int zero = 0;
  put(tid(), (u32)(100 / zero));
}
#endif

/* Each sentence in full but for what the seed decides: case_expect has the stars. */
static const case_fault wrong[] = {
    {{not_in_mask, 32, 1},
     "warp_sync(0xfffffffe) by lane 0, which is not in its mask *|deadlock*lanes 0x1*"},
    {{wrong_mask, 32, 1}, "divergence: lane * calls shuffle(*) while lanes * wait in shuffle(*"},
    {{other_call, 32, 1}, "divergence: lane * calls * while lanes * of warp 0 wait in *"},
    {{other_barrier, 32, 1}, "divergence: lane * calls barrier_sync(*, 32) while lanes * wait in*"},
    {{outside_lane, 32, 1}, "shuffle(0xff) takes the value of lane 8, which is not in the mask *"},
    {{lane_returned, 32, 1},
     "divergence: lane 11 returned while lanes * wait in barrier_sync(0, 32) *|"
     "divergence: lane * calls barrier_sync(0, 32), but lanes 0x800 of warp 0 have returned *"},
    {{warp_returned, 64, 1},
     "deadlock: no thread can run ?block 0,0,0]\n  barrier 0: 32 of 64 threads have come\n"
     "  warp 0 lanes 0-31 wait in barrier_sync(0, 64)\n  warp 1 lanes 0-31 returned"},
    {{crossed, 64, 1}, "deadlock: *barrier 1: 32 of 64 *barrier 2: 32 of 64 *"},
    {{ring, 32, 1}, "deadlock: *lanes 0-0 wait in warp_sync(0x3) for lanes 0x2\n*3-31 returned"},
    {{twice, 96, 1}, "barrier_arrive(4, 96): warp * comes a second time before the barrier *"},
    {{other_count, 96, 1}, "barrier_arrive(4, *): earlier arrivals expect * threads *"},
    {{bad_count, 64, 1}, "barrier_sync(1, 48): want a multiple of 32 threads, at most the *64 *"},
    {{bad_barrier, 32, 1}, "barrier_sync(16, 32): barriers are 0 to 15 *"},
    {{plain_past_guard, 32, 1}, "access to unmapped memory: *"},
    {{null_pointer, 32, 1}, "access to unmapped memory: *, near no tensor ?block 0,0,0 thread *"},
    {{deep, 32, 1}, "stack overflow: a thread has 64 KB for its local arrays *"},
    {{trap, 32, 1}, "undefined behaviour: array index, shift or integer overflow *"},
#if defined(__x86_64__)
    {{divide, 32, 1}, "integer division by zero *"},
#endif
};

TEST_LOOP(fault_is_found, sizeof wrong / sizeof *wrong) { case_expect(wrong[_i]); }

TEST(spinning_is_stopped) {
  case_fault alone = {{spin, 32, 1},
                      "no progress: no thread met another for 1 s, one spins ?block *]"};
  case_fault loading = {{spin_loading, 64, 1}, alone.text};
  fg_host_watchdog_seconds = 1;
  case_expect_once(alone, 0);
  case_expect_once(loading, 1);
}

/* The address lies in the function that called. */
TEST(fault_names_its_place) {
  job places[] = {{bad_barrier, 32, 1},
                  {bad_count, 64, 1},
                  {warp_returned, 64, 1},
                  {null_pointer, 32, 1},
                  {trap, 32, 1}};
  for (int i = 0; i < 5; i++) {
    fg_host_memory *memory = case_make(0);
    ck_assert_int_eq(case_launch(places[i], 0, memory), FG_ETEMPLATE);
    if (i != 2) /* calls through a helper */
      ck_assert_uint_lt((uintptr_t)fault.at[0] - (uintptr_t)places[i].kernel, 200);
    case_drop(memory);
  }
}
