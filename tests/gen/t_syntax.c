/* t_syntax.c - C's front end takes the texts of random specs, of every family, pass and kind,
 * without a warning: what a text uses is declared, and what it declares is used.
 *
 * A spec takes random levels of the axes of a design, and words that no level has. No code is made
 * of a text: several specs take a second. */
#include "base/random.h"
#include "base/setting.h"
#include "design_rules.h"
#include "device/host_cc.h"
#include "device/process.h"
#include "scratch.h"
#include "status.h"
#include "suite.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENTHS = 10, DESIGNS = 8, TEXTS = 12, DRAWS = 1000, OPTIONS = 64 };

/* Masks, biases and scores whose bounds and terms need other names than those of the designs. */
static const char *const more[][12] = {
    {"mask", "mask=k>nk-5", "mask=k<nq", "mask=q<5", "mask=k<lim[b] inputs.lim=i32[b]",
     "mask=k<lim[h] inputs.lim=i32[h]", "mask=k>=lim[b]&&q>=nq-20 inputs.lim=i32[b]",
     "mask=hk==0||k<=q", "mask=k%3!=0"},
    {"score", "score=s*2.0", "score=s*gain[h] inputs.gain=f32[h]grad", "score=s+0.5*(k-p)",
     "score=softcap(30.0)", "score=s+row[q] inputs.row=f32[q]grad",
     "score=s*weight[k] inputs.weight=f32[k]grad", "score=s*number[0] inputs.number=f32[1]grad"},
    {"dtype", "dtype=e4m3 descale_block=128"},
    {"head_dim", "head_dim=96", "head_dim=192", "head_dim=512"},
};

/* Kinds that have no design. */
static const char *const kinds[] = {
    "kernel=linear pass=forward,backward dtype=bf16,f16 width=64,512/2048 bias=false,true "
    "residual=false,true epilogue=none,relu,gelu,gelu_erf,silu,reglu,geglu,swiglu",
    "kernel=linear dtype=bf16,f16 width=512 bias=false,true residual=false,true "
    "epilogue=layernorm,rmsnorm",
    "kernel=layernorm pass=forward,backward dtype=bf16,f16,f32 width=64,1000,8192 bias=false,true "
    "residual=false,true norm=layer,rms",
    "kernel=logsoftmax pass=forward,backward dtype=bf16,f16,f32 width=64,1001,32768 "
    "target=false,true",
    "kernel=combine dtype=bf16,f16,f32 head_dim=64,192/128 "
    "normalizer=softmax,retention,logsoftmax,none parts_dtype=f32,spec"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static fg_gen *gen;

static void enter(void) {
  scratch_enter();
  GOOD(fg_gen_new(fg_setting_text(FG_SET_TEMPLATES, NULL), &gen));
}

static void leave(void) {
  fg_gen_free(gen);
  gen = NULL;
  scratch_leave();
}
TEST_FIXTURE(enter, leave)

static int below(uint64_t *state, int n) { return (int)(fg_random_next(state) % (uint64_t)n); }

/* The options of the host device's compiler, which makes nothing of kernel.c here. */
static void check_syntax(const char *text, size_t size, const char *words) {
  char options[2048], output[8192], *rest;
  const char *argv[OPTIONS] = {"cc", "-fsyntax-only", "-Wall"};
  int n = 3, code;
  ck_assert_int_lt(fg_host_cc_options(sizeof options, options), (int)sizeof options);
  for (char *w = strtok_r(options, " ", &rest); w && n < OPTIONS - 2;
       w = strtok_r(NULL, " ", &rest))
    argv[n++] = w;
  argv[n] = "kernel.c";
  scratch_put("kernel.c", text, size);
  GOOD(fg_process_run(argv, sizeof output, output, &code));
  const char *error = strstr(output, "error: ");
  ck_assert_msg(code == 0, "%s: %.300s", words, error ? error : output);
}

/* Any plan of the spec on the host device. */
static void check_point(uint64_t *state, const fg_point *point, const fg_limits *limits,
                        const char *words) {
  fg_variant variant = {.point = *point, .arch = "host"};
  fg_source *source;
  fg_plan *plans;
  int n;
  GOOD(fg_gen_plans(gen, point, variant.arch, limits, &plans, &n));
  variant.plan = plans[below(state, n)];
  free(plans);
  ck_assert_msg(fg_gen_expand(gen, &variant, &source) == FG_OK, "%s: %s", words, fg_error());
  check_syntax(source->text, source->size, words);
  fg_source_free(source);
}

/* The axis takes its first level as often as all others together; the words of another level than
 * the design's follow. */
static void draw(uint64_t *state, const design *d, design_row *row, size_t size, char *words) {
  const char *others[DESIGN_AXES] = {NULL};
  *row = (design_row){.seed = 0};
  for (int a = 0; a < d->n; a++) {
    const design_axis *axis = &d->axis[a];
    if (axis->part == DESIGN_SPEC)
      row->level[a] = (signed char)(below(state, 2) * below(state, axis->n));
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
      int n = 1;
      while (more[i][n]) n++;
      if (strcmp(more[i][0], axis->name) || below(state, 3)) continue;
      row->level[a] = -1, others[a] = more[i][1 + below(state, n - 1)];
    }
  }
  design_settle(d, row);
  design_spec_words(d, row, size, words);
  for (int a = 0; a < d->n; a++)
    if (others[a]) {
      const size_t n = strlen(words);
      snprintf(words + n, size - n, " %s", others[a]);
    }
}

TEST_TENTH(attention, DESIGNS *TENTHS) {
  design *d = design_new(design_names[_i % DESIGNS]);
  uint64_t state = (uint64_t)_i + 1;
  int texts = 0;
  ck_assert_ptr_nonnull(d);
  for (int i = 0; texts < TEXTS; i++) {
    char words[DESIGN_TEXT];
    design_row row;
    fg_grid *grid;
    ck_assert_msg(i < DRAWS, "%s: of %d specs %d have a plan", d->name, i, texts);
    draw(&state, d, &row, sizeof words, words);
    fg_variant *list = NULL;
    int n = 0;
    if (words_variants(gen, words, "host", 1, &list, &n) == FG_OK && n) {
      GOOD(words_grid(words, &grid));
      check_point(&state, grid->point, grid->limits[0], words);
      fg_grid_free(grid);
      texts++;
    }
    free(list);
  }
  free(d);
}

/* Specs whose texts once did not compile. */
TEST(mended) {
  static const char *const specs[] = {
      "family=mma head_dim=64 pass=backward normalizer=sigmoid deterministic=true",
      "family=mma head_dim=64 pass=backward normalizer=none deterministic=true bias=grad "
      "bias_dims=k",
      "family=mma head_dim=64 pass=backward slices=true score=s+rel[h,k-q+nq] "
      "inputs.rel=f32[h,nq+nk+1]grad",
      "family=wgmma head_dim=64 slices=true mask=k>nk-5",
      "family=wgmma head_dim=64 normalizer=none bias=true bias_dims=k",
      "family=wgmma head_dim=64 normalizer=sigmoid score=s+key[k] inputs.key=f32[k]",
      "family=wgmma head_dim=64 kv_layout=paged mask=hk==0||k<=q",
      "family=wgmma head_dim=64 dtype=e4m3 descale_block=128 mask=chunked(48) bias=true "
      "score=s*number[0] inputs.number=f32[1]"};
  for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
    uint64_t state = i;
    fg_grid *grid;
    GOOD(words_grid(specs[i], &grid));
    check_point(&state, grid->point, grid->limits[0], specs[i]);
    fg_grid_free(grid);
  }
}

TEST_TENTH(other_kinds, KINDS *TENTHS) {
  const char *words = kinds[_i % KINDS];
  uint64_t state = (uint64_t)_i + 1;
  fg_grid *grid;
  GOOD(words_grid(words, &grid));
  for (int i = 0; i < TEXTS / 4; i++) {
    const int point = below(&state, grid->n);
    check_point(&state, &grid->point[point], grid->limits[point], words);
  }
  fg_grid_free(grid);
}
