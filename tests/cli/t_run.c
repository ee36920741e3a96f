/* t_run.c - `flashgen run` on real tensors: every output against the oracle, its file's shape and
 * type, and what may not change the bits. */
#include "json.h"
#include "program.h"
#include "run_case.h"
#include "scratch.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FORWARD   "--in q=q.npy --in k=k.npy --in v=v.npy"
#define BACKWARD  FORWARD " --in do=do.npy"
#define GRADIENTS "--out dq=dq.npy --out dk=dk.npy --out dv=dv.npy"

static const run_case usual = {.b = 2,
                               .h = 4,
                               .hk = 2,
                               .nq = 19,
                               .nk = 37,
                               .d = 40,
                               .dv = 40,
                               .dtype = FG_ELEM_BF16,
                               .mask = "causal",
                               .bias_axes = "bhqk",
                               .scale = 0.125};

static void judge_gradients(const run_case *c) {
  run_case_judge(c, "dq");
  run_case_judge(c, "dk");
  run_case_judge(c, "dv");
}

START_TEST(forward) {
  run_case_put(&usual, "f4");
  program_result r =
      program_gives(0, "run pass=forward dtype=bf16 mask=causal bias=true family=simt "
                       "scale=0.125 " FORWARD " --in bias=bias.npy --out o=o.npy --out lse=lse.npy "
                       "--device host");
  run_case_judge(&usual, "o");
  run_case_judge(&usual, "lse");
  ck_assert_str_eq(r.out, "");
  ck_assert_str_eq(r.err,
                   "attn_fwd-bf16-d40-causal-bias_bhqk.simt-q4-k32-w4.host: b=2 h=4 hk=2 nq=19 "
                   "nk=37\nq is [b=2, nq=19, h=4, d=40], k is [b=2, nk=37, hk=2, d=40]\no -> "
                   "o.npy\nlse -> lse.npy\n");
  ck_assert_int_eq(scratch_files(), 7 + 2); /* q k v bias do o lse, tmp cache */
  r = program_gives(0, "run -v mask=causal bias=true family=simt scale=0.125 " FORWARD
                       " --in bias=bias.npy --out o=o.npy"); /* why this plan, and where from */
  program_says(r.err, "flashgen: dispatch: b2 h4/2 19x37 ");
  program_says(r.err, "flashgen: cache: hit ");
}
END_TEST

/* Which plan is taken and why; the second time nothing is compiled, and no Lua lists plans. */
START_TEST(dispatch) {
  static const char words[] =
      "run mask=causal scale=0.125 family=simt " FORWARD " --out o=o.npy -q";
  const program_setup v = {.env = {"FLASHGEN_VERBOSE=dispatch,cache"}};
  const program_setup forced = {.env = {"FLASHGEN_VERBOSE=dispatch", "FLASHGEN_PLAN=simt-q4-*"}};
#define HERE "flashgen: dispatch: b2 h4/2 19x37 attn_fwd-bf16-d40-causal."
  run_case_put(&usual, "f4");
  for (int warm = 0; warm < 2; warm++) {
    program_result r = program_run(&v, "%s", words);
    ck_assert_int_eq(r.code, 0);
    ck_assert_int_eq(program_count(r.err, "flashgen: cache: hit "), 2 * warm);
    ck_assert_int_eq(program_count(r.err, "flashgen: cache: miss "), 2 * !warm);
    program_says(r.err, "the plans of attn_fwd-bf16-d40-causal for host, key ");
    program_says(r.err, HERE "simt-q4-k32-w4: possible, cost ");
    program_says(r.err, HERE "simt-q16-k32-w4: possible, cost ");
    ck_assert_int_eq(program_count(r.err, ": taken, cost "), 1);
    ck_assert_int_eq(program_count(r.err, "\n"), 5);
  }
  program_result r = program_run(&forced, "%s", words);
  ck_assert_int_eq(r.code, 0);
  program_says(r.err, HERE "simt-q16-k32-w4: another plan is forced\n");
  program_says(r.err, HERE "simt-q4-k32-w4: taken, cost ");
}
END_TEST

/* Each broadcast of the bias is taken from the file's extents. */
START_TEST(bias_extents) {
  static const char *const axes[] = {"hqk", "bk", "q", ""};
  static const char *const tags[] = {"bias_hqk", "bias_bk", "bias_q", "bias_1"};
  for (int i = 0; i < 4; i++) {
    run_case c = usual;
    c.bias_axes = axes[i];
    c.mask = "full";
    run_case_put(&c, "f4");
    program_result r = program_gives(0, "run bias=true scale=0.125 " FORWARD
                                        " --in bias=bias.npy --out o=o.npy --out lse=lse.npy");
    if (*axes[i]) program_says(r.err, tags[i]);
    run_case_judge(&c, "o");
    run_case_judge(&c, "lse");
  }
}
END_TEST

START_TEST(other_dims_and_dtype) {
  const run_case c = {.b = 1,
                      .h = 2,
                      .hk = 2,
                      .nq = 5,
                      .nk = 9,
                      .d = 24,
                      .dv = 72,
                      .dtype = FG_ELEM_F16,
                      .mask = "full"};
  run_case_put(&c, "f2");
  program_gives(0, "run dtype=f16 " FORWARD " --out o=o.npy --out lse=lse.npy");
  run_case_judge(&c, "o");
  run_case_judge(&c, "lse");
  run_case_put(&c, "f4"); /* the same words, other files: rounded by the program */
  program_gives(0, "run dtype=f16 head_dim=24/72 b=1 h=2 hk=2 nq=5 nk=9 " FORWARD
                   " --out o=o.npy --out lse=lse.npy");
  run_case_judge(&c, "o");
  run_case_judge(&c, "lse");
}
END_TEST

/* No key: o = 0, lse = -inf. No query, no batch: empty files. */
START_TEST(empty_extents) {
  run_case c = usual;
  c.bias_axes = NULL;
  for (int i = 0; i < 3; i++) {
    run_case e = c;
    *(i == 0 ? &e.nk : i == 1 ? &e.nq : &e.b) = 0;
    run_case_put(&e, "f4");
    program_gives(0, "run mask=causal scale=0.125 " FORWARD " --out o=o.npy --out lse=lse.npy");
    run_case_judge(&e, "o");
    run_case_judge(&e, "lse");
    program_gives(0, "run pass=backward mask=causal scale=0.125 " BACKWARD " " GRADIENTS);
    judge_gradients(&e);
  }
}
END_TEST

START_TEST(backward_computes_the_forward) {
  run_case c = usual;
  c.dlse = 1;
  run_case_put(&c, "f4");
  program_gives(0, "run pass=backward mask=causal bias=grad scale=0.125 " BACKWARD
                   " --in bias=bias.npy --in dlse=dlse.npy --out dbias=dbias.npy " GRADIENTS);
  judge_gradients(&c);
  run_case_judge(&c, "dbias");
}
END_TEST

/* Given o and lse are used: with a wrong one the gradients are wrong. */
START_TEST(backward_uses_what_is_given) {
  static const char *const given[] = {"--in o=o.npy --in lse=lse.npy", "--in o=o.npy",
                                      "--in lse=lse.npy"};
  run_case c = usual;
  c.bias_axes = NULL;
  run_case_put(&c, "f4");
  for (int i = 0; i < 3; i++) {
    run_case_put_forward(&c);
    program_gives(0, "run pass=backward mask=causal scale=0.125 " BACKWARD " %s " GRADIENTS,
                  given[i]);
    judge_gradients(&c);
    run_case_zeros(i == 1 ? "o" : "lse", i == 1 ? "2,19,4,40" : "2,4,19");
    program_gives(0, "run pass=backward mask=causal scale=0.125 " BACKWARD " %s --out dq=other.npy",
                  given[i]);
    ck_assert(!run_case_equal("dq.npy", "other.npy"));
  }
}
END_TEST

/* The gradient of a broadcast bias is summed to the bias's own extents; dv alone may be asked for.
 */
START_TEST(broadcast_dbias) {
  run_case c = usual;
  c.bias_axes = "hk";
  c.dtype = FG_ELEM_F16;
  run_case_put(&c, "f4");
  program_gives(0, "run pass=backward dtype=f16 mask=causal bias=grad scale=0.125 " BACKWARD
                   " --in bias=bias.npy --out dbias=dbias.npy --out dv=dv.npy");
  run_case_judge(&c, "dbias");
  run_case_judge(&c, "dv");
}
END_TEST

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

/* A key's weight w[k] that is 0, in the score as log(w[k]): the key is not seen, and the slope by
 * w[k] is the limit of those beside 0, which differ little. */
START_TEST(weights_of_zero) {
  static const char *const families[] = {"simt", "mma"};
  static const int zeros[] = {0, 5, 36};
  enum { KEYS = 37 };
  const int64_t extent[] = {KEYS};
  run_case c = usual;
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
END_TEST

/* Bounds that a tensor gives, as far from all positions as an i32 can be. */
START_TEST(far_bounds) {
  static const char *const families[] = {"simt", "mma", "wgmma"};
  static const int32_t first[] = {INT32_MIN, INT32_MIN + 1}, end[] = {INT32_MAX, INT32_MAX};
  const int64_t extent[] = {2};
  run_case c = usual;
  c.bias_axes = NULL;
  c.mask = "full";
  c.nk = 300;
  run_case_put(&c, "f4");
  run_case_file("first.npy", "<i4", "False", 1, extent, first, sizeof first);
  run_case_file("end.npy", "<i4", "False", 1, extent, end, sizeof end);
  for (int i = 0; i < 3; i++) {
    program_gives(0,
                  "run family=%s mask=k>=first[b]&&k<end[b] inputs.first=i32[b] "
                  "inputs.end=i32[b] scale=0.125 " FORWARD
                  " --in first=first.npy --in end=end.npy --out o=o.npy --out lse=lse.npy",
                  families[i]);
    run_case_judge(&c, "o");
    run_case_judge(&c, "lse");
  }
}
END_TEST

/* As the library would: under the causal mask one row sees all keys. */
START_TEST(mask_hides_nothing) {
  run_case c = usual;
  c.nq = 1, c.bias_axes = NULL;
  run_case_put(&c, "f4");
  program_result r = program_gives(0, "run mask=causal family=simt scale=0.125 --json " FORWARD
                                      " --out o=o.npy --out lse=lse.npy");
  program_says(r.out, "\"variant\": \"attn_fwd-bf16-d40.simt-");
  run_case_judge(&c, "o");
  run_case_judge(&c, "lse");
}
END_TEST

START_TEST(large_integers) {
  run_case c = usual;
  c.b = 1, c.nq = c.nk = 19;
  c.mask = "full", c.bias_axes = NULL;
  const int64_t extent[] = {1, c.nk};
  run_case_put(&c, "f4");
  for (int base = 0; base < 2; base++) {
    int32_t ids[19];
    for (int i = 0; i < 19; i++) ids[i] = (base << 30) + i;
    run_case_file("ids.npy", "<i4", "False", 2, extent, ids, sizeof ids);
    program_gives(0,
                  "run mask=document(ids) inputs.ids=i32[b,k] " FORWARD
                  " --in ids=ids.npy --out o=o%d.npy",
                  base);
  }
  ck_assert(run_case_equal("o0.npy", "o1.npy"));
}
END_TEST

START_TEST(seed_and_plan) {
  run_case c = usual;
  c.bias_axes = NULL;
  run_case_put(&c, "f4");
  for (int seed = 0; seed < 3; seed++)
    program_gives(0, "run mask=causal scale=0.125 --seed %d " FORWARD " --out o=o%d.npy", seed,
                  seed);
  ck_assert(run_case_equal("o0.npy", "o1.npy"));
  ck_assert(run_case_equal("o0.npy", "o2.npy"));
  program_result r =
      program_gives(0, "run mask=causal scale=0.125 --plan simt-q4-* " FORWARD " --out o=o.npy");
  program_says(r.err, ".simt-q4-k32-w4.host");
  run_case_judge(&c, "o");
  program_gives(0, "run mask=causal block_q=4 --quiet " FORWARD " --out o=p.npy");
  ck_assert_int_eq(access("p.npy", R_OK), 0);
}
END_TEST

/* A spec file's table with words over it; results as JSON; what stood in the file is replaced. */
START_TEST(spec_file_and_json) {
  static const char spec[] = "return { dtype = 'f16', mask = 'full', block_q = 4 }";
  run_case c = usual;
  c.bias_axes = NULL;
  c.scale = 0;
  run_case_put(&c, "f4");
  scratch_put("s.lua", spec, sizeof spec - 1);
  scratch_put("a\"b.npy", "old", 3);
  program_result r = program_gives(0, "run s.lua mask=causal dtype=bf16 --json " FORWARD
                                      " --out o=a\"b.npy --out lse=lse.npy");
  const char *bad = json_error(r.out);
  ck_assert_msg(!bad, "%s: no JSON at %s", r.out, bad);
  ck_assert_str_eq(r.out, "{\"schema\": 1, \"variant\": "
                          "\"attn_fwd-bf16-d40-causal.simt-q4-k32-w4.host\", \"shape\": {\"b\": 2, "
                          "\"h\": 4, \"hk\": 2, \"nq\": 19, \"nk\": 37}, \"outputs\": {\"o\": "
                          "\"a\\\"b.npy\", \"lse\": \"lse.npy\"}}\n");
  ck_assert_str_eq(r.err, "");
  ck_assert_int_eq(rename("a\"b.npy", "o.npy"), 0);
  run_case_judge(&c, "o");
}
END_TEST

/* With stdin and stdout closed, files are not opened in their place: nothing is printed into them.
 */
START_TEST(closed_streams) {
  const program_setup closed = {.out = PROGRAM_CLOSED, .closed_stdin = 1};
  run_case c = usual;
  c.bias_axes = NULL;
  run_case_put(&c, "f4");
  program_result r = program_run(&closed, "run mask=causal scale=0.125 " FORWARD
                                          " --out o=o.npy --out lse=lse.npy");
  ck_assert_int_eq(r.code, 0);
  run_case_judge(&c, "o");
  run_case_judge(&c, "lse");
  r = program_run(&closed, "run mask=causal --json " FORWARD " --out o=o.npy");
  ck_assert_int_eq(r.code, 3);
  ck_assert_str_eq(r.err, "flashgen: stdout cannot be written: Bad file descriptor\n");
}
END_TEST

START_TEST(interrupted) {
  const program_setup group = {.group = 1};
  run_case c = usual;
  run_case_put(&c, "f4");
  program_result r = program_interrupted(&group, NULL, SIGINT, 1,
                                         "run bias=true " FORWARD " --in bias=bias.npy "
                                         "--out o=o.npy --out lse=lse.npy");
  ck_assert_int_eq(r.code, 130);
  ck_assert_str_eq(r.err, "");
  ck_assert_int_eq(scratch_files(), 5 + 2); /* q k v bias do, tmp cache */
}
END_TEST

int main(void) {
  Suite *suite = suite_create("run");
  TCase *tests = tcase_create("run");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  tcase_add_test(tests, forward);
  tcase_add_test(tests, dispatch);
  tcase_add_test(tests, bias_extents);
  tcase_add_test(tests, other_dims_and_dtype);
  tcase_add_test(tests, empty_extents);
  tcase_add_test(tests, backward_computes_the_forward);
  tcase_add_test(tests, backward_uses_what_is_given);
  tcase_add_test(tests, broadcast_dbias);
  tcase_add_test(tests, weights_of_zero);
  tcase_add_test(tests, far_bounds);
  tcase_add_test(tests, mask_hides_nothing);
  tcase_add_test(tests, large_integers);
  tcase_add_test(tests, seed_and_plan);
  tcase_add_test(tests, spec_file_and_json);
  tcase_add_test(tests, closed_streams);
  tcase_add_test(tests, interrupted);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
