/* t_e4m3.c - forward kernels of e4m3: what its rounding costs (mathematics.md section 7), what
 * products
 * and copies are made of, which plans have descales of blocks of tokens, and what e4m3 does not go
 * with. The designs judge the numbers beside all else. */
#include "kernel_case.h"
#include "words.h"

#include "reference/problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Products take 32 columns of K and of V or more at a time: of each number of those, the widest but
 * one. */
TEST_TENTH(columns_are_all_there, 8) {
  const int dv = 32 * _i + 16;
  kernels made = kernels_of_families(_i, "head_dim=%d/%d dtype=e4m3", 272 - dv, dv);
  const verify_case c = {.shape = SHAPE(1, 2, 1, 70, 170, 0), .seed = 30 + (uint64_t)_i};
  for (int n = 0; n < made.n; n++) kernel_verify(&made.list[n], &c);
  kernels_free(&made);
}

/* What mathematics.md says that rounding weights costs, and no kernel costs more than a fifth
 * beside it.
 */
TEST_TENTH(rounding_costs_what_it_should, 3) {
  kernels made = kernels_of_families(_i, "head_dim=64 dtype=e4m3 mask=full");
  for (int n = 0; n < made.n; n++) {
    const kernel *k = &made.list[n];
    const verify_case which = {.shape = SHAPE(1, 2, 1, 64, 1500, 0), .seed = 21 + (uint64_t)_i};
    verify_verdict verdict;
    GOOD(verify_run(&k->variant, k->source, k->module, &which, 1, &verdict));
    ck_assert_str_eq(verdict.tensor[0].name, "o");
    ck_assert_double_gt(verdict.tensor[0].plain, 2.2e-2);
    ck_assert_double_lt(verdict.tensor[0].plain, 2.8e-2);
    ck_assert_double_le(verdict.tensor[0].error, 1.2 * verdict.tensor[0].plain);
  }
  kernels_free(&made);
}

/* What an array of one value looks like. */
static void fill(fg_problem *p, const char *name, float (*value)(int64_t)) {
  const int tensor = fg_problem_find(p, name);
  const int64_t n = fg_problem_count(p, tensor);
  float *values = malloc((size_t)n * sizeof *values);
  ck_assert(values);
  for (int64_t i = 0; i < n; i++) values[i] = value(i);
  GOOD(fg_problem_set(p, tensor, values));
  free(values);
}

enum { NEEDLE_KEYS = 131072, NEEDLE_D = 16, NEEDLE_AT = 77777 };
static float needle_q(int64_t i) { return i % NEEDLE_D == 0 ? 16.0F : 0; }
static float needle_k(int64_t i) { return i % NEEDLE_D ? 0 : i / NEEDLE_D == NEEDLE_AT ? 3.0F : 0; }
/* of the needle 2, of the others 1 and -1 in turn */
static float needle_v(int64_t i) {
  const int64_t key = i / NEEDLE_D;
  return key == NEEDLE_AT ? 2.0F : key % 2 ? 1.0F : -1.0F;
}

/* One key of 131072 has a score of 12 more than the others, and so more than half of the weight:
 * its value is in o, whatever the sums lose. */
TEST_TENTH(needle_is_found, 1) {
  kernels made = kernels_of_families(_i, "head_dim=16 dtype=e4m3");
  for (int n = 0; n < made.n; n++) {
    const fg_shape shape = SHAPE(1, 1, 1, 1, NEEDLE_KEYS, 0);
    const double weight = exp(12.0) / (exp(12.0) + NEEDLE_KEYS - 1), want = weight * 2;
    float o[NEEDLE_D];
    fg_problem *p;
    GOOD(fg_problem_new(kernel_device(), &made.list[n].source->recipe, &shape, 0, 1, &p));
    fill(p, "q", needle_q), fill(p, "k", needle_k), fill(p, "v", needle_v);
    static const char *const scales[] = {"q_descale", "k_descale", "v_descale"};
    for (int i = 0; i < 3; i++) fg_problem_drop(p, fg_problem_find(p, scales[i]));
    GOOD(fg_problem_run(p, made.list[n].module));
    GOOD(fg_problem_get(p, fg_problem_find(p, "o"), o));
    for (int i = 0; i < NEEDLE_D; i++)
      ck_assert_msg(fabs((double)o[i] - want) < 0.02, "%s: %g, not %g", made.list[n].name,
                    (double)o[i], want);
    fg_problem_free(p);
  }
  kernels_free(&made);
}

static float nothing(int64_t i) { return (void)i, 0.0F; }
static float one(int64_t i) { return (void)i, 1.0F; }

/* Keys of a block whose descale is 0 count alike, and none that the mask hides. */
TEST_TENTH(blocks_may_be_of_zeros, 2) {
  static const char *const words[] = {"head_dim=64 dtype=e4m3 mask=causal descale_block=64",
                                      "head_dim=64 kv_dtype=e4m3 mask=causal descale_block=64"};
  enum { ROWS = 70, KEYS = 150, D = 64 };
  kernels made = kernels_of_families(_i, "%s", words[_i]);
  for (int n = 0; n < made.n; n++) {
    const fg_shape shape = SHAPE(1, 1, 1, ROWS, KEYS, 0);
    float o[ROWS * D];
    fg_problem *p;
    GOOD(fg_problem_new(kernel_device(), &made.list[n].source->recipe, &shape, 0, 1, &p));
    fill(p, "q", one), fill(p, "k", one), fill(p, "v", one);
    fill(p, "k_descale", nothing), fill(p, "v_descale", one);
    if (_i == 0) fill(p, "q_descale", one);
    GOOD(fg_problem_run(p, made.list[n].module));
    GOOD(fg_problem_get(p, fg_problem_find(p, "o"), o));
    for (int i = 0; i < ROWS * D; i++)
      ck_assert_msg(fabsf(o[i] - 1.0F) < 0.01F, "%s: %g", made.list[n].name, (double)o[i]);
    fg_problem_free(p);
  }
  kernels_free(&made);
}

/* Products are e4m3's own: nothing is widened to 16 bits before one. wgmma's rows of one key divide
 * by the weight as it was rounded, which is widened again. */
static const struct {
  const char *arch, *words, *product;
  int others; /* of what must not be there */
} texts[] = {
    {"sm_89", "family=mma", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 4},
    {"sm_90a", "family=mma", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 4},
    {"sm_90a", "family=wgmma", "k32.f32.e4m3.e4m3 ", 2},
};
enum { TEXTS = sizeof texts / sizeof *texts };

TEST_LOOP(products_are_of_bytes, TEXTS) {
  static const char *const others[] = {".bf16.bf16", ".f16.f16", "e4m3_to_f32", ".f16x2.e4m3x2"};
  char words[96];
  fg_gen *gen;
  fg_variant *list = NULL;
  int n;
  snprintf(words, sizeof words, "head_dim=64,128 dtype=e4m3 mask=causal %s", texts[_i].words);
  GOOD(fg_gen_new(NULL, &gen));
  GOOD(words_variants(gen, words, texts[_i].arch, 0, &list, &n));
  ck_assert_int_gt(n, 1);
  for (int i = 0; i < n; i++) {
    fg_source *source;
    GOOD(fg_gen_expand(gen, &list[i], &source));
    ck_assert(strstr(source->text, texts[_i].product));
    for (int x = 0; x < texts[_i].others; x++)
      ck_assert_msg(!strstr(source->text, others[x]), "%s", others[x]);
    fg_source_free(source);
  }
  free(list);
  fg_gen_free(gen);
}

/* Decode copies a cache's bytes as they are, and multiplies in q's type: a tile of 32 keys of 128
 * columns has 4096 of them. Where there are instructions that widen, they do. */
static const struct {
  const char *arch, *dtype, *product, *widened, *other;
} caches[] = {
    {"sm_80", "bf16", ".bf16.bf16.f32", "fma.rn.bf16x2", "e4m3x2"},
    {"sm_80", "f16", ".f16.f16.f32", "mul.rn.f16x2", "e4m3x2"},
    {"sm_90a", "bf16", ".bf16.bf16.f32", "cvt.rn.f16x2.e4m3x2", "widen_pair"},
    {"sm_90a", "f16", ".f16.f16.f32", "cvt.rn.f16x2.e4m3x2", "widen_pair"},
};
enum { CACHES = sizeof caches / sizeof *caches };

TEST_LOOP(caches_are_read_as_bytes, CACHES) {
  static const char *const layouts[] = {"dense", "cached", "packed", "paged"};
  fg_gen *gen;
  GOOD(fg_gen_new(NULL, &gen));
  for (int layout = 0; layout < 4; layout++) {
    fg_variant *list = NULL;
    fg_source *source;
    char words[160];
    int n;
    snprintf(words, sizeof words,
             "family=decode head_dim=128 block_kv=32 kv_dtype=e4m3 dtype=%s kv_layout=%s",
             caches[_i].dtype, layouts[layout]);
    GOOD(words_variants(gen, words, caches[_i].arch, 0, &list, &n));
    GOOD(fg_gen_expand(gen, list, &source));
    const char *text = source->text;
    ck_assert(strstr(text, "const u8 *k;") && strstr(text, "const u8 *v;"));
    ck_assert(strstr(text, "K_BYTES = 4096 ") && strstr(text, "_tile_e4m3_by(thread"));
    ck_assert(!strstr(text, "_tile_by(thread") && !strstr(text, caches[_i].other));
    ck_assert(strstr(text, caches[_i].product) && strstr(text, caches[_i].widened));
    fg_source_free(source);
    free(list);
  }
  fg_gen_free(gen);
}

/* Descales of blocks go to the first family here of which a plan has tiles that lie in one each. */
static const struct {
  const char *words, *arch, *plan;
} blocks[] = {
    {"dtype=e4m3 head_dim=128 descale_block=256", "sm_90a", "wgmma-q128-k128-"},
    {"dtype=e4m3 head_dim=128 descale_block=64", "sm_90a", "wgmma-q128-k64-"},
    {"dtype=e4m3 head_dim=192 descale_block=64", "sm_90a", "wgmma-q128-k64-"},
    {"dtype=e4m3 head_dim=128 descale_block=32", "sm_90a", "mma-q64-k32-"},
    {"dtype=e4m3 head_dim=128 descale_block=128", "sm_89", "mma-q128-k64-"},
    {"dtype=e4m3 head_dim=128 descale_block=48", "sm_90a", "simt-"},
    {"kv_dtype=e4m3 head_dim=128 descale_block=64 family=decode", "sm_80", "decode-q8-k32-"},
    {"kv_dtype=e4m3 head_dim=128 descale_block=16 family=decode", "sm_80", "decode-q8-k16-"},
};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

TEST_LOOP(blocks_have_tiles, BLOCKS) {
  fg_gen *gen;
  fg_variant *list = NULL;
  char plan[64];
  int n;
  GOOD(fg_gen_new(NULL, &gen));
  GOOD(words_variants(gen, blocks[_i].words, blocks[_i].arch, 1, &list, &n));
  ck_assert_int_eq(n, 1);
  fg_plan_name(&list[0].plan, sizeof plan, plan);
  ck_assert_msg(!strncmp(plan, blocks[_i].plan, strlen(blocks[_i].plan)), "%s: %s, not %s",
                blocks[_i].words, plan, blocks[_i].plan);
  free(list);
  fg_gen_free(gen);
}

static const struct {
  const char *words, *why;
} refused[] = {
    {"head_dim=64 dtype=e4m3 pass=backward",
     "dtype: e4m3 is of the forward; backward takes bf16 and f16"},
    {"head_dim=64 kv_dtype=e4m3 pass=backward",
     "kv_dtype: e4m3 is of the forward; backward takes bf16 and f16"},
    {"head_dim=72/64 dtype=e4m3", "head_dim: e4m3 takes multiples of 16, not 72/64"},
    {"head_dim=64/40 kv_dtype=e4m3", "head_dim: e4m3 takes multiples of 16, not 64/40"},
    {"head_dim=64 dtype=e4m3 normalizer=sigmoid",
     "normalizer: dtype=e4m3 takes softmax, whose weights are at most 1, not sigmoid"},
    {"head_dim=64 o_dtype=f16", "o_dtype: with dtype=bf16 it is that or f32, not f16"},
    {"head_dim=64 dtype=f16 o_dtype=bf16", "o_dtype: with dtype=f16 it is that or f32, not bf16"},
    {"kernel=combine head_dim=64 dtype=e4m3",
     "dtype: kernel=combine takes bf16, f16 and f32, not e4m3"},
    {"kernel=append head_dim=64 dtype=e4m3", "dtype: kernel=append takes bf16 and f16, not e4m3"},
};
enum { REFUSED = sizeof refused / sizeof *refused };

TEST_LOOP(others_are_refused, REFUSED) {
  fg_gen *gen;
  fg_variant *list = NULL;
  int n;
  GOOD(fg_gen_new(NULL, &gen));
  ck_assert_int_eq(words_variants(gen, refused[_i].words, "sm_90a", 0, &list, &n), FG_ESPEC);
  ck_assert_str_eq(fg_error(), refused[_i].why);
  free(list);
  fg_gen_free(gen);
}
