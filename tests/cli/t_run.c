/* t_run.c - `flashgen run` on real tensors: every output against the oracle, its file's shape and
 * type, and what may not change the bits. */
#include "json.h"
#include "program.h"
#include "reference/npy.h"
#include "run_case.h"
#include "scratch.h"
#include "status.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TEST(forward) {
  run_case_put(&run_case_usual, "f4");
  program_result r =
      program_gives(0, "run pass=forward dtype=bf16 mask=causal bias=true family=simt "
                       "scale=0.125 " FORWARD " --in bias=bias.npy --out o=o.npy --out lse=lse.npy "
                       "--device host");
  run_case_judge(&run_case_usual, "o");
  run_case_judge(&run_case_usual, "lse");
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

/* The values of NAME.npy as NAME_as.npy, with three axes: one sequence behind the other. */
static void put_packed(const char *name) {
  char path[32], as[32];
  fg_array a;
  snprintf(path, sizeof path, "%s.npy", name);
  snprintf(as, sizeof as, "%s_as.npy", name);
  GOOD(fg_npy_read(name, path, &a));
  const int64_t extent[3] = {a.extent[0] * a.extent[1], a.extent[2], a.extent[3]};
  run_case_file(as, "<f4", "False", 3, extent, a.real, (size_t)a.count * sizeof *a.real);
  fg_array_free(&a);
}

static void put_ints(const char *path, int64_t rows, int64_t columns, const int32_t *values) {
  const int64_t extent[2] = {rows, columns};
  const int64_t count = rows * (columns ? columns : 1);
  run_case_file(path, "<i4", "False", columns ? 2 : 1, extent, values,
                (size_t)count * sizeof *values);
}

/* Both files have these values, whatever their axes are. */
static void same_values(const char *path, const char *other, int rank) {
  fg_array a, b;
  GOOD(fg_npy_read("a", path, &a));
  GOOD(fg_npy_read("b", other, &b));
  ck_assert_int_eq(b.rank, rank);
  ck_assert_int_eq(a.count, b.count);
  ck_assert(!memcmp(a.real, b.real, (size_t)a.count * sizeof *a.real));
  fg_array_free(&a);
  fg_array_free(&b);
}

/* Sequences of equal lengths, packed, cached and in pages, give what dense ones give. */
TEST(layouts) {
#define PLAN      "run -q mask=causal family=simt block_q=16 --device host "
#define ELSEWHERE "--in q=q.npy --in k=k.npy --in v=v.npy --in used_k=used.npy --out o=other.npy "
  put_ints("starts_q.npy", 3, 0, (const int32_t[]){0, 19, 38});
  put_ints("starts_k.npy", 3, 0, (const int32_t[]){0, 37, 74});
  put_ints("used.npy", 2, 0, (const int32_t[]){37, 37});
  put_ints("table.npy", 2, 1, (const int32_t[]){0, 1});
  run_case c = run_case_usual;
  c.bias_axes = NULL;
  run_case_put(&c, "f4");
  static const char *const packed[] = {"q", "k", "v", "do"};
  for (int i = 0; i < 4; i++) put_packed(packed[i]);
  program_gives(0, PLAN FORWARD " --out o=o.npy");
  program_gives(0, PLAN ELSEWHERE "kv_layout=cached");
  same_values("o.npy", "other.npy", 4);
  program_gives(0, PLAN ELSEWHERE "kv_layout=paged --in table=table.npy");
  same_values("o.npy", "other.npy", 4);
  program_gives(0, PLAN "q_layout=packed kv_layout=packed --in q=q_as.npy --in k=k_as.npy --in "
                        "v=v_as.npy --in starts_q=starts_q.npy --in starts_k=starts_k.npy "
                        "tokens_q=38 --out o=other.npy");
  same_values("o.npy", "other.npy", 3);
  program_gives(0, PLAN "pass=backward " BACKWARD " --out dq=dq.npy --out dv=dv.npy");
  program_result r = program_gives(
      0, PLAN "pass=backward q_layout=packed kv_layout=packed --in q=q_as.npy --in k=k_as.npy "
              "--in v=v_as.npy --in do=do_as.npy --in starts_q=starts_q.npy --in "
              "starts_k=starts_k.npy --out dq=dq2.npy --out dv=dv2.npy --json");
  program_says(r.out, "\"tokens_q\": 38, \"tokens_k\": 74}");
  same_values("dq.npy", "dq2.npy", 3);
  same_values("dv.npy", "dv2.npy", 3);
}

/* Which plan is taken and why; the second time nothing is compiled, and no Lua lists plans. */
TEST(dispatch) {
  static const char words[] =
      "run mask=causal scale=0.125 family=simt " FORWARD " --out o=o.npy -q";
  const program_setup v = {.env = {"FLASHGEN_VERBOSE=dispatch,cache"}};
  const program_setup forced = {.env = {"FLASHGEN_VERBOSE=dispatch", "FLASHGEN_PLAN=simt-q4-*"}};
#define HERE "flashgen: dispatch: b2 h4/2 19x37 attn_fwd-bf16-d40-causal."
  run_case_put(&run_case_usual, "f4");
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

/* Each broadcast of the bias is taken from the file's extents. */
TEST(bias_extents) {
  static const char *const axes[] = {"hqk", "bk", "q", ""};
  static const char *const tags[] = {"bias_hqk", "bias_bk", "bias_q", "bias_1"};
  for (int i = 0; i < 4; i++) {
    run_case c = run_case_usual;
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

TEST(other_dims_and_dtype) {
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

/* No key: o = 0, lse = -inf. No query, no batch: empty files. */
TEST(empty_extents) {
  run_case c = run_case_usual;
  c.bias_axes = NULL;
  for (int i = 0; i < 3; i++) {
    run_case e = c;
    *(i == 0 ? &e.nk : i == 1 ? &e.nq : &e.b) = 0;
    run_case_put(&e, "f4");
    program_gives(0, "run mask=causal scale=0.125 " FORWARD " --out o=o.npy --out lse=lse.npy");
    run_case_judge(&e, "o");
    run_case_judge(&e, "lse");
    program_gives(0, "run pass=backward mask=causal scale=0.125 " BACKWARD " " GRADIENTS);
    run_case_judge_gradients(&e);
  }
}

/* Bounds that a tensor gives, as far from all positions as an i32 can be. */
TEST(far_bounds) {
  static const char *const families[] = {"simt", "mma", "wgmma"};
  static const int32_t first[] = {INT32_MIN, INT32_MIN + 1}, end[] = {INT32_MAX, INT32_MAX};
  const int64_t extent[] = {2};
  run_case c = run_case_usual;
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

/* As the library would: under the causal mask one row sees all keys. */
TEST(mask_hides_nothing) {
  run_case c = run_case_usual;
  c.nq = 1, c.bias_axes = NULL;
  run_case_put(&c, "f4");
  program_result r = program_gives(0, "run mask=causal family=simt scale=0.125 --json " FORWARD
                                      " --out o=o.npy --out lse=lse.npy");
  program_says(r.out, "\"variant\": \"attn_fwd-bf16-d40.simt-");
  run_case_judge(&c, "o");
  run_case_judge(&c, "lse");
}

TEST(large_integers) {
  run_case c = run_case_usual;
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

TEST(seed_and_plan) {
  run_case c = run_case_usual;
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

/* A spec file's table with words over it; results as JSON; what stood in the file is replaced. */
TEST(spec_file_and_json) {
  static const char spec[] = "return { dtype = 'f16', mask = 'full', block_q = 4 }";
  run_case c = run_case_usual;
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

/* With stdin and stdout closed, files are not opened in their place: nothing is printed into them.
 */
TEST(closed_streams) {
  const program_setup closed = {.out = PROGRAM_CLOSED, .closed_stdin = 1};
  run_case c = run_case_usual;
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

TEST(interrupted) {
  const program_setup group = {.group = 1};
  run_case c = run_case_usual;
  run_case_put(&c, "f4");
  program_result r = program_interrupted(&group, NULL, SIGINT, 1,
                                         "run bias=true " FORWARD " --in bias=bias.npy "
                                         "--out o=o.npy --out lse=lse.npy");
  ck_assert_int_eq(r.code, 130);
  ck_assert_str_eq(r.err, "");
  ck_assert_int_eq(scratch_files(), 5 + 2); /* q k v bias do, tmp cache */
}

TEST_FIXTURE(scratch_enter, scratch_leave)
