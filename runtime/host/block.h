/* block.h - the running thread, its scheduler and its faults, as the primitives see them.
 *
 * One thread runs at a time and goes on until it waits, is preempted at a memory primitive, or
 * ends. A fault abandons all threads and ends the launch: fgh_fault never returns. Threads are
 * those of a seat (clock.h): a block, or a cluster of them; when none of them can run, seats.c, on
 * the launcher's stack, goes on with another seat. */
#ifndef FG_HOST_BLOCK_H
#define FG_HOST_BLOCK_H

#include "clock.h"
#include "engine.h"
#include "fiber.h"

#include <setjmp.h>
#include <string.h>

typedef enum fgh_kind {
  FGH_WARP_SYNC,
  FGH_SHUFFLE,
  FGH_BALLOT,
  FGH_LDMATRIX,
  FGH_LDMATRIX_TRANS,
  FGH_MMA_BF16,
  FGH_MMA_F16,
  FGH_MMA_E4M3,
  FGH_STMATRIX,
  FGH_STMATRIX_TRANS,
  FGH_ELECT,
  FGH_WGMMA,
  FGH_WGMMA_WAIT,
  FGH_SETMAXNREG,
  FGH_CLUSTER_ARRIVE,
  FGH_CLUSTER_WAIT,
  FGH_MBARRIER_WAIT, /* no collective, as the next: each lane by itself */
  FGH_FLAG_WAIT,
  FGH_BARRIER_SYNC, /* from here on: barriers */
  FGH_BARRIER_ARRIVE
} fgh_kind;

/* A collective as called. All its lanes must make the same call. */
typedef struct fgh_call {
  fgh_kind kind;
  u32 lanes;       /* who takes part; barriers: all 32 */
  int id, threads; /* barriers; else what their primitives say */
} fgh_call;

/* The calls of kernel functions that led to a place. Equal ones have one copy. */
typedef struct fgh_path {
  void *at[FG_HOST_CALLS]; /* the return address of each, innermost first, then NULL */
} fgh_path;

typedef struct fgh_thread {
  fgh_context context;
  void *pc;               /* where its last primitive returns to, */
  void *const *frame;     /* in which frame of the kernel, */
  const fgh_path *path;   /* and what a fault names: NULL, what these say */
  fgh_call call;          /* its last collective: what a deadlock names */
  u32 id, warp, lane;     /* among all that run together: the blocks of a cluster */
  u32 rank, local, block; /* of its block in the cluster; in its block; of the block along x */
  u32 shared_base;        /* address of its block's shared memory */
  u32 fences;             /* calls of fence_async */
  u32 global_fence;       /* the number of its last fence_async_global; 0: none */
  int grid_seen;          /* the grid before has ended, as far as the thread knows */
} fgh_thread;

/* fault.c */
extern u32 fgh_cluster_blocks;   /* of each cluster of the launch; 1: there are none */
extern u32 *fgh_alive;           /* threads of each of its blocks that have not returned */
extern fgh_context fgh_launcher; /* of fg_host_run, while a block runs */

extern fgh_thread *fgh_self; /* NULL between blocks */
extern fgh_thread *fgh_threads;
void fgh_threads_seat(u32 seat);
extern fgh_api fgh_table;

/* path.c */
void fgh_path_launch(const void *code_begin, const void *code_end);
/* frame: that of the kernel's function which has the address. */
const fgh_path *fgh_path_of(void *pc, void *const *frame);

/* Every primitive opens with this, in its own body: inlined, it would name the engine. */
#define FGH_ENTER()                                                                                \
  ((void)(fgh_self->pc = __builtin_return_address(0),                                              \
          fgh_self->frame = *(void *const *const *)__builtin_frame_address(0),                     \
          fgh_self->path = NULL))

/* The place of a thread that is in a primitive, or at its end. */
static inline const fgh_path *fgh_place(fgh_thread *thread) {
  if (!thread->path) thread->path = fgh_path_of(thread->pc, thread->frame);
  return thread->path;
}

/* schedule.c ------------------------------------------------------------------------------- */

/* A launch begins: so many seats, their clusters of so many warps; when no thread of one can run,
 * one of its copies in flight lands, or the function returns 0. */
void fgh_schedule_launch(u32 seats, u32 warps, int lands_early, int (*land)(void));
void fgh_schedule_block(void); /* all threads can run */
void fgh_schedule_seat(u32 seat);

/* Runs the seat's threads until none can, all have ended, one steps aside or has a fault. */
void fgh_run(void);
int fgh_can_run(u32 seat);
void fgh_end_thread(void); /* another goes on in place of the running one */
void fgh_step_aside(void); /* now and then another seat's turn comes; the thread goes on later */
int fgh_land(void);        /* one copy of the seat's; 0: none is in flight */

/* Lets others run in the midst of memory accesses, so that orders show which no barrier promises.
 * The interval is random, 1 to 16 accesses. */
extern u32 fgh_accesses_left;
void fgh_yield(void);
static inline void fgh_preempt(void) {
  if (--fgh_accesses_left == 0) fgh_yield();
}

void fgh_wait(void); /* until fgh_wake; when nobody in the seat can run, the launcher goes on */
void fgh_wake(u32 warp, u32 lanes);
void fgh_wake_in(u32 seat, u32 warp, u32 lanes);

__attribute__((noreturn, format(printf, 1, 2))) void fgh_fault(const char *format, ...);
/* The same in two steps, for reports of several lines. */
__attribute__((format(printf, 1, 2))) void fgh_report(const char *format, ...);
__attribute__((noreturn)) void fgh_raise(const fgh_path *path);
void fgh_found_at(const fgh_path *path); /* for a report from a signal handler */
const fg_host_fault *fgh_found(void);    /* NULL: all is well */
void fgh_found_clear(void);

/* collective.c */
void fgh_collective_block(u32 block_threads, u32 warps);
void fgh_collective_seat(u32 seat);
void fgh_collective_return(void); /* the running thread is about to end */
void fgh_barriers_report(void);   /* those that wait for more threads */
/* Reports each thread's place; returns where the first one waits. */
const fgh_path *fgh_waiting_report(void);
void fgh_barrier_sync(int id, int threads);
void fgh_barrier_arrive(int id, int threads);
void fgh_warp_sync(u32 lanes);
u32 fgh_shuffle(u32 lanes, u32 value, int from);
u32 fgh_ballot(u32 lanes, int predicate);

/* What collectives are made of. fgh_meet returns 1 in the lane that comes last, at once: it must
 * act and wake the others. Returns 0 in these, after that. */
int fgh_meet(fgh_call call);
void fgh_wake_others(u32 lanes); /* of the running thread's warp */

/* mma.c */
void fgh_ldmatrix(u32 *pairs, u32 address, int transposed);
void fgh_stmatrix(u32 address, const u32 *pairs, int transposed);
void fgh_mma_bf16(float *d, const u32 *a, const u32 *b);
void fgh_mma_f16(float *d, const u32 *a, const u32 *b);
void fgh_mma_e4m3(float *d, const u32 *a, const u32 *b);

/* async.c */
void fgh_async_block(void);
void fgh_async_seat(u32 seat);
void fgh_async_return(void); /* the running thread is about to end */
void fgh_cp_async(u32 to, const void *from, int bytes, int read);
void fgh_cp_async_commit(void);
void fgh_cp_async_wait(int in_flight);

/* signal.c: while installed, signals that kernel code raises report a fault and jump here. */
extern sigjmp_buf fgh_signal_return;
fg_status fgh_signals_install(void);
void fgh_signals_restore(void);
void fgh_watchdog_arm(void);  /* a block begins or goes on: progress */
extern uint64_t fgh_progress; /* meetings that completed: a block that meets does not spin */

/* A value of 2, 4, 8 or 16 bytes: constant sizes become plain moves. */
static inline void fgh_copy(void *to, const void *from, int bytes) {
  switch (bytes) {
  case 1:
    memcpy(to, from, 1);
    break;
  case 2:
    memcpy(to, from, 2);
    break;
  case 4:
    memcpy(to, from, 4);
    break;
  case 8:
    memcpy(to, from, 8);
    break;
  default:
    memcpy(to, from, 16);
  }
}

#endif
