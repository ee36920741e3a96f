/* intern.c - the table of texts. */
#include "intern.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  struct entry *next;
  uint64_t hash;
  char *call; /* NULL: not known yet */
  char text[];
} entry;

/* Chains; as many as there are entries, at least, so that they stay short. */
static entry **bucket;
static size_t n_buckets, n_entries; /* n_buckets: 0, or a power of 2 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static entry **chain(uint64_t hash) { return &bucket[hash & (n_buckets - 1)]; }

/* Room for one more; where there is no memory for it chains only get longer, if there are any. */
static void grow(void) {
  enum { FIRST = 256 };
  size_t n = n_buckets ? 2 * n_buckets : FIRST, old_n = n_buckets;
  entry **old = bucket, **grown = n_entries < n_buckets ? NULL : calloc(n, sizeof(entry *));
  if (!grown) return;
  bucket = grown, n_buckets = n;
  for (size_t i = 0; i < old_n; i++)
    for (entry *e = old[i], *next; e; e = next) {
      next = e->next;
      e->next = *chain(e->hash);
      *chain(e->hash) = e;
    }
  free(old);
}

/* lock is held; NULL: it was never interned. */
static entry *find(const char *text) {
  uint64_t hash = XXH3_64bits(text, strlen(text));
  entry *e = n_buckets ? *chain(hash) : NULL;
  while (e && (e->hash != hash || strcmp(e->text, text))) e = e->next;
  return e;
}

/* lock is held; NULL: no memory. */
static entry *add(const char *text) {
  uint64_t hash = XXH3_64bits(text, strlen(text));
  size_t n = strlen(text) + 1;
  grow();
  entry *e = n_buckets ? malloc(sizeof *e + n) : NULL;
  if (!e) return NULL;
  e->hash = hash, e->call = NULL, e->next = *chain(hash);
  memcpy(e->text, text, n);
  *chain(hash) = e;
  n_entries++;
  return e;
}

fg_status fg_intern(const char *text, const char **kept) {
  pthread_mutex_lock(&lock);
  const entry *found = find(text);
  if (!found) found = add(text);
  pthread_mutex_unlock(&lock);
  if (!found) return fg_fail(FG_EMEMORY, "no memory for a text");
  *kept = found->text;
  return FG_OK;
}

fg_status fg_intern_call(const char *text, const char *call) {
  char *copy = strdup(call);
  if (!copy) return fg_fail(FG_EMEMORY, "no memory for a text");
  pthread_mutex_lock(&lock);
  entry *found = find(text);
  if (found && !found->call) found->call = copy, copy = NULL;
  pthread_mutex_unlock(&lock);
  free(copy);
  return FG_OK;
}

const char *fg_intern_called(const char *text) {
  pthread_mutex_lock(&lock);
  const entry *found = find(text);
  const char *call = found ? found->call : NULL;
  pthread_mutex_unlock(&lock);
  return call;
}

void fg_intern_hash(const char *text, char hex[FG_INTERN_HEX]) {
  if (*text == '#')
    snprintf(hex, FG_INTERN_HEX, "%s", text + 1);
  else
    snprintf(hex, FG_INTERN_HEX, "%016" PRIx64, (uint64_t)XXH3_64bits(text, strlen(text)));
}

/* "#<digits>" is never found by the hash of itself: it stands for a text that is not known. */
fg_status fg_intern_find(const char *hex, const char **kept) {
  char unknown[FG_INTERN_HEX + 1];
  uint64_t hash = strtoull(hex, NULL, 16);
  const entry *e = NULL;
  pthread_mutex_lock(&lock);
  if (n_buckets) e = *chain(hash);
  while (e && (e->hash != hash || *e->text == '#')) e = e->next;
  pthread_mutex_unlock(&lock);
  if (e) {
    *kept = e->text;
    return FG_OK;
  }
  snprintf(unknown, sizeof unknown, "#%s", hex);
  return fg_intern(unknown, kept);
}
