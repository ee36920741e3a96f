/* alloc_watch.h - counts what a call allocates and locks, and makes its allocations fail.
 *
 * Linking alloc_watch.c puts malloc, calloc, realloc, free (libc's own calls of them too) and
 * pthread_mutex_lock under watch, for the whole program with its libraries. Counts and failures are
 * those of the calling thread. With a sanitizer, which has an allocator of its own, nothing is
 * watched: ALLOC_WATCH is 0. */
#ifndef FG_TESTS_ALLOC_WATCH_H
#define FG_TESTS_ALLOC_WATCH_H

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define ALLOC_WATCH 0
#else
#define ALLOC_WATCH 1
#endif

typedef struct alloc_seen {
  long allocations, frees, locks;
  long unspared; /* of the allocations, those that alloc_spare does not spare */
} alloc_seen;

/* Starts counting at 0, and stops. */
void alloc_start(void);
alloc_seen alloc_stop(void);

/* From now on the thread's nth allocation (1 = the next) fails, that one only; 0: none does. */
void alloc_fail(long nth);
/* The same, and every one behind it: Lua tries again when one fails. */
void alloc_starve(long nth);
/* Has it failed? */
int alloc_failed(void);

/* Allocations called from code in these bytes never fail, and do not count as an nth. */
void alloc_spare(const void *code, long bytes);

/* Blocks of the process that are allocated and not freed. */
long alloc_live(void);

#endif
