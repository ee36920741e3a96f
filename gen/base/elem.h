/* elem.h - the element types of tensors: names, sizes, and conversion to and from float.
 *
 * A 16-bit or 8-bit value is only storage: the host computes in float or double. Conversions are
 * bit code, so they need no _Float16 and give the same bits with every compiler and rounding mode.
 */
#ifndef FG_ELEM_H
#define FG_ELEM_H

#include <stddef.h>
#include <stdint.h>

/* e4m3: a sign, 4 bits of exponent, 3 of fraction; no infinity, 448 is the largest number. */
typedef enum fg_elem { FG_ELEM_BF16, FG_ELEM_F16, FG_ELEM_F32, FG_ELEM_E4M3, FG_ELEM_I32 } fg_elem;

/* Bytes of one element. */
size_t fg_elem_size(fg_elem elem);

/* "bf16", "f16", "f32", "e4m3", "i32". */
const char *fg_elem_name(fg_elem elem);

/* Element i of the array at p, exactly (an i32 above 2^24 rounded); a NaN keeps its sign and
 * payload. p needs no alignment. */
float fg_elem_load(fg_elem elem, const void *p, int64_t i);

/* Element i of the array at p = x, rounded to nearest even: subnormals are kept, what rounds above
 * the largest finite value becomes infinite; an i32 is x without its fraction, saturating. A NaN
 * stored in 16 bits becomes quiet and keeps its sign and the upper bits of its payload. In e4m3
 * what is larger than 448, infinity too, becomes 448, and a NaN 0x7f, as cvt.rn.satfinite has it. p
 * needs no alignment. */
void fg_elem_store(fg_elem elem, void *p, int64_t i, float x);

#endif
