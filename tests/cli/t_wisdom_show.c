/* t_wisdom_show.c - `flashgen wisdom show` for programs: JSON and CSV that say what the lines of
 * the file say, whatever the kind of kernel and the layout of its sequences. */
#include "scratch.h"
#include "tune_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fg_shape shapes[] = {
    {.b = 5, .h = 2, .hk = 1, .nq = 70, .nk = 70, .align = 16},
    {.b = 5, .h = 2, .hk = 1, .nq = 70, .nk = 70, .tokens_q = 200, .tokens_k = 210, .align = 16},
    {.b = 5, .h = 2, .hk = 1, .nq = 70, .nk = 70, .tokens_q = 200, .tokens_k = 211, .align = 16},
    {.b = 5, .h = 2, .hk = 1, .nq = 70, .nk = 70, .pages = 25, .page = 16, .align = 16},
    {.b = 5, .h = 2, .hk = 1, .nq = 70, .nk = 70, .pages = 10, .page = 64, .align = 2},
    {.b = 5, .h = 2, .hk = 1, .nq = 70, .nk = 70, .pages = 9, .align = 16}, /* caches */
    {.b = 5, .h = 2, .hk = 1, .nq = 70, .nk = 70, .tokens_q = 200, .pages = 25, .page = 16},
    {.rows = 9, .align = 16},
    {.parts = 4, .b = 1, .h = 2, .nq = 5, .align = 16},
    {.b = 3, .h = 4, .hk = 2, .nq = 7, .nk = 40, .positions = 48, .align = 16},
    {.b = 3,
     .h = 4,
     .hk = 2,
     .nq = 7,
     .nk = 40,
     .positions = 48,
     .tokens_q = 21,
     .pages = 15,
     .page = 8,
     .align = 16}};
enum { SHAPES_N = sizeof shapes / sizeof *shapes };

/* Two variants at each shape: one with a time, and one that failed, with a text to be escaped. */
static void put_all(void) {
  for (int i = 0; i < 2 * SHAPES_N; i++) {
    fg_measured m = {.shape = shapes[i / 2], .generation = 1, .when = 1700000000 + i};
    m.status = i % 2 ? FG_MEASURED_WRONG : FG_MEASURED_OK;
    m.ms = i % 2 ? 0 : 0.25 + i, m.verified = i % 2 == 0, m.error = i % 2 ? INFINITY : 0.5;
    if (i % 2) strcpy(m.reason, "it is \"wrong\"; \\ \xe2\x82\xac");
    snprintf(m.name, sizeof m.name, "spec.plan-%d.sm_90a", i % 2);
    strcpy(m.device, "GPU");
    ck_assert_int_eq(fg_wisdom_append("w.txt", &m), FG_OK);
  }
}

TEST(json) {
  put_all();
  program_gives(0, "wisdom show w.txt --all --json=table.json");
  tune_check_json("w.txt", "table.json");
  const char *table = program_text("table.json");
  ck_assert_int_eq(program_count(table, "\"variant\": "), 2 * SHAPES_N);
  program_says(table, "\"shape\": {\"b\": 5, \"h\": 2, \"hk\": 1, \"nq\": 70, \"nk\": 70, "
                      "\"tokens_q\": 200, \"tokens_k\": 210, \"align\": 16}, ");
  program_says(table, "\"shape\": {\"b\": 5, \"h\": 2, \"hk\": 1, \"nq\": 70, \"nk\": 70, "
                      "\"pages\": 25, \"page\": 16, \"align\": 16}, ");
  program_says(table, "\"shape\": {\"rows\": 9, \"align\": 16}, ");
}

/* The check finds what a table lacks or has too much of. */
TEST(check_can_fail) {
  static const char *const spoilt[] = {"s/\"tokens_k\": 211/\"tokens_k\": 210/",
                                       "s/, \"pages\": 25, \"page\": 16//",
                                       "s/\"page\": 64/\"page\": 16/",
                                       "s/{\\(\"b\": 5.*70\\), \"pages.*16}/[\\1]/",
                                       "s/\"parts\": 4, \"b\": 1/\"b\": 1, \"parts\": 4/",
                                       "s/\"ms\": 2.25/\"ms\": 2.5/",
                                       "s/\"rows\": 9/rows=9/",
                                       "s/\"schema\": 2/\"schema\": 1/"};
  char command[1024];
  put_all();
  program_gives(0, "wisdom show w.txt --all --json=table.json");
  for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
    snprintf(command, sizeof command,
             "sed '%s' table.json > bad.json && ! cmp -s table.json bad.json", spoilt[i]);
    ck_assert_msg(system(command) == 0, "%s", spoilt[i]);
    ck_assert_msg(!tune_json_is_right("w.txt", "bad.json"), "%s", spoilt[i]);
  }
}

/* A shape is one field, as the line has it. */
TEST(csv) {
  put_all();
  program_result r = program_gives(0, "wisdom show w.txt --all --csv");
  ck_assert_int_eq(program_count(r.out, "\n"), 1 + 2 * SHAPES_N);
  program_says(r.out, ",\"5,2,1,70,70,tokens_q=200,tokens_k=210,16\",1,ok,");
  program_says(r.out, ",\"5,2,1,70,70,pages=10,page=64,2\",1,ok,");
  program_says(r.out, ",\"parts=4,b=1,h=2,nq=5,16\",1,wrong,");
}

/* The fastest of each shape: shapes that differ in tokens or pages alone are no rivals. */
TEST(fastest_of_each_shape) {
  put_all();
  program_result r = program_gives(0, "wisdom show w.txt");
  program_says(r.out, "b5 h2/1 70x70            spec.plan-0.sm_90a");
  program_says(r.out, "b5 h2/1 70x70 tokens_q=200 tokens_k=210 spec.plan-0.sm_90a");
  program_says(r.out, "b5 h2/1 70x70 pages=25 page=16 spec.plan-0.sm_90a");
  ck_assert_int_eq(program_count(r.out, " ms  ok\n"), SHAPES_N);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
