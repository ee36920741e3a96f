/* cache_fault.h - makes the system calls of the cache fail, or kill the process, at will.
 *
 * cache_fault.c defines open, openat, write, fsync, close, renameat, mkdirat, unlinkat, futimens
 * and clock_gettime itself: the linker prefers them to those of libc, so the cache's calls come
 * here and those from within libc do not. write, fsync and close count for temporaries of the cache
 * alone, the others always. State is the process's own: it is inherited over fork. */
#ifndef FG_TESTS_CACHE_FAULT_H
#define FG_TESTS_CACHE_FAULT_H

#include <time.h>

typedef enum fault_call {
  FAULT_ROOT,   /* open with O_DIRECTORY: the cache's own directory, and shared ones */
  FAULT_OPEN,   /* openat without O_CREAT: directories and entries that are read */
  FAULT_LOCK,   /* openat with O_CREAT: lock files */
  FAULT_CREATE, /* openat with O_EXCL too: temporaries */
  FAULT_WRITE,
  FAULT_FSYNC,
  FAULT_CLOSE,
  FAULT_RENAME,
  FAULT_MKDIR,
  FAULT_UNLINK,
  FAULT_FUTIMENS,
  FAULT_CALLS
} fault_call;

enum { FAULT_KILL_BEFORE = -1, FAULT_KILL_AFTER = -2 };

/* From now on the nth such call (1 = the next), and those after it if `on`, fails with this errno
 * or kills the process with SIGKILL. A write first puts half of its bytes. */
void fault_at(fault_call call, int nth, int error, int on);

/* Nothing fails any more, and all counts are zero. */
void fault_clear(void);

/* The calls since then, failed ones too. */
int fault_count(fault_call call);

/* Shifts what clock_gettime gives from now on. */
void fault_clock(clockid_t clock, long seconds);

#endif
