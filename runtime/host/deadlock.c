/* deadlock.c - the report of a block in which no thread can run. */
#include "deadlock.h"

#include "block.h"
#include "cluster.h"
#include "flag.h"
#include "mbarrier.h"

/* The fault names the place where the first thread that waits does so. */
void fgh_deadlock(void) {
  fgh_dim3 at = fgh_table.block_index;
  fgh_report("deadlock: no thread can run [block %u,%u,%u]", at.x, at.y, at.z);
  fgh_flag_report();
  fgh_barriers_report();
  fgh_mbarrier_report();
  fgh_cluster_report();
  fgh_raise(fgh_waiting_report());
}
