/* memory.c - makes the picture of global memory that memory.h describes, and guarded memory.
 *
 * Setting up costs time by what exists, not by spans, which may be huge: all maps are lazy. */
#include "memory.h"

#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

fg_host_memory *fgh_memory;

static size_t bit_bytes(const fgh_tensor *t) {
  return (size_t)t->span / 8 + 16; /* read by 8 bytes */
}
static size_t record_bytes(const fgh_tensor *t) { return (size_t)t->span * sizeof(fgh_record); }

static void *map(size_t bytes) {
  void *p =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

static void unmap(void *p, size_t bytes) {
  if (p) munmap(p, bytes);
}

static void set_bits(u8 *bits, i64 from, i64 n) {
  for (; n && from % 8; from++, n--) bits[from / 8] |= (u8)(1 << from % 8);
  memset(bits + from / 8, 0xff, (size_t)(n / 8));
  from += n / 8 * 8;
  for (n %= 8; n; from++, n--) bits[from / 8] |= (u8)(1 << from % 8);
}

/* The axes that move, shortest step first, after one of a single element. Steps are positive:
 * elements count from the lowest. */
typedef struct axes {
  int n;
  i64 extent[FG_HOST_AXES + 1], step[FG_HOST_AXES + 1];
} axes;

static axes axes_of(const fg_host_tensor *is) {
  axes a = {.n = 1, .extent = {1}, .step = {1}};
  for (int i = 0; i < is->rank; i++) {
    i64 step = is->stride[i] < 0 ? -is->stride[i] : is->stride[i], extent = is->extent[i];
    if (extent == 1 || step == 0) continue;
    int at = a.n++;
    for (; at > 1 && a.step[at - 1] > step; at--) {
      a.step[at] = a.step[at - 1];
      a.extent[at] = a.extent[at - 1];
    }
    a.step[at] = step;
    a.extent[at] = extent;
  }
  return a;
}

/* Joins axes that are dense in one another, so that bits are set in the longest runs. */
static void join(axes *a) {
  int last = 0;
  for (int i = 1; i < a->n; i++) {
    if (a->step[i] == a->step[last] * a->extent[last]) {
      a->extent[last] *= a->extent[i];
      continue;
    }
    last++;
    a->extent[last] = a->extent[i];
    a->step[last] = a->step[i];
  }
  a->n = last + 1;
}

/* Runs along the first axis, counts through the others. */
static void set_existing(u8 *bits, const axes *a) {
  i64 index[FG_HOST_AXES + 1] = {0}, at = 0;
  for (int i = 0; i < a->n;) {
    set_bits(bits, at, a->extent[0]);
    for (i = 1; i < a->n; i++) {
      at += a->step[i];
      if (++index[i] < a->extent[i]) break;
      at -= a->step[i] * a->extent[i];
      index[i] = 0;
    }
  }
}

/* Fills in low and span; refuses what cannot be a tensor. */
static fg_status measure(fgh_tensor *t) {
  const fg_host_tensor *is = &t->is;
  i64 below = 0, above = 0, empty = 0;
  if ((is->elem != 1 && is->elem != 2 && is->elem != 4) || is->rank < 0 || is->rank > FG_HOST_AXES)
    return fg_fail(FG_EARGUMENT, "tensor %s: %d bytes an element, rank %d", t->name, is->elem,
                   is->rank);
  for (int i = 0; i < is->rank; i++) {
    i64 reach = 0;
    if (is->extent[i] < 0 ||
        (is->extent[i] && __builtin_mul_overflow(is->extent[i] - 1, is->stride[i], &reach)) ||
        reach > (i64)1 << 40 || reach < -((i64)1 << 40))
      return fg_fail(FG_EARGUMENT, "tensor %s: extent %lld, stride %lld", t->name,
                     (long long)is->extent[i], (long long)is->stride[i]);
    empty |= is->extent[i] == 0;
    if (reach < 0) below += reach;
    if (reach > 0) above += reach;
  }
  if (!empty && (!is->base || (uintptr_t)is->base % (unsigned)is->elem))
    return fg_fail(FG_EARGUMENT, "tensor %s: its address is not a multiple of %d", t->name,
                   is->elem);
  t->shift = is->elem / 2;
  t->low = empty ? is->base : (u8 *)is->base + below * is->elem;
  t->span = empty ? 0 : above - below + 1;
  return FG_OK;
}

static fg_status tensor_new(const fg_host_tensor *is, fgh_tensor *t) {
  t->is = *is;
  snprintf(t->name, sizeof t->name, "%s", is->name ? is->name : "?");
  TRY(measure(t));
  t->exists = map(bit_bytes(t));
  if (!is->initialised) t->stored = map(bit_bytes(t));
  if (is->writable && t->span) t->records = map(record_bytes(t));
  if (!t->exists || (!is->initialised && !t->stored) || (is->writable && t->span && !t->records))
    return fg_fail(FG_EMEMORY, "no memory for the shadow of tensor %s", t->name);
  axes a = axes_of(is);
  join(&a);
  if (t->span) set_existing(t->exists, &a);
  return FG_OK;
}

fg_status fg_host_memory_new(const fg_host_tensor *tensors, int n, fg_host_memory **memory) {
  fg_status status = FG_OK;
  fg_host_memory *made = calloc(1, sizeof *made + (size_t)n * sizeof(fgh_tensor));
  if (!made) return fg_fail(FG_EMEMORY, "no memory for %d tensors", n);
  made->n = n;
  made->era = fgh_era;
  for (int i = 0; i < n; i++) TRY_OUT(tensor_new(&tensors[i], &made->tensors[i]));
  *memory = made;
  return FG_OK;
out:
  fg_host_memory_free(made);
  return status;
}

void fg_host_memory_free(fg_host_memory *memory) {
  if (!memory) return;
  for (int i = 0; i < memory->n; i++) {
    fgh_tensor *t = &memory->tensors[i];
    unmap(t->exists, bit_bytes(t));
    unmap(t->stored, bit_bytes(t));
    unmap(t->records, record_bytes(t));
  }
  free(memory);
}

void fg_host_memory_written(fg_host_memory *memory, const void *base) {
  for (int i = 0; i < memory->n; i++) {
    fgh_tensor *t = &memory->tensors[i];
    if (t->is.base != base || !t->stored) continue;
    unmap(t->stored, bit_bytes(t));
    t->stored = NULL;
  }
}

void fgh_memory_launch(fg_host_memory *memory) {
  fgh_memory = memory;
  if (memory->era == fgh_era) return;
  for (int i = 0; i < memory->n; i++) {
    fgh_tensor *t = &memory->tensors[i];
    if (t->records) madvise(t->records, record_bytes(t), MADV_DONTNEED);
  }
  memory->era = fgh_era;
}

/* ---- places ---- */

/* Bytes between an address and a tensor; 0 inside. */
static i64 distance(const fgh_tensor *t, const void *p) {
  i64 offset = (const u8 *)p - t->low;
  if (offset < 0) return -offset;
  return offset < fgh_span_bytes(t) ? 0 : offset - fgh_span_bytes(t) + 1;
}

const fgh_tensor *fgh_memory_nearest(const void *p) {
  const fgh_tensor *best = NULL;
  for (int i = 0; fgh_memory && i < fgh_memory->n; i++) {
    const fgh_tensor *t = &fgh_memory->tensors[i];
    if (t->span && (!best || distance(t, p) < distance(best, p))) best = t;
  }
  return best && distance(best, p) < 1 << 20 ? best : NULL;
}

void fgh_memory_place(const void *address, char *text, size_t size) {
  const fgh_tensor *t = fgh_memory_nearest(address);
  if (t)
    snprintf(text, size, "byte %lld of %lld of tensor %s", (i64)((const u8 *)address - t->low),
             fgh_span_bytes(t), t->name);
  else
    snprintf(text, size, "address %p, near no tensor", address);
}

/* ---- guarded memory ---- */

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* Whole pages for at least one 16-byte unit. */
static size_t guarded_bytes(size_t bytes) {
  size_t page = page_bytes();
  return bytes ? (bytes + page - 1) / page * page : page;
}

fg_status fg_host_guarded_new(size_t bytes, uint64_t seed, void **p) {
  size_t page = page_bytes(), inner = guarded_bytes(bytes);
  u8 *all =
      mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return fg_fail(FG_EMEMORY, "no memory for %zu guarded bytes", bytes);
  if (mprotect(all + page, inner, PROT_READ | PROT_WRITE)) {
    munmap(all, inner + 2 * page);
    return fg_fail(FG_EMEMORY, "no memory for %zu guarded bytes", bytes);
  }
  memset(all + page, 0xff, inner);
  size_t used = bytes ? (bytes + 15) / 16 * 16 : 16;
  *p = all + page + (seed % 2 ? 0 : inner - used);
  return FG_OK;
}

/* Wherever it lies, it begins in the first of its pages. */
void fg_host_guarded_free(void *p, size_t bytes) {
  if (!p) return;
  size_t page = page_bytes();
  munmap((u8 *)p - (uintptr_t)p % page - page, guarded_bytes(bytes) + 2 * page);
}
