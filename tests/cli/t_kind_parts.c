/* t_kind_parts.c - kinds of kernels beside attention, combining of parts and appending to a cache,
 * through every command and through the C API. */
#include "api_case.h"
#include "program.h"
#include "reference/npy.h"
#include "run_case.h"
#include "scratch.h"

#include <math.h>
#include <string.h>

/* Commands --------------------------------------------------------------------------------------
 */

/* Combine has widths, a normaliser and an extent of its own. */
#define COMBINE "kernel=combine head_dim=64 "
#define PLAN    "combine-bf16-d64.simt-q16-w4"

TEST(combine_commands) {
  program_result r = program_gives(0, "list kernel=combine head_dim=64,192/64,128 "
                                      "parts_dtype=f32,spec --arch host");
  ck_assert_str_eq(r.out, PLAN ".host\ncombine-bf16-d64-partsspec.simt-q16-w4.host\n"
                               "combine-bf16-d128.simt-q8-w4.host\n"
                               "combine-bf16-d128-partsspec.simt-q8-w4.host\n");
  r = program_gives(0, "emit " PLAN ".sm_90a");
  program_says(r.out, "// spec:   kernel=combine head_dim=64\n");
  program_says(r.out, "int parts, b, h, nq;");
  r = program_gives(0, "check " COMBINE "dtype=bf16,f16 --plans all --device host");
  program_says(r.out, "\n6 variants, 36 cases, seed ");
  program_says(r.out, ": 0 failed, 0 wrong\n");
  r = program_gives(0, "bench " COMBINE "parts=3 h=2 nq=5 --device host --csv");
  program_says(r.out, "name,b,h,nq,parts,ms,tflops,tb_per_s\n" PLAN ".host,1,2,5,3,");
  program_refuses(2, "parts = 0: expected 1 to 256", "check " COMBINE "parts=0 --device host");
  program_refuses(2, "parts = 257: expected 1 to 256", "check " COMBINE "parts=257 --device host");
  program_refuses(2, "parts: kernel=attention has no such extent",
                  "check head_dim=64 parts=3 --device host");
  program_refuses(2, "nk: kernel=combine has no such extent", "check " COMBINE "nk=3");
  program_refuses(2, "pass: no kernel of the spec has such a field",
                  "list " COMBINE "pass=backward");
  program_refuses(2, "parts_dtype: no kernel of the spec has such a field",
                  "list head_dim=64 parts_dtype=spec");
  /* the former name of a plan field of attention */
  program_gives(0, "check head_dim=16 pass=backward family=mma parts=2 block_q=32 block_kv=32 "
                   "nq=40 nk=50 --device host");
}

TEST(combine_tune_and_build) {
  const char shapes[] = "return { { parts = 5, h = 2, nq = 9 }, { h = 2, nq = 3 } }";
  scratch_put("shapes.lua", shapes, strlen(shapes));
  program_result r =
      program_gives(0, "tune " COMBINE "--shapes shapes.lua --device host --wisdom w.txt");
  program_says(r.out, "5 parts b1 h2 9 ");
  program_says(r.out, "1 of 1 cell finished, 1 with a best plan; w.txt\n");
  program_says(program_text("w.txt"), "\tshape=parts=5,b=1,h=2,nq=9,16\t");
  program_gives(0, "wisdom verify w.txt");
  program_gives(0, "report w.txt -o w.html");
  program_page_says(program_text("w.html"), "<p>A shape of combine reads 8 parts b4 h32 1024: ");
  r = program_gives(0, "build " COMBINE "--arch host -o zoo -q");
  program_says(r.out, "zoo: 1 variant: 1 made, 0 kept, 0 failed, 0 removed\n");
  program_says(program_text("zoo/manifest.txt"), "\nkernel combine\nhead_dim 64\nalign 2\n");
  program_says(program_text("zoo/manifest.txt"), "\ntensor o_parts in f32 [parts, b, nq, h, 64]\n");
  program_gives(0, "build " COMBINE "--arch host -o zoo -q");
}

/* Two parts of one row of 8 columns, the second with 3 times the weight; the other row has none. */
TEST(combine_run) {
  float o[2 * 2 * 8], lse[4] = {0, -INFINITY, 1.0986123f, -INFINITY};
  const int64_t o_extent[] = {2, 1, 2, 1, 8}, lse_extent[] = {2, 1, 1, 2};
  char *staged;
  for (int i = 0; i < 32; i++) o[i] = i / 8 % 2 ? NAN : i < 16 ? 4 : 8;
  GOOD(fg_npy_stage("o.npy", 5, o_extent, o, &staged));
  GOOD(fg_npy_publish(staged, "o.npy"));
  GOOD(fg_npy_stage("lse.npy", 4, lse_extent, lse, &staged));
  GOOD(fg_npy_publish(staged, "lse.npy"));
#define RUN "run kernel=combine --in o_parts=o.npy --in lse_parts=lse.npy --out o=out.npy "
  program_result r = program_gives(0, RUN "--out lse=sum.npy --device host");
  program_says(r.err, ".host: parts=2 b=1 h=1 nq=2\no -> out.npy\nlse -> sum.npy\n");
  fg_array file;
  GOOD(fg_npy_read("o", "out.npy", &file));
  ck_assert(file.rank == 4 && file.extent[1] == 2 && file.extent[3] == 8);
  for (int i = 0; i < 16; i++) ck_assert_double_eq_tol((double)file.real[i], i < 8 ? 7 : 0, 0.01);
  fg_array_free(&file);
  GOOD(fg_npy_read("lse", "sum.npy", &file));
  ck_assert_double_eq_tol((double)file.real[0], log(4), 1e-4);
  ck_assert(isinf(file.real[1]) && file.real[1] < 0);
  fg_array_free(&file);
  program_refuses(2, "o_parts has v head dim 8, but head_dim is 16", RUN "head_dim=16");
  program_refuses(2, "o_parts: its parts (axis 0) is 2, but the command line has 3", RUN "parts=3");
}

/* Append has layouts, fields that count beside others, and outputs that are kept. */
#define APPEND "kernel=append head_dim=64 kv_layout=paged "

TEST(append_commands) {
  program_result r = program_gives(0, "list " APPEND "q_layout=dense,packed --arch host");
  ck_assert_str_eq(r.out, "append-bf16-d64-kvpaged.simt-q4-w4.host\n"
                          "append-bf16-d64-qpacked-kvpaged.simt-q4-w4.host\n");
  r = program_gives(0, "list " APPEND "rotary=none,halves rotary_dim=0,16,64 rotary_dtype=f32");
  ck_assert_int_eq(program_count(r.out, "\n"), 3); /* 64 is all, and none has no other fields */
  program_says(r.out, "append-bf16-d64-kvpaged-halves-rotaryf32.simt-q4-w4.");
  program_says(r.out, "append-bf16-d64-kvpaged-halves-r16-rotaryf32.simt-q4-w4.");
  r = program_gives(0, "emit append-bf16-d64v32-qpacked-kvcached-halves-r16.simt-q4-w4.sm_90a");
  program_says(r.out, "int b, h, hk, nq, nk, positions, tokens_q, pages;");
  program_says(r.out, "const u16 *rotary_cos; // [positions, 8] bf16");
  r = program_gives(0, "emit --recipe " APPEND "rotary=halves --arch sm_90a");
  program_says(r.out, "kernel append\nlayout dense paged\nhead_dim 64 64 32\n");
  program_says(r.out, "\ntensor k inout bf16 [pages, page, hk, 64]\n");
  r = program_gives(0, "check " APPEND "rotary=halves --plans all --device host --seed 2");
  program_says(r.out, "  q_out ");
  program_says(r.out, "\n2 variants, 14 cases, seed 2: 0 failed, 0 wrong\n");
  r = program_gives(0, "bench " APPEND "rotary=halves q_layout=packed --device host --csv");
  program_says(r.out, "\nappend-bf16-d64-qpacked-kvpaged-halves.simt-q4-w4.host,");
  program_refuses(2,
                  "append-bf16-d64: no plan fits: 0 candidates, none within the restrictions; "
                  "wgmma: has no forward pass; mma: has no forward pass; decode: has no forward "
                  "pass; simt: kv_layout=dense "
                  "is no cache: give cached or paged",
                  "list kernel=append head_dim=64");
  program_refuses(2,
                  "append-bf16-d64-kvpaged-halves-r96: no plan fits: 0 candidates, none within "
                  "the restrictions; wgmma: has no forward pass; mma: has no forward pass; "
                  "decode: has no forward pass; simt: rotary_dim=96 is more than the head dim, 64",
                  "list " APPEND "rotary=halves rotary_dim=96");
  program_refuses(2, "mask: no kernel of the spec has such a field", "list " APPEND "mask=causal");
}

static void put_floats(const char *path, int rank, const int64_t *extent, float first, float step) {
  float values[256];
  int64_t n = 1;
  char *staged;
  for (int a = 0; a < rank; a++) n *= extent[a];
  for (int64_t i = 0; i < n; i++) values[i] = first + step * (float)(i / 8);
  GOOD(fg_npy_stage(path, rank, extent, values, &staged));
  GOOD(fg_npy_publish(staged, path));
}

/* Two sequences of one and two new tokens into pages of 2; the last one has no page. */
TEST(append_run) {
  const int32_t starts[] = {0, 1, 3}, used[] = {1, 3}, table[] = {2, -1, 0, 3};
  const int64_t cache[] = {4, 2, 1, 8}, fresh[] = {3, 1, 8}, angles[] = {4, 4};
  put_floats("k.npy", 4, cache, 100, 0);
  put_floats("v.npy", 4, cache, 200, 0);
  put_floats("k_new.npy", 3, fresh, 1, 1);
  put_floats("v_new.npy", 3, fresh, 11, 1);
  put_floats("cos.npy", 2, angles, 0, 0);
  put_floats("sin.npy", 2, angles, 1, 0);
  run_case_file("starts.npy", "<i4", "False", 1, (int64_t[]){3}, starts, sizeof starts);
  run_case_file("used.npy", "<i4", "False", 1, (int64_t[]){2}, used, sizeof used);
  run_case_file("table.npy", "<i4", "False", 2, (int64_t[]){2, 2}, table, sizeof table);
#define APPEND_RUN                                                                                 \
  "run kernel=append q_layout=packed kv_layout=paged rotary=halves --in k=k.npy --in v=v.npy "     \
  "--in k_new=k_new.npy --in v_new=v_new.npy --in rotary_cos=cos.npy --in rotary_sin=sin.npy "     \
  "--in used_k=used.npy --in table=table.npy --out k=k2.npy --out v=v2.npy --device host "
  program_result r = program_gives(0, APPEND_RUN "--in starts_q=starts.npy");
  program_says(r.err, ": b=2 h=1 hk=1 nq=3 nk=4 positions=4 tokens_q=3 pages=4 page=2\n");
  fg_array k, v;
  GOOD(fg_npy_read("k", "k2.npy", &k));
  GOOD(fg_npy_read("v", "v2.npy", &v));
  for (int i = 0; i < 64; i++) {
    const int slot = i / 8; /* page * 2 + place: the first token goes to 5, the second to 7 */
    const double sign = i % 8 < 4 ? -1 : 1;
    ck_assert_double_eq((double)k.real[i], slot == 5 ? sign : slot == 7 ? 2 * sign : 100);
    ck_assert_double_eq((double)v.real[i], slot == 5 ? 11 : slot == 7 ? 12 : 200);
  }
  fg_array_free(&k), fg_array_free(&v);
  program_refuses(2, "starts_q is missing: give --in starts_q=FILE.npy", APPEND_RUN);
  program_refuses(2, "starts_q: k.npy holds floats (f4); expected i4 or i8",
                  APPEND_RUN "--in starts_q=k.npy");
  program_refuses(2, "k: k_new.npy has 3 axes; expected [pages, page, hk, d]",
                  "run kernel=append kv_layout=paged --in k=k_new.npy --out k=k2.npy");
  /* packed sequences of attention: one token, and two */
  program_gives(0, "run q_layout=packed kv_layout=packed --in q=k_new.npy --in k=k_new.npy "
                   "--in v=v_new.npy --in starts_q=starts.npy --in starts_k=starts.npy "
                   "--out o=o.npy --device host family=simt mask=causal");
  GOOD(fg_npy_read("o", "o.npy", &v));
  ck_assert(v.rank == 3 && v.extent[0] == 3 && v.extent[2] == 8);
  ck_assert_double_eq((double)v.real[0], 11); /* the first token of each sees itself */
  ck_assert_double_eq((double)v.real[8], 12);
  fg_array_free(&v);
}

TEST(append_build) {
  program_result r = program_gives(0, "build " APPEND "rotary=halves --arch host -o zoo -q");
  program_says(r.out, "zoo: 1 variant: 1 made, 0 kept, 0 failed, 0 removed\n");
  r = program_gives(0, "build " APPEND "rotary=halves --arch host -o zoo -q");
  program_says(r.out, "zoo is up to date: 1 variant, nothing to do\n");
  program_gives(0, "cache verify");
}

/* The library ------------------------------------------------------------------------------------
 */

TEST(api_combine) {
  const fg_shape parts = {.size = sizeof parts, .b = 2, .h = 3, .nq = 5, .parts = 4};
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, COMBINE "dtype=f16");
  ck_assert_ptr_eq(op, api_define(context, "kernel=combine head_dim=192/64 dtype=f16"));
  fg_kernel *kernel = api_select(op, parts), *got = NULL;
  for (int layout = 0; layout < 2; layout++)
    api_verify(kernel, (api_layout)layout, &(verify_case){.shape = parts, .seed = 3});
  fg_shape wrong = parts;
  wrong.parts = 0;
  FAILS(FG_EARGUMENT, "parts = 0: expected 1 to 256", fg_select(op, &wrong, NULL, &got));
  ck_assert_uint_eq(fg_workspace_bytes(kernel, &wrong), 0);
  fg_problem *problem = api_problem(kernel, parts, 1);
  problem->args.lse_parts.data = NULL;
  FAILS(FG_EARGUMENT, "lse_parts is missing", api_launch(kernel, problem));
  api_untouched(problem);
  fg_problem_free(problem);
  fg_close(context);
}

TEST(api_append) {
  fg_shape rows = {.size = sizeof rows, .b = 3, .h = 4, .hk = 2, .nq = 5, .nk = 30};
  rows.page = 4, rows.pages = 30, rows.positions = 40;
  fg_context *context = api_open("cache");
  fg_kernel *kernel = api_select(api_define(context, APPEND "rotary=halves dtype=f16"), rows);
  for (int layout = 0; layout < 2; layout++)
    for (uint64_t seed = 2; seed < 4; seed++)
      api_verify(kernel, (api_layout)layout, &(verify_case){.shape = rows, .seed = seed});
  ck_assert_uint_eq(fg_workspace_bytes(kernel, &rows), 0);
  fg_close(context);
}

TEST_FIXTURE(api_enter, api_leave)
