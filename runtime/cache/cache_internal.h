/* cache_internal.h - what the files of the cache share; nobody else includes it.
 *
 *   cache.c          open, get, put, produce
 *   cache_dir.c      which directory, and whether it can be trusted
 *   cache_entry.c    the format of an entry, and keys
 *   cache_find.c     look-up of one entry in one directory
 *   cache_flight.c   one producer a key: threads of this process; entries kept in memory
 *   cache_lock.c     the same between processes
 *   cache_publish.c  writing an entry
 *   cache_report.c   counts, warnings, the clock: below all others
 *   cache_sweep.c    all entries: stat, verify, gc, clear */
#ifndef FG_CACHE_INTERNAL_H
#define FG_CACHE_INTERNAL_H

#include "cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

/* The place of a key's entry: k/<bucket>/<file>, both from the digest. */
typedef struct fg_slot {
  unsigned char digest[16];
  char bucket[3], file[33];
} fg_slot;

/* An entry as it stands in its file, and in memory. */
typedef struct fg_image {
  fg_entry entry; /* first: a const fg_entry * is one to its image */
  atomic_uint uses;
  size_t n;
  _Alignas(16) unsigned char bytes[];
} fg_image;

typedef struct fg_root {
  char *path;    /* NULL: none */
  atomic_int fd; /* -1: not there; set once, and kept at that number when it is made again */
  bool own;
} fg_root;

typedef enum fg_trouble {
  FG_TROUBLE_PLACE,
  FG_TROUBLE_SHARED,
  FG_TROUBLE_CORRUPT,
  FG_TROUBLE_REFUSED,
  FG_TROUBLE_NEWER,
  FG_TROUBLE_PUBLISH,
  FG_TROUBLE_LOCK
} fg_trouble;

struct fg_cache {
  fg_root own, *shared;
  int shared_n;
  fg_cache_warn *warn;
  void *warn_context;
  atomic_uint warned; /* bit 1 << fg_trouble: said already */
  atomic_ullong count[FG_COUNTS];
  uint64_t cap;         /* bytes */
  int64_t lock_seconds; /* longest wait for another process */

  pthread_mutex_t root_mutex; /* for making the directory */
  pthread_mutex_t mutex;      /* for the two lists */
  pthread_cond_t landed;
  struct fg_flight *flights; /* being produced */
  struct fg_kept *kept;      /* produced, but not in the directory; newest first */

  atomic_llong
      write_again;       /* monotonic seconds before which nothing is written: the disk is full */
  atomic_ullong unswept; /* bytes written since the directory's size was last looked at */
  atomic_flag sweeping;
};

/* cache_report.c */
void fg_cache_warn_stderr(void *context, const char *sentence);
void fg_cache_add(fg_cache *cache, fg_count count, uint64_t n);
void fg_cache_say(fg_cache *cache, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says the first sentence about each kind of trouble, and no further one. */
void fg_cache_say_once(fg_cache *cache, fg_trouble trouble, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int64_t fg_seconds(clockid_t clock);

/* cache_entry.c */
void fg_slot_of(const char *key_text, size_t n, fg_slot *slot);
/* Whether the two names are an entry's; nothing else in a bucket is ever read. */
bool fg_slot_parse(const char *bucket, const char *file, fg_slot *slot);
fg_status fg_image_make(const fg_key *key, const char *meta, const void *code, size_t code_n,
                        fg_image **image);
/* One more use of the image; fg_entry_free ends one. */
fg_image *fg_image_share(fg_image *image);
bool fg_image_is_for(const fg_image *image, const fg_key *key);

typedef enum fg_read {
  FG_READ_OK,
  FG_READ_ABSENT,
  FG_READ_CORRUPT,
  FG_READ_NEWER,   /* whole, but of a newer format */
  FG_READ_REFUSED, /* not a regular file that only its owner can write */
  FG_READ_FAILED   /* errno says why */
} fg_read;
/* Reads and checks the `size` bytes of a file; *image only with FG_READ_OK. */
fg_read fg_image_read(int file, uint64_t size, const fg_slot *slot, fg_image **image);

/* cache_dir.c */
/* The absolute path of the directory, new, by the rule in cache.h; nothing is made or opened. */
fg_status fg_cache_place(const char *dir, char **path);
/* Opens the directory if it is there. A failure says what is wrong with it and how to mend it. */
fg_status fg_root_open(fg_root *root);
/* The descriptor of the own directory, which is made if it is not there; -1: fg_error() says
 * why. */
int fg_root_make(fg_cache *cache);
/* Opens a directory in another one, made first if asked for; -1 and errno, EPERM for one that is
 * not ours or can be written by others. */
int fg_dir_at(int parent, const char *name, bool make);
/* The directory k/<bucket>. */
int fg_bucket_open(int root, const char *bucket, bool make);
bool fg_is_trusted(const struct stat *info);

/* cache_find.c */
/* Opens an entry's file and checks what kind of file it is: FG_READ_OK with *file and *info. */
fg_read fg_entry_open(int bucket, const char *file_name, int *file, struct stat *info);
/* Removes the file if it is still the one that `info` describes. */
bool fg_unlink_same(int bucket, const char *file_name, const struct stat *info);
/* The entry of the key in one directory, or NULL. again: a second look for the same request, which
 * counts, warns and removes nothing. */
fg_image *fg_find(fg_cache *cache, fg_root *root, const fg_slot *slot, const fg_key *key,
                  bool again);

/* cache_flight.c */
/* Entries kept in memory: find gives a use of its own, or NULL; keep takes one, and does nothing
 * where memory is short. */
fg_image *fg_kept_find(fg_cache *cache, const fg_slot *slot, const fg_key *key);
void fg_keep(fg_cache *cache, const fg_slot *slot, fg_image *image);
void fg_kept_free(fg_cache *cache);
/* Runs `work` once for all threads that are in fg_fly with the same key; each gets a use of its
 * image, or its failure and sentence. No lock is held while it runs. */
typedef fg_status fg_flight_work(void *context, fg_image **image);
fg_status fg_fly(fg_cache *cache, const fg_slot *slot, const fg_key *key, fg_flight_work *work,
                 void *context, fg_image **image);

/* cache_lock.c */
/* The key's lock between processes, or -1: no lock to be had, or not in time (counted and said). */
int fg_lock_take(fg_cache *cache, const fg_slot *slot);
void fg_lock_drop(int lock);

/* cache_publish.c */
/* Whether the entry is in the directory now. */
bool fg_publish(fg_cache *cache, const fg_slot *slot, const fg_image *image);

/* cache_sweep.c */
/* After something was written: brings the directory back to its size if it may be beyond it. */
void fg_sweep_if_due(fg_cache *cache);

#endif
