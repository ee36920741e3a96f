/* cache.c - open, get, put, produce. */
#include "cache.h"
#include "base/setting.h"
#include "cache_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- open, close --- */

/* Opens the cache's own directory; one that cannot be used leaves the cache memory only. */
static void open_own(fg_cache *cache, const char *dir) {
  fg_root *own = &cache->own;
  if (fg_cache_place(dir, &own->path) == FG_OK && fg_root_open(own) == FG_OK) return;
  fg_cache_say_once(cache, FG_TROUBLE_PLACE, "%s; compiled kernels are kept in memory only",
                    fg_error());
  free(own->path);
  own->path = NULL;
}

/* Opens the directories of $FLASHGEN_CACHE_RO, which ':' separates. A relative path starts at the
 * current directory. Nothing is read from an empty path, or from a directory that cannot be
 * used. */
static fg_status open_shared(fg_cache *cache) {
  const char *list = fg_setting_text(FG_SET_CACHE_RO, NULL);
  if (!*list) return FG_OK;
  int n = 1;
  for (const char *c = list; *c; c++) n += *c == ':';
  cache->shared = calloc((size_t)n, sizeof *cache->shared);
  if (!cache->shared) return fg_fail(FG_EMEMORY, "no memory for the kernel cache");
  for (const char *end; cache->shared_n < n; list = end + 1) {
    end = list + strcspn(list, ":");
    fg_root *root = &cache->shared[cache->shared_n++];
    root->fd = -1;
    root->path = strndup(list, (size_t)(end - list));
    if (!root->path) return fg_fail(FG_EMEMORY, "no memory for the kernel cache");
    if (*root->path && fg_root_open(root) != FG_OK)
      fg_cache_say_once(cache, FG_TROUBLE_SHARED, "%s; nothing is read from it", fg_error());
  }
  return FG_OK;
}

fg_status fg_cache_open(const char *dir, fg_cache_warn *warn, void *context, fg_cache **cache) {
  fg_cache *fresh = calloc(1, sizeof *fresh);
  if (!fresh) return fg_fail(FG_EMEMORY, "no memory for the kernel cache");
  fresh->warn = warn ? warn : fg_cache_warn_stderr;
  fresh->warn_context = context;
  fresh->cap = (uint64_t)fg_setting_number(FG_SET_CACHE_SIZE) << 20;
  fresh->lock_seconds = fg_setting_number(FG_SET_LOCK_SECONDS);
  fresh->unswept = fresh->cap; /* the first entry written looks at the directory's size */
  atomic_flag_clear(&fresh->sweeping);
  pthread_mutex_init(&fresh->mutex, NULL);
  pthread_mutex_init(&fresh->root_mutex, NULL);
  pthread_cond_init(&fresh->landed, NULL);
  fresh->own.own = true;
  fresh->own.fd = -1;
  open_own(fresh, dir);
  fg_status status = open_shared(fresh);
  if (status == FG_OK)
    *cache = fresh;
  else
    fg_cache_close(fresh);
  return status;
}

static void root_close(fg_root *root) {
  if (root->fd >= 0) close(root->fd);
  free(root->path);
}

void fg_cache_close(fg_cache *cache) {
  if (!cache) return;
  root_close(&cache->own);
  for (int i = 0; i < cache->shared_n; i++) root_close(&cache->shared[i]);
  free(cache->shared);
  fg_kept_free(cache);
  pthread_cond_destroy(&cache->landed);
  pthread_mutex_destroy(&cache->root_mutex);
  pthread_mutex_destroy(&cache->mutex);
  free(cache);
}

const char *fg_cache_path(const fg_cache *cache) { return cache->own.path; }

/* --- get, put, produce --- */

/* The entry, shared directories first, memory last; NULL: there is none. */
static fg_image *find(fg_cache *cache, const fg_slot *slot, const fg_key *key) {
  fg_image *image = NULL;
  for (int i = 0; i < cache->shared_n && !image; i++)
    image = fg_find(cache, &cache->shared[i], slot, key, false);
  if (!image) image = fg_find(cache, &cache->own, slot, key, false);
  return image ? image : fg_kept_find(cache, slot, key);
}

bool fg_cache_get(fg_cache *cache, const fg_key *key, const fg_entry **entry) {
  fg_slot slot;
  fg_slot_of(key->text, key->n, &slot);
  fg_image *image = find(cache, &slot, key);
  fg_cache_add(cache, image ? FG_COUNT_HITS : FG_COUNT_MISSES, 1);
  if (image) *entry = &image->entry;
  return image != NULL;
}

/* Whether the entry is in the directory now; otherwise memory keeps it. */
static bool keep(fg_cache *cache, const fg_slot *slot, fg_image *image) {
  bool published = fg_publish(cache, slot, image);
  if (!published) fg_keep(cache, slot, image);
  return published;
}

bool fg_cache_put(fg_cache *cache, const fg_key *key, const char *meta, const void *code,
                  size_t n) {
  fg_slot slot;
  fg_image *image;
  if (fg_image_make(key, meta, code, n, &image) != FG_OK) {
    fg_cache_add(cache, FG_COUNT_PUBLISH_FAILED, 1);
    fg_cache_say_once(cache, FG_TROUBLE_PUBLISH, "%s is not cached", fg_error());
    return false;
  }
  fg_slot_of(key->text, key->n, &slot);
  bool published = keep(cache, &slot, image);
  fg_entry_free(&image->entry);
  fg_sweep_if_due(cache);
  return published;
}

typedef struct request {
  fg_cache *cache;
  const fg_slot *slot;
  const fg_key *key;
  fg_producer *producer;
  void *context;
} request;

/* Runs the producer once and keeps its product. *image is set only with FG_OK. */
static fg_status run_producer(const request *r, fg_image **image) {
  fg_product product = {0};
  fg_cache_add(r->cache, FG_COUNT_MISSES, 1);
  fg_status status = r->producer(r->context, &product);
  if (status == FG_OK)
    status = fg_image_make(r->key, product.meta, product.code, product.code_n, image);
  free(product.meta);
  free(product.code);
  if (status != FG_OK) return status;
  fg_cache_add(r->cache, FG_COUNT_PRODUCED, 1);
  keep(r->cache, r->slot, *image);
  return FG_OK;
}

/* The work of the one thread that produces for all others. It looks again first: since its first
 * look another thread may have landed, or the process that held the lock may have written the
 * entry. */
static fg_status lead(void *context, fg_image **image) {
  const request *r = context;
  int lock = fg_lock_take(r->cache, r->slot);
  *image = fg_find(r->cache, &r->cache->own, r->slot, r->key, true);
  if (!*image) *image = fg_kept_find(r->cache, r->slot, r->key);
  fg_status status = FG_OK;
  if (*image)
    fg_cache_add(r->cache, FG_COUNT_HITS, 1);
  else
    status = run_producer(r, image);
  fg_lock_drop(lock);
  return status;
}

fg_status fg_cache_produce(fg_cache *cache, const fg_key *key, fg_producer *producer, void *context,
                           const fg_entry **entry) {
  fg_slot slot;
  fg_image *image;
  fg_slot_of(key->text, key->n, &slot);
  if ((image = find(cache, &slot, key))) {
    fg_cache_add(cache, FG_COUNT_HITS, 1);
    *entry = &image->entry;
    return FG_OK;
  }
  request r = {cache, &slot, key, producer, context};
  TRY(fg_fly(cache, &slot, key, lead, &r, &image));
  *entry = &image->entry;
  fg_sweep_if_due(cache);
  return FG_OK;
}
