/* cache_case.c - what the suites of the kernel cache share. */
#define _GNU_SOURCE /* setgroups, nftw */
#include "cache_case.h"
#include "base/setting.h"
#include "cache/cache_internal.h"
#include "scratch.h"

#include <dirent.h>
#include <ftw.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

fg_cache *cache;
atomic_int *cache_made;
void (*case_hook)(void);
static int warnings;
static char warning[8192];

enum { OTHER = 65534 };

void case_enter(void) {
  static const fg_setting variable[] = {FG_SET_CACHE, FG_SET_CACHE_RO, FG_SET_CACHE_SIZE,
                                        FG_SET_LOCK_SECONDS, FG_SET_XDG_CACHE_HOME};
  for (size_t i = 0; i < sizeof variable / sizeof *variable; i++)
    unsetenv(fg_settings[variable[i]].name);
  scratch_enter();
  fault_clear();
  cache_made =
      mmap(NULL, sizeof *cache_made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(cache_made, MAP_FAILED);
  case_hook = NULL;
}

void case_leave(void) {
  fault_clear();
  fg_cache_close(cache);
  cache = NULL;
  scratch_leave();
}

static void keep_warning(void *context, const char *sentence) {
  (void)context;
  warnings++;
  snprintf(warning, sizeof warning, "%s", sentence);
}

void case_open(const char *dir) {
  fg_cache_close(cache);
  warnings = 0;
  warning[0] = 0;
  ck_assert_int_eq(fg_cache_open(dir, keep_warning, NULL, &cache), FG_OK);
}

int case_warnings(void) { return warnings; }
const char *case_warning(void) { return warning; }

void case_key(int i, fg_key *key) {
  *key = (fg_key){0};
  ck_assert_int_eq(fg_key_add(key, "name", "attn_fwd-bf16-d128", 18), FG_OK);
  ck_assert_int_eq(fg_key_add(key, "number", &i, sizeof i), FG_OK);
}

const char *case_path(const char *dir, int i) {
  static char path[4096];
  fg_key key;
  fg_slot slot;
  case_key(i, &key);
  fg_slot_of(key.text, key.n, &slot);
  fg_key_free(&key);
  snprintf(path, sizeof path, "%s/k/%s/%s", dir, slot.bucket, slot.file);
  return path;
}

/* The entry of key i, new. */
static fg_product product_of(int i) {
  fg_product p = {.meta = malloc(64), .code_n = (size_t)(CODE_N + i)};
  unsigned char *code = malloc(p.code_n);
  ck_assert(p.meta && code);
  uint32_t state = (uint32_t)i * 2654435761u + 1;
  for (size_t n = 0; n < p.code_n; n++) {
    state = state * 1664525 + 1013904223;
    code[n] = (unsigned char)(state >> 24);
  }
  p.code = code;
  snprintf(p.meta, 64, "recipe of %d", i);
  return p;
}

static fg_status produce(void *context, fg_product *product) {
  atomic_fetch_add(cache_made, 1);
  if (case_hook) case_hook();
  *product = product_of(*(const int *)context);
  return FG_OK;
}

static void check_entry(const fg_entry *entry, int i) {
  fg_product p = product_of(i);
  ck_assert_str_eq(entry->meta, p.meta);
  ck_assert_uint_eq(entry->meta_n, strlen(p.meta));
  ck_assert_uint_eq(entry->code_n, p.code_n);
  ck_assert_int_eq(memcmp(entry->code, p.code, p.code_n), 0);
  ck_assert_uint_eq((uintptr_t)entry->code % 16, 0);
  free(p.meta);
  free(p.code);
}

void case_ask(fg_cache *from, int i) {
  fg_key key;
  const fg_entry *entry;
  case_key(i, &key);
  ck_assert_msg(fg_cache_produce(from, &key, produce, &i, &entry) == FG_OK, "%s", fg_error());
  check_entry(entry, i);
  fg_entry_free(entry);
  fg_key_free(&key);
}

bool case_get(fg_cache *from, int i) {
  fg_key key;
  const fg_entry *entry;
  case_key(i, &key);
  bool found = fg_cache_get(from, &key, &entry);
  if (found) {
    check_entry(entry, i);
    fg_entry_free(entry);
  }
  fg_key_free(&key);
  return found;
}

bool case_put(fg_cache *to, int i) {
  fg_key key;
  case_key(i, &key);
  fg_product p = product_of(i);
  bool put = fg_cache_put(to, &key, p.meta, p.code, p.code_n);
  free(p.meta);
  free(p.code);
  fg_key_free(&key);
  return put;
}

static int count(fg_count which) { return (int)fg_cache_count(cache, which); }

void case_counts(int hits, int misses, int corrupt, int published) {
  ck_assert_msg(count(FG_COUNT_HITS) == hits && count(FG_COUNT_MISSES) == misses &&
                    count(FG_COUNT_CORRUPT) == corrupt && count(FG_COUNT_PUBLISHED) == published,
                "%d hits, %d misses, %d corrupt, %d published instead of %d, %d, %d, %d (%s)",
                count(FG_COUNT_HITS), count(FG_COUNT_MISSES), count(FG_COUNT_CORRUPT),
                count(FG_COUNT_PUBLISHED), hits, misses, corrupt, published, warning);
}

static int count_names(const char *dir, const char *prefix) {
  int n = 0;
  for (int i = 0; i < 256; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/k/%02x", dir, (unsigned)i & 0xff);
    DIR *list = opendir(path);
    if (!list) continue;
    for (struct dirent *e; (e = readdir(list));)
      n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
           !strncmp(e->d_name, prefix, strlen(prefix));
    closedir(list);
  }
  return n;
}

int case_files(const char *dir) { return count_names(dir, ""); }
int case_temporaries(const char *dir) { return count_names(dir, ".tmp."); }

pid_t case_fork(void (*f)(void), bool as_other) {
  pid_t child = fork();
  if (child == 0) {
    if (as_other && geteuid() == 0 && (setgroups(0, NULL) || setgid(OTHER) || setuid(OTHER)))
      _exit(99);
    f();
    _exit(0);
  }
  ck_assert_int_gt(child, 0);
  return child;
}

int case_wait(pid_t child) {
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return status;
}

int case_child(void (*f)(void), bool as_other) { return case_wait(case_fork(f, as_other)); }

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
  (void)info, (void)kind, (void)place;
  return remove(path);
}

void case_remove(const char *dir) {
  ck_assert_int_eq(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}
