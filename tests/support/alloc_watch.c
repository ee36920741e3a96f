/* alloc_watch.c - the allocator and the lock, in front of libc's. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "alloc_watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static _Thread_local struct {
  bool counting, failed, on;
  alloc_seen seen;
  long fail_in; /* 0: never */
} watch;
static atomic_long live;
static uintptr_t spared, spared_end;

void alloc_start(void) {
  watch.seen = (alloc_seen){0};
  watch.counting = true;
}

alloc_seen alloc_stop(void) {
  watch.counting = false;
  return watch.seen;
}

void alloc_fail(long nth) {
  watch.fail_in = nth;
  watch.failed = watch.on = false;
}

void alloc_starve(long nth) {
  alloc_fail(nth);
  watch.on = true;
}

int alloc_failed(void) { return watch.failed; }

void alloc_spare(const void *code, long bytes) {
  spared = (uintptr_t)code;
  spared_end = spared + (uintptr_t)bytes;
}

long alloc_live(void) { return atomic_load(&live); }

#if ALLOC_WATCH
/* glibc's own names of what this file stands in front of. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

/* Counts an allocation; is it the one that fails? */
static bool fails(const void *caller) {
  const uintptr_t from = (uintptr_t)caller;
  const bool is_spared = from >= spared && from < spared_end;
  if (watch.counting) watch.seen.allocations++, watch.seen.unspared += !is_spared;
  if (!watch.fail_in || is_spared) return false;
  if (--watch.fail_in) return false;
  watch.fail_in = watch.on;
  watch.failed = true;
  errno = ENOMEM;
  return true;
}

static void *made(void *p) {
  if (p) atomic_fetch_add(&live, 1);
  return p;
}

void *malloc(size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : made(__libc_malloc(size));
}

void *calloc(size_t n, size_t size) {
  return fails(__builtin_return_address(0)) ? NULL : made(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size) {
  if (fails(__builtin_return_address(0))) return NULL;
  void *moved = __libc_realloc(p, size);
  if (!p) made(moved);
  if (p && !size) atomic_fetch_sub(&live, 1);
  return moved;
}

void free(void *p) {
  if (watch.counting && p) watch.seen.frees++;
  if (p) atomic_fetch_sub(&live, 1);
  __libc_free(p);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static _Atomic(int (*)(pthread_mutex_t *)) real;
  int (*lock)(pthread_mutex_t *) = atomic_load(&real);
  if (!lock) {
    *(void **)&lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    atomic_store(&real, lock);
  }
  if (watch.counting) watch.seen.locks++;
  return lock(mutex);
}
#endif
