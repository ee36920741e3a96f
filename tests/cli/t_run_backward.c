/* t_run_backward.c - the backward of `flashgen run`: what it computes itself and what it is given,
 * and gradients of biases and inputs. */
#include "program.h"
#include "reference/npy.h"
#include "run_case.h"
#include "scratch.h"
#include "status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

TEST(backward_computes_the_forward) {
  run_case c = run_case_usual;
  c.dlse = 1;
  run_case_put(&c, "f4");
  program_gives(0, "run pass=backward mask=causal bias=grad scale=0.125 " BACKWARD
                   " --in bias=bias.npy --in dlse=dlse.npy --out dbias=dbias.npy " GRADIENTS);
  run_case_judge_gradients(&c);
  run_case_judge(&c, "dbias");
}

/* Given o and lse are used: with a wrong one the gradients are wrong. */
TEST(backward_uses_what_is_given) {
  static const char *const given[] = {"--in o=o.npy --in lse=lse.npy", "--in o=o.npy",
                                      "--in lse=lse.npy"};
  run_case c = run_case_usual;
  c.bias_axes = NULL;
  run_case_put(&c, "f4");
  for (int i = 0; i < 3; i++) {
    run_case_put_forward(&c);
    program_gives(0, "run pass=backward mask=causal scale=0.125 " BACKWARD " %s " GRADIENTS,
                  given[i]);
    run_case_judge_gradients(&c);
    run_case_zeros(i == 1 ? "o" : "lse", i == 1 ? "2,19,4,40" : "2,4,19");
    program_gives(0, "run pass=backward mask=causal scale=0.125 " BACKWARD " %s --out dq=other.npy",
                  given[i]);
    ck_assert(!run_case_equal("dq.npy", "other.npy"));
  }
}

/* The gradient of a broadcast bias is summed to the bias's own extents; dv alone may be asked for.
 */
TEST(broadcast_dbias) {
  run_case c = run_case_usual;
  c.bias_axes = "hk";
  c.dtype = FG_ELEM_F16;
  run_case_put(&c, "f4");
  program_gives(0, "run pass=backward dtype=f16 mask=causal bias=grad scale=0.125 " BACKWARD
                   " --in bias=bias.npy --out dbias=dbias.npy --out dv=dv.npy");
  run_case_judge(&c, "dbias");
  run_case_judge(&c, "dv");
}

/* Integers keep all their bits: as floats these ids would be pairs of equal ones. */
/* The numbers of a file of float32 that run has written. */
static void read_floats(const char *path, int n, float *to) {
  unsigned char head[10];
  FILE *file = fopen(path, "rb");
  ck_assert_msg(file != NULL, "%s", path);
  ck_assert_uint_eq(fread(head, 1, 10, file), 10);
  ck_assert_int_eq(fseek(file, 10 + head[8] + 256 * head[9], SEEK_SET), 0);
  ck_assert_int_eq((int)fread(to, sizeof *to, (size_t)n, file), n);
  fclose(file);
}

/* The mask that a run writes is the one that its kernel had: with V = 1 a row's o is the sum of
 * what is kept. Its words may be a file's. */
TEST(dropout) {
  enum { B = 2, H = 4, NQ = 19, NK = 37, D = 40, PAIRS = B * H * NQ * NK };
  static float mask[PAIRS], o[B * NQ * H * D];
  run_case c = run_case_usual;
  c.bias_axes = NULL;
  run_case_put(&c, "f4");
  run_case_zeros("q", "2,19,4,40");
  run_case_fill("v", "2,37,2,40", 1);
  program_gives(0, "run dropout=true keep=0.5 seed=98765432109 offset=7 " FORWARD
                   " --out o=o.npy --out keep_mask=mask.npy");
  read_floats("mask.npy", PAIRS, mask);
  read_floats("o.npy", B * NQ * H * D, o);
  for (int row = 0; row < B * H * NQ; row++) {
    const int b = row / (H * NQ), h = row / NQ % H, q = row % NQ;
    float kept = 0;
    for (int k = 0; k < NK; k++) kept += mask[row * NK + k];
    ck_assert_float_eq_tol(o[((b * NQ + q) * H + h) * D], kept * 2 / NK, 0.01F);
  }
  program_refuses(2, "keep is missing: dropout=true needs it",
                  "run dropout=true seed=1 " FORWARD " --out o=o.npy");
  program_refuses(2, "seed is missing: give seed=NUMBER",
                  "run dropout=true keep=0.5 " FORWARD " --out o=o.npy");
  program_refuses(2, "keep = 2: expected a number from 0 to 1",
                  "run dropout=true seed=1 keep=2 " FORWARD " --out o=o.npy");
  program_gives(0, "run pass=backward dropout=true keep=0.5 seed=3 " BACKWARD " " GRADIENTS);
}

/* A key's weight w[k] that is 0, in the score as log(w[k]): the key is not seen, and the slope by
 * w[k] is the limit of those beside 0, which differ little. */
TEST(weights_of_zero) {
  static const char *const families[] = {"simt", "mma"};
  static const int zeros[] = {0, 5, 36};
  enum { KEYS = 37 };
  const int64_t extent[] = {KEYS};
  run_case c = run_case_usual;
  c.bias_axes = NULL;
  run_case_put(&c, "f4");
  for (int i = 0; i < 2; i++) {
    float w[KEYS], dw[2][KEYS], dq[2];
    for (int near = 0; near < 2; near++) {
      for (int k = 0; k < KEYS; k++) w[k] = 0.5f + (float)(k % 7);
      for (int z = 0; z < 3; z++) w[zeros[z]] = near ? 1e-9f : 0;
      run_case_file("w.npy", "<f4", "False", 1, extent, w, sizeof w);
      program_gives(0,
                    "run pass=backward family=%s mask=causal score=s+log(w[k]) "
                    "inputs.w=f32[k]grad " BACKWARD " --in w=w.npy --out dw=dw.npy "
                    "--out dq=dq.npy",
                    families[i]);
      read_floats("dw.npy", KEYS, dw[near]);
      read_floats("dq.npy", 1, &dq[near]);
    }
    for (int k = 0; k < KEYS; k++)
      ck_assert_msg(fabsf(dw[0][k] - dw[1][k]) <= 1e-3f * (1e-2f + fabsf(dw[1][k])),
                    "%s: dw[%d] is %g, and %g beside 0", families[i], k, (double)dw[0][k],
                    (double)dw[1][k]);
    ck_assert(fabsf(dw[0][5]) > 1e-3f && fabsf(dq[0] - dq[1]) < 1e-3f);
  }
}

TEST_FIXTURE(scratch_enter, scratch_leave)
