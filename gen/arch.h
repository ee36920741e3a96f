/* arch.h - the architectures that kernels are made for: one row each, and one for the host device.
 *
 * A GPU takes the kernels of its own architecture alone. */
#ifndef FG_ARCH_H
#define FG_ARCH_H

#include "error.h"

#include <stdbool.h>

enum { FG_ARCH_MAX = 16 }; /* bytes of a name */

typedef struct fg_arch {
  const char *name;        /* "host", "sm_90a" */
  int number;              /* 10 * major + minor of the compute capability; of host that of the GPU
                              whose plans it runs */
  int block_kb, shared_kb; /* shared memory, KB: of a block at most, of a multiprocessor */
  bool mma, wgmma;         /* the tensor cores of sm_80, of sm_90a: which families compute there */
  const char *gpus;        /* for people */
} fg_arch;

/* In the order of their numbers, host first. */
extern const fg_arch fg_archs[];
extern const int fg_n_archs;

/* NULL: there is none of that name, of that compute capability. */
const fg_arch *fg_arch_find(const char *name);
const fg_arch *fg_arch_of(int major, int minor);

/* "wgmma, mma, simt": the families that compute on it. */
const char *fg_arch_families(const fg_arch *arch);

/* "host, sm_75, ..."; returns the length. */
int fg_arch_names(size_t size, char *text);

/* FG_EARGUMENT, with the archs there are, unless it is one of them. */
fg_status fg_arch_check(const char *name);
/* Takes the first arch off a list, "sm_80,sm_90a"; *list is "" behind the last. */
fg_status fg_arch_take(const char **list, char arch[FG_ARCH_MAX]);

#endif
