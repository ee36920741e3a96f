/* tma.h - copies of boxes of tensors that go on behind the threads' backs. */
#ifndef FG_HOST_TMA_H
#define FG_HOST_TMA_H

#include "engine.h"

void fgh_tma_block(void);
void fgh_tma_return(void);    /* the running thread is about to end */
void fgh_tma_block_end(void); /* its block has: no load to it may be in flight */

/* Lands one of the loads in flight; returns 0 when there is none. */
int fgh_tma_land(void);

void fgh_tma_prefetch(const tensor_map *map);
void fgh_tma_load(u32 to, const tensor_map *map, const int *at, int rank, u32 bar, u64 policy,
                  int ranks);
void fgh_tma_store(const tensor_map *map, const int *at, int rank, u32 from);
void fgh_tma_store_commit(void);
void fgh_tma_store_wait(int in_flight, int read);

#endif
