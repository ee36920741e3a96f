/* t_sweep.c - NVRTC takes the kernels of masks and scores of every make (sweep.lua) without a word:
 * each through its front end, which is what warns of names that nothing uses, and some all the way.
 *
 * Label compile: skipped where there is no libnvrtc, unless FLASHGEN_REQUIRE names the label. */
#include "suite.h"

#include "cuda/nvrtc_library.h"
#include "expand/expand.h"
#include "spec/grid.h"

#include <stdio.h>
#include <stdlib.h>

enum { TENTHS = 10, WHOLE = 29, INVALID_OPTION = 5 };

static const fg_nvrtc *nvrtc;

/* `every`: one of so many points. */
static const struct {
  const char *arch, *family, *pass;
  int every;
} sweep[] = {
    {"sm_90a", "simt", "forward", 1},  {"sm_90a", "simt", "backward", 1},
    {"sm_90a", "mma", "forward", 1},   {"sm_90a", "mma", "backward", 1},
    {"sm_90a", "wgmma", "forward", 1}, {"sm_80", "mma", "forward", 3},
    {"sm_80", "mma", "backward", 3},
};

/* What the front end says of the text; the caller's to free. An NVRTC that has no such option goes
 * on to the end. */
static char *read_log(const char *text, const char *arch) {
  char arch_option[32];
  const char *options[] = {arch_option, "-std=c++17", "--fdevice-syntax-only"};
  fg_nvrtc_program p = NULL;
  size_t size = 0;
  snprintf(arch_option, sizeof arch_option, "-arch=%s", arch);
  ck_assert_int_eq(nvrtc->create(&p, text, "kernel.cu", 0, NULL, NULL), 0);
  int result = nvrtc->compile(p, 3, options);
  if (result == INVALID_OPTION) result = nvrtc->compile(p, 2, options);
  nvrtc->log_size(p, &size);
  char *log = calloc(1, size + 32);
  ck_assert_ptr_nonnull(log);
  nvrtc->log(p, log);
  nvrtc->destroy(&p);
  if (result && !*log) snprintf(log, 32, "result %d", result);
  return log;
}

static void check_whole(const char *name, const fg_source *source, const char *arch) {
  fg_cubin cubin;
  ck_assert_msg(fg_nvrtc_compile(nvrtc, name, source->text, source->size, arch, &cubin) == FG_OK,
                "%s", fg_error());
  ck_assert_msg(fg_cubin_accept(name, &cubin) == FG_OK, "%s", fg_error());
  fg_cubin_free(&cubin);
}

/* The first plan of a point. */
static void check_point(fg_gen *gen, const fg_grid *grid, int at, const char *arch) {
  fg_variant variant = {.point = grid->point[at]};
  fg_plan *plans;
  fg_source *source;
  char name[FG_NAME_MAX];
  int n;
  snprintf(variant.arch, sizeof variant.arch, "%s", arch);
  ck_assert_msg(fg_gen_plans(gen, &variant.point, arch, grid->limits[at], &plans, &n) == FG_OK &&
                    n > 0,
                "%s", fg_error());
  variant.plan = plans[0];
  free(plans);
  fg_variant_name(&variant, sizeof name, name);
  ck_assert_msg(fg_gen_expand(gen, &variant, &source) == FG_OK, "%s", fg_error());
  char *log = read_log(source->text, arch);
  ck_assert_msg(!*log, "%s: %.900s\n%.600s", name, log, source->text);
  free(log);
  if (at % WHOLE == 0) check_whole(name, source, arch);
  fg_source_free(source);
}

/* A tenth of the points of a row of the sweep. */
TEST_TENTH(takes_all, TENTHS * (int)(sizeof sweep / sizeof *sweep)) {
  char family[16], pass[16];
  const char *const file = "tests/sweep.lua", *const words[] = {family, pass};
  fg_gen *gen;
  fg_grid *grid;
  snprintf(family, sizeof family, "family=%s", sweep[_i / TENTHS].family);
  snprintf(pass, sizeof pass, "pass=%s", sweep[_i / TENTHS].pass);
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_grid_read(1, &file, 2, words, &grid) == FG_OK, "%s", fg_error());
  ck_assert_int_gt(grid->n, 150);
  const int every = sweep[_i / TENTHS].every;
  for (int i = _i % TENTHS * every; i < grid->n; i += TENTHS * every)
    check_point(gen, grid, i, sweep[_i / TENTHS].arch);
  fg_grid_free(grid);
  fg_gen_free(gen);
}

/* The bytes of wgmma's kernel of a score. */
static size_t code_bytes(fg_gen *gen, const char *score) {
  const char *const words[] = {"family=wgmma", "head_dim=32", score};
  fg_variant variant = {.arch = "sm_90a"};
  fg_grid *grid;
  fg_plan *plans;
  fg_source *source;
  fg_cubin cubin;
  int n;
  ck_assert_msg(fg_grid_read(0, NULL, 3, words, &grid) == FG_OK, "%s", fg_error());
  variant.point = grid->point[0];
  ck_assert_msg(fg_gen_plans(gen, &variant.point, "sm_90a", NULL, &plans, &n) == FG_OK, "%s",
                fg_error());
  variant.plan = plans[0];
  ck_assert_msg(fg_gen_expand(gen, &variant, &source) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_nvrtc_compile(nvrtc, score, source->text, source->size, "sm_90a", &cubin) ==
                    FG_OK,
                "%s", fg_error());
  size_t bytes = cubin.size;
  fg_cubin_free(&cubin);
  fg_source_free(source);
  free(plans);
  fg_grid_free(grid);
  return bytes;
}

/* No slow path of a division or root is unrolled over pairs: 4 times the code, 40 s to compile. */
TEST(divides_in_a_few_instructions) {
  fg_gen *gen;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  ck_assert_uint_lt(code_bytes(gen, "score=s/sqrt(1.0+s*s)"), 3 * code_bytes(gen, "score=s"));
  fg_gen_free(gen);
}

TEST_BEGIN {
  if (fg_nvrtc_load(&nvrtc) != FG_OK) suite_skip("compile", fg_error());
}
