/* t_cache.c - the kernel cache: what is put comes back, and damaged entries never do. */
#include "cache_case.h"
#include "scratch.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static char *path; /* of the entry of key 1 */
static off_t size;

static uint64_t count(fg_count which) { return fg_cache_count(cache, which); }

/* A cache in "c" with the entry of key 1. */
static void enter(void) {
  case_enter();
  case_open("c");
  case_ask(cache, 1);
  struct stat info;
  path = strdup(case_path("c", 1));
  ck_assert_int_eq(stat(path, &info), 0);
  size = info.st_size;
  *cache_made = 0;
  case_open("c");
}

static void leave(void) {
  free(path);
  case_leave();
}

/* The damage is seen, counted and mended: the result is right, the next look-up hits. */
static void expect_mended(int corrupt) {
  case_open("c");
  case_ask(cache, 1);
  case_ask(cache, 1);
  case_counts(1, 1, corrupt, 1);
  ck_assert_int_eq(*cache_made, 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), path + 2));
  ck_assert_int_eq(case_files("c"), 1);
  *cache_made = 0;
}

static void poke(off_t at, const void *bytes, size_t n) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  ck_assert_int_ge(file, 0);
  ck_assert_int_eq(pwrite(file, bytes, n, at), (int)n);
  close(file);
}

/* A second cache, as a second process would have, finds it and writes nothing but the time. */
TEST(test_hit) {
  fault_clear();
  case_ask(cache, 1);
  ck_assert(case_get(cache, 1));
  ck_assert(!case_get(cache, 2));
  case_counts(2, 1, 0, 0);
  ck_assert_int_eq(*cache_made, 0);
  ck_assert_msg(!case_warnings(), "%s", case_warning());
  ck_assert_int_eq(fault_count(FAULT_FUTIMENS), 2);
  ck_assert_int_eq(fault_count(FAULT_MKDIR) + fault_count(FAULT_LOCK) + fault_count(FAULT_CREATE) +
                       fault_count(FAULT_UNLINK) + fault_count(FAULT_RENAME),
                   0);
}

TEST(test_put) {
  fg_key key;
  const fg_entry *entry;
  ck_assert(case_put(cache, 2));
  ck_assert(case_put(cache, 1)); /* over the one that is there */
  case_key(3, &key);
  ck_assert(fg_cache_put(cache, &key, NULL, NULL, 0));
  case_open("c");
  ck_assert(case_get(cache, 1) && case_get(cache, 2));
  ck_assert(fg_cache_get(cache, &key, &entry));
  ck_assert_str_eq(entry->meta, "");
  ck_assert_uint_eq(entry->code_n, 0);
  fg_entry_free(entry);
  fg_entry_free(NULL);
  fg_key_free(&key);
  case_counts(3, 0, 0, 0);
  ck_assert_int_eq(case_files("c"), 3);
}

static fg_status refuse(void *context, fg_product *product) {
  (void)context, (void)product;
  return fg_fail(FG_ECOMPILER, "no such arch");
}

TEST(test_producer_fails) {
  fg_key key;
  const fg_entry *entry = NULL;
  case_key(2, &key);
  ck_assert_int_eq(fg_cache_produce(cache, &key, refuse, NULL, &entry), FG_ECOMPILER);
  ck_assert_str_eq(fg_error(), "no such arch");
  ck_assert_ptr_null(entry);
  fg_key_free(&key);
  case_counts(0, 1, 0, 0);
  case_ask(cache, 2);
  case_counts(0, 2, 0, 1);
  ck_assert_uint_eq(count(FG_COUNT_PRODUCED), 1);
}

TEST(test_truncated) {
  for (int i = 0; i < 16; i++) {
    ck_assert_int_eq(truncate(path, size * i / 16), 0);
    expect_mended(1);
  }
  ck_assert_int_eq(truncate(path, size - 1), 0);
  expect_mended(1);
  ck_assert_int_eq(truncate(path, size + 1), 0);
  expect_mended(1);
}

/* 50 each in the header, the key text, the meta text, the code. */
TEST(test_flipped) {
  fg_key key;
  case_key(1, &key);
  const off_t part[] = {0, 64, 64 + (off_t)key.n, size - CODE_N - 1, size};
  fg_key_free(&key);
  srand(1);
  for (int i = 0; i < 200; i++) {
    off_t at = part[i / 50] + rand() % (part[i / 50 + 1] - part[i / 50]);
    unsigned char byte;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(pread(file, &byte, 1, at), 1);
    close(file);
    byte ^= (unsigned char)(1 << rand() % 8);
    poke(at, &byte, 1);
    expect_mended(1);
  }
}

/* Sets a number of the header, and the header's own checksum right again. */
static void craft(off_t at, uint32_t value) {
  char header[64];
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ck_assert_int_eq(pread(file, header, 64, 0), 64);
  close(file);
  memcpy(header + at, &value, sizeof value);
  uint64_t check = XXH3_64bits(header, 56);
  memcpy(header + 56, &check, sizeof check);
  poke(0, header, 64);
}

/* With 1 GiB of address space an allocation of 4 GB would show: as unreadable, not as corrupt. */
TEST(test_lengths) {
  struct rlimit limit = {1u << 30, 1u << 30};
#ifndef __SANITIZE_ADDRESS__ /* which takes terabytes itself */
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
#else
  (void)limit;
#endif
  for (off_t at = 12; at < 24; at += 4) {
    craft(at, 0xffffffff);
    expect_mended(1);
    craft(at, 1000);
    expect_mended(1);
  }
  craft(8, 0); /* a format that never was */
  expect_mended(1);
}

TEST(test_newer) {
  craft(8, FG_CACHE_FORMAT + 1);
  struct stat before, after;
  ck_assert_int_eq(stat(path, &before), 0);
  case_ask(cache, 1);
  case_ask(cache, 1); /* from memory */
  case_counts(1, 1, 0, 0);
  ck_assert(!case_put(cache, 1));
  ck_assert_int_eq(*cache_made, 1);
  ck_assert_uint_ge(count(FG_COUNT_NEWER), 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), "newer flashgen"));
  ck_assert_int_eq(stat(path, &after), 0);
  ck_assert_uint_eq(before.st_ino, after.st_ino);
  ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

/* A whole entry under the name of another key. */
TEST(test_renamed) {
  case_ask(cache, 2);
  ck_assert_int_eq(rename(case_path("c", 2), path), 0);
  *cache_made = 0;
  expect_mended(1);
}

/* An entry of key 1 that has the digest of another key: the text decides, it is not a hit. */
TEST(test_same_digest) {
  char text[64 + 128 + CODE_N + 64], place[40] = "c/k/";
  fg_key other = {0};
  const fg_entry *entry;
  XXH128_canonical_t digest;
  ck_assert_int_eq(fg_key_add(&other, "other", NULL, 0), FG_OK);
  XXH128_canonicalFromHash(&digest, XXH3_128bits(other.text, other.n));
  snprintf(place + 4, 3, "%02x", digest.digest[0]);
  mkdir(place, 0700);
  place[6] = '/';
  for (int i = 1; i < 16; i++) snprintf(place + 5 + 2 * i, 3, "%02x", digest.digest[i]);
  memcpy(place + 37, ".k", 3);

  int file = open(path, O_RDONLY | O_CLOEXEC);
  ck_assert_int_eq(read(file, text, sizeof text), size);
  close(file);
  memcpy(text + 24, digest.digest, 16);
  uint64_t check = XXH3_64bits(text, 56);
  memcpy(text + 56, &check, sizeof check);
  scratch_put(place, text, (size_t)size);
  ck_assert(!fg_cache_get(cache, &other, &entry));
  case_counts(0, 1, 0, 0);
  fg_key_free(&other);
}

/* Bit for bit what was there, but not a file to trust: refused, and replaced by one that is. */
static void refused(void) {
  case_open("c");
  case_ask(cache, 1);
  case_counts(0, 1, 0, 1);
  ck_assert_uint_eq(count(FG_COUNT_REFUSED), 1);
  ck_assert_int_eq(case_warnings(), 1);
  ck_assert_ptr_nonnull(strstr(case_warning(), path + 2));
  case_ask(cache, 1);
  case_counts(1, 1, 0, 1);
}

TEST(test_kinds) {
  ck_assert_int_eq(link(path, "elsewhere"), 0); /* two names */
  refused();
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(symlink("../../../elsewhere", path), 0);
  refused();
  struct stat info;
  ck_assert_int_eq(stat("elsewhere", &info), 0); /* the link was replaced, not followed */
  ck_assert_int_eq(info.st_size, size);
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(mkfifo(path, 0600), 0); /* must not block */
  refused();
  ck_assert_int_eq(chmod(path, 0666), 0);
  refused();
  if (geteuid() == 0) {
    ck_assert_int_eq(chown(path, 65534, 65534), 0);
    refused();
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mknod(path, S_IFCHR | 0600, 0x105), 0); /* /dev/zero */
    refused();
  }
}

TEST(test_unwritable_kind) {
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  case_ask(cache, 1);
  case_ask(cache, 1); /* from memory */
  case_counts(1, 1, 0, 0);
  ck_assert_int_eq(*cache_made, 1);
  ck_assert_uint_eq(count(FG_COUNT_PUBLISH_FAILED), 1);
  ck_assert_int_eq(case_temporaries("c"), 0);
}

/* --- keys --- */

typedef struct field {
  const char *label, *bytes;
} field;

static void make_key(const field *f, int n, fg_key *key) {
  *key = (fg_key){0};
  for (int i = 0; i < n; i++)
    ck_assert_int_eq(fg_key_add(key, f[i].label, f[i].bytes, strlen(f[i].bytes)), FG_OK);
}

/* What goes into the key of a compiled kernel; each change of a field, and each way in which two
 * fields could run together, is another key. */
TEST(test_key_sensitive) {
  static const field base[] = {
      {"name", "attn_fwd-bf16-d128"}, {"arch", "sm_90a"}, {"source", "0123abcd"},
      {"option", "-arch=sm_90a"},     {"option", "-v"},   {"compiler", "13.0 65be0db3"}};
  static const struct {
    int at;
    field now;
  } change[] = {{0, {"name", "attn_fwd-bf16-d12"}},
                {1, {"arch", "sm_90"}},
                {2, {"source", "0123abce"}},
                {3, {"option", "-arch=sm_90a -v"}},
                {4, {"option", ""}},
                {4, {"options", "-v"}},
                {5, {"compiler", "13.0 65be0db4"}},
                {5, {"compiler", "13.0 65be0db3\n"}},
                {3, {"option", "-arch=sm_90a\noption 2 -v"}},
                {3, {"option", "-arch=sm_90a\noption -v"}}};
  enum { FIELDS = sizeof base / sizeof *base, CHANGES = sizeof change / sizeof *change };
  fg_key key[CHANGES + 5];
  field f[FIELDS];
  int n = 0;
  make_key(base, FIELDS, &key[n++]);
  make_key(base, FIELDS - 1, &key[n++]);
  for (int i = 0; i < CHANGES; i++) {
    memcpy(f, base, sizeof base);
    f[change[i].at] = change[i].now;
    make_key(f, FIELDS, &key[n++]);
  }
  memcpy(f, base, sizeof base);
  f[3] = base[4], f[4] = base[3]; /* the order of options */
  make_key(f, FIELDS, &key[n++]);
  memcpy(f + 4, base + 5, sizeof *f);
  for (int i = CHANGES - 2; i < CHANGES; i++) { /* one field that reads as two */
    f[3] = change[i].now;
    make_key(f, FIELDS - 1, &key[n++]);
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      ck_assert_msg(key[i].n != key[j].n || memcmp(key[i].text, key[j].text, key[i].n),
                    "%d and %d are one key: %.*s", i, j, (int)key[i].n, key[i].text);
  for (int i = 1; i < n; i++) {
    const fg_entry *entry;
    ck_assert(case_put(cache, 1) && fg_cache_put(cache, &key[0], "", "x", 1));
    ck_assert(!fg_cache_get(cache, &key[i], &entry));
  }
  for (int i = 0; i < n; i++) fg_key_free(&key[i]);
}

/* Bytes may be anything; the same fields are the same text, wherever and whenever. */
TEST(test_key_text) {
  fg_key key = {0}, same = {0};
  ck_assert_int_eq(fg_key_add(&key, "a", "x\0\n", 3), FG_OK);
  ck_assert_int_eq(fg_key_add(&key, "bc", NULL, 0), FG_OK);
  ck_assert_uint_eq(key.n, 14);
  ck_assert_mem_eq(key.text, "a 3 x\0\n\nbc 0 \n", 14);
  setenv("TZ", "Asia/Tokyo", 1);
  setenv("LANG", "de_DE.UTF-8", 1);
  ck_assert_int_eq(chdir("/"), 0);
  ck_assert_int_eq(fg_key_add(&same, "a", "x\0\n", 3), FG_OK);
  ck_assert_int_eq(fg_key_add(&same, "bc", "", 0), FG_OK);
  ck_assert_uint_eq(same.n, key.n);
  ck_assert_mem_eq(same.text, key.text, key.n);
  fg_key_free(&key);
  fg_key_free(&same);
  ck_assert_ptr_null(key.text);
}

TEST_FIXTURE(enter, leave)
