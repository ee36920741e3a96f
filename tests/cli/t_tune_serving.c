/* t_tune_serving.c - `flashgen tune` and `bench` of packed and paged sequences of many lengths, and
 * what the library then chooses: by totals, whatever bounds it is told. */
#include "cli/lengths.h"
#include "json.h"
#include "reference/npy.h"
#include "scratch.h"
#include "tune_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKED "attn_fwd-bf16-d16-qpacked-kvpacked."
#define PAGED  "attn_fwd-bf16-d16-kvpaged."

static const char specs[] =
    "return { { head_dim = 16, q_layout = 'packed', kv_layout = 'packed' },\n"
    "  { head_dim = 16, kv_layout = 'paged' } }";
static const char shapes[] =
    "return { { b = 5, h = 2, hk = 1, nq = 70, tokens_q = 200, tokens_k = 200 },\n"
    "  { b = 3, h = 2, hk = 1, nq = 1, nk = 90, page = 16, pages = 12 } }";
static const fg_shape packed_shape = {.size = sizeof packed_shape,
                                      .b = 5,
                                      .h = 2,
                                      .hk = 1,
                                      .nq = 70,
                                      .nk = 70,
                                      .tokens_q = 200,
                                      .tokens_k = 200,
                                      .align = 16};
static const fg_shape paged_shape = {.size = sizeof paged_shape,
                                     .b = 3,
                                     .h = 2,
                                     .hk = 1,
                                     .nq = 1,
                                     .nk = 90,
                                     .page = 16,
                                     .pages = 12,
                                     .align = 16};

#define TUNE_SERVING                                                                               \
  "tune specs.lua family=mma block_q=64 --shapes shapes.lua --device host --wisdom w.txt -q"

static program_result tune_serving(void) {
  scratch_put("specs.lua", specs, sizeof specs - 1);
  scratch_put("shapes.lua", shapes, sizeof shapes - 1);
  return program_gives(0, TUNE_SERVING);
}

TEST(round_trip) {
  program_result r = tune_serving();
  program_says(r.out, "b5 h2/1 70x70 tokens_q=200 tokens_k=200 " PACKED "mma-q64-k");
  program_says(r.out, "b3 h2/1 1x90 pages=12 page=16 " PAGED "mma-q64-k");
  program_says(r.out, "\n2 of 2 cells finished, 2 with a best plan; w.txt\n");
  ck_assert_int_eq(tune_count("w.txt").good, 8);
  ck_assert_int_eq(tune_having("w.txt", FG_MEASURED_WRONG, NULL), 0);
  const char *text = program_text("w.txt");
  program_says(text, "\tshape=5,2,1,70,70,tokens_q=200,tokens_k=200,16\t");
  program_says(text, "\tshape=3,2,1,1,90,pages=12,page=16,16\t");
  program_gives(0, "wisdom verify w.txt");
  program_gives(0, TUNE_SERVING " --json=tuned.json");
  tune_check_json("w.txt", "tuned.json");
  program_gives(0, "wisdom show w.txt --all --json=shown.json");
  tune_check_json("w.txt", "shown.json");
  r = program_gives(0, TUNE_SERVING);
  ck_assert_int_eq(program_count(r.out, " 4 known\n"), 2);
  program_gives(0, "report w.txt -o w.html");
  program_page_says(program_text("w.html"), "b5 h2/1 70×70 tokens_q=200 tokens_k=200");
}

/* Makes a plan of the spec that is not this one by far the fastest in the file. */
static void plant(const char *spec, const char *other, char name[FG_NAME_MAX]) {
  fg_measured_list list = tune_list("w.txt");
  int last = -1;
  for (int i = 0; i < list.n; i++)
    if (!strncmp(list.item[i]->name, spec, strlen(spec)) && strcmp(list.item[i]->name, other))
      last = i;
  ck_assert_int_ge(last, 0);
  fg_measured m = *list.item[last];
  m.status = FG_MEASURED_OK, m.verified = true, m.ms = 1e-6, m.when++;
  strcpy(name, m.name);
  fg_measured_free(&list);
  ck_assert_int_eq(fg_wisdom_append("w.txt", &m), FG_OK);
}

/* What the library takes for the spec at the shape, going by the file. */
static const char *taken(const fg_spec *spec, const fg_shape *shape) {
  static const char *const files[] = {"w.txt"};
  static char name[FG_NAME_MAX];
  fg_config config = FG_INIT(fg_config, .device = "host", .cache = "cache/flashgen", .n_wisdom = 1,
                             .wisdom = files);
  fg_info info = FG_INIT(fg_info);
  fg_context *context;
  fg_kernel *kernel;
  fg_op *op;
  ck_assert_int_eq(fg_open(&config, &context), FG_OK);
  ck_assert_int_eq(fg_define(context, spec, &op), FG_OK);
  ck_assert_msg(fg_select(op, shape, NULL, &kernel) == FG_OK, "%s", fg_error());
  ck_assert_int_eq(fg_kernel_info(kernel, &info), FG_OK);
  snprintf(name, sizeof name, "%s", info.name);
  fg_close(context);
  return name;
}

/* Bounds of packed sequences may be wrong, or not known; tables may be wider than the pool. */
TEST(library_goes_by_totals) {
  const fg_spec packed = FG_INIT(fg_spec, .head_dim = "16", .q_layout = "packed",
                                 .kv_layout = "packed", .family = "mma", .block_q = "64");
  const fg_spec paged =
      FG_INIT(fg_spec, .head_dim = "16", .kv_layout = "paged", .family = "mma", .block_q = "64");
  char name[FG_NAME_MAX];
  tune_serving();
  fg_shape far = packed_shape, s = packed_shape;
  far.tokens_q = far.tokens_k = 20000;
  plant(PACKED, taken(&packed, &far), name);
  ck_assert_str_ne(taken(&packed, &far), name);
  ck_assert_str_eq(taken(&packed, &s), name);
  s.nq = s.nk = 0;
  ck_assert_str_eq(taken(&packed, &s), name);
  s.nq = s.nk = 1 << 29, s.tokens_q = 210;
  ck_assert_str_eq(taken(&packed, &s), name);
  far = s = paged_shape;
  far.nk = 4000, far.pages = 100000;
  plant(PAGED, taken(&paged, &far), name);
  ck_assert_str_ne(taken(&paged, &far), name);
  ck_assert_str_eq(taken(&paged, &s), name);
  s.nk = 4000;
  ck_assert_str_eq(taken(&paged, &s), name);
}

/* ---- what a launch has to do ---- */

/* Field i of the second line of a table. */
static double field(const char *table, int i) {
  const char *at = strchr(table, '\n');
  for (; at && i >= 0; i--) at = strchr(at + 1, ',');
  ck_assert_ptr_nonnull(at);
  return strtod(at + 1, NULL);
}

TEST(operations_and_bytes) {
  cli_lengths l;
  double pairs = 0, keys = 0;
  ck_assert_int_eq(cli_lengths_new((fg_layout){FG_PACKED, FG_PACKED, 0, 0, 0}, &packed_shape, &l),
                   FG_OK);
  for (int i = 0; i < l.n; i++) pairs += (double)l.q[i] * (double)(l.q[i] + 1) / 2;
  cli_lengths_free(&l);
  program_result r = program_gives(
      0, "bench head_dim=16 mask=causal family=mma q_layout=packed kv_layout=packed b=5 h=2 hk=1 "
         "nq=70 tokens_q=200 --device host --csv");
  program_says(r.out, "name,b,h,hk,nq,nk,tokens_q,tokens_k,ms,tflops,tb_per_s\n");
  program_says(r.out, ",5,2,1,70,70,200,200,");
  const double flops = field(r.out, 7) * 1e9 * field(r.out, 8);
  ck_assert_double_eq_tol(flops, 2 * 32 * pairs * 2, 1e-4 * flops);

  ck_assert_int_eq(cli_lengths_new((fg_layout){FG_DENSE, FG_PAGED, 0, 0, 0}, &paged_shape, &l),
                   FG_OK);
  for (int i = 0; i < l.n; i++) keys += (double)l.k[i];
  cli_lengths_free(&l);
  r = program_gives(0, "bench head_dim=16 family=mma kv_layout=paged b=3 h=2 hk=1 nq=1 nk=90 "
                       "page=16 pages=12 --device host --csv");
  program_says(r.out, ",3,2,1,1,90,12,16,");
  const double bytes = field(r.out, 7) * 1e9 * field(r.out, 9);
  const double rows = 2 * 6 * 16 * 2 + 6 * 4, places = 4 * (3 + 3 + 3 * 6); /* q, o, lse; i32 */
  ck_assert_double_eq_tol(bytes, keys * 16 * 2 * 2 + rows + places, 1e-4 * bytes);
}

/* A row's shape is the same object as in tables of wisdom. */
TEST(shapes_in_json) {
  program_result r = program_gives(
      0, "bench head_dim=16 family=mma q_layout=packed kv_layout=paged b=3 h=2 hk=1 nq=40 "
         "page=8 --device host --json");
  json_whole(r.out);
  program_says(r.out, "{\"schema\": 2, \"device\": \"host\", \"model\": \"host\", \"rows\": [\n");
  program_says(r.out, "\"shape\": {\"b\": 3, \"h\": 2, \"hk\": 1, \"nq\": 40, \"nk\": 40, "
                      "\"tokens_q\": 120, \"pages\": 15, \"page\": 8}, \"ms\": ");
}

/* What words leave out: sequences as long as each other, pages of 16 for all keys. */
TEST(words_leave_out) {
  program_result r = program_gives(0, "bench head_dim=16 family=mma q_layout=packed "
                                      "kv_layout=packed b=3 h=1 nq=40 --device host --csv");
  program_says(r.out, ",3,1,1,40,40,120,120,");
  r = program_gives(0, "bench head_dim=16 family=mma q_layout=packed kv_layout=packed b=3 h=1 "
                       "tokens_q=100 --device host --csv");
  program_says(r.out, ",3,1,1,34,34,100,100,");
  r = program_gives(0, "bench head_dim=16 family=mma kv_layout=paged b=3 h=1 nq=1 nk=40 --device "
                       "host --csv");
  program_says(r.out, ",3,1,1,1,40,9,16,");
  r = program_gives(2, "bench head_dim=16 kv_layout=paged tokens_q=40 --device host");
  program_says(r.err, "tokens_q: a spec with q_layout=dense, kv_layout=paged, slices=false has no "
                      "such extent\n");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
TEST_TIMEOUT(120)
