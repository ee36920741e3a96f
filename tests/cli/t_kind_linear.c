/* t_kind_linear.c - linear layers through the commands: names, files in and out, and what is
 * refused. */
#include "program.h"
#include "reference/npy.h"
#include "scratch.h"
#include "status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(list_and_emit) {
  program_result r =
      program_gives(0, "list kernel=linear width=512/2048,64 epilogue=gelu_erf bias=grad "
                       "residual=true pass=forward,backward family=simt block_q=32 --arch sm_80");
  ck_assert_str_eq(r.out,
                   "linear_fwd-bf16-w512o2048-bias-residual-act_gelu_erf.simt-q32-k32-w2.sm_80\n"
                   "linear_fwd-bf16-w64-bias-residual-act_gelu_erf.simt-q32-k32-w2.sm_80\n"
                   "linear_bwd-bf16-w512o2048-biasgrad-act_gelu_erf.simt-q32-k32-w2.sm_80\n"
                   "linear_bwd-bf16-w64-biasgrad-act_gelu_erf.simt-q32-k32-w2.sm_80\n");
  r = program_gives(0, "list kernel=linear width=64 --arch sm_80,sm_75");
  program_says(r.out, "linear_fwd-bf16-w64.mma-q128-k128-s3-w4.sm_80\n");
  program_says(r.out, "linear_fwd-bf16-w64.simt-q64-k64-w8.sm_75\n");
  r = program_gives(0, "emit linear_bwd-bf16-w64o96-biasgrad-act_relu.mma-q64-k64-s4-w4.sm_80");
  program_says(r.out,
               "// spec:   kernel=linear pass=backward width=64/96 bias=grad epilogue=relu\n");
  program_says(r.out, "const int *kept; // [rows, 3] i32\n");
  program_says(r.out, "u16 *dp; // scratch\n");
}

/* What a launch of the one variant moves, by its time and rate. */
static double bytes_of(const char *words) {
  char command[256];
  double ms, tflops, rate;
  snprintf(command, sizeof command, "%s --csv", words);
  program_result r = program_gives(0, "%s", command);
  const char *row = strstr(r.out, ".host,");
  ck_assert_msg(row && sscanf(row, ".host,%*d,%lf,%lf,%lf", &ms, &tflops, &rate) == 3, "%s", r.out);
  return ms * rate * 1e9;
}

TEST(check_and_bench) {
  program_result r = program_gives(0, "check kernel=linear width=24/40 epilogue=relu,none "
                                      "pass=forward,backward family=simt --device host");
  program_says(r.out, "\n4 variants, ");
  program_says(r.out, ": 0 failed, 0 wrong\n");
  r = program_gives(0, "bench kernel=linear width=24/40 family=simt rows=5 --device host --csv");
  program_says(r.out,
               "name,rows,ms,tflops,tb_per_s\nlinear_fwd-bf16-w24o40.simt-q64-k64-w8.host,5,");
#define BENCH "bench kernel=linear width=24/40 epilogue=relu family=simt rows=5 --device host "
  const double all = bytes_of(BENCH), fewer = bytes_of(BENCH "--without keep");
  ck_assert_double_eq_tol(all, 2 * (5 * 24 + 40 * 24 + 5 * 40) + 5 * 2 * 4, 1);
  ck_assert_double_eq_tol(all - fewer, 5 * 2 * 4, 1);
  program_refuses(2, "--without kept: there is no tensor of that name", BENCH "--without kept");
  program_says(program_gives(2, BENCH "--without keep,w").err, "w is missing\n");
  /* x and residual are read where z is not given */
#define NORM "bench kernel=layernorm width=40 residual=true pass=backward rows=5 --device host "
  ck_assert_double_eq_tol(bytes_of(NORM "--without z") - bytes_of(NORM), 5 * 40 * 2, 1);
  program_says(program_gives(0, "check --help").out, " rows= choose one shape");
  program_says(program_gives(0, "bench --help").out, " rows= choose one shape");
}

/* The layers of the shipped file, all as wide as each other. */
TEST(spec_file) {
  program_result r = program_gives(0, "check " FLASHGEN_SOURCE "/specs/linear.lua width=64/32 "
                                      "--filter *bf16* --seed 2 rows=3 --device host -q");
  program_says(r.out, "PASS  linear_bwd-bf16-w64o32-biasgrad-act_silu.");
  program_says(r.out, "\n28 variants, ");
  program_says(r.out, ": 0 failed, 0 wrong\n");
}

/* Measured, shown by spec and rows, and drawn; put into a zoo; and listed. */
TEST(tune_and_build) {
#define LAYER "kernel=linear width=24/40 epilogue=relu pass=forward,backward "
  const char shapes[] = "return { { rows = 40 }, { rows = 3 } }";
  scratch_put("shapes.lua", shapes, strlen(shapes));
  program_result r = program_gives(0, "tune " LAYER "family=mma,simt block_q=32 --shapes "
                                      "shapes.lua --device host --wisdom w.txt");
  program_says(r.out, "4 of 4 cells finished, 4 with a best plan; w.txt\n");
  r = program_gives(0, "wisdom show w.txt");
  ck_assert_int_eq(program_count(r.out, "\n40 rows                  linear_bwd-bf16-w24o40-act_"
                                        "relu."),
                   1);
  ck_assert_int_eq(program_count(r.out, "\n3 rows                   linear_fwd-bf16-w24o40-act_"
                                        "relu."),
                   1);
  program_gives(0, "report w.txt -o w.html");
  program_page_says(program_text("w.html"), "<p>A shape of a linear layer reads 4096 rows. </p>");
  program_page_says(program_text("w.html"),
                    "<p>A linear layer does two operations for each row and weight, four backward");
  r = program_gives(0, "build " LAYER "family=simt --arch host -o zoo -q");
  program_says(r.out, "zoo: 2 variants: 2 made, 0 kept, 0 failed, 0 removed\n");
  program_says(program_text("zoo/manifest.txt"), "\nkernel linear\nwidth 24 40 40 2\nalign 2\n");
  r = program_gives(0, "list " LAYER "--arch sm_90a --json");
  program_says(r.out, "\"width\": \"24/40\", ");
}

/* `when` knows both widths. */
TEST(widths_of_a_grid) {
  static const char spec[] =
      "return { kernel = 'linear', width = { 64, '64/128' }, family = 'simt', block_q = 32,\n"
      "  when = function(s) return s.width_out == 2 * s.width end }";
  scratch_put("k.lua", spec, strlen(spec));
  program_result r = program_gives(0, "list k.lua --arch sm_80");
  ck_assert_str_eq(r.out, "linear_fwd-bf16-w64o128.simt-q32-k32-w2.sm_80\n");
}

enum { ROWS = 3, IN = 8, OUT = 40 };
static double x[ROWS * IN], w[2 * OUT * IN], b[2 * OUT], dy[ROWS * OUT];

/* Values that bf16 holds, to a file and to the array. */
static void put(const char *name, double *values, int64_t n, int64_t m, uint32_t state) {
  float *file = malloc((size_t)(n * m) * sizeof *file);
  char path[32];
  for (int64_t i = 0; i < n * m; i++) {
    state = state * 1664525 + 1013904223;
    file[i] = (float)((int)(state >> 24) - 128) / 64;
    values[i] = (double)file[i];
  }
  snprintf(path, sizeof path, "%s.npy", name);
  const int64_t extent[] = {n, m};
  GOOD(fg_npy_write(path, m == 1 ? 1 : 2, extent, file));
  free(file);
}

static void put_all(int columns) {
  put("x", x, ROWS, IN, 1), put("w", w, columns, IN, 2);
  put("b", b, columns, 1, 3), put("dy", dy, ROWS, OUT, 4);
}

static double h_of(int row, int column) {
  double sum = b[column];
  for (int k = 0; k < IN; k++) sum += x[row * IN + k] * w[column * IN + k];
  return sum;
}

static fg_array read(const char *path, int64_t n, int64_t m) {
  fg_array file;
  GOOD(fg_npy_read("it", path, &file));
  ck_assert(file.extent[0] == n && file.extent[1] == m);
  return file;
}

/* y and the mask; dx, from the mask that was written and from one that backward's own forward
 * makes. */
TEST(run_relu) {
  put_all(OUT);
  program_gives(0, "run kernel=linear epilogue=relu bias=true --in x=x.npy --in w=w.npy "
                   "--in bias=b.npy --out y=y.npy --out keep=keep.npy");
  fg_array y = read("y.npy", ROWS, OUT), keep = read("keep.npy", ROWS, 2);
  ck_assert_str_eq(keep.type, "i4");
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < OUT; j++) {
      const double h = h_of(r, j);
      ck_assert_double_eq_tol((double)y.real[r * OUT + j], h > 0 ? h : 0, 0.01 * (1 + fabs(h)));
      ck_assert_int_eq((uint32_t)keep.integer[2 * r + j / 32] >> j % 32 & 1, h > 0);
    }
  fg_array_free(&y), fg_array_free(&keep);
  static const char *const kept[] = {"keep=keep.npy", "bias=b.npy"};
  for (int i = 0; i < 2; i++) {
    program_gives(0,
                  "run kernel=linear epilogue=relu pass=backward bias=grad --in x=x.npy "
                  "--in w=w.npy --in dy=dy.npy --in %s --out dx=dx.npy --out dbias=db.npy",
                  kept[i]);
    fg_array dx = read("dx.npy", ROWS, IN);
    for (int r = 0; r < ROWS; r++)
      for (int k = 0; k < IN; k++) {
        double sum = 0;
        for (int j = 0; j < OUT; j++) sum += h_of(r, j) > 0 ? dy[r * OUT + j] * w[j * IN + k] : 0;
        ck_assert_double_eq_tol((double)dx.real[r * IN + k], sum, 0.01 * (1 + fabs(sum)));
      }
    fg_array_free(&dx);
  }
}

/* A gate's rows come first; the output is as wide as half of them. */
TEST(run_gated) {
  put_all(2 * OUT);
  program_gives(0, "run kernel=linear epilogue=swiglu bias=true --in x=x.npy --in w=w.npy "
                   "--in bias=b.npy --out y=y.npy");
  fg_array y = read("y.npy", ROWS, OUT);
  for (int r = 0; r < ROWS; r++)
    for (int j = 0; j < OUT; j++) {
      const double g = h_of(r, j), v = h_of(r, OUT + j), want = g / (1 + exp(-g)) * v;
      ck_assert_double_eq_tol((double)y.real[r * OUT + j], want, 0.01 * (1 + fabs(want)));
    }
  fg_array_free(&y);
}

/* With a norm, backward takes what forward has made of z; it does not know what was added to it. */
TEST(run_norm) {
  double gamma[OUT];
  put_all(OUT);
  put("g", gamma, OUT, 1, 5), put("r", dy, ROWS, OUT, 6);
#define NORMED                                                                                     \
  "run kernel=linear epilogue=rmsnorm family=simt --in x=x.npy --in w=w.npy --in gamma=g.npy "
  program_gives(0, NORMED "residual=true --in residual=r.npy --out out=o.npy --out z=z.npy "
                          "--out rstd=s.npy");
  fg_array z = read("z.npy", ROWS, OUT), rstd;
  GOOD(fg_npy_read("rstd", "s.npy", &rstd));
  for (int r = 0; r < ROWS; r++) {
    double squares = 0;
    for (int j = 0; j < OUT; j++) {
      squares += (double)z.real[r * OUT + j] * (double)z.real[r * OUT + j] / OUT;
      const double want = h_of(r, j) - b[j] + dy[r * OUT + j];
      ck_assert_double_eq_tol((double)z.real[r * OUT + j], want, 0.01 * (1 + fabs(want)));
    }
    ck_assert_double_eq_tol((double)rstd.real[r], 1 / sqrt(squares), 0.01 / sqrt(squares));
  }
  fg_array_free(&z), fg_array_free(&rstd);
#define BACK NORMED "pass=backward --in dout=dy.npy --out dx=dx.npy --out dresidual=dr.npy "
  program_refuses(2, "z is missing: give --in z=FILE.npy", BACK);
  program_refuses(2, "rstd is missing: give --in rstd=FILE.npy", BACK "--in z=z.npy");
  program_gives(0, BACK "--in z=z.npy --in rstd=s.npy");
}

/* A launch without rows writes files without rows, and says whose shape it is. */
TEST(no_rows) {
  put_all(OUT);
  put("none", dy, 0, IN, 5);
  program_says(program_gives(0, "run kernel=linear --in x=none.npy --in w=w.npy --out y=y.npy").err,
               ".host: rows=0\n");
  fg_array y = read("y.npy", 0, OUT);
  fg_array_free(&y);
}

TEST(refused) {
  put_all(OUT);
#define REFUSES(sentence, words) program_refuses(2, sentence, "run kernel=linear " words)
  REFUSES("w is missing: give --in w=FILE.npy", "--in x=x.npy --out y=y.npy");
  REFUSES("bias is given, but the spec has bias=false: say bias=true",
          "--in x=x.npy --in w=w.npy --in bias=b.npy --out y=y.npy");
  REFUSES("residual is given, but the spec has residual=false: say residual=true",
          "--in x=x.npy --in w=w.npy --in residual=dy.npy --out y=y.npy");
  REFUSES("residual: the spec has no such input",
          "residual=true pass=backward --in x=x.npy --in w=w.npy --in dy=dy.npy "
          "--in residual=dy.npy --out dx=dx.npy");
  REFUSES("x has input width 8, half of w has 20, but width is 8/40",
          "width=8/40 epilogue=swiglu --in x=x.npy --in w=w.npy --out y=y.npy");
  REFUSES("bias is missing: give --in bias=FILE.npy",
          "bias=true --in x=x.npy --in w=w.npy --out y=y.npy");
  REFUSES("w: its input width (axis 1) is 40, but x has 8",
          "--in x=x.npy --in w=dy.npy --out y=y.npy");
  REFUSES("keep: the spec has no such output",
          "--in x=x.npy --in w=w.npy --out y=y.npy --out keep=k.npy");
  REFUSES("keep: dy.npy holds floats (f4); expected i4 or i8",
          "epilogue=relu pass=backward --in x=x.npy --in w=w.npy --in dy=dy.npy --in keep=dy.npy "
          "--out dx=dx.npy");
  program_refuses(2,
                  "width: \"64x128\" is not allowed; expected an integer from 1 to 262144, of "
                  "linear also in/out: 512/2048",
                  "list kernel=linear width=64x128");
  program_refuses(2, "width: kernel=linear takes multiples of 8, not 12",
                  "list kernel=linear width=12/16");
  program_refuses(2, "width: rows of kernel=logsoftmax have one width, not 64/32",
                  "list kernel=logsoftmax width=64/32");
  program_refuses(2,
                  "linear_fwd-bf16-w64-act_gleu: epilogue: there is no \"gleu\" (did you mean "
                  "\"gelu\"?); there are: geglu, gelu, gelu_erf, layernorm, none, reglu, "
                  "relu, rmsnorm, silu, swiglu",
                  "list kernel=linear width=64 epilogue=gleu");
  program_refuses(2, "mask: no kernel of the spec has such a field",
                  "list kernel=linear width=64 mask=full");
  program_refuses(2, "head_dim: no kernel of the spec has such a field",
                  "list kernel=linear head_dim=64 width=64");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
TEST_TIMEOUT(240)
