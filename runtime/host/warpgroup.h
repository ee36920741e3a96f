/* warpgroup.h - products by four warps, on registers that nobody may touch until they are waited
 * for. */
#ifndef FG_HOST_WARPGROUP_H
#define FG_HOST_WARPGROUP_H

#include "engine.h"

void fgh_wgmma_block(void);
void fgh_wgmma_seat(u32 seat);
void fgh_wgmma_return(void); /* the running thread is about to end */

void fgh_wgmma(float *d, const u32 *registers, u32 a, u32 b, int sum, const fgh_product *product);
void fgh_wgmma_wait(int in_flight);

enum { FGH_ROWS = 16 }; /* of a warp */

/* descriptor.c: the numbers of an operand in shared memory. */
enum { FGH_STEP = 16, FGH_UNIT = 16 }; /* of k in units of 2 bytes; bytes that lie together */
enum { FGH_DEPTH_MAX = 2 * FGH_STEP }; /* numbers of a step, of one byte */
enum { FGH_TYPE_BF16, FGH_TYPE_F16, FGH_TYPE_E4M3 }; /* of fgh_product */
static inline int fgh_depth(int type) { return type == FGH_TYPE_E4M3 ? FGH_DEPTH_MAX : FGH_STEP; }

/* Calls see(granule, what) for each 16 bytes of `extent` rows of m or n, from `first` on, and all
 * steps of the product. */
typedef void (*fgh_unit_visitor)(u32 granule, const char *what);
void fgh_operand_visit(const fgh_operand *o, u32 low, int steps, u32 first, u32 extent,
                       const char *what, fgh_unit_visitor see);

/* One step: to[k * pitch_k + row * pitch_row], rows counted from `first`. */
void fgh_operand_read(const fgh_operand *o, u32 low, int step, u32 first, u32 extent, int type,
                      float *to, u32 pitch_row, u32 pitch_k);

/* product_e4m3.c: c[16][n] += a[16][32] b[32][n] of numbers of e4m3, n a multiple of 8, as Hopper
 * adds them. */
void fgh_multiply_e4m3(float *c, const float *a, const float *b, int n);

#endif
