/* host_dir.h - temporary directories of the host device's compiler, under TMPDIR.
 *
 * The process that makes a directory holds its lock until it removes it. A directory whose lock is
 * free was left behind by a killed process, and a later process that compiles removes it. */
#ifndef FG_HOST_DIR_H
#define FG_HOST_DIR_H

#include "base/error.h"

enum { FG_HOST_DIR_SIZE = 496 };
typedef struct fg_host_dir {
  char path[FG_HOST_DIR_SIZE];
  int fd; /* holds the lock */
} fg_host_dir;

/* Makes a directory. The first call in a process removes the directories left behind. FG_EIO. */
fg_status fg_host_dir_make(fg_host_dir *dir);
void fg_host_dir_remove(const fg_host_dir *dir);

#endif
