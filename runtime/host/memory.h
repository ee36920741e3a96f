/* memory.h - global memory: the tensors that a launch may touch, element by element.
 *
 * A tensor is seen as the span of elements from its lowest to its highest address, with a bit per
 * element that exists: strides of any kind, gaps between rows, broadcast axes. Writable tensors
 * have a record per element besides. Tensors may overlap: an access is good if any of them takes
 * it, and races are judged in that one. */
#ifndef FG_HOST_MEMORY_H
#define FG_HOST_MEMORY_H

#include "engine.h"

enum { FGH_SEAT_THREADS = 4096 }; /* records of global memory have seat * that + thread */

/* Who last did one kind of access, and the one before, when nothing orders the two. */
typedef struct fgh_trace {
  u32 stamp[2];
  u16 thread[2];
} fgh_trace;

typedef struct fgh_record {
  fgh_trace loads, atomics;
  u32 stamp; /* of the last plain store */
  u16 thread;
  u16 written; /* fence_async_global's count when a thread last wrote; 0: TMA did, or not known */
} fgh_record;

typedef struct fgh_tensor {
  fg_host_tensor is;
  char name[40];
  u8 *low;             /* the lowest element */
  i64 span;            /* elements from it to the highest, that included; 0: there are none */
  int shift;           /* log2 of the element's bytes */
  u8 *exists, *stored; /* bits; stored is NULL when all count as stored */
  fgh_record *records; /* NULL: not writable */
} fgh_tensor;

typedef enum fgh_access {
  FGH_LOAD,
  FGH_STORE,
  FGH_ATOMIC, /* from here on: accesses that may meet each other */
  FGH_SWAP,
  FGH_ACQUIRE, /* a load */
  FGH_RELEASE, /* a store */
  FGH_ACCESSES
} fgh_access;

struct fg_host_memory {
  int n;
  u32 era;                            /* of the stamps in the records */
  fgh_tensor *last_hit[FGH_ACCESSES]; /* kernels stay with a tensor for a while */
  fgh_tensor tensors[];
};

extern fg_host_memory *fgh_memory; /* of the launch */

/* A launch begins on this memory: its races are judged apart from those before. */
void fgh_memory_launch(fg_host_memory *memory);

static inline i64 fgh_span_bytes(const fgh_tensor *t) { return t->span << t->shift; }

/* The tensor that an address lies in or is nearest to; NULL when all are a megabyte away. */
const fgh_tensor *fgh_memory_nearest(const void *p);

/* "byte 5120 of 5120 of tensor o", or the bare address when no tensor is near. */
void fgh_memory_place(const void *address, char *text, size_t size);

/* global.c */
void fgh_global_launch(void);
void fgh_global_load(const void *from, void *value, int bytes);
void fgh_global_store(void *to, const void *value, int bytes);

/* atomic.c */
float fgh_atomic_add_f32(float *to, float value);
u64 fgh_atomic_add_u64(u64 *to, u64 value);
u64 fgh_atomic_cas_u64(u64 *to, u64 from, u64 value);
void fgh_reduce_f32(float *to, const float *values, int n);
void fgh_reduce_max_f32(float *to, float value);

/* What blocks give each other (handover.c): a fence; an atomic on a word has been done, and has
 * written it or not; a load that acquires; a store or an atomic that releases; is an access of
 * another block of the launch known to what the thread does now? */
void fgh_handover_launch(void);
void fgh_handover_block(void);
void fgh_handover_seat(u32 seat);
void fgh_fence_device(void);
void fgh_handover(const void *word, int writes);
void fgh_handover_acquire(const void *word);
void fgh_handover_release(const void *word, int stores);
int fgh_handed_over(u32 thread, u32 stamp); /* as records of global memory have them */

/* What an access does but the move itself: it lies in a tensor that permits it, nothing races with
 * it, its stores count as written (a swap's when fgh_global_mark says so). Else a fault. */
fgh_tensor *fgh_global_touch(fgh_access kind, const void *p, int bytes);
void fgh_global_mark(const fgh_tensor *t, const void *p, int bytes);

/* The load of a primitive that does more than load. Returns whether the tensor is writable. */
int fgh_global_read(const void *from, void *value, int bytes);

/* Load and store of the asynchronous proxy, which let no others run. */
int fgh_global_fetch(const void *from, void *value, int bytes);
void fgh_global_deliver(void *to, const void *value, int bytes);
void fgh_fence_async_global(void);

/* "byte 64 of tensor o, element [0,0,2,0]" of an element that is there. */
void fgh_global_place(const void *p, char *text, size_t size);

/* What an asynchronous copy of the running thread has read is there still. Else a fault. */
void fgh_global_unchanged(const void *from, const void *value, int bytes, const char *what);

#endif
