/* cache.h - compiled kernels kept on disk, found again by the text of their key.
 *
 * An entry is (key text, meta text, code bytes); the cache knows nothing of what they mean. It only
 * ever saves work: whatever is wrong with the directory, an entry or the disk, a look-up is a miss,
 * the code is produced again, and the caller gets bytes that are right. Every trouble is
 * counted, and one sentence is said about each kind of trouble, once a cache.
 *
 *   directory   `dir`, else $FLASHGEN_CACHE, else $XDG_CACHE_HOME/flashgen, else ~/.cache/flashgen;
 *               never /tmp. Made when the first entry is written, mode 0700. One that belongs to
 *               somebody else or can be written by others is neither read nor written.
 *   shared      $FLASHGEN_CACHE_RO=dir:dir, searched first, never written; owned by us or by root.
 *   entries     k/<2 hex>/<30 hex>.k, the XXH3-128 of the key text; the text itself is stored and
 *               compared. A file appears whole (temporary, fsync, rename) or not at all.
 *   size        FLASHGEN_CACHE_SIZE MiB; the least recently used entries go first.
 *
 * Without a directory (memory only), and for entries that could not be written, the last 64 MiB are
 * kept in the process. Every function is safe to call from many threads at once, except
 * fg_cache_close. A cache must not be used on both sides of a fork. */
#ifndef FG_CACHE_H
#define FG_CACHE_H

#include "base/error.h"

#include <stdbool.h>

/* Users of the cache make it a part of their keys: entries of two formats never share a name. */
enum { FG_CACHE_FORMAT = 1 };

/* The text of a key: labelled fields, each with its length before it, so that no two lists of
 * fields give one text. All zero = empty. */
typedef struct fg_key {
  char *text;
  size_t n, room;
} fg_key;

/* Appends "label n bytes\n". The label has no space, tab or newline; the bytes may be anything.
 * FG_EMEMORY leaves the key as it was. */
fg_status fg_key_add(fg_key *key, const char *label, const void *bytes, size_t n);
void fg_key_free(fg_key *key);

/* An entry that was found or produced. All callers that asked for it share it; each frees it
 * once, in any thread. */
typedef struct fg_entry {
  const char *meta; /* ends in NUL, which meta_n does not count */
  const void *code; /* aligned to 16 bytes */
  size_t meta_n, code_n;
} fg_entry;
void fg_entry_free(const fg_entry *entry);

/* The result of a producer: both from malloc, and the cache frees them; meta may be NULL for "". */
typedef struct fg_product {
  char *meta;
  void *code;
  size_t code_n;
} fg_product;
typedef fg_status fg_producer(void *context, fg_product *product);

/* Gets a sentence without a newline, in any thread. */
typedef void fg_cache_warn(void *context, const char *sentence);

typedef struct fg_cache fg_cache;

/* dir = NULL: from the environment. warn = NULL: a line on stderr. FG_EMEMORY is the only failure:
 * with a directory that cannot be used the cache is memory only, after a warning. */
fg_status fg_cache_open(const char *dir, fg_cache_warn *warn, void *context, fg_cache **cache);
void fg_cache_close(fg_cache *cache);

/* Whether there is an entry, which *entry then is. Writes nothing but the time of use. */
bool fg_cache_get(fg_cache *cache, const fg_key *key, const fg_entry **entry);

/* Keeps an entry of n bytes of code; meta = NULL for "". Gives whether it is in the directory
 * now. */
bool fg_cache_put(fg_cache *cache, const fg_key *key, const char *meta, const void *code, size_t n);

/* The entry, from the cache or from the producer, which runs once for all threads that ask for one
 * key at the same time: they get its entry, or its failure and sentence. Other processes that
 * produce the same key are waited for, FLASHGEN_LOCK_SECONDS at most. No lock of this process is
 * held while the producer runs; it may use the cache, but not for its own key. */
fg_status fg_cache_produce(fg_cache *cache, const fg_key *key, fg_producer *producer, void *context,
                           const fg_entry **entry);

/* Since fg_cache_open. Every fg_cache_get and fg_cache_produce counts as one of the first three. */
typedef enum fg_count {
  FG_COUNT_HITS,           /* answered from a directory, or from the entries kept in memory */
  FG_COUNT_JOINED,         /* waited for another thread that was producing the same key */
  FG_COUNT_MISSES,         /* not answered: the producer ran */
  FG_COUNT_PRODUCED,       /* producer calls that succeeded */
  FG_COUNT_PUBLISHED,      /* entries written to the directory */
  FG_COUNT_PUBLISH_FAILED, /* entries that were to be written and could not be */
  FG_COUNT_CORRUPT,        /* entries that were damaged, hence misses */
  FG_COUNT_REFUSED,        /* entries not ours alone, no regular file, or unreadable: misses too */
  FG_COUNT_NEWER,          /* entries of a newer format: misses, and left as they are */
  FG_COUNT_EVICTED,        /* entries removed to stay within the size */
  FG_COUNT_SWEPT,          /* temporaries removed that a killed process had left */
  FG_COUNT_LOCK_TIMEOUTS,  /* times that the wait for another process ended without it */
  FG_COUNTS
} fg_count;
uint64_t fg_cache_count(const fg_cache *cache, fg_count count);

/* For `flashgen cache`. They act on the cache's own directory alone, tolerate entries that come and
 * go meanwhile, and find nothing in a directory that is not there. FG_EIO: it cannot be listed. */
typedef struct fg_cache_report {
  uint64_t entries, bytes;         /* there now; bytes in units of 4 KiB a file */
  uint64_t temporaries;            /* being written, or left by a killed process */
  uint64_t removed, removed_bytes; /* by this call */
  uint64_t bad;                    /* found damaged by this call (and removed) */
} fg_cache_report;

const char *fg_cache_path(const fg_cache *cache); /* NULL: memory only */
fg_status fg_cache_stat(fg_cache *cache, fg_cache_report *report);
/* Reads every entry, warns of each that is bad, and removes it. */
fg_status fg_cache_verify(fg_cache *cache, fg_cache_report *report);
/* Removes stale temporaries and, beyond `bytes` (0: FLASHGEN_CACHE_SIZE), the least recently used
 * entries down to 7/8 of it; never one written within the last minute. */
fg_status fg_cache_gc(fg_cache *cache, uint64_t bytes, fg_cache_report *report);
/* Removes every entry and temporary. */
fg_status fg_cache_clear(fg_cache *cache, fg_cache_report *report);

#endif
