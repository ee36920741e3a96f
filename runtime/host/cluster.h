/* cluster.h - what warpgroups, blocks of a cluster and grids share: registers, a barrier, an order.
 */
#ifndef FG_HOST_CLUSTER_H
#define FG_HOST_CLUSTER_H

#include "engine.h"

extern u32 fgh_grid_waits; /* the launch started early: threads must wait, or meet one that has */
void fgh_grid_check(const char *what);

void fgh_cluster_block(u32 block_threads, u32 warps, u32 early);
void fgh_cluster_seat(u32 seat);
void fgh_cluster_return(void); /* the running thread has ended */
void fgh_cluster_report(void);

int fgh_elect(void);
int fgh_cluster_rank(void);
void fgh_cluster_arrive(void);
void fgh_cluster_wait(void);
void fgh_grid_wait(void);
void fgh_grid_launch(void);
void fgh_setmaxnreg(int registers, int more);

#endif
