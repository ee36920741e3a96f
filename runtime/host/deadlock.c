/* deadlock.c - the report of blocks in which no thread can run. */
#include "deadlock.h"

#include "block.h"
#include "cluster.h"
#include "flag.h"
#include "mbarrier.h"

static void report_block(void) {
  fgh_dim3 at = fgh_table.block_index;
  fgh_report("[block %u,%u,%u]", at.x, at.y, at.z);
}

/* The fault names the place where the first thread that waits does so. */
void fgh_deadlock(const u32 *seats, u32 n, u32 not_begun, void (*enter)(u32 seat)) {
  const fgh_path *path = NULL;
  fgh_report("deadlock: no thread can run ");
  for (u32 i = 0; i < n; i++) {
    enter(seats[i]);
    if (i) fgh_report("\n");
    report_block();
    if (i == 0) fgh_flag_report();
    if (i == 0 && not_begun)
      fgh_report("\n  %u more are to come when one of the %u that run has ended", not_begun, n);
    fgh_barriers_report();
    fgh_mbarrier_report();
    fgh_cluster_report();
    const fgh_path *first = fgh_waiting_report();
    if (!path) path = first;
  }
  fgh_found_at(path);
}
