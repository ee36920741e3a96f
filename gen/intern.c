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
  char text[];
} entry;

enum { BUCKETS = 256 };
static entry *bucket[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

fg_status fg_intern(const char *text, const char **kept) {
  size_t n = strlen(text);
  entry **at = &bucket[XXH3_64bits(text, n) % BUCKETS];
  pthread_mutex_lock(&lock);
  while (*at && strcmp((*at)->text, text)) at = &(*at)->next;
  if (!*at && (*at = malloc(sizeof **at + n + 1))) {
    (*at)->next = NULL;
    memcpy((*at)->text, text, n + 1);
  }
  entry *found = *at;
  pthread_mutex_unlock(&lock);
  if (!found) return fg_fail(FG_EMEMORY, "no memory for a text");
  *kept = found->text;
  return FG_OK;
}

void fg_intern_hash(const char *text, char hex[FG_INTERN_HEX]) {
  if (*text == '#')
    snprintf(hex, FG_INTERN_HEX, "%s", text + 1);
  else
    snprintf(hex, FG_INTERN_HEX, "%016" PRIx64, (uint64_t)XXH3_64bits(text, strlen(text)));
}

fg_status fg_intern_find(const char *hex, const char **kept) {
  char other[FG_INTERN_HEX], unknown[FG_INTERN_HEX + 1];
  const char *found = NULL;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < BUCKETS && !found; i++)
    for (const entry *e = bucket[i]; e && !found; e = e->next) {
      fg_intern_hash(e->text, other);
      if (*e->text != '#' && !strcmp(other, hex)) found = e->text;
    }
  pthread_mutex_unlock(&lock);
  if (found) {
    *kept = found;
    return FG_OK;
  }
  snprintf(unknown, sizeof unknown, "#%s", hex);
  return fg_intern(unknown, kept);
}
