/* t_nvrtc.c - NVRTC takes what is emitted: no error, no warning, no spill, on every arch family.
 *
 * Label compile: skipped where there is no libnvrtc, unless FLASHGEN_REQUIRE names the label. */
#include "status.h"
#include "suite.h"

#include "cuda/nvrtc.h"
#include "device/compile.h"
#include "expand/expand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAN_STOP = 12080 }; /* the first version whose compiles can be stopped */

static const fg_nvrtc *nvrtc;

static void check_variant(fg_gen *gen, const fg_variant *variant) {
  char name[FG_NAME_MAX];
  fg_source *source;
  fg_cubin cubin;
  fg_variant_name(variant, sizeof name, name);
  ck_assert_msg(fg_gen_expand(gen, variant, &source) == FG_OK, "%s: %s", name, fg_error());
  ck_assert_msg(fg_nvrtc_compile(nvrtc, name, source->text, source->size, variant->arch, &cubin) ==
                    FG_OK,
                "%s", fg_error());
  ck_assert_msg(fg_cubin_accept(name, &cubin) == FG_OK, "%s", fg_error());
  int launches = 0;
  for (int i = 0; i < source->recipe.n_steps; i++)
    launches += source->recipe.step[i].kind == FG_STEP_LAUNCH;
  ck_assert_int_eq(cubin.n_entries, launches);
  for (int i = 0; i < cubin.n_entries; i++) ck_assert_int_gt(cubin.entry[i].registers, 0);
  fg_cubin_free(&cubin);
  fg_source_free(source);
}

static void check_grid(const char *arch, int n_words, const char *const *words) {
  fg_gen *gen;
  fg_grid *grid;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(fg_grid_read(0, NULL, n_words, words, &grid) == FG_OK, "%s", fg_error());
  for (int i = 0; i < grid->n; i++) {
    fg_variant variant = {.point = grid->point[i]};
    fg_plan *plans;
    int n;
    snprintf(variant.arch, sizeof variant.arch, "%s", arch);
    ck_assert_msg(fg_gen_plans(gen, &variant.point, arch, grid->limits[i], &plans, &n) == FG_OK,
                  "%s", fg_error());
    for (int j = 0; j < n; j++) {
      variant.plan = plans[j];
      check_variant(gen, &variant);
    }
    free(plans);
  }
  fg_grid_free(grid);
  fg_gen_free(gen);
}

static const char *const archs[] = {"sm_80", "sm_90a", "sm_100a", "sm_75"};

TEST_TENTH(forward, 4) {
  const char *const words[] = {"pass=forward", "head_dim=8,128,256,192/128",
                               "mask=causal",  "bias=true",
                               "family=simt",  _i ? "dtype=bf16" : "dtype=f16"};
  check_grid(archs[_i], 6, words);
}

TEST_TENTH(backward, 3) {
  const char *const words[] = {"pass=backward", "head_dim=72,256", _i ? "mask=full" : "mask=causal",
                               "family=simt", _i ? "dtype=bf16" : "dtype=f16"};
  check_grid(archs[_i], 5, words);
}

/* Every way to reduce a bias gradient is another loop nest. */
TEST_TENTH(bias_gradient, 2) {
  const char *const words[] = {
      "pass=backward",
      "head_dim=64",
      "bias=grad",
      "bias_dims=[],[b],[h],[q],[k],[b,h],[b,k],[h,q],[q,k],[h,q,k],[b,h,q,k]",
      _i ? "bias_dtype=f32" : "mask=causal",
      "family=simt",
      "block_q=16"};
  check_grid("sm_90a", 7, words);
}

static fg_status compile_text(const char *text, const char *arch, fg_cubin *cubin) {
  return fg_nvrtc_compile(nvrtc, "planted", text, strlen(text), arch, cubin);
}

/* What ptxas says is read, and a spill is not accepted. */
TEST(spills_are_refused) {
  static const char text[] =
      "extern \"C\" __global__ void __launch_bounds__(1024, 2) spill(float *p, int n) {\n"
      "  float x[64];\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 64; i++) { x[i] = p[i * n + threadIdx.x]; }\n"
      "  __syncthreads();\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 64; i++) { p[i + threadIdx.x * n] = x[i] * x[63 - i]; }\n"
      "}\n";
  fg_cubin cubin;
  ck_assert_msg(compile_text(text, "sm_90a", &cubin) == FG_OK, "%s", fg_error());
  ck_assert_str_eq(cubin.entry[0].entry, "spill");
  ck_assert_int_gt(cubin.entry[0].spill_bytes, 0);
  FAILS(FG_ECOMPILER, "planted: spill spills ", fg_cubin_accept("planted", &cubin));
  fg_cubin_free(&cubin);
}

/* What `check` compares with is no kernel that ships. */
TEST(unskipped_text_may_warn) {
  static char text[] = "extern \"C\" __global__ void warn(void) { int unused; }\n";
  fg_source source = {.text = text, .size = sizeof text - 1};
  fg_code code;
  FAILS(FG_ECOMPILER, "unused", fg_compile("sm_90a", "planted", &source, &code));
  source.unskipped = true;
  ck_assert_msg(fg_compile("sm_90a", "planted", &source, &code) == FG_OK, "%s", fg_error());
  ck_assert_uint_gt(code.size, 0);
  free(code.data);
}

TEST(mistakes_name_their_line) {
  fg_cubin cubin;
  FAILS(FG_ECOMPILER, "kernel.cu(2): error",
        compile_text("extern \"C\" __global__ void f() {\n  x = 1;\n}\n", "sm_90a", &cubin));
  FAILS(FG_EENVIRONMENT, "cannot compile for sm_20; it knows ", compile_text("", "sm_20", &cubin));
}

/* A text's line 2 comes from line 7 of a template. */
TEST(mistakes_name_their_template) {
  char text[] = "extern \"C\" __global__ void f() {\n  x = 1;\n}\n", *files[] = {"a/b.cut"};
  int file[] = {0, 0, -1}, line[] = {6, 7, 0};
  fg_code code;
  const fg_source source = {.text = text,
                            .size = sizeof text - 1,
                            .n_lines = 3,
                            .n_files = 1,
                            .file = files,
                            .line_file = file,
                            .line = line};
  ck_assert_int_eq(fg_compile("sm_90a", "planted", &source, &code), FG_ECOMPILER);
  ck_assert_msg(
      strstr(fg_error(), "kernel.cu(2): error: identifier \"x\" is undefined [a/b.cut:7]"), "%s",
      fg_error());
}

/* A pathological text ends at the limit, and the compile after it is judged on its own. */
TEST(late_compiles_stop) {
  if (fg_nvrtc_version(nvrtc) < CAN_STOP) return;
  size_t n = 0, room = 1000000;
  char *text = malloc(room);
  fg_cubin cubin;
  n += (size_t)sprintf(text, "extern \"C\" __global__ void f(float *p) {\n");
  while (n < room - 200)
    n += (size_t)sprintf(text + n, "p[%zu] += sinf(p[%zu]) * 3.0f;\n", n % 977, n % 1013);
  sprintf(text + n, "}\n");
  setenv("FLASHGEN_COMPILE_SECONDS", "1", 1);
  FAILS(FG_ECOMPILER, "took longer than 1 s (FLASHGEN_COMPILE_SECONDS",
        compile_text(text, "sm_90a", &cubin));
  ck_assert_int_eq(compile_text("extern \"C\" __global__ void f() { x = 1; }\n", "sm_90a", &cubin),
                   FG_ECOMPILER);
  ck_assert_ptr_null(strstr(fg_error(), "longer"));
  free(text);
}

/* One block of PTX that keeps ptxas busy for seconds, and the front end not. */
static char *slow_in_ptxas(void) {
  enum { REGISTERS = 3000, LINE = 64 };
  char *text = malloc(REGISTERS * 2 * LINE + 1000);
  size_t n = (size_t)sprintf(text,
                             "extern \"C\" __global__ void f(float *p) {\n"
                             "asm volatile(\"{.reg .f32 r<%d>;\"\n",
                             REGISTERS);
  for (int i = 0; i < REGISTERS; i++)
    n += (size_t)sprintf(text + n, "\"ld.volatile.global.f32 r%d, [%%0+%d];\"\n", i, 4 * i);
  for (int i = 0; i < REGISTERS; i++)
    n += (size_t)sprintf(text + n, "\"st.volatile.global.f32 [%%0+%d], r%d;\"\n", 4 * i,
                         i * 7919 % REGISTERS);
  sprintf(text + n, "\"}\" :: \"l\"(p));\n}\n");
  return text;
}

/* A cancel that lands in ptxas, then two failures of ptxas that have nothing to do with it: NVRTC
 * 13.0 calls those of the same thread cancelled too. */
TEST(failures_after_a_cancel) {
  if (fg_nvrtc_version(nvrtc) < CAN_STOP) return;
  static const char wrong[] = "extern \"C\" __global__ void f(float *p) {\n"
                              "  __shared__ float x[1 << 20];\n  x[threadIdx.x] = p[0];\n"
                              "  __syncthreads();\n  p[1] = x[5 + threadIdx.x];\n}\n";
  fg_cubin cubin;
  char *slow = slow_in_ptxas();
  setenv("FLASHGEN_COMPILE_SECONDS", "1", 1);
  FAILS(FG_ECOMPILER, "took longer than 1 s", compile_text(slow, "sm_90a", &cubin));
  for (int i = 0; i < 2; i++) {
    FAILS(FG_ECOMPILER, "planted: NVRTC_ERROR_COMPILATION\n",
          compile_text(wrong, "sm_90a", &cubin));
    ck_assert_msg(strstr(fg_error(), "uses too much shared data"), "%s", fg_error());
  }
  free(slow);
}

TEST_BEGIN {
  if (fg_nvrtc_load(&nvrtc) != FG_OK) suite_skip("compile", fg_error());
}
