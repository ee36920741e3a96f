/* t_kind.c - a kind of kernel that is not attention, log-softmax of rows, through every command and
 * through the C API. */
#include "api_case.h"
#include "program.h"
#include "reference/npy.h"
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL   "kernel=logsoftmax width=33 "
#define FORWARD  "logsoftmax_fwd-bf16-w33.simt-q16-w4"
#define BACKWARD "logsoftmax_bwd-bf16-w33.simt-q16-w4"

/* Commands --------------------------------------------------------------------------------------
 */

TEST(list_and_emit) {
  program_result r = program_gives(0, "list kernel=logsoftmax width=33,5000 pass=forward,backward "
                                      "--arch sm_80,host");
  ck_assert_str_eq(r.out, FORWARD ".sm_80\nlogsoftmax_fwd-bf16-w5000.simt-q1-w5.sm_80\n" BACKWARD
                                  ".sm_80\nlogsoftmax_bwd-bf16-w5000.simt-q1-w5.sm_80\n" FORWARD
                                  ".host\nlogsoftmax_fwd-bf16-w5000.simt-q1-w5.host\n" BACKWARD
                                  ".host\nlogsoftmax_bwd-bf16-w5000.simt-q1-w5.host\n");
  r = program_gives(0, "emit " FORWARD ".sm_90a");
  program_says(r.out, "// spec:   kernel=logsoftmax width=33\n");
  program_says(r.out, "int rows;");
  ck_assert_int_eq(program_count(r.out, "float scale"), 0);
  ck_assert_int_eq(program_count(r.out, "nq"), 0);
}

TEST(check_and_bench) {
  program_result r =
      program_gives(0, "check " KERNEL "dtype=bf16,f16 pass=forward,backward --plans "
                       "all --device host");
  program_says(r.out, "\n12 variants, 72 cases, seed ");
  program_says(r.out, ": 0 failed, 0 wrong\n");
  r = program_gives(0, "check " KERNEL "rows=3 --device host");
  program_says(r.out, "\n1 variant, 1 case, seed ");
  r = program_gives(0, "bench " KERNEL "rows=5 --device host --csv");
  program_says(r.out, "name,rows,ms,tflops,tb_per_s\n" FORWARD ".host,5,");
}

/* A field of one kind may be an input of another's specs: its words set that number. */
TEST(width_as_input) {
#define WINDOW "head_dim=16 mask=window(width,0) inputs.width=int family=simt block_q=4 width="
  program_result r = program_gives(0, "check " WINDOW "0 nq=9 --device host");
  program_says(r.out, "  sees 11.1% of pairs\n");
  r = program_gives(0, "check " WINDOW "2 nq=9 --device host");
  program_says(r.out, "  sees 29.6% of pairs\n");
  program_refuses(2, "width: it is a number of the launch, not of the spec", "list " WINDOW "2");
}

/* A file of [3, 4]. */
static void put(const char *path, const float values[12]) {
  const int64_t extent[] = {3, 4};
  char *staged;
  GOOD(fg_npy_stage(path, 2, extent, values, &staged));
  GOOD(fg_npy_publish(staged, path));
}

/* The file holds [3, 4] numbers that are these but for the rounding of bf16. */
static void holds(const char *path, const double expected[12]) {
  fg_array file;
  GOOD(fg_npy_read("it", path, &file));
  ck_assert(file.rank == 2 && file.extent[0] == 3 && file.extent[1] == 4);
  for (int i = 0; i < 12; i++)
    if (isinf(expected[i]))
      ck_assert(isinf(file.real[i]) && file.real[i] < 0);
    else
      ck_assert_double_eq_tol((double)file.real[i], expected[i], 0.01 * (1 + fabs(expected[i])));
  fg_array_free(&file);
}

/* y, and dx from x or from y; the second row has a -inf, the third nothing else. */
TEST(run) {
  float x[12] = {0, 1, 2, 3, -INFINITY, 5, 5, 5, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
  float dy[12] = {1, 0, 0, 0, 1, 0.5f, 0.25f, 0.25f, 1, 2, 3, 4};
  double y[12], dx[12];
  for (int r = 0; r < 3; r++) {
    double sum = 0, dsum = 0;
    for (int i = 4 * r; i < 4 * r + 4; i++) {
      sum += exp((double)x[i]);
      dsum += x[i] > -INFINITY ? (double)dy[i] : 0;
    }
    for (int i = 4 * r; i < 4 * r + 4; i++) {
      y[i] = x[i] > -INFINITY ? (double)x[i] - log(sum) : -INFINITY;
      dx[i] = x[i] > -INFINITY ? (double)dy[i] - exp(y[i]) * dsum : 0;
    }
  }
  put("x.npy", x);
  put("dy.npy", dy);
  program_result r = program_gives(0, "run kernel=logsoftmax --in x=x.npy --out y=y.npy");
  ck_assert_str_eq(r.err, "logsoftmax_fwd-bf16-w4.simt-q64-w4.host: rows=3\ny -> y.npy\n");
  holds("y.npy", y);
  const char *const from[] = {"x", "y"};
  for (int i = 0; i < 2; i++) {
    r = program_gives(0,
                      "run kernel=logsoftmax pass=backward --in %s=%s.npy --in dy=dy.npy "
                      "--out dx=dx.npy --json",
                      from[i], from[i]);
    ck_assert_str_eq(r.out,
                     "{\"schema\": 1, \"variant\": \"logsoftmax_bwd-bf16-w4.simt-q64-w4.host\""
                     ", \"shape\": {\"rows\": 3}, \"outputs\": {\"dx\": \"dx.npy\"}}\n");
    holds("dx.npy", dx);
  }
  const char spec[] = "return { kernel = 'logsoftmax' }"; /* says the kind; the file its width */
  scratch_put("k.lua", spec, strlen(spec));
  program_gives(0, "run k.lua --in x=x.npy --out y=again.npy");
  holds("again.npy", y);
}

TEST(run_refused) {
  float x[12] = {0};
  put("x.npy", x);
#define REFUSES(sentence, words) program_refuses(2, sentence, "run kernel=logsoftmax " words)
  REFUSES("--in q: there is no tensor of that name (did you mean x?)",
          "--in q=x.npy --out y=y.npy");
  REFUSES("b = 3: kernel=logsoftmax has no such extent", "b=3 --in x=x.npy --out y=y.npy");
  REFUSES("x: its rows (axis 0) is 3, but the command line has 5",
          "rows=5 --in x=x.npy --out y=y.npy");
  REFUSES("x has width 4, but width is 8", "width=8 --in x=x.npy --out y=y.npy");
  REFUSES("args: a scale is given, and kernel=logsoftmax has none",
          "scale=2 --in x=x.npy --out y=y.npy");
  REFUSES("x is missing: give --in x=FILE.npy", "pass=backward --in dy=x.npy --out dx=dx.npy");
  REFUSES("dy is missing: give --in dy=FILE.npy", "pass=backward --in y=x.npy --out dx=dx.npy");
  REFUSES("x: the spec has no such input",
          "pass=backward --in x=x.npy --in y=x.npy --in dy=x.npy --out dx=dx.npy");
  REFUSES("--out o: there is no tensor of that name (did you mean x?)",
          "--in x=x.npy --out o=o.npy");
  REFUSES("dx: the spec has no such output", "--in x=x.npy --out dx=dx.npy");
  REFUSES("mask: no kernel of the spec has such a field", "mask=full --in x=x.npy --out y=y.npy");
  program_refuses(2, "width: missing; it must be given", "list kernel=logsoftmax");
  program_refuses(2,
                  "attn_fwd-bf16-d64-norm_sofmax: normalizer: there is no \"sofmax\" (did you mean "
                  "\"softmax\"?); there are: logsoftmax, none, retention, sigmoid, softmax",
                  "list head_dim=64 normalizer=sofmax");
  program_refuses(2, "width: no kernel of the spec has such a field", "list head_dim=64 width=3");
  program_refuses(2,
                  "width: \"0\" is not allowed; expected an integer from 1 to 262144, "
                  "of linear also in/out: 512/2048",
                  "list kernel=logsoftmax width=0");
}

/* Measured, chosen by, shown, and drawn. Shapes of another kind are not for it. */
TEST(tune) {
  const char shapes[] = "return { { rows = 40 }, { rows = 3 }, { h = 2, nq = 3 } }";
  scratch_put("shapes.lua", shapes, strlen(shapes));
#define TUNE "tune " KERNEL "pass=forward,backward --shapes shapes.lua --device host --wisdom w.txt"
  program_result r = program_gives(0, TUNE);
  ck_assert_int_eq(program_count(r.out, "\n40 rows ") + program_count(r.out, "\n3 rows "), 3);
  program_says(r.out, "4 of 4 cells finished, 4 with a best plan; w.txt\n");
  char fastest[128] = "3 rows                   logsoftmax_bwd-bf16-w33.simt-q";
  const char *row = strstr(r.out, fastest), *end = row ? strstr(row, ".host ") : NULL;
  ck_assert_msg(end && end - row < (long)sizeof fastest - 8, "no row of backward in\n%s", r.out);
  snprintf(fastest, sizeof fastest, "%.*s.host ", (int)(end - row), row);
  ck_assert_int_eq(program_count(program_text("w.txt"), "\tshape=rows=40,16\t"), 6);
  r = program_gives(0, TUNE " -q");
  ck_assert_int_eq(program_count(r.out, " 3 known\n"), 4);
  r = program_gives(0, "wisdom show w.txt");
  program_says(r.out, fastest); /* what tune found, whichever plan that was */
  program_gives(0, "wisdom verify w.txt");
  program_gives(0, "report w.txt -o w.html");
  program_page_says(program_text("w.html"), "40 rows");
  program_page_says(program_text("w.html"), "<p>A shape of log-softmax reads 4096 rows. </p>");
  program_page_says(program_text("w.html"), "<p>Log-softmax does five operations for each element");
}

TEST(cache_and_build) {
  const char spec[] = "return { kernel = 'logsoftmax', width = { 33, 5000 } }";
  scratch_put("k.lua", spec, strlen(spec));
  program_result r = program_gives(0, "build k.lua --arch host -o zoo -q");
  program_says(r.out, "zoo: 2 variants: 2 made, 0 kept, 0 failed, 0 removed\n");
  program_says(program_text("zoo/manifest.txt"), "\nkernel logsoftmax\nwidth 33\nalign 2\n");
  r = program_gives(0, "build k.lua --arch host -o zoo -q");
  program_says(r.out, "zoo is up to date: 2 variants, nothing to do\n");
  program_gives(0, "cache verify");
}

/* The library ------------------------------------------------------------------------------------
 */

static const fg_shape shape = {.size = sizeof shape, .rows = 21};

TEST(api) {
  fg_context *context = api_open("cache");
  for (int backward = 0; backward < 2; backward++) {
    fg_op *op = api_define(context, backward ? KERNEL "pass=backward" : KERNEL);
    fg_kernel *kernel = api_select(op, shape);
    ck_assert_ptr_eq(api_select(op, shape), kernel);
    for (int layout = 0; layout < 2; layout++)
      api_verify(kernel, (api_layout)layout, &(verify_case){.shape = shape, .seed = 3});
  }
  fg_close(context);
}

TEST(api_refused) {
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, KERNEL);
  fg_kernel *kernel, *got = NULL;
  fg_shape wrong = shape;
  wrong.nq = 4;
  FAILS(FG_EARGUMENT, "nq = 4: kernel=logsoftmax has no such extent",
        fg_select(op, &wrong, NULL, &got));
  wrong = shape, wrong.rows = -1;
  FAILS(FG_EARGUMENT, "rows = -1: expected 0 to 2^30 - 1", fg_select(op, &wrong, NULL, &got));
  FAILS(
      FG_EARGUMENT, "rows = 4: kernel=attention has no such extent",
      fg_select(api_define(context, "head_dim=8"),
                &(fg_shape){.size = sizeof(fg_shape), .h = 1, .hk = 1, .nq = 3, .nk = 3, .rows = 4},
                NULL, &got));
  kernel = api_select(op, shape);
  fg_problem *problem = api_problem(kernel, shape, 1);
  problem->args.given |= FG_GIVEN_SCALE, problem->args.scale = 2;
  FAILS(FG_EARGUMENT, "args: a scale is given, and kernel=logsoftmax has none",
        api_launch(kernel, problem));
  problem->args.given = 0;
  problem->args.y.data = NULL;
  ck_assert_int_eq(api_launch(kernel, problem), FG_EARGUMENT);
  api_untouched(problem);
  fg_problem_free(problem);
  fg_close(context);
}

/* From a zoo, where nothing is compiled. */
TEST(api_zoo) {
  fg_context *context = api_open("cache");
  fg_order order = FG_INIT(fg_order);
  order.directory = "zoo";
  GOOD(api_build(context, order, KERNEL "pass=forward,backward", NULL));
  fg_close(context);
  const fg_zoo directory = {.size = sizeof directory, .directory = "zoo"}, *zoos = &directory;
  fg_config config = api_config("other-cache");
  config.zoos = &zoos, config.n_zoos = 1;
  config.jit = -1;
  GOOD(fg_open(&config, &context));
  fg_kernel *kernel = api_select(api_define(context, KERNEL "pass=backward"), shape);
  api_verify(kernel, API_PADDED, &(verify_case){.shape = shape, .seed = 4});
  api_counts(context, 0, 1, 0, 1);
  fg_close(context);
}

TEST_FIXTURE(api_enter, api_leave)
