/* t_engine_mma.c - the host device's engine on ldmatrix and mma: fragments lie as PTX says, and
 * every 16-bit number is read exactly. */
#include "base/elem.h"
#include "engine_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One mma by each of two warps: row-major operands of PTX's mma.m16n8k16, and what came of them. */
typedef struct product {
  u16 a[2][16][16], b[2][16][8];
  float c[2][16][8], d[2][16][8];
} product;

static product given;
static fg_elem dtype;

static void mma(float *d, const u32 *a, const u32 *b) {
  if (dtype == FG_ELEM_BF16)
    api->mma_bf16(d, a, b);
  else
    api->mma_f16(d, a, b);
}

/* PTX ISA, "Matrix Fragments for mma.m16n8k16", element by element: groupID = lane / 4 and
 * threadID_in_group = lane % 4. */
static void fragments(const void *p) {
  u32 w = tid() / 32, group = lane() / 4, in_group = lane() % 4;
  u16 a[8], b[4];
  float d[4];
  for (u32 i = 0; i < 8; i++) {
    u32 row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
    a[i] = given.a[w][row][in_group * 2 + (i & 1) + (i < 4 ? 0 : 8)];
  }
  for (u32 i = 0; i < 4; i++) b[i] = given.b[w][in_group * 2 + (i & 1) + (i < 2 ? 0 : 8)][group];
  for (u32 i = 0; i < 4; i++) d[i] = given.c[w][i < 2 ? group : group + 8][in_group * 2 + (i & 1)];
  u32 pairs_a[4], pairs_b[2];
  memcpy(pairs_a, a, sizeof a);
  memcpy(pairs_b, b, sizeof b);
  mma(d, pairs_a, pairs_b);
  for (u32 i = 0; i < 4; i++) given.d[w][i < 2 ? group : group + 8][in_group * 2 + (i & 1)] = d[i];
}

static void launch(void (*kernel)(const void *), u64 seed) {
  fg_host_memory *memory = case_make(seed);
  ck_assert_msg(case_launch((job){kernel, 64, 1}, seed, memory) == FG_OK, "seed %d: %s", (int)seed,
                fault.text);
  case_drop(memory);
}

static float random_value(void) { return (float)rand() / (float)RAND_MAX * 4 - 2; }

static void fill_product(void) {
  for (int i = 0; i < 2 * 16 * 16; i++) fg_elem_store(dtype, given.a, i, random_value());
  for (int i = 0; i < 2 * 16 * 8; i++) fg_elem_store(dtype, given.b, i, random_value());
  for (int i = 0; i < 2 * 16 * 8; i++) ((float *)given.c)[i] = random_value();
}

/* The sum in double, and of magnitudes: sixteen products and a start round 17 times at most. */
static void check_product(void) {
  for (int w = 0; w < 2; w++)
    for (int m = 0; m < 16; m++)
      for (int n = 0; n < 8; n++) {
        double sum = (double)given.c[w][m][n], size = fabs(sum);
        for (int k = 0; k < 16; k++) {
          double x = (double)fg_elem_load(dtype, given.a[w][m], k);
          double y = (double)fg_elem_load(dtype, given.b[w][k], n);
          sum += x * y;
          size += fabs(x * y);
        }
        ck_assert_double_le(fabs((double)given.d[w][m][n] - sum), 17 * 0x1p-24 * size);
      }
}

TEST_LOOP(fragments_lie_as_documented, 2) {
  dtype = _i ? FG_ELEM_F16 : FG_ELEM_BF16;
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fill_product();
    launch(fragments, seed);
    check_product();
  }
}

/* The same of e4m3, of which a word has four. */
typedef struct byte_product {
  u8 a[16][32], b[32][8];
  float c[16][8], d[16][8];
} byte_product;
static byte_product bytes;

/* PTX ISA, "Matrix Fragments for mma.m16n8k32", of 8-bit numbers. */
static void byte_fragments(const void *p) {
  u32 group = lane() / 4, in_group = lane() % 4;
  u8 a[16], b[8];
  float d[4];
  for (u32 i = 0; i < 16; i++) {
    u32 row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;
    a[i] = bytes.a[row][in_group * 4 + (i & 3) + (i < 8 ? 0 : 16)];
  }
  for (u32 i = 0; i < 8; i++) b[i] = bytes.b[in_group * 4 + (i & 3) + (i < 4 ? 0 : 16)][group];
  for (u32 i = 0; i < 4; i++) d[i] = bytes.c[i < 2 ? group : group + 8][in_group * 2 + (i & 1)];
  u32 words_a[4], words_b[2];
  memcpy(words_a, a, sizeof a);
  memcpy(words_b, b, sizeof b);
  api->mma_e4m3(d, words_a, words_b);
  for (u32 i = 0; i < 4; i++) bytes.d[i < 2 ? group : group + 8][in_group * 2 + (i & 1)] = d[i];
}

/* Every number that is none of the two NaNs, in turn; sums of 2^-18 steps below 2^23 are exact. */
TEST(bytes_lie_as_documented) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    for (u32 i = 0; i < 512; i++) {
      const u8 x = (u8)(i / 2 + 7 * seed + i % 2 * 128);
      bytes.a[i / 32][i % 32] = (x & 0x7f) == 0x7f ? 0 : x;
    }
    for (u32 i = 0; i < 256; i++) fg_elem_store(FG_ELEM_E4M3, bytes.b, i, (float)(rand() % 17 - 8));
    for (u32 i = 0; i < 128; i++) ((float *)bytes.c)[i] = (float)(rand() % 9 - 4);
    fg_host_memory *memory = case_make(seed);
    ck_assert_msg(case_launch((job){byte_fragments, 32, 1}, seed, memory) == FG_OK, "%s",
                  fault.text);
    case_drop(memory);
    for (int m = 0; m < 16; m++)
      for (int n = 0; n < 8; n++) {
        double sum = (double)bytes.c[m][n], size = fabs(sum);
        for (int k = 0; k < 32; k++) {
          const double x = (double)fg_elem_load(FG_ELEM_E4M3, bytes.a[m], k);
          const double y = (double)fg_elem_load(FG_ELEM_E4M3, bytes.b[k], n);
          sum += x * y;
          size += fabs(x * y);
        }
        ck_assert_double_le(fabs((double)bytes.d[m][n] - sum), 33 * 0x1p-24 * size);
      }
  }
}

/* An infinity and a NaN reach the row or the column that they are in, and no other. */
TEST_LOOP(specials_propagate, 2) {
  dtype = _i ? FG_ELEM_F16 : FG_ELEM_BF16;
  fill_product();
  for (int i = 0; i < 2 * 16 * 8; i++) fg_elem_store(dtype, given.b, i, 1);
  fg_elem_store(dtype, given.a[0][3], 5, -INFINITY);
  fg_elem_store(dtype, given.a[0][12], 1, NAN);
  fg_elem_store(dtype, given.b[1][9], 6, NAN);
  given.c[1][4][2] = INFINITY;
  launch(fragments, 0);
  for (int m = 0; m < 16; m++)
    for (int n = 0; n < 8; n++) {
      float d0 = given.d[0][m][n], d1 = given.d[1][m][n];
      ck_assert_int_eq(isnan(d0), m == 12);
      ck_assert_int_eq(isinf(d0) && d0 < 0, m == 3);
      ck_assert_int_eq(isnan(d1), n == 6);
      ck_assert_int_eq(isinf(d1) && d1 > 0, m == 4 && n == 2);
    }
}

/* Warp w's rows hold one number each, times 1: the sum is that number. */
static void all_numbers(const void *p) {
  u32 group = lane() / 4, unit = dtype == FG_ELEM_BF16 ? 0x3f80 : 0x3c00;
  for (u32 first = 32768 * (tid() / 32), end = first + 32768; first < end; first += 16) {
    u32 a[4] = {0}, b[2] = {unit * 0x10001, unit * 0x10001};
    float d[4] = {0};
    if (lane() % 4 == 0) a[0] = first + group, a[1] = first + group + 8;
    mma(d, a, b);
    for (u32 i = 0; i < 4; i++) {
      u16 x = (u16)(first + group + 8 * (i / 2));
      float exact = fg_elem_load(dtype, &x, 0);
      if (isnan(exact) ? !isnan(d[i]) : d[i] != exact) given.d[0][0][0] = 1;
    }
  }
}

TEST_LOOP(every_number_is_read_exactly, 2) {
  dtype = _i ? FG_ELEM_F16 : FG_ELEM_BF16;
  given.d[0][0][0] = 0;
  launch(all_numbers, 1);
  ck_assert_float_eq(given.d[0][0][0], 0);
}

/* Rows in any order and overlapping, as addresses say: row i of the warp begins at word 4 * i; the
 * number in halfword i of shared memory is i. */
static void matrices(const void *p) {
  const tensors *t = p;
  u32 plain[4], turned[4], good = 0;
  for (u32 i = 0; i < 4; i++) put(4 * tid() + i, (8 * tid() + 2 * i) * 0x10001 + 0x10000);
  sync_all();
  u32 row = 63 - tid(), near = lane() / 4, far = 2 * (lane() % 4);
  api->ldmatrix(plain, at(4 * row), 0);
  api->ldmatrix(turned, at(4 * row), 1);
  for (u32 i = 0; i < 4; i++) {
    u32 first = 63 - tid() / 32 * 32 - 8 * i; /* the row that lane 8 * i points to; they descend */
    u32 low = 8 * (first - near) + far, turned_low = 8 * (first - far) + near;
    good += plain[i] == low + (low + 1) * 0x10000;
    good += turned[i] == turned_low + (turned_low - 8) * 0x10000;
  }
  keep(t->out + tid(), (float)good);
}

TEST(matrices_lie_as_documented) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    ck_assert_msg(case_launch((job){matrices, 64, 1}, seed, memory) == FG_OK, "%s", fault.text);
    for (int i = 0; i < 64; i++) ck_assert_float_eq(made.out[i], 8);
    case_drop(memory);
  }
}
