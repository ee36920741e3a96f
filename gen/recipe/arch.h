/* arch.h - the architectures that kernels are made for: one row each, and one for the host device.
 *
 * A GPU takes the kernels of its own architecture alone. */
#ifndef FG_ARCH_H
#define FG_ARCH_H

#include "base/error.h"

#include <stdbool.h>

enum { FG_ARCH_MAX = 16 }; /* bytes of a name */

/* What an architecture has: a set. */
typedef enum fg_feature {
  FG_HAS_BF16 = 1 << 0,   /* conversions to bf16 */
  FG_HAS_MMA = 1 << 1,    /* the tensor cores of sm_80, cp.async */
  FG_HAS_RED_V4 = 1 << 2, /* sums of four floats in global memory at once */
  FG_HAS_PDL = 1 << 3,    /* a launch may start before the one before it has ended */
  FG_HAS_CLUSTER = 1 << 4,
  FG_HAS_TMA = 1 << 5, /* and the barriers that count its bytes, stmatrix */
  FG_HAS_WGMMA = 1 << 6,
  FG_HAS_ENGINE = 1 << 7, /* it is no GPU: the engine of the host device runs its kernels */
  /* Its instruction set, as NVIDIA names them; compilers give registers in each in another way. */
  FG_HAS_AMPERE_CODE = 1 << 8,
  FG_HAS_HOPPER_CODE = 1 << 9,
  FG_HAS_BLACKWELL_CODE = 1 << 10,
  FG_HAS_E4M3 = 1 << 11 /* conversions to e4m3 and the warp's products of it */
} fg_feature;

typedef struct fg_arch {
  const char *name;        /* "host", "sm_90a" */
  int number;              /* 10 * major + minor of the compute capability; of host that of the GPU
                              whose plans it runs */
  int block_kb, shared_kb; /* shared memory, KB: of a block at most, of a multiprocessor */
  unsigned features;       /* of fg_feature */
  const char *gpus;        /* for people */
} fg_arch;
/* block_kb of host, and threads that its clusters have at most, for the engine's arrays */
enum { FG_ARCH_HOST_BLOCK_KB = 227, FG_ARCH_HOST_CLUSTER_THREADS = 2048 };

static inline bool fg_arch_has(const fg_arch *arch, fg_feature feature) {
  return (arch->features & feature) != 0;
}

/* Threads of all blocks of a cluster, at most. */
int fg_arch_cluster_threads(const fg_arch *arch);

/* The features by the names that templates know them by; a NULL name ends the list. */
typedef struct fg_feature_name {
  const char *name;
  fg_feature feature;
} fg_feature_name;
extern const fg_feature_name fg_feature_names[];

/* What kernels are made for where no arch is named and no device is asked. */
#define FG_ARCH_USUAL "sm_90a"

/* In the order of their numbers, host first. */
extern const fg_arch fg_archs[];
extern const int fg_n_archs;

/* NULL: there is none of that name, of that compute capability. */
const fg_arch *fg_arch_find(const char *name);
const fg_arch *fg_arch_of(int major, int minor);

/* Is it the name of the host device's arch, whose kernels no GPU runs? */
bool fg_arch_is_host(const char *name);

/* "wgmma, mma, simt": the families that compute on it. */
const char *fg_arch_families(const fg_arch *arch);

/* "host, sm_75, ..."; returns the length. */
int fg_arch_names(size_t size, char *text);

/* FG_EARGUMENT, with the archs there are, unless it is one of them. */
fg_status fg_arch_check(const char *name);
/* Takes the first arch off a list, "sm_80,sm_90a"; *list is "" behind the last. */
fg_status fg_arch_take(const char **list, char arch[FG_ARCH_MAX]);

#endif
