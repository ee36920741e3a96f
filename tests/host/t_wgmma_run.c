/* t_wgmma_run.c - the descriptor matrix: products by a warpgroup of operands in every layout, on a
 * device: a in registers, K-major or MN-major, b K-major or MN-major, each swizzle, many widths.
 *
 * The kernel stores its operands by the definition of the layouts, not by descriptors. On the host
 * device that tries the templates and the engine against each other; on a GPU (label gpu), that
 * both are what the hardware does. */
#include "hopper_case.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 64, N_MAX = 256, K_MAX = 192, FLOATS = M * N_MAX };

/* D = Q K^T, 64 x n, into lse. */
static const char text[] =
    "@ local n, k, w = case.n, case.k, case.swizzle\n"
    "@ local a_bytes = cdiv(case.a == 'k' and k or 64, w // 2) * (case.a == 'k' and 64 or k) * w\n"
    "@ local function rows(major, extent)\n"
    "@   return { major = major, swizzle = w, block = (major == 'k' and extent or k) * w }\n"
    "@ end\n"
    "@ local names = case.scalars and run('tile/registers.lua') or {\n"
    "@   at = function(name, i) return name .. '[' .. i .. ']' end,\n"
    "@   declare = function(kind, name, n) return kind .. ' ' .. name .. '[' .. n .. '];' end,\n"
    "@ }\n"
    "@ instance { 'wgmma', name = 'product', n = n, k = k, init = case.init, scalars = "
    "case.scalars,\n"
    "@            a = case.a ~= 'registers' and rows(case.a, 64) or nil, b = rows(case.b, n) }\n"
    "@ instance { 'wgmma_wait', name = 'settle', pending = 0, floats = { n // 2 },\n"
    "@            scalars = case.scalars }\n"
    "// Where row r and column k of `extent` rows lie; two along the one that is dense.\n"
    "DEV u32 place(int r, int k, int extent, int by_k) {\n"
    "const int line = by_k ? r : k, column = by_k ? k : r, lines = by_k ? extent : $(k);\n"
    "const int at = column / $(w // 2) * lines * $(w) + line * $(w) + column % $(w // 2) * 2;\n"
    "return (u32)(at ^ ((at >> 7 & $(w // 16 - 1)) << 4));\n"
    "}\n"
    "DEV void store(u32 to, const u16 *from, i64 pitch, int extent, int by_k) {\n"
    "for (int i = 2 * (int)threadIdx.x; i < extent * $(k); i += 256) {\n"
    "const int r = by_k ? i / $(k) : i % extent, c = by_k ? i % $(k) : i / extent;\n"
    "const u16 low = ldg_u16(from + r * pitch + c);\n"
    "const u16 high = ldg_u16(by_k ? from + r * pitch + c + 1 : from + (r + 1) * pitch + c);\n"
    "sts_u32(to + place(r, c, extent, by_k), low | (u32)high << 16);\n"
    "}\n"
    "}\n"
    "$(kernel('attn_fwd')) {\n"
    "const u32 a_at = (shared_base() + 1023) & ~1023u, b_at = a_at + $(a_bytes);\n"
    "const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;\n"
    "$(names.declare('float', 'd', n // 2))\n"
    "@ for i = 0, n // 2 - 1 do\n"
    "$(names.at('d', i)) = 1.0f;\n"
    "@ end\n"
    "@ if case.a == 'registers' then\n"
    "$(names.declare('u32', 'a', k // 4))\n"
    "const u16 *own = p.q + (16 * warp + lane / 4) * p.q_n + lane % 4 * 2;\n"
    "@ for i = 0, k // 4 - 1 do\n"
    "$(names.at('a', i)) = ldg_u32(own + $(i % 2 * 8) * p.q_n + $(i // 4 * 16 + i // 2 % 2 * 8));\n"
    "@ end\n"
    "@ else\n"
    "store(a_at, p.q, p.q_n, 64, $(case.a == 'k' and 1 or 0));\n"
    "const u32 a = matrix_at(a_at);\n"
    "@ end\n"
    "store(b_at, p.k, p.k_n, $(n), $(case.b == 'k' and 1 or 0));\n"
    "fence_async();\n"
    "block_sync();\n"
    "product(d, a, matrix_at(b_at)$(case.init == 'either' and ', (int)(p.nk > 0)' or ''));\n"
    "settle(d);\n"
    "float *to = p.lse + $(n) * (16 * warp + lane / 4) + lane % 4 * 2;\n"
    "@ for i = 0, n // 2 - 1 do\n"
    "stg_f32(to + $(i // 2 % 2 * 8 * n + i // 4 * 8 + i % 2), $(names.at('d', i)));\n"
    "@ end\n"
    "}\n";

/* The same of e4m3, both k-major. */
static const char of_bytes[] =
    "@ local n, k, w = case.n, case.k, case.swizzle\n"
    "@ local a_bytes = case.a == 'k' and cdiv(k, w) * 64 * w or 0\n"
    "@ local function rows(extent) return { major = 'k', swizzle = w, block = extent * w } end\n"
    "@ instance { 'wgmma', name = 'product', n = n, k = k, init = case.init,\n"
    "@            a = case.a ~= 'registers' and rows(64) or nil, b = rows(n) }\n"
    "@ instance { 'wgmma_wait', name = 'settle', pending = 0, floats = { n // 2 } }\n"
    "DEV void store(u32 to, const u8 *from, i64 pitch, int extent) {\n"
    "for (int i = 4 * (int)threadIdx.x; i < extent * $(k); i += 512) {\n"
    "const int r = i / $(k), c = i % $(k);\n"
    "const int at = c / $(w) * extent * $(w) + r * $(w) + c % $(w);\n"
    "sts_u32(to + (u32)(at ^ ((at >> 7 & $(w // 16 - 1)) << 4)), ldg_u32(from + r * pitch + c));\n"
    "}\n"
    "}\n"
    "$(kernel('attn_fwd')) {\n"
    "const u32 a_at = (shared_base() + 1023) & ~1023u, b_at = a_at + $(a_bytes);\n"
    "const int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;\n"
    "float d[$(n // 2)];\n"
    "for (int i = 0; i < $(n // 2); i++) { d[i] = 1.0f; }\n"
    "@ if case.a == 'registers' then\n"
    "u32 a[$(k // 8)];\n"
    "const u8 *own = p.q + (16 * warp + lane / 4) * p.q_n + lane % 4 * 4;\n"
    "for (int i = 0; i < $(k // 8); i++) {\n"
    "a[i] = ldg_u32(own + i % 2 * 8 * p.q_n + i / 4 * 32 + i / 2 % 2 * 16);\n"
    "}\n"
    "@ else\n"
    "store(a_at, p.q, p.q_n, 64);\n"
    "const u32 a = matrix_at(a_at);\n"
    "@ end\n"
    "store(b_at, p.k, p.k_n, $(n));\n"
    "fence_async();\n"
    "block_sync();\n"
    "product(d, a, matrix_at(b_at)$(case.init == 'either' and ', (int)(p.nk > 0)' or ''));\n"
    "settle(d);\n"
    "float *to = p.lse + $(n) * (16 * warp + lane / 4) + lane % 4 * 2;\n"
    "for (int i = 0; i < $(n // 2); i++) {\n"
    "stg_f32(to + (i / 2 % 2 * 8 * $(n) + i / 4 * 8 + i % 2), d[i]);\n"
    "}\n"
    "}\n";

static const char *const a_layouts[] = {"registers", "k", "mn"};
static const char *const b_layouts[] = {"k", "mn"};
static const char *const inits[] = {"zero", "sum", "either"};
static const int swizzles[] = {128, 64, 32};
static const int widths[] = {8, 16, 24, 64, 72, 104, 128, 176, 192, 208, 256};
enum { WIDTHS = sizeof widths / sizeof *widths };

/* Whole rows of the swizzle's width. */
static int bytes_of(int by_k, int extent, int k, int swizzle, int size) {
  int wide = swizzle / size;
  return by_k ? (k + wide - 1) / wide * extent * swizzle : (extent + wide - 1) / wide * k * swizzle;
}

static void run_one(int a, int b, int swizzle, int n, int k, int init, const char *type) {
  const int is_bytes = !strcmp(type, "e4m3"), size = is_bytes ? 1 : 2;
  static float q[M * N_MAX * K_MAX], keys[N_MAX * K_MAX], got[FLOATS];
  char which[160];
  snprintf(which, sizeof which,
           "{ a = '%s', b = '%s', swizzle = %d, n = %d, k = %d, init = '%s', shared = %d%s }",
           a_layouts[a], b_layouts[b], swizzle, n, k, inits[init],
           1024 + bytes_of(a == 1, M, k, swizzle, size) + bytes_of(b == 0, n, k, swizzle, size),
           (n + k) / 8 % 2 && !is_bytes ? ", scalars = true" : "");
  hopper h = hopper_new(which, is_bytes ? of_bytes : text, type, k,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = (int64_t)M * n, .nk = n});
  hopper_fill(q, M * k);
  hopper_fill(keys, n * k);
  hopper_set(&h, "q", q);
  hopper_set(&h, "k", keys);
  hopper_run(&h);
  hopper_get(&h, "lse", got);
  for (int r = 0; r < M; r++)
    for (int c = 0; c < n; c++) {
      float want = init > 0;
      for (int i = 0; i < k; i++) want += q[r * k + i] * keys[c * k + i];
      ck_assert_msg(got[r * n + c] == want, "%s: row %d, column %d: %g, not %g", which, r, c,
                    (double)got[r * n + c], (double)want);
    }
  hopper_free(&h);
}

TEST_LOOP(every_layout, 18) {
  int a = _i % 3, b = _i / 3 % 2, swizzle = swizzles[_i / 6];
  for (int turn = 0; turn < 4; turn++) {
    int n = widths[(_i + 3 * turn) % WIDTHS];
    int k = a == 0 || turn % 2 ? 16 * (1 + (_i + turn) % 4) : 192;
    run_one(a, b, swizzle, n, n > 208 && k == 192 ? 128 : k, (_i + turn) % 3,
            turn % 2 ? "f16" : "bf16");
  }
}

TEST_LOOP(every_layout_of_bytes, 6) {
  int a = _i % 2, swizzle = swizzles[_i / 2];
  for (int turn = 0; turn < 4; turn++)
    run_one(a, 0, swizzle, widths[(3 * _i + 2 * turn) % WIDTHS], 32 * (1 + (_i + 3 * turn) % 6),
            (_i + turn) % 3, "e4m3");
}

/* Numbers of a row of Q beside keys of ones, and what is left of their sum: terms are cut below
 * 2^-13 of the largest one's power of 2, sums below 2^-13 of their own. */
static const struct {
  float first[3], second[3], sum; /* of the first 32 columns, and of the next 32 */
} cut[] = {{{256, 0x1p-6f}, {0}, 256},
           {{256, 0x3p-6f}, {0}, 256 + 0x1p-5f},
           {{-256, -0x3p-6f}, {0}, -256 - 0x1p-5f},
           {{256}, {0x3p-6f}, 256 + 0x1p-5f},
           {{0}, {256, 256, 0x3p-6f}, 512},
           {{256, -256, 0x1p-6f}, {0}, 0},
           {{256, -256}, {0x1p-6f}, 0x1p-6f}};

TEST(sums_of_bytes_are_cut) {
  enum { N = 8, K = 64, ROWS = sizeof cut / sizeof *cut };
  static float q[M * N * K], keys[N * K], got[M * N]; /* rows of Q as many as sums */
  hopper h = hopper_new("{ a = 'registers', b = 'k', swizzle = 64, n = 8, k = 64, init = 'zero', "
                        "shared = 2048 }",
                        of_bytes, "e4m3", K,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = (int64_t)M * N, .nk = N});
  for (int i = 0; i < N * K; i++) keys[i] = 1;
  for (int r = 0; r < ROWS; r++) {
    memcpy(q + r * K, cut[r].first, sizeof cut[r].first);
    memcpy(q + r * K + 32, cut[r].second, sizeof cut[r].second);
  }
  hopper_set(&h, "q", q);
  hopper_set(&h, "k", keys);
  hopper_run(&h);
  hopper_get(&h, "lse", got);
  for (int r = 0; r < ROWS; r++)
    ck_assert_msg(got[r * N] == cut[r].sum, "row %d: %.9g, not %.9g", r, (double)got[r * N],
                  (double)cut[r].sum);
  hopper_free(&h);
}

TEST_FIXTURE(templates_enter, templates_leave)
TEST_BEGIN { kernel_device_of_wgmma(); }
