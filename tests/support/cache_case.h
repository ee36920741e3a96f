/* cache_case.h - what the suites of the kernel cache share: one cache in a directory of the test's
 * own, numbered keys whose entries are known, and counts to compare.
 *
 * case_enter and case_leave are a checked fixture. In every test the current directory is a new
 * empty one, the cache's variables are not set, and nothing fails. */
#ifndef FG_TESTS_CACHE_CASE_H
#define FG_TESTS_CACHE_CASE_H

#include "cache/cache.h"
#include "cache_fault.h"
#include "suite.h"

#include <stdatomic.h>
#include <sys/types.h>

/* The code of key i has CODE_N + i bytes, its meta text is that of case_meta. */
enum { CODE_N = 3000 };

extern fg_cache *cache;         /* of case_open */
extern atomic_int *cache_made;  /* producer calls, those of forked children too */
extern void (*case_hook)(void); /* what the producer does first; NULL: nothing */

void case_enter(void);
void case_leave(void);

/* Opens `cache` anew, the one that was open is closed: dir as in fg_cache_open. Warnings are
 * kept, and start anew too. */
void case_open(const char *dir);
int case_warnings(void);
const char *case_warning(void); /* the last one, "" for none */

void case_key(int i, fg_key *key);
/* Where the entry of key i lives: DIR/k/../.. */
const char *case_path(const char *dir, int i);

/* Asks a cache for key i with a producer, and fails the test unless the entry is right. */
void case_ask(fg_cache *from, int i);
/* The same without a producer: whether it was there. */
bool case_get(fg_cache *from, int i);
/* Whether it could be written. */
bool case_put(fg_cache *to, int i);

/* hits, misses, corrupt, published since the last case_open */
void case_counts(int hits, int misses, int corrupt, int published);

/* Names in all of DIR/k; those of temporaries alone. */
int case_files(const char *dir);
int case_temporaries(const char *dir);

/* Starts f in a child, as another user (65534) if asked for and where we are root. */
pid_t case_fork(void (*f)(void), bool as_other);
/* Its status, as waitpid gives it. */
int case_wait(pid_t child);
/* Both. */
int case_child(void (*f)(void), bool as_other);

/* rm -rf */
void case_remove(const char *dir);

#endif
