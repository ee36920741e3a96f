/* npy.h - tensors in NumPy's .npy files.
 *
 * Reads format 1.0, 2.0 and 3.0, C order, little-endian f2, f4, f8, i4, i8, rank 0 to 5; writes f4
 * and i4 as 1.0. A failure is one sentence that names the tensor and the file: FG_EARGUMENT if the file is
 * not such a file, FG_EIO if the system would not read or write it, FG_EMEMORY. Thread-safe. */
#ifndef FG_NPY_H
#define FG_NPY_H

#include "flashgen.h"

#define FG_NPY_RANK 5 /* the largest rank read or written */

/* The reader's result; exactly one of real and integer is set. */
typedef struct fg_array {
  int rank;
  int64_t extent[FG_NPY_RANK]; /* 1 from `rank` on */
  int64_t count;               /* the product of the extents: 1 for rank 0, may be 0 */
  char type[3];                /* as in the file: "f2", "f4", "f8", "i4", "i8" */
  float *real;                 /* [count], of f2, f4 and, rounded, f8 */
  int64_t *integer;            /* [count], of i4 and i8 */
} fg_array;

/* Reads the regular file `path`; `name` is the tensor's name, for messages. *out is the caller's to
 * free, and untouched on failure. Nothing is allocated before the file's size agrees with its
 * header. */
fg_status fg_npy_read(const char *name, const char *path, fg_array *out);

/* Frees the data and zeroes the array; one that is all zero is legal. */
void fg_array_free(fg_array *array);

/* Writes data, extent[0..rank) in C order, to `path`, whole or not at all: an existing file is
 * replaced (where it is a link, the link), what is not a regular file is refused. */
fg_status fg_npy_write(const char *path, int rank, const int64_t *extent, const float *data);

/* fg_npy_write in two steps, so that several files appear only after all are written. Stage writes
 * to a new file beside `path` and names it in *temporary, the caller's until published or
 * discarded. */
fg_status fg_npy_stage(const char *path, int rank, const int64_t *extent, const float *data,
                       char **temporary);

/* The same of integers of 32 bits. */
fg_status fg_npy_stage_integers(const char *path, int rank, const int64_t *extent,
                                const int64_t *data, char **temporary);

/* Renames the staged file to `path`, or removes it when that fails; frees `temporary` in any case.
 */
fg_status fg_npy_publish(char *temporary, const char *path);

/* Removes the staged file and frees `temporary`; NULL is legal. */
void fg_npy_discard(char *temporary);

#endif
