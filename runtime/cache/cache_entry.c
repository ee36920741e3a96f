/* cache_entry.c - the format of an entry, and keys.
 *
 *   offset  bytes  a file, little-endian
 *        0      8  magic
 *        8      4  format version
 *       12     12  lengths of key text, meta text, code
 *       24     16  XXH3-128 of the key text: also the file's name
 *       40     16  XXH3-128 of all that follows the header
 *       56      8  XXH3-64 of the 56 bytes above
 *       64         key text; meta text and a NUL; zeros up to a multiple of 16; code
 *
 * Every format keeps the first 12 bytes and the last 8 of the header, so that an entry of a newer
 * format can be told from a damaged one. Nothing is believed, or allocated, before the header's own
 * checksum and the file's size agree with it. */
#include "cache_internal.h"

#define XXH_INLINE_ALL
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the header is copied as it stands");

static const char magic[8] = "fgkernel";

typedef struct header {
  char magic[8];
  uint32_t format, key_n, meta_n, code_n;
  unsigned char digest[16], body[16];
  uint64_t check;
} header;
_Static_assert(sizeof(header) == 64 && offsetof(header, check) == 56, "no padding");

/* A cubin has 0.1 MB; this bounds what a crafted file can make us allocate. */
enum { ENTRY_MAX = 256 << 20, CODE_ALIGN = 16 };

static void hash(const void *bytes, size_t n, unsigned char digest[16]) {
  XXH128_canonical_t out;
  XXH128_canonicalFromHash(&out, XXH3_128bits(bytes, n));
  memcpy(digest, out.digest, 16);
}

static uint64_t header_check(const header *h) { return XXH3_64bits(h, offsetof(header, check)); }

/* Where the code begins in the file, in bytes. */
static uint64_t code_at(const header *h) {
  uint64_t end = sizeof *h + (uint64_t)h->key_n + h->meta_n + 1;
  return (end + CODE_ALIGN - 1) / CODE_ALIGN * CODE_ALIGN;
}

/* --- keys --- */

fg_status fg_key_add(fg_key *key, const char *label, const void *bytes, size_t n) {
  assert(*label && !strpbrk(label, " \t\n"));
  char prefix[24];
  size_t label_n = strlen(label), digits = (size_t)snprintf(prefix, sizeof prefix, " %zu ", n);
  size_t end = key->n + label_n + digits + n + 1;
  if (end > key->room) {
    size_t room = end + end / 2;
    char *text = realloc(key->text, room);
    if (!text) return fg_fail(FG_EMEMORY, "no memory for a key of %zu bytes", room);
    key->text = text, key->room = room;
  }
  char *to = key->text + key->n;
  memcpy(to, label, label_n);
  memcpy(to + label_n, prefix, digits);
  if (n) memcpy(to + label_n + digits, bytes, n);
  key->text[end - 1] = '\n';
  key->n = end;
  return FG_OK;
}

void fg_key_free(fg_key *key) {
  free(key->text);
  *key = (fg_key){0};
}

/* --- names --- */

/* Sets bucket and file from the digest. */
static void slot_name(fg_slot *slot) {
  char hex[33];
  for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", slot->digest[i]);
  memcpy(slot->bucket, hex, 2);
  slot->bucket[2] = 0;
  memcpy(slot->file, hex + 2, 30);
  memcpy(slot->file + 30, ".k", 3);
}

void fg_slot_of(const char *key_text, size_t n, fg_slot *slot) {
  hash(key_text, n, slot->digest);
  slot_name(slot);
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool fg_slot_parse(const char *bucket, const char *file, fg_slot *slot) {
  if (strlen(bucket) != 2 || strlen(file) != 32 || strcmp(file + 30, ".k") != 0) return false;
  for (int i = 0; i < 16; i++) {
    const char *at = i ? file + 2 * (i - 1) : bucket;
    int high = hex_digit(at[0]), low = hex_digit(at[1]);
    if (high < 0 || low < 0) return false;
    slot->digest[i] = (unsigned char)(high * 16 + low);
  }
  slot_name(slot);
  return true;
}

/* --- images --- */

/* Sets the entry's pointers into the bytes, which hold a header already. */
static void point(fg_image *image) {
  const header *h = (const header *)(const void *)image->bytes;
  uint64_t code = code_at(h);
  image->entry = (fg_entry){.meta = (const char *)image->bytes + sizeof *h + h->key_n,
                            .code = image->bytes + code,
                            .meta_n = h->meta_n,
                            .code_n = h->code_n};
}

static fg_image *image_new(size_t n) {
  fg_image *image = malloc(sizeof *image + n);
  if (!image) return NULL;
  atomic_init(&image->uses, 1);
  image->n = n;
  return image;
}

fg_status fg_image_make(const fg_key *key, const char *meta, const void *code, size_t code_n,
                        fg_image **image) {
  size_t meta_n = meta ? strlen(meta) : 0;
  if (key->n > ENTRY_MAX || meta_n > ENTRY_MAX || code_n > ENTRY_MAX ||
      key->n + meta_n + code_n > ENTRY_MAX - 128)
    return fg_fail(FG_EARGUMENT, "a compiled kernel of more than %d MiB", ENTRY_MAX >> 20);
  header h = {.format = FG_CACHE_FORMAT,
              .key_n = (uint32_t)key->n,
              .meta_n = (uint32_t)meta_n,
              .code_n = (uint32_t)code_n};
  memcpy(h.magic, magic, sizeof magic);
  size_t at = code_at(&h), n = at + code_n;
  fg_image *fresh = image_new(n);
  if (!fresh) return fg_fail(FG_EMEMORY, "no memory for a compiled kernel of %zu bytes", n);
  memset(fresh->bytes + at - CODE_ALIGN, 0, CODE_ALIGN);
  if (key->n) memcpy(fresh->bytes + sizeof h, key->text, key->n);
  if (meta_n) memcpy(fresh->bytes + sizeof h + key->n, meta, meta_n);
  fresh->bytes[sizeof h + key->n + meta_n] = 0;
  if (code_n) memcpy(fresh->bytes + at, code, code_n);
  hash(key->text, key->n, h.digest);
  hash(fresh->bytes + sizeof h, n - sizeof h, h.body);
  h.check = header_check(&h);
  memcpy(fresh->bytes, &h, sizeof h);
  point(fresh);
  *image = fresh;
  return FG_OK;
}

fg_image *fg_image_share(fg_image *image) {
  atomic_fetch_add(&image->uses, 1);
  return image;
}

void fg_entry_free(const fg_entry *entry) {
  fg_image *image = (fg_image *)(uintptr_t)entry;
  if (image && atomic_fetch_sub(&image->uses, 1) == 1) free(image);
}

bool fg_image_is_for(const fg_image *image, const fg_key *key) {
  const header *h = (const header *)(const void *)image->bytes;
  return h->key_n == key->n && memcmp(image->bytes + sizeof *h, key->text, key->n) == 0;
}

/* Reads n bytes at offset `at`: FG_READ_CORRUPT if the file is shorter, FG_READ_FAILED and errno if
 * it cannot be read. */
static fg_read read_at(int file, void *to, size_t n, size_t at) {
  for (size_t got = 0; got < n;) {
    ssize_t one = pread(file, (char *)to + got, n - got, (off_t)(at + got));
    if (one < 0 && errno == EINTR) continue;
    if (one < 0) return FG_READ_FAILED;
    if (one == 0) return FG_READ_CORRUPT;
    got += (size_t)one;
  }
  return FG_READ_OK;
}

/* Judges a file of `size` bytes by its header alone; FG_READ_OK: the body may be allocated and
 * read. */
static fg_read judge(const header *h, uint64_t size, const fg_slot *slot) {
  if (memcmp(h->magic, magic, sizeof magic) != 0 || h->check != header_check(h))
    return FG_READ_CORRUPT;
  if (h->format > FG_CACHE_FORMAT) return FG_READ_NEWER;
  if (h->format != FG_CACHE_FORMAT || size > ENTRY_MAX || size != code_at(h) + h->code_n ||
      memcmp(h->digest, slot->digest, 16) != 0)
    return FG_READ_CORRUPT;
  return FG_READ_OK;
}

static bool body_is_right(const fg_image *image) {
  const header *h = (const header *)(const void *)image->bytes;
  unsigned char body[16];
  hash(image->bytes + sizeof *h, image->n - sizeof *h, body);
  return memcmp(body, h->body, 16) == 0;
}

fg_read fg_image_read(int file, uint64_t size, const fg_slot *slot, fg_image **image) {
  header h;
  if (size < sizeof h) return FG_READ_CORRUPT;
  fg_read result = read_at(file, &h, sizeof h, 0);
  if (result == FG_READ_OK) result = judge(&h, size, slot);
  if (result != FG_READ_OK) return result;
  fg_image *fresh = image_new((size_t)size);
  if (!fresh) return errno = ENOMEM, FG_READ_FAILED;
  memcpy(fresh->bytes, &h, sizeof h);
  result = read_at(file, fresh->bytes + sizeof h, (size_t)size - sizeof h, sizeof h);
  if (result == FG_READ_OK && !body_is_right(fresh)) result = FG_READ_CORRUPT;
  if (result != FG_READ_OK) {
    free(fresh);
    return result;
  }
  point(fresh);
  *image = fresh;
  return FG_READ_OK;
}
