/* flashgen.h - the words that flashgen and its hosts share: status codes, specs, shapes, tensors.
 *
 * Plain C11 and C++, no CUDA header. Every struct that a caller fills starts with `size`; FG_INIT
 * sets it and zeroes the rest, and zero always means "the default". Nothing here allocates. */
#ifndef FLASHGEN_H
#define FLASHGEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FG_VERSION "0.1.0"

/* Who must act when a call fails; fg_error() has the sentence. */
typedef enum fg_status {
  FG_OK = 0,
  FG_EARGUMENT,    /* the caller: a bad argument, tensor or shape */
  FG_ESPEC,        /* the author of the spec */
  FG_ETEMPLATE,    /* the author of a template or family; also a fault the host device found */
  FG_ECOMPILER,    /* the kernel compiler refused the text */
  FG_ECUDA,        /* the CUDA driver */
  FG_EIO,          /* a file or directory */
  FG_EMEMORY,      /* memory ran out */
  FG_ECAPTURE,     /* the stream is capturing and something cold was asked for */
  FG_EENVIRONMENT, /* the machine lacks something: a compiler, a GPU */
  FG_EBUG          /* flashgen itself */
} fg_status;

/* The last failure in this thread, one sentence or more, never NULL; valid until the next failure.
 */
const char *fg_error(void);

/* *pointer = all zero but for its size: FG_INIT(fg_spec) is an initialiser. */
#define FG_INIT(type)                                                                              \
  { .size = sizeof(type) }

/* What a kernel computes, and which plans may compute it: one text value a field, NULL = default.
 * The texts are those of spec files and command lines; the table of fields is gen/field.c. */
typedef struct fg_spec {
  size_t size;
  const char *kernel, *pass, *dtype, *head_dim, *mask, *bias, *bias_dims, *bias_dtype, *grad_dtype;
  const char *normalizer;
  /* restrictions on plans: a list each, "64,128" */
  const char *family, *block_q, *block_kv, *stages, *warps;
} fg_spec;

/* The run-time extents: batch, query heads, key/value heads (h is a multiple of hk), query and key
 * lengths (each < 2^30). align = bytes that every pointer and row stride is a multiple of; 0 = 16.
 */
typedef struct fg_shape {
  int64_t b, h, hk, nq, nk, align;
} fg_shape;

/* A tensor: its first element and its strides in elements, in the order b h n d (bias and dbias:
 * b h q k). The last stride is 1; an axis of extent 1 is broadcast whatever its stride. */
typedef struct fg_tensor {
  void *data;
  int64_t stride[4];
} fg_tensor;

/* Everything a launch may take; data = NULL where not used.
 *   q, dq [b,h,nq,d]  k, dk [b,hk,nk,d]  v, dv [b,hk,nk,dv]  o, dout [b,h,nq,dv]   in the spec's
 * dtype bias, dbias [b|1,h|1,nq|1,nk|1] in bias_dtype, grad_dtype lse, dlse: float32 [b,h,nq],
 * contiguous, natural log scale: 0 = 1/sqrt(d) */
typedef struct fg_args {
  size_t size;
  fg_tensor q, k, v, o, dout, dq, dk, dv, bias, dbias, lse, dlse;
  float scale;
} fg_args;

#ifdef __cplusplus
}
#endif
#endif
