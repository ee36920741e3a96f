/* npy.c - reads .npy files.
 *
 * A file is "\x93NUMPY", version (2 bytes), header length (2 bytes in 1.0, else 4), the header (a
 * Python dict literal: descr, fortran_order, shape), then the elements. The host is little-endian,
 * as every host of a GPU is, so elements are copied as they stand. */
#include "npy.h"
#include "base/elem.h"
#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they stand");

enum {
  PREFIX = 8,     /* the magic and the version */
  HEADER = 65536, /* the longest header read; NumPy's own limit is 10000 */
  CHUNK = 65536,  /* bytes read at a time; a multiple of every element size */
};
static const char magic[] = "\x93NUMPY";

/* The element types read; the digit is the size in bytes. */
static const char type[][3] = {"f2", "f4", "f8", "i4", "i8"};
enum { TYPES = sizeof type / sizeof *type };

/* ---- the header, a Python literal ---- */

/* The text still to be parsed, and whose it is. */
typedef struct reader {
  const char *name, *path;
  int file;
  int64_t size; /* of the file, in bytes */
  const char *at, *end;
} reader;

/* Refuses the file: "q: x.npy ...". */
static fg_status refuse(const reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static fg_status refuse(const reader *r, const char *format, ...) {
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return fg_fail(FG_EARGUMENT, "%s: %s %s", r->name, r->path, what);
}

static fg_status bad_header(const reader *r, const char *expected) {
  char near[25];
  size_t n = 0;
  for (const char *c = r->at; c < r->end && n + 1 < sizeof near; c++)
    near[n++] = isprint((unsigned char)*c) ? *c : ' ';
  near[n] = 0;
  return refuse(r, "has a bad header: %s expected at \"%s\"", expected, near);
}

static void skip_space(reader *r) {
  while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at) r->at++;
}

/* Takes the character c, spaces before it too. */
static int take(reader *r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c) return 0;
  r->at++;
  return 1;
}

/* Takes a word such as False. */
static int take_word(reader *r, const char *word) {
  size_t n = strlen(word);
  skip_space(r);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n)) return 0;
  r->at += n;
  return 1;
}

/* A quoted string without escapes, cut to `capacity` with its zero. */
static fg_status parse_string(reader *r, size_t capacity, char *out) {
  skip_space(r);
  char quote = r->at < r->end ? *r->at : 0;
  if (quote != '\'' && quote != '"') return bad_header(r, "a string");
  size_t n = 0;
  const char *c = r->at + 1;
  for (; c < r->end && *c != quote && isprint((unsigned char)*c) && *c != '\\'; c++)
    if (n + 1 < capacity) out[n++] = *c;
  if (c == r->end || *c != quote) return bad_header(r, "a string");
  out[n] = 0;
  r->at = c + 1;
  return FG_OK;
}

static fg_status parse_extent(reader *r, int64_t *out) {
  int64_t n = 0;
  skip_space(r);
  const char *start = r->at;
  if (start == r->end || !isdigit((unsigned char)*start)) return bad_header(r, "an extent");
  for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *r->at - '0', &n))
      return refuse(r, "has an extent above 2^63");
  if (*start == '0' && r->at > start + 1) { /* 010 was octal once, and is no Python number */
    r->at = start;
    return bad_header(r, "an extent");
  }
  *out = n;
  return FG_OK;
}

/* (), (3,), (3, 4), (3, 4,); a rank above FG_NPY_RANK is counted, then refused. */
static fg_status parse_shape(reader *r, fg_array *array) {
  int comma = 1, rank = 0;
  if (!take(r, '(')) return bad_header(r, "'('");
  while (!take(r, ')')) {
    int64_t extent = 0;
    if (!comma) return bad_header(r, "',' or ')'");
    TRY(parse_extent(r, &extent));
    if (rank < FG_NPY_RANK) array->extent[rank] = extent;
    rank++;
    comma = take(r, ',');
  }
  if (rank == 1 && !comma) return bad_header(r, "a comma in the shape of rank 1");
  if (rank > FG_NPY_RANK)
    return refuse(r, "has rank %d; ranks 0 to %d are read", rank, FG_NPY_RANK);
  array->rank = rank;
  return FG_OK;
}

static fg_status parse_descr(reader *r, fg_array *array) {
  char descr[24];
  skip_space(r);
  if (r->at < r->end && *r->at == '[')
    return refuse(r, "has structured elements; f2, f4, f8, i4 and i8 are read");
  TRY(parse_string(r, sizeof descr, descr));
  const char *order = "<>=|", *name = descr + (*descr && strchr(order, *descr) != NULL);
  for (int t = 0; t < TYPES; t++) {
    if (strcmp(name, type[t])) continue;
    if (*descr == '>') return refuse(r, "is big-endian (%s); little-endian is read", descr);
    memcpy(array->type, name, sizeof array->type);
    return FG_OK;
  }
  return refuse(r, "has elements of type %s; f2, f4, f8, i4 and i8 are read", descr);
}

static fg_status parse_order(reader *r) {
  if (take_word(r, "False")) return FG_OK;
  if (!take_word(r, "True")) return bad_header(r, "True or False");
  return refuse(r, "is in Fortran order; C order is read (numpy.ascontiguousarray)");
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }: every key once, in any order. */
static fg_status parse_header(reader *r, fg_array *array) {
  static const char *const key[] = {"descr", "fortran_order", "shape"};
  enum { DESCR, ORDER, SHAPE, KEYS };
  int seen[KEYS] = {0}, comma = 1;
  if (!take(r, '{')) return bad_header(r, "'{'");
  while (!take(r, '}')) {
    char word[16];
    int k = 0;
    const char *start = r->at;
    if (!comma) return bad_header(r, "',' or '}'");
    TRY(parse_string(r, sizeof word, word));
    while (k < KEYS && strcmp(word, key[k])) k++;
    if (k == KEYS || seen[k]++) {
      r->at = start;
      return bad_header(r, "each of descr, fortran_order and shape once");
    }
    if (!take(r, ':')) return bad_header(r, "':'");
    TRY(k == DESCR ? parse_descr(r, array) : k == ORDER ? parse_order(r) : parse_shape(r, array));
    comma = take(r, ',');
  }
  skip_space(r);
  if (r->at != r->end) return bad_header(r, "nothing more");
  for (int k = 0; k < KEYS; k++)
    if (!seen[k]) return refuse(r, "has a bad header: no %s", key[k]);
  return FG_OK;
}

/* ---- reading ---- */

static fg_status truncated(const reader *r, int64_t needed) {
  return refuse(r, "is truncated: %" PRId64 " bytes found, %" PRId64 " needed", r->size, needed);
}

/* The next n bytes of the file; `offset` is where they lie. */
static fg_status read_bytes(reader *r, int64_t offset, int64_t n, void *out) {
  if (offset + n > r->size) return truncated(r, offset + n);
  for (char *to = out; n > 0;) {
    ssize_t got = read(r->file, to, (size_t)n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fg_fail(FG_EIO, "%s: %s: %s", r->name, r->path, strerror(errno));
    if (got == 0) return refuse(r, "shrank while it was read");
    to += got, n -= got;
  }
  return FG_OK;
}

static fg_status open_regular(reader *r) {
  struct stat s;
  /* Without O_NONBLOCK a FIFO would block here, before it can be refused. */
  r->file = open(r->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (r->file < 0 || fstat(r->file, &s) < 0)
    return refuse(r, "cannot be opened: %s", strerror(errno));
  if (S_ISDIR(s.st_mode)) return refuse(r, "is a directory, not a .npy file");
  if (!S_ISREG(s.st_mode)) return refuse(r, "is not a regular file");
  r->size = s.st_size;
  return FG_OK;
}

/* Reads up to the first element and says where it lies. `text` holds HEADER bytes. */
static fg_status read_header(reader *r, char *text, fg_array *array, int64_t *data_offset) {
  unsigned char prefix[PREFIX], digit[4] = {0};
  if (r->size < PREFIX - 2)
    return refuse(r, "is not a .npy file: it has %" PRId64 " bytes", r->size);
  TRY(read_bytes(r, 0, PREFIX - 2, prefix));
  if (memcmp(prefix, magic, PREFIX - 2))
    return refuse(r, "is not a .npy file: it does not begin with \\x93NUMPY");
  TRY(read_bytes(r, PREFIX - 2, 2, prefix + PREFIX - 2));
  int major = prefix[PREFIX - 2], minor = prefix[PREFIX - 1];
  if (major < 1 || major > 3 || minor != 0)
    return refuse(r, "is of format %d.%d; 1.0, 2.0 and 3.0 are read", major, minor);
  int64_t digits = major == 1 ? 2 : 4, start = PREFIX + digits;
  TRY(read_bytes(r, PREFIX, digits, digit));
  int64_t n = digit[0] | digit[1] << 8 | digit[2] << 16 | (int64_t)digit[3] << 24;
  if (start + n > r->size) return truncated(r, start + n);
  if (n > HEADER)
    return refuse(r, "has a header of %" PRId64 " bytes; up to %d are read", n, HEADER);
  TRY(read_bytes(r, start, n, text));
  r->at = text, r->end = text + n;
  *data_offset = start + n;
  return parse_header(r, array);
}

/* Sets count, and checks that the file holds exactly that many elements after `offset`. */
static fg_status check_size(const reader *r, int64_t elem_size, int64_t offset, fg_array *array) {
  int64_t bytes = elem_size;
  int empty = 0, overflow = 0;
  for (int a = 0; a < FG_NPY_RANK; a++) {
    empty |= array->extent[a] == 0;
    overflow |= __builtin_mul_overflow(bytes, array->extent[a] ? array->extent[a] : 1, &bytes);
  }
  /* An empty array too: its other extents alone must be addressable, as NumPy demands. */
  if (overflow || __builtin_add_overflow(bytes, offset, &bytes))
    return refuse(r, "has a shape of more than 2^63 bytes");
  int64_t needed = empty ? offset : bytes;
  if (r->size < needed) return truncated(r, needed);
  if (r->size > needed)
    return refuse(r, "has %" PRId64 " bytes after its last element", r->size - needed);
  array->count = (needed - offset) / elem_size;
  return FG_OK;
}

/* Rounds n float64 elements to float32. */
static fg_status narrow(const reader *r, const void *from, int64_t n, int64_t first,
                        fg_array *array) {
  for (int64_t i = 0; i < n; i++) {
    double x;
    memcpy(&x, (const char *)from + i * (int64_t)sizeof x, sizeof x);
    const float rounded = (float)x;
    if (isinf(rounded) && !isinf(x))
      return refuse(r, "holds %g (element %" PRId64 "), which float32 does not reach", x,
                    first + i);
    array->real[first + i] = rounded;
  }
  return FG_OK;
}

/* Brings n elements of the array's type into its data, from element `first` on. */
static fg_status convert(const reader *r, const void *from, int64_t n, int64_t first,
                         fg_array *array) {
  int is_half = array->type[1] == '2', is_int4 = array->type[1] == '4';
  if (array->real && array->type[1] == '8') return narrow(r, from, n, first, array);
  if (array->real) {
    fg_elem elem = is_half ? FG_ELEM_F16 : FG_ELEM_F32;
    for (int64_t i = 0; i < n; i++) array->real[first + i] = fg_elem_load(elem, from, i);
  } else if (is_int4) {
    for (int64_t i = 0; i < n; i++) {
      int32_t x;
      memcpy(&x, (const char *)from + i * (int64_t)sizeof x, sizeof x);
      array->integer[first + i] = x;
    }
  } else {
    memcpy(array->integer + first, from, (size_t)n * sizeof *array->integer);
  }
  return FG_OK;
}

static fg_status read_data(reader *r, int64_t elem_size, int64_t offset, fg_array *array) {
  char chunk[CHUNK];
  size_t count = array->count ? (size_t)array->count : 1;
  if (array->type[0] == 'f')
    array->real = calloc(count, sizeof *array->real);
  else
    array->integer = calloc(count, sizeof *array->integer);
  if (!array->real && !array->integer)
    return fg_fail(FG_EMEMORY, "%s: no memory for the %zu elements of %s", r->name, count, r->path);
  for (int64_t first = 0, n; first < array->count; first += n) {
    n = CHUNK / elem_size;
    if (n > array->count - first) n = array->count - first;
    TRY(read_bytes(r, offset + first * elem_size, n * elem_size, chunk));
    TRY(convert(r, chunk, n, first, array));
  }
  return FG_OK;
}

fg_status fg_npy_read(const char *name, const char *path, fg_array *out) {
  fg_status status;
  reader r = {.name = name, .path = path, .file = -1};
  fg_array array = {.extent = {1, 1, 1, 1, 1}};
  int64_t offset = 0, elem_size;
  char *text = malloc(HEADER);
  if (!text) return fg_fail(FG_EMEMORY, "%s: no memory to read %s", name, path);
  TRY_OUT(open_regular(&r));
  TRY_OUT(read_header(&r, text, &array, &offset));
  elem_size = array.type[1] - '0';
  TRY_OUT(check_size(&r, elem_size, offset, &array));
  TRY_OUT(read_data(&r, elem_size, offset, &array));
  *out = array;
out:
  if (status != FG_OK) fg_array_free(&array);
  if (r.file >= 0) close(r.file);
  free(text);
  return status;
}

void fg_array_free(fg_array *array) {
  free(array->real);
  free(array->integer);
  memset(array, 0, sizeof *array);
}
