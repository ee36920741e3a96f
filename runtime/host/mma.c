/* mma.c - the warp's matrix instructions: ldmatrix, stmatrix, mma.m16n8k16 and of e4m3 m16n8k32,
 * as PTX lays out their fragments. Each lane brings its part and takes its part; the last to come
 * does the work.
 *
 * A lane may bring its part of the next instruction while others have yet to take theirs of this
 * one: so what is brought and what is taken lie apart, or are the same lane's. */
#include "block.h"
#include "number.h"
#include "shadow.h"

enum { M = 16, N = 8, K = 16 };

typedef struct fragments {
  u16 a[M * K], b[K * N];
  u8 a_bytes[M * 2 * K], b_bytes[2 * K * N];
  float d[M * N];
} fragments;

typedef struct matrices {
  u16 row[32][8];    /* row r of matrix i is that of lane 8 * i + r */
  u32 pairs[32][4];  /* by lane */
  u16 stored[32][8]; /* the same of stmatrix */
  u32 brought[32][4];
} matrices;

static fragments mma_of[FGH_MAX_SEATS][FGH_MAX_WARPS];
static matrices matrices_of[FGH_MAX_SEATS][FGH_MAX_WARPS];

/* ---- ldmatrix ---- */

static void deal(matrices *m, int transposed) {
  for (u32 lane = 0; lane < 32; lane++) {
    u32 near = lane / 4, far = 2 * (lane % 4);
    for (u32 i = 0; i < 4; i++) {
      const u16(*x)[8] = (const u16(*)[8])m->row + 8 * i;
      u32 low = transposed ? x[far][near] : x[near][far];
      u32 high = transposed ? x[far + 1][near] : x[near][far + 1];
      m->pairs[lane][i] = low | high << 16;
    }
  }
}

/* A lane reads its row when it comes, not when the last one does: what others could do to the row
 * in between is a race with either. */
void fgh_ldmatrix(u32 *pairs, u32 address, int transposed) {
  FGH_ENTER();
  u32 lane = fgh_self->lane;
  matrices *m = &matrices_of[fgh_seat][fgh_self->warp];
  fgh_kind kind = transposed ? FGH_LDMATRIX_TRANS : FGH_LDMATRIX;
  fgh_shared_read(address, m->row[lane], 16);
  if (fgh_meet((fgh_call){.kind = kind, .lanes = ~0u})) {
    deal(m, transposed);
    fgh_wake_others(~0u);
  }
  memcpy(pairs, m->pairs[lane], sizeof m->pairs[lane]);
}

/* ---- stmatrix ---- */

/* Rows from the pairs: as deal, the other way. */
static void collect(matrices *m, int transposed) {
  for (u32 lane = 0; lane < 32; lane++) {
    u32 near = lane / 4, far = 2 * (lane % 4);
    for (u32 i = 0; i < 4; i++) {
      u16(*x)[8] = m->stored + 8 * i;
      u32 pair = m->brought[lane][i];
      *(transposed ? &x[far][near] : &x[near][far]) = (u16)pair;
      *(transposed ? &x[far + 1][near] : &x[near][far + 1]) = (u16)(pair >> 16);
    }
  }
}

/* A lane stores the row that it has the address of, when all have brought their pairs. */
void fgh_stmatrix(u32 address, const u32 *pairs, int transposed) {
  FGH_ENTER();
  u32 lane = fgh_self->lane;
  matrices *m = &matrices_of[fgh_seat][fgh_self->warp];
  fgh_kind kind = transposed ? FGH_STMATRIX_TRANS : FGH_STMATRIX;
  memcpy(m->brought[lane], pairs, sizeof m->brought[lane]);
  if (fgh_meet((fgh_call){.kind = kind, .lanes = ~0u})) {
    collect(m, transposed);
    fgh_wake_others(~0u);
  }
  fgh_shared_write(address, m->stored[lane], 16, "stmatrix");
}

/* ---- mma ---- */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* Two rows at a time, eight columns each. Spelt out: of plain loops over the columns gcc 12 makes
 * code that takes 900 ns instead of 150. */
static inline void multiply_rows(float *d, const float *a, const float *b) {
  four *row[] = {(four *)d, (four *)(d + N)};
  four s0 = row[0][0], s1 = row[0][1], t0 = row[1][0], t1 = row[1][1];
  for (int k = 0; k < K; k++, b += N) {
    four b0 = *(const four *)b, b1 = *(const four *)(b + 4);
    s0 += a[k] * b0;
    s1 += a[k] * b1;
    t0 += a[K + k] * b0;
    t1 += a[K + k] * b1;
  }
  row[0][0] = s0, row[0][1] = s1, row[1][0] = t0, row[1][1] = t1;
}

/* d += a b, for one way to read the operands: each is read once. */
static inline __attribute__((always_inline)) void multiply(fragments *f, float (*to_f32)(u32)) {
  float a[M * K], b[K * N];
  for (int i = 0; i < M * K; i++) a[i] = to_f32(f->a[i]);
  for (int i = 0; i < K * N; i++) b[i] = to_f32(f->b[i]);
  for (int m = 0; m < M; m += 2) multiply_rows(f->d + m * N, a + m * K, b);
}

static void multiply_bf16(fragments *f) { multiply(f, fgh_bf16_to_f32); }
static void multiply_f16(fragments *f) { multiply(f, fgh_f16_to_f32); }

/* Half of the columns of a, then the other. Sums are float32; those of a GPU keep fewer bits. */
static void multiply_e4m3(fragments *f) {
  float a[M * K], b[K * N];
  for (int half = 0; half < 2; half++) {
    for (int i = 0; i < M * K; i++)
      a[i] = fgh_e4m3_to_f32(f->a_bytes[i / K * 2 * K + half * K + i % K]);
    for (int i = 0; i < K * N; i++) b[i] = fgh_e4m3_to_f32(f->b_bytes[half * K * N + i]);
    for (int m = 0; m < M; m += 2) multiply_rows(f->d + m * N, a + m * K, b);
  }
}

/* Lane l has rows l / 4 and l / 4 + 8 of a and d, and column l / 4 of b: there the pair l % 4 along
 * the other axis, and of a and b, which have eight pairs, the pair l % 4 + 4 too. */
static inline __attribute__((always_inline)) void mma(fgh_kind kind, void (*work)(fragments *),
                                                      float *d, const u32 *a, const u32 *b) {
  fragments *f = &mma_of[fgh_seat][fgh_self->warp];
  u32 near = fgh_self->lane / 4, far = 2 * (fgh_self->lane % 4);
  float *own[] = {f->d + near * N + far, f->d + (near + 8) * N + far};
  for (u32 i = 0; i < 4; i++) memcpy(f->a + (near + 8 * (i % 2)) * K + far + 8 * (i / 2), a + i, 4);
  for (u32 i = 0; i < 4; i++)
    f->b[(far + 8 * (i / 2) + i % 2) * N + near] = (u16)(b[i / 2] >> 16 * (i % 2));
  for (u32 i = 0; i < 2; i++) memcpy(own[i], d + 2 * i, 8);
  if (fgh_meet((fgh_call){.kind = kind, .lanes = ~0u})) {
    work(f);
    fgh_wake_others(~0u);
  }
  for (u32 i = 0; i < 2; i++) memcpy(d + 2 * i, own[i], 8);
}

/* The same with four numbers of e4m3 where two of 16 bits are. */
void fgh_mma_e4m3(float *d, const u32 *a, const u32 *b) {
  FGH_ENTER();
  fragments *f = &mma_of[fgh_seat][fgh_self->warp];
  u32 near = fgh_self->lane / 4, far = 2 * (fgh_self->lane % 4), k = 2 * far;
  float *own[] = {f->d + near * N + far, f->d + (near + 8) * N + far};
  for (u32 i = 0; i < 4; i++)
    memcpy(f->a_bytes + (near + 8 * (i % 2)) * 2 * K + k + 16 * (i / 2), a + i, 4);
  for (u32 i = 0; i < 8; i++)
    f->b_bytes[(k + 16 * (i / 4) + i % 4) * N + near] = (u8)(b[i / 4] >> 8 * (i % 4));
  for (u32 i = 0; i < 2; i++) memcpy(own[i], d + 2 * i, 8);
  if (fgh_meet((fgh_call){.kind = FGH_MMA_E4M3, .lanes = ~0u})) {
    multiply_e4m3(f);
    fgh_wake_others(~0u);
  }
  for (u32 i = 0; i < 2; i++) memcpy(d + 2 * i, own[i], 8);
}

void fgh_mma_bf16(float *d, const u32 *a, const u32 *b) {
  FGH_ENTER();
  mma(FGH_MMA_BF16, multiply_bf16, d, a, b);
}

void fgh_mma_f16(float *d, const u32 *a, const u32 *b) {
  FGH_ENTER();
  mma(FGH_MMA_F16, multiply_f16, d, a, b);
}
