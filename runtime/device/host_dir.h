/* host_dir.h - temporary directories of the host device's compiler, under TMPDIR.
 *
 * Each is locked by the process that made it for as long as it lives: what a killed process left
 * behind is known by its lock being free, and goes when a later process compiles. */
#ifndef FG_HOST_DIR_H
#define FG_HOST_DIR_H

#include "base/error.h"

enum { FG_HOST_DIR_SIZE = 496 };
typedef struct fg_host_dir {
  char path[FG_HOST_DIR_SIZE];
  int fd; /* holds the lock */
} fg_host_dir;

/* Makes one, and the first time in a process removes those that were left behind. FG_EIO. */
fg_status fg_host_dir_make(fg_host_dir *dir);
void fg_host_dir_remove(const fg_host_dir *dir);

#endif
