/* t_kind_rows.c - norms of rows, and the loss of a target, through every command and through the C
 * API. */
#include "api_case.h"
#include "program.h"
#include "reference/npy.h"
#include "run_case.h"
#include "scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NORM "kernel=layernorm width=40 "
#define PLAN "layernorm_fwd-bf16-w40.simt-q16-w4"

/* Commands --------------------------------------------------------------------------------------
 */

TEST(list_and_emit) {
  program_result r = program_gives(0, "list " NORM "norm=layer,rms bias=grad,true,false "
                                      "residual=false,true --arch sm_80");
  ck_assert_int_eq(program_count(r.out, "\n"), 8); /* a forward has no bias=grad */
  program_says(r.out, "layernorm_fwd-bf16-w40-bias-residual.simt-q16-w4.sm_80\n");
  program_says(r.out, "layernorm_fwd-bf16-w40-rms.simt-q16-w4.sm_80\n");
  r = program_gives(0, "emit " PLAN ".sm_90a");
  program_says(r.out, "// spec:   kernel=layernorm width=40\n");
  program_says(r.out, "const u16 *beta; // [40] bf16, or null");
  program_says(r.out, "float eps; // NaN: not given");
  r = program_gives(0, "emit --recipe " NORM "pass=backward residual=true --arch sm_90a");
  program_says(r.out, "\ntensor z in? bf16 [rows, 40]\ntensor x in|z bf16 [rows, 40]\n");
  r = program_gives(0, "emit --recipe kernel=logsoftmax width=9 target=true dtype=f32");
  program_says(r.out, "\ntensor x in f32 [rows, 9]\ntensor target in i32 [rows]\n");
}

TEST(check_and_bench) {
  program_result r = program_gives(0, "check " NORM "pass=forward,backward norm=layer,rms "
                                      "bias=grad residual=true rows=9 --seed 2 --device host");
  program_says(r.out, "  dbias ");
  program_says(r.out, "\n4 variants, 4 cases, seed 2: 0 failed, 0 wrong\n");
  program_gives(0, "check " NORM "eps=0.25 rows=3 --device host");
  r = program_gives(0, "bench " NORM "pass=backward residual=true rows=5 --device host --csv");
  program_says(r.out, "layernorm_bwd-bf16-w40-residual.simt-q32-s4-w8.host,5,");
  program_gives(0, "bench kernel=logsoftmax width=9 target=true rows=5 --device host");
  const char shapes[] = "return { { rows = 3 } }";
  scratch_put("shapes.lua", shapes, strlen(shapes));
  program_gives(0, "tune " NORM "pass=forward,backward --shapes shapes.lua --device host "
                   "--wisdom w.txt");
  program_gives(0, "wisdom verify w.txt");
  program_gives(0, "report w.txt -o w.html");
  program_page_says(program_text("w.html"), "<p>A shape of a norm of rows reads 4096 rows. </p>");
}

TEST(spec_file) {
  program_gives(0, "check " FLASHGEN_SOURCE "/specs/rows.lua --filter *bf16* --seed 2 rows=3 "
                   "--device host -q");
}

TEST(refused) {
#define NO_PLAN                                                                                    \
  "no plan fits: 0 candidates, none within the restrictions; wgmma: has no forward pass; mma: "    \
  "has no forward pass; decode: has no forward pass; simt: "
  program_refuses(2, "layernorm_fwd-bf16-w12: " NO_PLAN "width=12 is no multiple of 8",
                  "list kernel=layernorm width=12");
  program_refuses(2,
                  "layernorm_fwd-bf16-w16392: " NO_PLAN
                  "width=16392 is more than 16384, which a block can hold",
                  "list kernel=layernorm width=16392");
  program_refuses(2, "dtype: kernel=attention takes bf16, f16 and e4m3, not f32",
                  "list head_dim=64 dtype=f32");
  program_refuses(2, "dtype: kernel=append takes bf16 and f16, not f32",
                  "list kernel=append head_dim=64 dtype=f32");
  program_refuses(2, "\"attn_fwd-f32-d64.simt-q16-k32-w4.host\" is not the name of a variant",
                  "emit attn_fwd-f32-d64.simt-q16-k32-w4.host");
  program_refuses(2, "norm: \"root\" is not allowed; expected layer, rms",
                  "list " NORM "norm=root");
  program_refuses(2, "target: no kernel of the spec has such a field", "list " NORM "target=true");
  program_refuses(2, "bias_dims: no kernel of the spec has such a field",
                  "list " NORM "bias=true bias_dims=h");
  program_refuses(2, "eps = -1: expected a finite number of at least 0",
                  "check " NORM "eps=-1 --device host");
  program_refuses(2, "nq: kernel=layernorm has no such extent", "check " NORM "nq=3 --device host");
}

/* Files ------------------------------------------------------------------------------------------
 */

enum { ROWS = 3, WIDTH = 8 };

static void put(const char *path, int64_t rows, const float *values) {
  const int64_t extent[] = {rows, WIDTH};
  char *staged;
  if (rows)
    GOOD(fg_npy_stage(path, 2, extent, values, &staged));
  else
    GOOD(fg_npy_stage(path, 1, extent + 1, values, &staged));
  GOOD(fg_npy_publish(staged, path));
}

static void holds(const char *path, int n, const double *expected) {
  fg_array file;
  GOOD(fg_npy_read("it", path, &file));
  for (int i = 0; i < n; i++) ck_assert_double_eq_tol((double)file.real[i], expected[i], 1e-4);
  fg_array_free(&file);
}

/* out, and the gradients from x alone: the forward that leaves mean and rstd runs before. */
TEST(run_norm) {
  float x[ROWS * WIDTH], residual[ROWS * WIDTH], gamma[WIDTH], dout[ROWS * WIDTH];
  double out[ROWS * WIDTH], dx[ROWS * WIDTH], dgamma[WIDTH] = {0};
  for (int i = 0; i < ROWS * WIDTH; i++)
    x[i] = (float)(i * i % 11), residual[i] = (float)(i % 3), dout[i] = (float)(i * 5 % 7) - 3;
  for (int i = 0; i < WIDTH; i++) gamma[i] = 1 + (float)i / 4;
  for (int r = 0; r < ROWS; r++) {
    double xhat[WIDTH], mean = 0, squares = 0, gy = 0, product = 0;
    for (int i = 0; i < WIDTH; i++)
      mean += ((double)x[r * WIDTH + i] + (double)residual[r * WIDTH + i]) / WIDTH;
    for (int i = 0; i < WIDTH; i++)
      xhat[i] = (double)x[r * WIDTH + i] + (double)residual[r * WIDTH + i] - mean;
    for (int i = 0; i < WIDTH; i++) squares += xhat[i] * xhat[i] / WIDTH;
    const double rstd = 1 / sqrt(squares + 0.5);
    for (int i = 0; i < WIDTH; i++) {
      xhat[i] *= rstd;
      out[r * WIDTH + i] = xhat[i] * (double)gamma[i];
      gy += (double)dout[r * WIDTH + i] * (double)gamma[i] / WIDTH;
      product += (double)dout[r * WIDTH + i] * (double)gamma[i] * xhat[i] / WIDTH;
      dgamma[i] += (double)dout[r * WIDTH + i] * xhat[i];
    }
    for (int i = 0; i < WIDTH; i++)
      dx[r * WIDTH + i] =
          rstd * ((double)dout[r * WIDTH + i] * (double)gamma[i] - gy - xhat[i] * product);
  }
  put("x.npy", ROWS, x), put("residual.npy", ROWS, residual), put("dout.npy", ROWS, dout);
  put("gamma.npy", 0, gamma);
#define RUN                                                                                        \
  "run kernel=layernorm dtype=f32 residual=true eps=0.5 --in x=x.npy --in residual=residual.npy "  \
  "--in gamma=gamma.npy "
  program_gives(0, RUN "--out out=out.npy");
  holds("out.npy", ROWS * WIDTH, out);
  program_result r = program_gives(0, RUN "pass=backward --in dout=dout.npy --out dx=dx.npy "
                                          "--out dgamma=dgamma.npy");
  program_says(r.err, ": rows=3\ndx -> dx.npy\ndgamma -> dgamma.npy\n");
  holds("dx.npy", ROWS * WIDTH, dx);
  holds("dgamma.npy", WIDTH, dgamma);
  program_refuses(2, "gamma is missing: give --in gamma=FILE.npy",
                  "run kernel=layernorm --in x=x.npy --out out=out.npy");
  program_refuses(2, "gamma: x.npy has 2 axes; expected [width]",
                  "run kernel=layernorm --in x=x.npy --in gamma=x.npy --out out=out.npy");
  program_refuses(2, "bias is given, but the spec has bias=false: say bias=true",
                  RUN "--in bias=gamma.npy --out out=out.npy");
  program_refuses(2, "residual is given, but the spec has residual=false: say residual=true",
                  "run kernel=layernorm --in x=x.npy --in residual=x.npy --in gamma=gamma.npy "
                  "--out out=out.npy");
}

/* Rows whose sum is no number of bf16, far from 0: without z the backward has the sum in float32.
 */
TEST(run_without_z) {
  float x[ROWS * WIDTH], residual[ROWS * WIDTH], dout[ROWS * WIDTH];
  const float gamma[WIDTH] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (int i = 0; i < ROWS * WIDTH; i++)
    x[i] = 30 + (float)(i % 5) / 8, residual[i] = (float)(i * i % 7) / 64,
    dout[i] = (float)(1 - i % 2);
  put("x.npy", ROWS, x), put("residual.npy", ROWS, residual), put("dout.npy", ROWS, dout);
  put("gamma.npy", 0, gamma);
#define OF_X                                                                                       \
  " kernel=layernorm pass=backward residual=true --in x=x.npy --in residual=residual.npy "         \
  "--in gamma=gamma.npy --in dout=dout.npy --out dgamma="
  program_gives(0, "run dtype=f32" OF_X "exact.npy");
  program_gives(0, "run dtype=bf16" OF_X "dgamma.npy");
  fg_array exact, rounded;
  GOOD(fg_npy_read("it", "exact.npy", &exact));
  GOOD(fg_npy_read("it", "dgamma.npy", &rounded));
  for (int i = 0; i < WIDTH; i++) {
    const double is = (double)rounded.real[i], expected = (double)exact.real[i];
    ck_assert_double_eq_tol(is, expected, 1e-3 + fabs(expected) / 200);
  }
  fg_array_free(&exact), fg_array_free(&rounded);
}

/* Targets are integers. The second row's is no column. */
TEST(run_target) {
  const float x[ROWS * WIDTH] = {0, 1, 2, 3};
  const int32_t target[] = {3, -100, 0};
  double sum = 4;
  for (int i = 0; i < 4; i++) sum += exp(i);
  const double loss[] = {log(sum) - 3, 0, log(WIDTH)};
  put("x.npy", ROWS, x);
  run_case_file("target.npy", "<i4", "False", 1, (int64_t[]){ROWS}, target, sizeof target);
  program_gives(0, "run kernel=logsoftmax dtype=f32 target=true --in x=x.npy "
                   "--in target=target.npy --out loss=loss.npy");
  holds("loss.npy", ROWS, loss);
  program_refuses(2, "target: x.npy holds floats (f4); expected i4 or i8",
                  "run kernel=logsoftmax target=true --in x=x.npy --in target=x.npy "
                  "--out loss=loss.npy");
  program_refuses(2, "target is given, but the spec has target=false: say target=true",
                  "run kernel=logsoftmax --in x=x.npy --in target=target.npy --out y=y.npy");
}

/* The library ------------------------------------------------------------------------------------
 */

static const fg_shape shape = {.size = sizeof shape, .rows = 21};

TEST(api) {
  static const char *const words[] = {NORM "residual=true",
                                      NORM "pass=backward bias=grad",
                                      NORM "dtype=f32 norm=rms",
                                      NORM "dtype=f32 pass=backward norm=rms residual=true",
                                      "kernel=logsoftmax width=9 target=true",
                                      "kernel=logsoftmax width=9 target=true pass=backward"};
  fg_context *context = api_open("cache");
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    fg_kernel *kernel = api_select(api_define(context, words[i]), shape);
    for (int layout = 0; layout < 2; layout++)
      for (uint64_t seed = 3; seed < 5; seed++)
        api_verify(kernel, (api_layout)layout, &(verify_case){.shape = shape, .seed = seed});
  }
  fg_close(context);
}

TEST(api_refused) {
  fg_context *context = api_open("cache");
  fg_kernel *kernel = api_select(api_define(context, NORM "pass=backward residual=true"), shape);
  fg_problem *problem = api_problem(kernel, shape, 1);
  problem->args.z.data = problem->args.x.data = NULL;
  FAILS(FG_EARGUMENT, "x is missing: it is needed where z is not given",
        api_launch(kernel, problem));
  api_untouched(problem);
  fg_problem_free(problem);
  kernel = api_select(api_define(context, "kernel=logsoftmax width=9"), shape);
  problem = api_problem(kernel, shape, 1);
  problem->args.given |= FG_GIVEN_EPS;
  FAILS(FG_EARGUMENT, "args: an eps is given, which belongs to a layer or RMS norm",
        api_launch(kernel, problem));
  fg_problem_free(problem);
  kernel = api_select(api_define(context, NORM), shape);
  problem = api_problem(kernel, shape, 1);
  problem->args.out.data = problem->args.x.data;
  FAILS(FG_EARGUMENT, "out lies over x, and it is an output", api_launch(kernel, problem));
  fg_problem_free(problem);
  fg_close(context);
}

TEST_FIXTURE(api_enter, api_leave)
TEST_TIMEOUT(240)
