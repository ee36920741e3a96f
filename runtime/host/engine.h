/* engine.h - runs one kernel launch on the host: a block is cooperative fibers, one a CUDA thread.
 *
 * A functional model, adversarial by rule (kernel_engineer.md): blocks and warps run in a seeded
 * order; shared memory starts as NaN; every access goes through fgh_api and is checked for bounds,
 * for being written before it is read, and for happens-before races. Global process state: one
 * launch at a time a process. The kernel's own text never reaches host memory but through the api
 * and plain dereferences, which guard pages police.
 *
 * Blocks that do not wait for each other run one after another; those that wait for flags run
 * together, at most `resident` of them, and a wait that nobody can end is a fault that says who
 * waits for what. What one block writes another may touch if it was handed over: by a release and
 * an acquire of one word, through any number of blocks and barriers. TMA and bulk copies read what
 * threads of the grid wrote behind a proxy fence alone; copies between blocks of a cluster keep
 * both blocks' memory busy from issue to landing.
 *
 * The model does not see: what a weak memory would show of accesses that are ordered here; a third
 * block's atomic on an element that nothing orders with two others (it keeps two, the last and one
 * of another block); a proxy fence that came after a write by chance, before the thread knew of it;
 * that a TMA store whose shared memory has been read is not yet written; plain loads of TMA's
 * stores without a proxy fence; that the source of a tma_load changes in flight; bank conflicts,
 * speed, spills. */
#ifndef FG_HOST_ENGINE_H
#define FG_HOST_ENGINE_H

#include "../../templates/host/api.cut"
#include "base/error.h"

/* A tensor or workspace region that kernels may touch: elements of `elem` bytes (1, 2 or 4) at
 * base + elem * sum(index[i] * stride[i]), index[i] < extent[i]. Only those elements may be
 * touched: the gaps between them are out of bounds. */
enum { FG_HOST_AXES = 5 };
typedef struct fg_host_tensor {
  const char *name;
  void *base;
  int elem, rank;
  int64_t extent[FG_HOST_AXES], stride[FG_HOST_AXES]; /* stride in elements */
  int writable;                                       /* 0: stores and atomics are faults */
  int initialised; /* 0: loads before the first store are faults */
} fg_host_tensor;

/* What is known of global memory through the steps of one launch: which elements exist, which were
 * written. Made once for a recipe's steps, freed after the last. */
typedef struct fg_host_memory fg_host_memory;
fg_status fg_host_memory_new(const fg_host_tensor *tensors, int n, fg_host_memory **memory);
void fg_host_memory_free(fg_host_memory *memory);
/* The recipe's zero-fill of a region counts as writing it. */
void fg_host_memory_written(fg_host_memory *memory, const void *base);

/* Clusters (blocks, where there are none) that may run together; blocks of them all. */
enum { FG_HOST_RESIDENT_MAX = 4, FG_HOST_BLOCKS_MAX = 8 };

typedef struct fg_host_launch {
  void (*entry)(const void *params);
  const void *params;
  uint32_t grid[3], block; /* block: threads, a multiple of 32, at most 1024 */
  uint32_t shared_bytes;   /* at most 227 KB */
  uint64_t seed;           /* orders blocks, warps and lanes; equal seeds, equal runs */
  fg_host_memory *memory;
  uint32_t cluster; /* blocks along x that run together; 0 and 1: each for itself */
  uint32_t early;   /* 1: starts before the launch before has ended, and must grid_wait */
  /* Clusters that may run together: one begins while others wait for flags. 0 counts as 1. */
  uint32_t resident;
  const void *code_begin, *code_end; /* of the kernel, if it has frame pointers */
} fg_host_launch;

/* Where a fault is: the sentence, and the address one past a byte of the instruction in the
 * kernel's code that is at fault: the primitive's call, or what raised a signal. Then those of the
 * calls around it, as far as they are known; NULL behind the last. */
enum { FG_HOST_CALLS = 8 };
typedef struct fg_host_fault {
  char text[3072];
  void *at[FG_HOST_CALLS];
} fg_host_fault;

/* A block that takes more processor time than this is a fault: its threads spin. Tests lower it. */
extern int fg_host_watchdog_seconds; /* 10 */

/* The table that a kernel's module is bound to. */
fgh_api *fg_host_api(void);

/* Runs the launch. FG_ETEMPLATE: the kernel broke a rule; *fault says which, and no block runs
 * after it. */
fg_status fg_host_run(const fg_host_launch *launch, fg_host_fault *fault);

/* `bytes` of memory whose last byte (odd seed: first byte) touches an unmapped page, filled with
 * 0xff (NaN in every dtype), aligned to 16. Free with fg_host_guarded_free(p, bytes). */
fg_status fg_host_guarded_new(size_t bytes, uint64_t seed, void **p);
void fg_host_guarded_free(void *p, size_t bytes);

#endif
