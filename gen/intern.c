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

static const char *find(uint64_t hash, const char *text) {
  entry *e = n_buckets ? *chain(hash) : NULL;
  while (e && (e->hash != hash || strcmp(e->text, text))) e = e->next;
  return e ? e->text : NULL;
}

static const char *add(uint64_t hash, const char *text) {
  size_t n = strlen(text) + 1;
  grow();
  entry *e = n_buckets ? malloc(sizeof *e + n) : NULL;
  if (!e) return NULL;
  e->hash = hash, e->next = *chain(hash);
  memcpy(e->text, text, n);
  *chain(hash) = e;
  n_entries++;
  return e->text;
}

fg_status fg_intern(const char *text, const char **kept) {
  uint64_t hash = XXH3_64bits(text, strlen(text));
  pthread_mutex_lock(&lock);
  const char *found = find(hash, text);
  if (!found) found = add(hash, text);
  pthread_mutex_unlock(&lock);
  if (!found) return fg_fail(FG_EMEMORY, "no memory for a text");
  *kept = found;
  return FG_OK;
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
