/* cache_report.c - what the files of the cache count and say, and their clock. */
#include "cache_internal.h"

#include <stdarg.h>
#include <stdio.h>

void fg_cache_add(fg_cache *cache, fg_count count, uint64_t n) {
  atomic_fetch_add_explicit(&cache->count[count], n, memory_order_relaxed);
}

uint64_t fg_cache_count(const fg_cache *cache, fg_count count) { return cache->count[count]; }

/* The warning function of a cache that was opened with none. */
void fg_cache_warn_stderr(void *context, const char *sentence) {
  (void)context;
  fprintf(stderr, "flashgen: %s\n", sentence);
}

static void say(fg_cache *cache, const char *format, va_list args) {
  char sentence[8192]; /* a path of PATH_MAX and more */
  vsnprintf(sentence, sizeof sentence, format, args);
  cache->warn(cache->warn_context, sentence);
}

void fg_cache_say(fg_cache *cache, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(cache, format, args);
  va_end(args);
}

void fg_cache_say_once(fg_cache *cache, fg_trouble trouble, const char *format, ...) {
  if (atomic_fetch_or(&cache->warned, 1u << trouble) & 1u << trouble) return;
  va_list args;
  va_start(args, format);
  say(cache, format, args);
  va_end(args);
}

int64_t fg_seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec;
}
