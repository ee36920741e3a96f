/* mbarrier.h - the barriers in shared memory, as TMA and deadlock reports see them.
 *
 * Each has a slot, which is also the number of its actor (clock.h). */
#ifndef FG_HOST_MBARRIER_H
#define FG_HOST_MBARRIER_H

#include "engine.h"

void fgh_mbarrier_launch(void); /* while fgh_cluster_blocks is that of the launch before */
void fgh_mbarrier_block(void);
void fgh_mbarrier_seat(u32 seat);
void fgh_mbarrier_block_end(void); /* of the running thread: who arrives here must have done so */

/* The slot of the barrier at an address of the running thread's block; and of the barrier at the
 * same place in another block of the cluster. */
u32 fgh_mbarrier_find(u32 bar, const char *what);
u32 fgh_mbarrier_twin(u32 slot, u32 rank, const char *what);

/* TMA may complete on it: its making has been fenced. Else a fault. */
void fgh_mbarrier_async(u32 slot);

/* Bytes have come. Returns the stamp of what was filled with them. */
u32 fgh_mbarrier_complete(u32 slot, u32 bytes);

void fgh_mbarrier_report(void);

void fgh_mbarrier_init(u32 bar, int count);
void fgh_fence_barrier_init(void);
void fgh_mbarrier_arrive(u32 bar);
void fgh_mbarrier_arrive_remote(u32 bar, int rank);
void fgh_mbarrier_expect(u32 bar, int bytes);
void fgh_mbarrier_wait(u32 bar, int parity);
int fgh_mbarrier_try(u32 bar, int parity);
void fgh_fence_async(void);

#endif
