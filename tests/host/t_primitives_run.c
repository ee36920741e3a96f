/* t_primitives_run.c - primitives that only work together, in two small kernels, on a device:
 * cp.async, ldmatrix and mma as attention uses them, and packing with the vector accesses.
 *
 * On the host device it checks the templates against the engine; on a GPU (label gpu), that the
 * engine's model of fragments is the hardware's. The kernels take the place of the simplest
 * family's. */
#include "base/elem.h"
#include "kernel_case.h"
#include "reference/problem.h"
#include "scratch.h"
#include "templates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 16, VALUES = 4096 };

/* S = Q K^T and O = Q V, 16 x 16 each, into lse: A by ldmatrix, B without and with .trans. */
static const char fragments[] =
    "$(kernel('attn_fwd')) {\n"
    "if (blockIdx.x > 0 || threadIdx.x >= 32) { return; }\n"
    "const int lane = (int)threadIdx.x, row = lane / 2, half = 8 * (lane % 2);\n"
    "const u32 sm = shared_base();\n"
    "cp_async_16(sm + (u32)(16 * lane), p.q + row * p.q_n + half, 16);\n"
    "cp_async_16(sm + (u32)(512 + 16 * lane), p.k + row * p.k_n + half, 16);\n"
    "cp_async_commit();\n"
    "cp_async_16(sm + (u32)(1024 + 16 * lane), p.v + row * p.v_n + half, 16);\n"
    "cp_async_commit();\n"
    "const u32 column = (u32)(32 * (lane % 16) + 16 * (lane / 16));\n"
    "u32 a[4], b[4];\n"
    "float d[2][8];\n"
    "for (int i = 0; i < 8; i++) { d[0][i] = d[1][i] = 0.0f; }\n"
    "cp_async_wait_1();\n"
    "warp_sync(ALL_LANES);\n"
    "ldmatrix_x4(a, sm + column);\n"
    "ldmatrix_x4(b, sm + 512 + (u32)(32 * (lane % 8 + lane / 16 * 8) + lane / 8 % 2 * 16));\n"
    "mma_$(spec.dtype)(d[0], a, b);\n"
    "mma_$(spec.dtype)(d[0] + 4, a, b + 2);\n"
    "cp_async_wait_0();\n"
    "warp_sync(ALL_LANES);\n"
    "ldmatrix_x4_trans(b, sm + 1024 + column);\n"
    "mma_$(spec.dtype)(d[1], a, b);\n"
    "mma_$(spec.dtype)(d[1] + 4, a, b + 2);\n"
    "for (int i = 0; i < 16; i++) {\n"
    "const int m = lane / 4 + i / 2 % 2 * 8, n = i / 4 % 2 * 8 + lane % 4 * 2 + i % 2;\n"
    "stg_f32(p.lse + i / 8 * 256 + 16 * m + n, d[i / 8][i % 8]);\n"
    "}\n"
    "}\n";

/* Each number of the bias, packed with its neighbour and sent through every kind of memory by every
 * width of access; to lse goes the half's pattern, plus 3. */
static const char packing[] =
    "$(kernel('attn_fwd')) {\n"
    "if (blockIdx.x > 0 || threadIdx.x >= 32) { return; }\n"
    "const int lane = (int)threadIdx.x;\n"
    "const u32 own = shared_base() + (u32)(16 * lane);\n"
    "const int yes = any_lane(ALL_LANES, lane == 7), no = any_lane(ALL_LANES, lane > 31);\n"
    "for (int i = lane; i < 1024; i += 32) {\n"
    "float x[4], y[4];\n"
    "u32 u[4], v[4], w[2];\n"
    "ldg_f32x4(x, p.bias + 4 * i);\n"
    "stg_u32(p.o + 8 * i, pack_$(spec.dtype)(x[0], x[1]));\n"
    "u[0] = u[1] = 0;\n"
    "u[2] = ldg_u32(p.o + 8 * i);\n"
    "u[3] = pack_$(spec.dtype)(x[2], x[3]);\n"
    "stg_u32x4(p.o + 8 * i, u);\n"
    "ldg_u32x4(v, p.o + 8 * i);\n"
    "sts_u32x4(own, v);\n"
    "lds_u32x2(w, own + 8);\n"
    "for (int j = 0; j < 4; j++) { x[j] = (float)(w[j / 2] >> 16 * (j % 2) & 0xffff); }\n"
    "for (int j = 0; j < 4; j++) { y[j] = (float)(yes + 2 * no + (j > 0)); }\n"
    "stg_f32x4(p.lse + 4 * i, x);\n"
    "red_add_f32x4(p.lse + 4 * i, y);\n"
    "red_add_f32(p.lse + 4 * i, 1.0f);\n"
    "for (int j = 0; j < 4; j++) { red_add_f32(p.lse + 4 * i + j, 1.0f); }\n"
    "red_max_f32(p.lse + 4 * i, -1.0f);\n"
    "red_max_f32(p.lse + 4 * i, x[0] - 3.0f);\n"
    "}\n"
    "}\n";

/* Of each number x of the bias and y behind it: the smaller one, 1 / (1 + |x|) by products, and two
 * numbers of 16 bits: the upper halves of x and y as a pair with the larger halves of it and its
 * reverse, of which both words are the same; and signs of bytes 1 and 3 of x, byte 1 and one of y;
 * the step of x, and 1 / (1 + |x|) where 0 is made of what is below 0, as a pair. */
static const char pairs[] =
    "$(kernel('attn_fwd')) {\n"
    "if (blockIdx.x > 0 || threadIdx.x >= 32) { return; }\n"
    "for (int i = (int)threadIdx.x; i < 640; i += 32) {\n"
    "const float x = ldg_f32(p.bias + i), y = ldg_f32(p.bias + (i + 1) % 640);\n"
    "const u32 a = as_u32(x) >> 16, b = as_u32(y) >> 16;\n"
    "const u32 most = max_pair_$(spec.dtype)(a | b << 16, b | a << 16);\n"
    "stg_f32(p.lse + i, min_nan_f32(x, y));\n"
    "stg_f32(p.lse + 640 + i, inverse_by_products(1.0f + abs_f32(x)));\n"
    "stg_f32(p.lse + 1280 + i, most >> 16 == (most & 0xffff) ? (float)(most >> 16) : -1.0f);\n"
    "stg_f32(p.lse + 1920 + i, (float)(prmt_u32(as_u32(x), as_u32(y), 0x5b19) & 0xffffff));\n"
    "stg_f32(p.lse + 2560 + i, step_f32(x));\n"
    "const float rough = inverse_to_be_clipped(1.0f + abs_f32(x));\n"
    "const float near = near_inverse_to_be_clipped(1.0f + abs_f32(x));\n"
    "const u32 rough_pair = pack_clipped_bf16(rough, -1.0f), near_pair = pack_clipped_f16(-1.0f, "
    "near);\n"
    "const int is_0 = rough_pair >> 16 == 0 && (near_pair & 0xffff) == 0;\n"
    "stg_f32(p.lse + 3200 + i, is_0 ? bf16_to_f32((u16)rough_pair) : -1.0f);\n"
    "if (i < 256) { stg_f32(p.lse + 3840 + i, f16_to_f32((u16)(near_pair >> 16))); }\n"
    "}\n"
    "}\n";

/* S = Q K^T of e4m3, 16 x 16, into lse: fragments by PTX's page of them. */
static const char byte_fragments[] =
    "$(kernel('attn_fwd')) {\n"
    "if (blockIdx.x > 0 || threadIdx.x >= 32) { return; }\n"
    "const int lane = (int)threadIdx.x;\n"
    "for (int n = 0; n < 16; n += 8) {\n"
    "u32 a[4], b[2];\n"
    "float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};\n"
    "for (int i = 0; i < 4; i++) {\n"
    "a[i] = ldg_u32(p.q + (lane / 4 + 8 * (i % 2)) * p.q_n + 4 * (lane % 4) + 16 * (i / 2));\n"
    "}\n"
    "for (int i = 0; i < 2; i++) {\n"
    "b[i] = ldg_u32(p.k + (n + lane / 4) * p.k_n + 4 * (lane % 4) + 16 * i);\n"
    "}\n"
    "mma_e4m3(d, a, b);\n"
    "for (int i = 0; i < 4; i++) {\n"
    "stg_f32(p.lse + 16 * (lane / 4 + 8 * (i / 2)) + n + lane % 4 * 2 + i % 2, d[i]);\n"
    "}\n"
    "}\n"
    "}\n";

/* Each of 2048 numbers of the bias to e4m3, by every way: its bits, or 256 where they differ; then
 * what these bits are. */
static const char byte_packing[] =
    "$(kernel('attn_fwd')) {\n"
    "if (blockIdx.x > 0 || threadIdx.x >= 32) { return; }\n"
    "for (int i = 4 * (int)threadIdx.x; i < 2048; i += 128) {\n"
    "float x[4];\n"
    "ldg_f32x4(x, p.bias + i);\n"
    "const u32 four = pack_e4m3x4(x[0], x[1], x[2], x[3]);\n"
    "const u32 two = pack_e4m3(x[0], x[1]) | pack_e4m3(x[2], x[3]) << 16;\n"
    "for (int j = 0; j < 4; j++) {\n"
    "const u8 one = f32_to_e4m3(x[j]);\n"
    "stg_f32(p.lse + i + j, four == two && (four >> 8 * j & 255) == one ? (float)one : 256.0f);\n"
    "stg_f32(p.lse + 2048 + i + j, e4m3_to_f32(one));\n"
    "}\n"
    "}\n"
    "}\n";

/* Each byte and the three behind it as numbers of 16 bits: the patterns of all four, as the device
 * makes them, and by their bits. */
static const char widening[] =
    "$(kernel('attn_fwd')) {\n"
    "if (blockIdx.x > 0 || threadIdx.x >= 32) { return; }\n"
    "for (int i = (int)threadIdx.x; i < 256; i += 32) {\n"
    "const u32 x = (u32)(i | (i + 1) % 256 << 8 | (i + 2) % 256 << 16) | (u32)((i + 3) % 256) << "
    "24;\n"
    "u32 by[2][2];\n"
    "widen_$(spec.dtype)(by[0], x);\n"
    "by[1][0] = widen_pair_$(spec.dtype)(x << 8);\n"
    "by[1][1] = widen_pair_$(spec.dtype)(x);\n"
    "for (int j = 0; j < 8; j++) {\n"
    "stg_f32(p.lse + 8 * i + j, (float)(by[j / 4][j % 2] >> j / 2 % 2 * 16 & 0xffff));\n"
    "}\n"
    "}\n"
    "}\n";

static const char *const dtypes[] = {"bf16", "f16", "e4m3"};
static const char *const dims[] = {"16", "16", "32"};

typedef struct run {
  kernels made;
  fg_problem *problem;
} run;

static run begin(const char *text, const char *words, int dtype, fg_shape shape) {
  char all[128];
  run r;
  scratch_put("t/attention/simt/forward.cut", text, strlen(text));
  snprintf(all, sizeof all, "dtype=%s family=simt block_q=16 head_dim=%s %s", dtypes[dtype],
           dims[dtype], words);
  GOOD(kernels_make("t", all, &r.made));
  ck_assert_int_eq(r.made.n, 1);
  GOOD(fg_problem_new(kernel_device(), &r.made.list[0].source->recipe, &shape, 0, 0, &r.problem));
  return r;
}

static void set(const run *r, const char *tensor, const float *values) {
  GOOD(fg_problem_set(r->problem, fg_problem_find(r->problem, tensor), values));
}

/* Runs the kernel; lse is what it gives. */
static void end(run *r, float *lse) {
  GOOD(fg_problem_run(r->problem, r->made.list[0].module));
  GOOD(fg_problem_get(r->problem, fg_problem_find(r->problem, "lse"), lse));
  fg_problem_free(r->problem);
  kernels_free(&r->made);
}

/* Small integers: every sum is exact, in any order. */
static void fill(float *x, int n) {
  for (int i = 0; i < n; i++) x[i] = (float)(rand() % 17 - 8);
}

TEST_LOOP(products_are_right, 2) {
  static float q[512 * N], k[N * N], v[N * N], d[512];
  fill(q, 512 * N), fill(k, N * N), fill(v, N * N);
  run r = begin(fragments, "", _i, (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 512, .nk = N});
  set(&r, "q", q), set(&r, "k", k), set(&r, "v", v);
  end(&r, d);
  for (int m = 0; m < N; m++)
    for (int n = 0; n < N; n++) {
      float s = 0, o = 0;
      for (int i = 0; i < N; i++) {
        s += q[m * N + i] * k[n * N + i];
        o += q[m * N + i] * v[i * N + n];
      }
      ck_assert_float_eq(d[m * N + n], s);
      ck_assert_float_eq(d[256 + m * N + n], o);
    }
}

/* Numbers of every size, in half of them the bits that are rounded away at, just below or just
 * above the half, for either dtype; and zeros, infinities, NaNs. */
static void numbers(float *x) {
  static const uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                     0xffc00001, 0x7f7fffff, 0x477fe000, 0x477fefff, 0x477ff000,
                                     0x33000000, 0x33000001, 0x7f7f8000, 0x7f7f7fff, 1};
  static const uint32_t edge[] = {0x1000, 0x0fff, 0x1001, 0x8000, 0x7fff, 0x8001};
  for (uint32_t i = 0; i < VALUES; i++) {
    uint32_t bits = (uint32_t)rand() ^ (uint32_t)rand() << 16,
             kept = i % 6 < 3 ? 0xffffe000 : 0xffff0000;
    if (i % 2) bits = (bits & 0x807fffff) | (96u + (uint32_t)rand() % 48) << 23; /* f16's range */
    if (i % 4 < 2) bits = (bits & kept) | edge[i % 6];
    if (i < sizeof special / sizeof *special) bits = special[i];
    memcpy(&x[i], &bits, sizeof bits);
  }
}

TEST_LOOP(packing_rounds_to_even, 2) {
  static float x[VALUES], packed[VALUES];
  fg_elem elem = _i ? FG_ELEM_F16 : FG_ELEM_BF16;
  numbers(x);
  run r = begin(packing, "bias=true bias_dtype=f32", _i,
                (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = VALUES, .nk = 1});
  set(&r, "bias", x);
  end(&r, packed);
  for (int i = 0; i < VALUES; i++) {
    uint16_t want, got = (uint16_t)(packed[i] - 3);
    fg_elem_store(elem, &want, 0, x[i]);
    if (isnan(x[i]))
      ck_assert(isnan(fg_elem_load(elem, &got, 0)));
    else
      ck_assert_msg(got == want, "%a: %#x, not %#x", (double)x[i], got, want);
  }
}

TEST(products_of_bytes_are_right) {
  static float q[256 * 32], k[N * 32], d[256];
  fill(q, 256 * 32), fill(k, N * 32);
  run r = begin(byte_fragments, "", 2, (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 256, .nk = N});
  set(&r, "q", q), set(&r, "k", k);
  end(&r, d);
  for (int m = 0; m < N; m++)
    for (int n = 0; n < N; n++) {
      float s = 0;
      for (int i = 0; i < 32; i++) s += q[m * 32 + i] * k[n * 32 + i];
      ck_assert_float_eq(d[m * N + n], s);
    }
}

TEST(packing_to_bytes) {
  static float x[VALUES], got[VALUES];
  enum { HALF = VALUES / 2 };
  numbers(x);
  for (int i = 64; i < HALF; i++) { /* e4m3's range, and ties in it */
    uint32_t bits = (uint32_t)rand() & 0x80f00000;
    bits |= (uint32_t)(113 + rand() % 26) << 23 | (i % 3 ? 0x80000u - (uint32_t)(i % 3 - 1) : 0);
    memcpy(&x[i], &bits, sizeof bits);
  }
  run r = begin(byte_packing, "bias=true bias_dtype=f32", 2,
                (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = VALUES, .nk = 1});
  set(&r, "bias", x);
  end(&r, got);
  for (int i = 0; i < HALF; i++) {
    uint8_t want;
    fg_elem_store(FG_ELEM_E4M3, &want, 0, x[i]);
    if (isnan(x[i])) {
      ck_assert(isnan(got[HALF + i]));
      continue;
    }
    ck_assert_msg(got[i] == (float)want, "%a: %g, not %#x", (double)x[i], (double)got[i], want);
    ck_assert_float_eq(got[HALF + i], fg_elem_load(FG_ELEM_E4M3, &want, 0));
  }
}

TEST_LOOP(widening_is_exact, 2) {
  static float got[8 * 256];
  run r = begin(widening, "", _i, (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 8 * 256, .nk = 1});
  end(&r, got);
  for (int i = 0; i < 8 * 256; i++) {
    const uint8_t byte = (uint8_t)(i / 8 + i % 4);
    const uint16_t pattern = (uint16_t)got[i];
    const float want = fg_elem_load(FG_ELEM_E4M3, &byte, 0);
    const float have = fg_elem_load(_i ? FG_ELEM_F16 : FG_ELEM_BF16, &pattern, 0);
    ck_assert_msg(isnan(want) ? isnan(have) : have == want && signbit(have) == signbit(want),
                  "%#x: %#x is %g, not %g", byte, pattern, (double)have, (double)want);
  }
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* The byte's sign in all of its bits. */
static uint32_t sign_of(uint32_t bits, int byte) { return bits >> (8 * byte + 7) & 1 ? 255 : 0; }

TEST_LOOP(words_and_pairs, 2) {
  static float x[VALUES], got[VALUES];
  const fg_elem elem = _i ? FG_ELEM_F16 : FG_ELEM_BF16;
  numbers(x);
  run r = begin(pairs, "bias=true bias_dtype=f32", _i,
                (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = VALUES, .nk = 1});
  set(&r, "bias", x);
  end(&r, got);
  for (int i = 0; i < 640; i++) {
    const float a = x[i], b = x[(i + 1) % 640], small = fminf(a, b);
    ck_assert(isnan(a) || isnan(b) ? isnan(got[i]) : got[i] == small);
    const double want = 1 / (1 + fabs((double)a));
    if (isnan(a))
      ck_assert(isnan(got[640 + i]));
    else
      ck_assert_msg(fabs(got[640 + i] - want) <= 1.4e-4 * want + 1e-38, "%a: %a, not %a", (double)a,
                    (double)got[640 + i], want);
    const uint16_t halves[] = {(uint16_t)(bits_of(a) >> 16), (uint16_t)(bits_of(b) >> 16)};
    const float h = fg_elem_load(elem, halves, 0), g = fg_elem_load(elem, halves, 1);
    const uint16_t most = (uint16_t)got[1280 + i];
    if (!isnan(h) && !isnan(g) && !(h == 0 && g == 0)) /* zeros have signs */
      ck_assert_float_eq(fg_elem_load(elem, &most, 0), g > h ? g : h);
    const uint32_t bytes =
        sign_of(bits_of(a), 1) | (bits_of(a) >> 8 & 255) << 8 | sign_of(bits_of(a), 3) << 16;
    ck_assert_float_eq(got[1920 + i], (float)bytes);
    if (fabsf(a) >= 0x1p-126F || a == 0)
      ck_assert_float_eq(got[2560 + i], a > 0 ? 1 : a < 0 ? 0 : 0.5F);
    /* bfloat16 rounds by 2^-8 at most, and what is below 2e-38 may be 0 */
    if (isnan(a))
      ck_assert(isnan(got[3200 + i]));
    else
      ck_assert_msg(fabs(got[3200 + i] - want) <= (1.3e-3 + 0x1p-8) * want + 2e-38,
                    "%a: %a, not %a", (double)a, (double)got[3200 + i], want);
    if (i < 256 && isnan(a)) /* float16 rounds by 2^-11, of small numbers by 2^-25 */
      ck_assert(isnan(got[3840 + i]));
    else if (i < 256)
      ck_assert_double_le(fabs(got[3840 + i] - want), (1.7e-6 + 0x1p-11) * want + 0x1p-25);
  }
}

TEST_FIXTURE(templates_enter, templates_leave)
TEST_BEGIN { kernel_device(); }
