/* shape.h - classes of shapes: those that share a choice of kernel. */
#ifndef FG_SHAPE_H
#define FG_SHAPE_H

#include "flashgen.h"

/* "4,16,16,1024,1024,16": the extents of the shape's form in order, behind their names unless the
 * form is the first one, those of its layout that are not 0, behind their names, and align; returns
 * the length. */
enum { FG_SHAPE_TEXT = 224 };
int fg_shape_print(const fg_shape *shape, size_t size, char *text);

/* Lengths, tokens and keys of a page in quarter octaves, batch times heads in powers of two,
 * whether heads share keys, align, whether the batch is beyond CUDA's limit of most axes. Never 0.
 */
uint64_t fg_shape_class(const fg_shape *shape);

/* The lengths of the class that a length is in. */
void fg_shape_lengths(int64_t length, int64_t *least, int64_t *most);

/* The shape with lengths that its totals say, in place of bounds: packed sequences are as long as
 * each other, and keys no more than fit in the pages. */
fg_shape fg_shape_typical(const fg_shape *shape);

/* The class by which measured times are found: that of the typical shape. Packed sequences count in
 * it by their mean length alone. Never 0. */
uint64_t fg_shape_timed_class(const fg_shape *shape);

/* How far apart two shapes are, whatever their align: 1 for a quarter octave of a length, 2 for a
 * factor of 2 in batch times heads, 3 for each step of query heads that share keys: 1, up to 8, up
 * to 16, more. 0 within such a class. */
int fg_shape_distance(const fg_shape *a, const fg_shape *b);

#endif
