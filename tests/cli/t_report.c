/* t_report.c - `flashgen report`: its numbers, its markup, and files that are bad or hostile. */
#include "expand/expand.h"
#include "scratch.h"
#include "tune_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define H200  FLASHGEN_SOURCE "/specs/wisdom/h200.txt"
#define CHECK PYTHON " -B " FLASHGEN_SOURCE "/tests/report_page.py "

/* Is the page whole, and does it agree with `wisdom show` of the same file? */
static void check_page(const char *page, const char *wisdom) {
  char command[1024];
  program_gives(0, "wisdom show %s --all --json=table.json", wisdom);
  snprintf(command, sizeof command, CHECK "%s table.json > check.out 2>&1", page);
  ck_assert_msg(system(command) == 0, "%s", program_text("check.out"));
}

/* A measurement of the file at a shape, whose align is 16. */
static void put_at(const fg_shape *shape, const char *name, const char *device,
                   fg_measured_status status, double ms, const char *reason) {
  fg_measured m = {.shape = *shape,
                   .generation = 1,
                   .status = status,
                   .ms = ms,
                   .verified = status == FG_MEASURED_OK,
                   .registers = 99,
                   .compile = 0.5,
                   .when = 1700000000};
  snprintf(m.name, sizeof m.name, "%s", name);
  snprintf(m.device, sizeof m.device, "%s", device);
  snprintf(m.reason, sizeof m.reason, "%s", reason);
  m.shape.align = 16;
  ck_assert_int_eq(fg_wisdom_append("w.txt", &m), FG_OK);
}

/* One of nq rows and keys. */
static void put(const char *name, const char *device, int64_t nq, fg_measured_status status,
                double ms, const char *reason) {
  const fg_shape shape = {.b = 1, .h = 4, .hk = 2, .nq = nq, .nk = nq};
  put_at(&shape, name, device, status, ms, reason);
}

#define D64(plan) "attn_fwd-bf16-d64." plan ".sm_90a"

/* Numbers ---------------------------------------------------------------------------------- */

/* All that is shipped; without a name of a file, too. */
TEST(shipped) {
  struct stat info;
  program_result r = program_gives(0, "report " H200 " -o page.html");
  ck_assert_str_eq(r.out, "");
  ck_assert_str_eq(r.err, "");
  check_page("page.html", H200);
  ck_assert_msg(strstr(program_text("check.out"), " 0 rates") == NULL, "%s",
                program_text("check.out"));
  ck_assert_int_eq(stat("page.html", &info), 0);
  ck_assert_int_lt(info.st_size, 2 << 20);
  ck_assert_int_eq(scratch_files(), 4); /* no temporary; table.json, check.out, tmp */
  ck_assert_int_eq(
      system(FLASHGEN_PROGRAM " report " H200 " > again.html && cmp page.html again.html"), 0);
  program_gives(0, "report -o own.html");
  check_page("own.html", "");
  program_page_says(program_text("own.html"), "the wisdom that comes with flashgen, measured 20");
}

/* Of three shapes the second is held out: by the other two the first plan is taken, which is not
 * the fastest there. */
TEST(regret) {
  static const double ms[3][2] = {{1, 2}, {1.21, 1.1}, {1.5, 1.6}};
  fg_gen *gen;
  fg_plan *plan;
  fg_variant v;
  fg_recipe recipe;
  int n;
  ck_assert_int_eq(fg_gen_new("", &gen), FG_OK);
  ck_assert_ptr_nonnull(fg_point_parse("attn_fwd-bf16-d64", &v.point));
  strcpy(v.arch, "sm_90a");
  ck_assert_int_eq(fg_gen_plans(gen, &v.point, v.arch, NULL, &plan, &n), FG_OK);
  ck_assert_int_ge(n, 2);
  for (int p = 0; p < 2; p++)
    for (int s = 0; s < 3; s++) {
      const int64_t nq = 1024 + 256 * s;
      fg_measured m = {.shape = {.b = 1, .h = 4, .hk = 4, .nq = nq, .nk = nq, .align = 16},
                       .ms = ms[s][p],
                       .verified = true};
      v.plan = plan[p];
      ck_assert_int_eq(fg_gen_recipe(gen, &v, &recipe), FG_OK);
      m.multiprocessors = 132, m.generation = recipe.generation;
      fg_variant_name(&v, sizeof m.name, m.name);
      strcpy(m.device, "GPU");
      ck_assert_int_eq(fg_wisdom_append("w.txt", &m), FG_OK);
    }
  free(plan);
  fg_gen_free(gen);
  program_gives(0, "report w.txt -o page.html");
  check_page("page.html", "w.txt");
  char *page = program_text("page.html");
  program_page_says(page, "<tr class=\"sum\"><td class=\"l\">all</td><td>1</td>"
                          "<td>0</td><td>1.100</td><td>1.100</td>");
  program_page_says(page, "b1 h4/4 1280×1280: 1.100 by wisdom");
}

/* What tune writes on the host device, whose rates nobody knows. */
TEST(host_device) {
  program_gives(0, TUNE "-q --wisdom w.txt");
  program_gives(0, "report w.txt -o page.html");
  check_page("page.html", "w.txt");
  char *page = program_text("page.html");
  program_page_says(page, "What this device reaches at most is not known: there is no roof.");
  program_page_says(page, "None: all 8 measurements have a time.");
  program_page_says(page, ">mma forward</td>");
}

/* Of two generations of a plan the newer one counts, also if it is slower; plans of other families
 * are rivals whatever theirs. */
TEST(generations) {
  put(D64("mma-q64-k64-s1-w4"), "GPU", 64, FG_MEASURED_OK, 3, "");
  put(D64("mma-q64-k32-s1-w4"), "GPU", 64, FG_MEASURED_OK, 2, "");
  fg_measured m = {.shape = {.b = 1, .h = 4, .hk = 2, .nq = 64, .nk = 64, .align = 16},
                   .generation = 2,
                   .verified = true,
                   .ms = 4};
  strcpy(m.name, D64("mma-q64-k32-s1-w4"));
  strcpy(m.device, "GPU");
  ck_assert_int_eq(fg_wisdom_append("w.txt", &m), FG_OK);
  program_gives(0, "report w.txt -o page.html");
  check_page("page.html", "w.txt");
  program_page_says(program_text("page.html"),
                    "<td class=\"l name\">mma-q64-k64-s1-w4</td><td>3.0000</td>");
  program_result r = program_gives(0, "wisdom show w.txt");
  program_says(r.out, "mma-q64-k64-s1-w4.sm_90a");
  program_says(r.out, "3.0000 ms  ok, the next is 1.333 times\n1 of 3 measurements\n");
}

/* Layouts ---------------------------------------------------------------------------------- */

/* Plan 0 of a spec is the fastest at the shape, or plan 1. */
static void race(const char *spec, const fg_shape *shape, int fastest) {
  static const char *const plans[] = {"mma-q64-k64-s1-w4", "mma-q64-k32-s1-w4"};
  for (int p = 0; p < 2; p++) {
    char name[FG_NAME_MAX];
    snprintf(name, sizeof name, "%s.%s.sm_90a", spec, plans[p]);
    put_at(shape, name, "NVIDIA H200", FG_MEASURED_OK, p == fastest ? 0.5 : 0.75, "");
  }
}

/* Shapes with the same heads, rows and keys, in each layout; the second one of each pair has
 * another fastest plan. */
static void put_layouts(void) {
  fg_shape s = {.b = 8, .h = 4, .hk = 2, .nq = 512, .nk = 512};
  race("attn_fwd-bf16-d64-causal", &s, 0);
  race("attn_fwd-bf16-d64-causal-kvcached", &s, 0);
  s.pages = 9; /* caches */
  race("attn_fwd-bf16-d64-causal-kvcached", &s, 1);
  s.pages = 8 * 32, s.page = 16;
  race("attn_fwd-bf16-d64-causal-kvpaged", &s, 0);
  s.pages = 8 * 8, s.page = 64;
  race("attn_fwd-bf16-d64-causal-kvpaged", &s, 1);
  s.pages = 40; /* fewer than 8 sequences of 512 keys need */
  race("attn_fwd-bf16-d64-causal-kvpaged", &s, 0);
  s.pages = s.page = 0, s.tokens_q = s.tokens_k = 8 * 512;
  race("attn_fwd-bf16-d64-causal-qpacked-kvpacked", &s, 0);
  s.tokens_q = s.tokens_k = 2048;
  race("attn_fwd-bf16-d64-causal-qpacked-kvpacked", &s, 1);
  const fg_shape rows = {.rows = 9}, append = {.b = 3,
                                               .h = 4,
                                               .hk = 2,
                                               .nq = 7,
                                               .nk = 40,
                                               .positions = 48,
                                               .page = 8,
                                               .pages = 15};
  race("logsoftmax_fwd-bf16-w8", &rows, 0);
  race("append-bf16-d64-kvpaged", &append, 0);
}

TEST(layouts) {
  put_layouts();
  program_gives(0, "report w.txt -o page.html");
  check_page("page.html", "w.txt");
  ck_assert_msg(strstr(program_text("check.out"), ", 20 cells of maps, 10 rows, 6 rates") != NULL,
                "%s", program_text("check.out"));
  char *page = program_text("page.html");
  program_page_says(page, "Packed sequences have tokens_q and tokens_k tokens in all");
  program_page_says(page, ">4 on 2 heads, packed</text>");
  program_page_says(page, ">4 on 2 heads, packed, many lengths</text>");
  program_page_says(page, ">4 on 2 heads, pool of caches</text>");
  program_page_says(page, ">4 on 2 heads, pages of 16</text>");
  program_page_says(page, ">4 on 2 heads, 512 rows, pages of 64, many lengths</text>");
  program_page_says(page, "b8 h4/2 512×512 tokens_q=2048 tokens_k=2048: mma-q64-k32-s1-w4, 0.5 ms");
  program_page_says(page, "<td class=\"l\">forward, rows = keys</td><td>1</td>");
  program_page_says(page, "<td class=\"l\">forward, packed, rows = keys</td><td>2</td>");
  program_page_says(page, "<td class=\"l\">forward, paged, other lengths</td><td>1</td>");
}

/* Without them nothing is said of them. */
TEST(no_layouts) {
  put(D64("mma-q64-k64-s1-w4"), "GPU", 64, FG_MEASURED_OK, 3, "");
  program_gives(0, "report w.txt -o page.html");
  ck_assert_ptr_null(strstr(program_text("page.html"), "tokens_q"));
}

/* Faults ----------------------------------------------------------------------------------- */

/* Plans that failed, in each way, with their reasons; two devices; a name of nothing. */
TEST(failures) {
  put(D64("mma-q64-k64-s1-w4"), "GPU A", 64, FG_MEASURED_OK, 1, "");
  put(D64("mma-q64-k32-s1-w4"), "GPU A", 64, FG_MEASURED_WRONG, 0.5, "o is 7 times the error");
  put(D64("mma-q64-k32-s2-w4"), "GPU A", 64, FG_MEASURED_REFUSED, 0, "it spills 8 bytes");
  put(D64("mma-q64-k32-s2-w4"), "GPU A", 128, FG_MEASURED_REFUSED, 0, "it spills 8 bytes");
  put(D64("mma-q64-k64-s2-w4"), "GPU A", 64, FG_MEASURED_FAULT, 0, "");
  put("of.no.spec", "GPU B", 64, FG_MEASURED_OK, 1, "");
  program_gives(0, "report w.txt -o page.html");
  check_page("page.html", "w.txt");
  char *page = program_text("page.html");
  program_page_says(
      page, "<p>4 of 6 measurements: 1 with wrong numbers, 2 refused, 1 broke at launch.</p>");
  program_page_says(page, "o is 7 times the error</td>");
  program_page_says(
      page, "it spills 8 bytes</td><td class=\"l wrap\">b1 h4/2 64×64, b1 h4/2 128×128</td>");
  program_page_says(page, "no reason is given</td>");
  program_page_says(page, "<h1>Kernels on GPU A, GPU B</h1>");
  program_page_says(page, "no spec of this flashgen");
  program_page_says(page, "There is nothing to hold out");
}

/* Texts of a file are texts on the page. */
TEST(hostile_texts) {
  put("<script>alert(1)</script>&amp;.a\"b.'c'", "\"><img src=x onerror=alert(1)>", 64,
      FG_MEASURED_OK, 1, "");
  put("x.<b>y</b>.z", "]]><!--", 64, FG_MEASURED_WRONG, 0, "\x7f\xff\xc0\x80 <i> & \xe2\x82\xac");
  fg_measured m = {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 5, .nk = 5, .align = 16},
                   .generation = 1,
                   .ms = 1,
                   .verified = true};
  strcpy(m.name, "attn_fwd-bf16-d64-mask_0123456789abcdef.mma-q64-k64-s1-w4.sm_90a");
  strcpy(m.device, "d");
  strcpy(m.expression, "mask=<svg onload=alert(1)>");
  ck_assert_int_eq(fg_wisdom_append("w.txt", &m), FG_OK);
  ck_assert_int_eq(rename("w.txt", "<w>&.txt"), 0);
  ck_assert_int_eq(system(FLASHGEN_PROGRAM " report '<w>&.txt' -o page.html"), 0);
  ck_assert_int_eq(rename("<w>&.txt", "w.txt"), 0);
  check_page("page.html", "w.txt"); /* no element and no attribute that is not its own */
  char *page = program_text("page.html");
  program_page_says(page, "&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;");
  program_page_says(page, "&quot;&gt;&lt;img src=x onerror=alert(1)&gt;");
  program_page_says(
      page, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd &lt;i&gt; &amp; \xe2\x82\xac");
  program_page_says(page, "mask=&lt;svg onload=alert(1)&gt;");
  program_page_says(page, "&lt;w&gt;&amp;.txt");
}

/* Whatever numbers good lines hold, the page is whole and says what they say. */
TEST(any_numbers) {
  static const double times[] = {0, -1, NAN, INFINITY, 1e-300, 1e-9, 0.5, 3, 9.9e6, 1e7};
  static const int64_t lengths[] = {0, 1, 7, 100, 4096, (1 << 30) - 1, 1 << 30, 99999999999999999};
  fg_measured_list list = tune_list(H200);
  uint64_t state = 7;
  for (int i = 0; i < 400; i++) {
    fg_measured m = *list.item[i * 977 % list.n];
    uint32_t r[12];
    for (int k = 0; k < 12; k++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      r[k] = (uint32_t)(state >> 33);
    }
    m.ms = times[r[0] % 10], m.compile = times[r[1] % 10], m.error = times[r[2] % 10];
    m.shape.nq = lengths[r[3] % 8], m.shape.nk = lengths[r[4] % 8], m.shape.b = r[5] % 3;
    m.shape.hk = lengths[r[6] % 3], m.shape.align = r[7] % 3 * 8;
    if (i % 2) m.shape.tokens_q = lengths[r[0] / 16 % 8], m.shape.tokens_k = lengths[r[1] / 16 % 8];
    if (i % 3) m.shape.pages = lengths[r[2] / 16 % 8], m.shape.page = lengths[r[3] / 16 % 8];
    if (i % 5 > 1)
      snprintf(m.name, sizeof m.name, "attn_fwd-bf16-d64-causal%s-kv%s.mma-q64-k64-s1-w4.sm_90a",
               i % 2 ? "-qpacked" : "",
               i % 3   ? "paged"
               : i % 2 ? "packed"
                       : "cached");
    m.generation = 1 + (int)(r[8] % 3), m.status = r[9] % FG_MEASURED_KINDS;
    m.registers = (int)(r[10] % (1u << 30)), m.spill = (int)(r[10] % 2), m.verified = r[11] % 4;
    m.when = (int64_t)r[10] * 100000000;
    ck_assert_int_eq(fg_wisdom_append("w.txt", &m), FG_OK);
  }
  fg_measured_free(&list);
  program_result r = program_gives(0, "report w.txt -o page.html");
  ck_assert_str_eq(r.err, "");
  check_page("page.html", "w.txt");
}

TEST(bad_files) {
  static const char newer[] = "w2\tof tomorrow\nw3\tof the day after\n", rubbish[] = "rubbish\n";
  scratch_put("empty.txt", "", 0);
  scratch_put("comment.txt", "# nothing\n", 10);
  scratch_put("newer.txt", newer, sizeof newer - 1);
  scratch_put("rubbish.txt", rubbish, sizeof rubbish - 1);
  program_refuses(3, "nowhere.txt cannot be read: No such file or directory", "report nowhere.txt");
  program_refuses(3, "/ is no regular file, no file of wisdom", "report /");
  program_refuses(2, "empty.txt has no measurement", "report empty.txt -o page.html");
  program_refuses(2, "comment.txt has no measurement", "report comment.txt -o page.html");
  program_refuses(2,
                  "newer.txt has no measurement that can be read: its 2 lines are of a newer "
                  "flashgen, this one reads format 1",
                  "report newer.txt -o page.html");
  program_refuses(2, "rubbish.txt has no measurement: line 1: it is no line of wisdom",
                  "report rubbish.txt -o page.html");
  program_refuses(2, "empty.txt has no measurement", "report " H200 " empty.txt -o page.html");
  program_refuses(2, "a.lua: report takes files of wisdom", "report a.lua");
  program_refuses(2, "head_dim=64: report takes files of wisdom", "report head_dim=64");
  program_refuses(2, "no variant matches --filter no*", "report " H200 " --filter no*");
  program_refuses(2, "report takes no option --json", "report " H200 " --json");
  ck_assert_int_ne(access("page.html", F_OK), 0);
}

/* Good lines make a page, which says what is not in it. */
TEST(damaged_file) {
  static const char more[] = "rubbish <b>\nw2\tof tomorrow\n";
  put(D64("mma-q64-k64-s1-w4"), "GPU", 64, FG_MEASURED_OK, 1, "");
  FILE *f = fopen("w.txt", "a");
  fputs(more, f);
  fclose(f);
  program_result r = program_gives(0, "report w.txt -o page.html");
  ck_assert_str_eq(r.err, "flashgen: w.txt: 1 bad line is passed over; line 2: it is no line of "
                          "wisdom\nflashgen: w.txt: 1 line of a newer flashgen is passed over; "
                          "this one reads format 1\n");
  check_page("page.html", "w.txt");
  program_page_says(program_text("page.html"),
                    "<td class=\"l name\">w.txt</td><td>1</td><td>1</td><td>1"
                    "</td><td class=\"l wrap\">line 2: it is no line of wisdom");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
