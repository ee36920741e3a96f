/* tma.h - copies of boxes of tensors, and of plain bytes, that go on behind the threads' backs. */
#ifndef FG_HOST_TMA_H
#define FG_HOST_TMA_H

#include "engine.h"

void fgh_tma_block(void);
void fgh_tma_seat(u32 seat);
void fgh_tma_return(void);    /* the running thread is about to end */
void fgh_tma_block_end(void); /* its block has: no load to it may be in flight */

/* A copy to shared memory in flight: its numbers lie in fgh_load_data(granule) until it lands. */
typedef struct fgh_load fgh_load;
struct fgh_load {
  const char *what;         /* the primitive, for messages */
  u32 granule, bytes, slot; /* where it lands; the mbarrier that it completes on */
  void (*about_to_land)(const fgh_load *load); /* NULL: nothing can have changed */
  const u8 *from;                              /* bulk_load: global memory that it reads */
  u32 thread;                                  /* and the thread that issued it, at which call */
  const struct fgh_path *path;
  int reads_shared; /* it reads as many bytes of shared memory, from `source` on */
  u32 source;       /* a granule */
};

u8 *fgh_load_data(u32 granule);
void fgh_load_issue(fgh_load load);

/* Lands one of the loads in flight; returns 0 when there is none. */
int fgh_tma_land(void);

void fgh_tma_prefetch(const tensor_map *map);
void fgh_tma_load(u32 to, const tensor_map *map, const int *at, int rank, u32 bar, u64 policy,
                  int ranks);
void fgh_tma_store(const tensor_map *map, const int *at, int rank, u32 from);
void fgh_tma_store_commit(void);
void fgh_tma_store_wait(int in_flight, int read);

/* bulk.c */
void fgh_bulk_load(u32 to, const void *from, int bytes, u32 bar);
void fgh_bulk_copy_remote(u32 to, u32 from, int bytes, u32 bar, int rank);

#endif
