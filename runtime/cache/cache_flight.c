/* cache_flight.c - one producer for each key among the threads of this process, and the entries
 * that are kept in memory because they could not be written. */
#include "cache_internal.h"

#include <stdlib.h>
#include <string.h>

/* Bytes kept in memory at most: some 600 cubins of 0.1 MB. */
enum { KEPT_MAX = 64 << 20 };

typedef struct fg_kept {
  struct fg_kept *next;
  fg_slot slot;
  fg_image *image;
} fg_kept;

static bool same(const fg_slot *a, const fg_slot *b) { return !memcmp(a->digest, b->digest, 16); }

fg_image *fg_kept_find(fg_cache *cache, const fg_slot *slot, const fg_key *key) {
  fg_image *found = NULL;
  pthread_mutex_lock(&cache->mutex);
  for (fg_kept *k = cache->kept; k && !found; k = k->next)
    if (same(&k->slot, slot) && fg_image_is_for(k->image, key)) found = fg_image_share(k->image);
  pthread_mutex_unlock(&cache->mutex);
  return found;
}

static void kept_drop(fg_kept **link) {
  fg_kept *k = *link;
  *link = k->next;
  fg_entry_free(&k->image->entry);
  free(k);
}

/* The newest entry is kept, and as many of the older ones as KEPT_MAX allows; one with the same
 * digest as the newest is replaced. */
void fg_keep(fg_cache *cache, const fg_slot *slot, fg_image *image) {
  fg_kept *fresh = malloc(sizeof *fresh);
  if (!fresh || image->n > KEPT_MAX) {
    free(fresh);
    return;
  }
  pthread_mutex_lock(&cache->mutex);
  *fresh = (fg_kept){cache->kept, *slot, fg_image_share(image)};
  cache->kept = fresh;
  size_t bytes = 0;
  for (fg_kept **link = &cache->kept; *link;) {
    bytes += (*link)->image->n;
    if (bytes > KEPT_MAX || (*link != fresh && same(&(*link)->slot, slot))) {
      bytes -= (*link)->image->n;
      kept_drop(link);
    } else
      link = &(*link)->next;
  }
  pthread_mutex_unlock(&cache->mutex);
}

void fg_kept_free(fg_cache *cache) {
  while (cache->kept) kept_drop(&cache->kept);
}

/* --- flights --- */

typedef struct fg_flight {
  struct fg_flight *next;
  fg_slot slot;
  const fg_key *key; /* the leader's, valid while the flight is listed */
  int aboard;        /* threads that will still read the flight; guarded by the mutex */
  bool landed;
  fg_status status;
  char *error; /* the leader's sentence */
  fg_image *image;
} fg_flight;

/* With the mutex held: the last thread to leave frees the flight. */
static void leave(fg_flight *f) {
  if (--f->aboard) return;
  if (f->image) fg_entry_free(&f->image->entry);
  free(f->error);
  free(f);
}

/* With the mutex held: the flight of the key, or NULL. */
static fg_flight *find_flight(fg_cache *cache, const fg_slot *slot, const fg_key *key) {
  for (fg_flight *f = cache->flights; f; f = f->next)
    if (same(&f->slot, slot) && f->key->n == key->n && !memcmp(f->key->text, key->text, key->n))
      return f;
  return NULL;
}

/* With the mutex held: waits for the leader, then takes its image, or its failure and sentence. */
static fg_status ride(fg_cache *cache, fg_flight *f, fg_image **image) {
  f->aboard++;
  fg_cache_add(cache, FG_COUNT_JOINED, 1);
  while (!f->landed) pthread_cond_wait(&cache->landed, &cache->mutex);
  fg_status status = f->status;
  if (status == FG_OK)
    *image = fg_image_share(f->image);
  else
    fg_fail(status, "%s", f->error ? f->error : "another thread could not produce the kernel");
  leave(f);
  return status;
}

/* Takes the leader's flight off the list and wakes its riders; image = NULL where status is a
 * failure, whose sentence is fg_error(). */
static void land(fg_cache *cache, fg_flight *f, fg_status status, fg_image *image) {
  char *error = status == FG_OK ? NULL : strdup(fg_error());
  pthread_mutex_lock(&cache->mutex);
  fg_flight **link = &cache->flights;
  while (*link != f) link = &(*link)->next;
  *link = f->next;
  f->landed = true;
  f->status = status;
  f->error = error;
  f->image = image ? fg_image_share(image) : NULL;
  leave(f);
  pthread_cond_broadcast(&cache->landed);
  pthread_mutex_unlock(&cache->mutex);
}

fg_status fg_fly(fg_cache *cache, const fg_slot *slot, const fg_key *key, fg_flight_work *work,
                 void *context, fg_image **image) {
  fg_flight *mine = calloc(1, sizeof *mine);
  if (!mine) return fg_fail(FG_EMEMORY, "no memory to produce a kernel");
  pthread_mutex_lock(&cache->mutex);
  fg_flight *other = find_flight(cache, slot, key);
  if (other) {
    free(mine);
    fg_status status = ride(cache, other, image);
    pthread_mutex_unlock(&cache->mutex);
    return status;
  }
  *mine = (fg_flight){.next = cache->flights, .slot = *slot, .key = key, .aboard = 1};
  cache->flights = mine;
  pthread_mutex_unlock(&cache->mutex);

  fg_image *made = NULL;
  fg_status status = work(context, &made);
  land(cache, mine, status, made);
  if (status == FG_OK) *image = made;
  return status;
}
