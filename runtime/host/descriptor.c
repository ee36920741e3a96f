/* descriptor.c - matrix descriptors as the hardware reads them: where each number of an operand
 * lies.
 *
 * Low word: address / 16 in 14 bits, leading offset / 16 from bit 16 on. High word: stride / 16,
 * the offset of the swizzle's pattern from bit 17 on, the swizzle from bit 30 on. Rows of the
 * swizzle's width lie 8 to a pattern, patterns `stride` apart; the leading offset is from a width
 * of m or n to the next where rows are of one k, and is not looked at otherwise. The swizzle is
 * that of the address's bits, wherever the matrix begins. */
#include "block.h"
#include "number.h"
#include "shadow.h"
#include "warpgroup.h"

typedef struct matrix {
  u32 address, leading, stride, row; /* bytes */
  int transposed;
} matrix;

static matrix decode(const fgh_operand *o, u32 low, int step) {
  u32 word = low + o->step[step], code = o->high >> 30;
  if (code == 0) fgh_fault("wgmma by a descriptor without a swizzle: %#x %#x", o->high, word);
  if (o->high >> 17 & 7) fgh_fault("wgmma by a descriptor with a base offset: %#x", o->high);
  return (matrix){.address = (word & 0x3fff) << 4,
                  .leading = (word >> 16 & 0x3fff) << 4,
                  .stride = (o->high & 0x3fff) << 4,
                  .row = 256u >> code,
                  .transposed = o->transposed};
}

/* The granule of the 16 bytes that row r of m or n, and k, begin, k in units of 2 bytes: the one
 * that varies along them is a multiple of 8. */
static inline u32 unit(const matrix *m, u32 r, u32 k) {
  u32 wide = m->row / 2, at = m->address;
  if (m->transposed)
    at += r / wide * m->leading + r % wide * 2 + k % 8 * m->row + k / 8 * m->stride;
  else
    at += r / 8 * m->stride + r % 8 * m->row + k * 2;
  at ^= (at >> 7 & (m->row / 16 - 1)) << 4;
  u32 base = fgh_self->shared_base & 0xffffff;
  if (at < base || at - base + FGH_UNIT > fgh_shared_bytes)
    fgh_fault("wgmma reads out of bounds: shared byte %d of %u", (int)(at - base),
              fgh_shared_bytes);
  return fgh_self->rank * FGH_GRANULES + (at - base) / FGH_GRANULE;
}

void fgh_operand_visit(const fgh_operand *o, u32 low, int steps, u32 first, u32 extent,
                       const char *what, fgh_unit_visitor see) {
  u32 along_r = o->transposed ? 8 : 1, along_k = o->transposed ? 1 : 8;
  for (int s = 0; s < steps; s++) {
    matrix m = decode(o, low, s);
    for (u32 r = first; r < first + extent; r += along_r)
      for (u32 k = 0; k < FGH_STEP; k += along_k) see(unit(&m, r, k), what);
  }
}

/* Of numbers of one byte, each row's side by side. */
static void read_bytes(const matrix *m, u32 first, u32 extent, float *to, u32 pitch_row,
                       u32 pitch_k) {
  if (m->transposed) fgh_fault("wgmma of e4m3 by rows of one k: the hardware takes none");
  for (u32 r = 0; r < extent; r++)
    for (u32 k = 0; k < FGH_STEP; k += 8) {
      const u8 *x = fgh_shared + unit(m, first + r, k) * FGH_GRANULE;
      float *at = to + r * pitch_row + 2 * k * pitch_k;
      for (u32 i = 0; i < FGH_UNIT; i++) at[i * pitch_k] = fgh_e4m3_to_f32(x[i]);
    }
}

void fgh_operand_read(const fgh_operand *o, u32 low, int step, u32 first, u32 extent, int type,
                      float *to, u32 pitch_row, u32 pitch_k) {
  matrix m = decode(o, low, step);
  if (type == FGH_TYPE_E4M3) {
    read_bytes(&m, first, extent, to, pitch_row, pitch_k);
    return;
  }
  u32 along_r = m.transposed ? 8 : 1, along_k = m.transposed ? 1 : 8;
  u32 pitch = m.transposed ? pitch_row : pitch_k;
  for (u32 r = 0; r < extent; r += along_r)
    for (u32 k = 0; k < FGH_STEP; k += along_k) {
      u16 x[8];
      float *at = to + r * pitch_row + k * pitch_k;
      memcpy(x, fgh_shared + unit(&m, first + r, k) * FGH_GRANULE, sizeof x);
      for (u32 i = 0; i < 8; i++, at += pitch)
        *at = type == FGH_TYPE_F16 ? fgh_f16_to_f32(x[i]) : fgh_bf16_to_f32(x[i]);
    }
}
