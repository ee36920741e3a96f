/* t_wisdom.c - measurements as lines: what is written reads back, and what is no good line is
 * passed over, counted and kept. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "recipe/extent.h"
#include "scratch.h"
#include "suite.h"
#include "wisdom/shipped.h"
#include "wisdom/wisdom.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "wisdom.txt"
#define NAME      "attn_fwd-bf16-d128-causal.mma-q128-k64-s1-w4.sm_90a"

static fg_measured usual(void) {
  fg_measured m = {.multiprocessors = 132,
                   .shape = {.b = 16, .h = 16, .hk = 4, .nq = 1024, .nk = 2048, .align = 16},
                   .generation = 1,
                   .ms = 0.123456,
                   .error = 0.25,
                   .verified = true,
                   .registers = 168,
                   .spill = 8,
                   .compile = 1.25,
                   .when = 1790000000};
  strcpy(m.name, NAME);
  strcpy(m.device, "NVIDIA H200");
  return m;
}

static fg_wisdom_report count(void) {
  fg_wisdom w;
  fg_wisdom_report r;
  ck_assert_msg(fg_wisdom_read(FILE_NAME, false, &w) == FG_OK, "%s", fg_error());
  fg_wisdom_count(&w, &r);
  fg_wisdom_free(&w);
  return r;
}

static void put(const fg_measured *m) {
  ck_assert_msg(fg_wisdom_append(FILE_NAME, m) == FG_OK, "%s", fg_error());
}

static void add_text(const char *text, size_t n) {
  FILE *f = fopen(FILE_NAME, "a");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(text, 1, n, f), n);
  ck_assert_int_eq(fclose(f), 0);
}

static fg_line_kind parse(const char *line, fg_measured *m, const char **why) {
  return fg_measured_parse(line, strcspn(line, "\n"), m, why);
}

TEST(reads_back) {
  char line[FG_WISDOM_LINE], again[FG_WISDOM_LINE];
  fg_measured m = usual(), back;
  for (int s = 0; s < FG_MEASURED_KINDS; s++) {
    m.status = (fg_measured_status)s;
    if (s >= FG_MEASURED_WRONG) strcpy(m.reason, "it broke: code 7, \"x\" = y");
    if (s == FG_MEASURED_FAULT) strcpy(m.expression, "mask=k <= p && p - k < 7; score=s * 2.0");
    int n = fg_measured_print(&m, line);
    ck_assert_int_eq(n, (int)strlen(line));
    ck_assert_int_eq(line[n - 1], '\n');
    ck_assert_int_eq(parse(line, &back, NULL), FG_LINE_GOOD);
    ck_assert(!memcmp(&m, &back, sizeof m));
    fg_measured_print(&back, again);
    ck_assert_str_eq(line, again);
  }
}

/* A text cannot end its field or its line. */
TEST(texts_are_one_line) {
  char line[FG_WISDOM_LINE];
  fg_measured m = usual(), back;
  strcpy(m.reason, "two\nlines\tand a tab");
  fg_measured_print(&m, line);
  ck_assert_int_eq(parse(line, &back, NULL), FG_LINE_GOOD);
  ck_assert_str_eq(back.reason, "two lines and a tab");
}

/* Every single bit that flips makes it bad, or a line of another kind; never another measurement.
 */
TEST(flipped_bits) {
  char line[FG_WISDOM_LINE], flipped[FG_WISDOM_LINE];
  fg_measured m = usual(), back;
  int n = fg_measured_print(&m, line) - 1, newer = 0;
  for (int bit = 0; bit < 8 * n; bit++) {
    memcpy(flipped, line, (size_t)n + 1);
    flipped[bit / 8] = (char)(flipped[bit / 8] ^ 1 << bit % 8);
    fg_line_kind kind = fg_measured_parse(flipped, (size_t)n, &back, NULL);
    ck_assert_int_ne(kind, FG_LINE_GOOD);
    newer += kind == FG_LINE_NEWER;
  }
  ck_assert_int_le(newer, 3); /* w3, w5, w9 */
}

TEST(cut_at_every_length) {
  char line[FG_WISDOM_LINE];
  fg_measured m = usual(), back;
  int n = fg_measured_print(&m, line) - 1;
  for (int length = 1; length < n; length++)
    ck_assert_int_eq(fg_measured_parse(line, (size_t)length, &back, NULL), FG_LINE_BAD);
}

/* Fields that a later flashgen may add to this format: read over, and kept by compaction. */
TEST(unknown_fields_are_kept) {
  fg_measured m = usual(), back;
  fg_wisdom_report r;
  fg_wisdom w;
  char line[FG_WISDOM_LINE];
  const char *why = NULL;
  int n = fg_measured_print(&m, line) - 1;
  strcpy(line + n, "\tclock=1980");
  ck_assert_int_eq(parse(line, &back, &why), FG_LINE_BAD);
  ck_assert_str_eq(why, "its checksum is not that of its text");
  char hex[17];
  snprintf(hex, sizeof hex, "%016" PRIx64, (uint64_t)XXH3_64bits(line + 20, strlen(line + 20)));
  memcpy(line + 3, hex, 16);
  ck_assert_int_eq(parse(line, &back, &why), FG_LINE_GOOD);
  ck_assert(!memcmp(&m, &back, sizeof m));
  strcat(line, "\n");
  add_text(line, strlen(line));
  ck_assert_int_eq(fg_wisdom_compact(FILE_NAME, &r), FG_OK);
  ck_assert_int_eq(fg_wisdom_read(FILE_NAME, false, &w), FG_OK);
  ck_assert_str_eq(w.text, line);
  fg_wisdom_free(&w);
}

/* Times that are none never win, whatever else the line says. */
TEST(times_that_never_win) {
  static const double times[] = {0, -1, NAN, INFINITY, -INFINITY, 1e7, 1e300};
  char line[FG_WISDOM_LINE];
  fg_measured m = usual(), back;
  ck_assert(fg_measured_counts(&m));
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    m.ms = times[i];
    fg_measured_print(&m, line);
    ck_assert_int_eq(parse(line, &back, NULL), FG_LINE_GOOD);
    ck_assert_msg(!fg_measured_counts(&back), "%g", times[i]);
  }
  m = usual();
  m.verified = false;
  ck_assert(!fg_measured_counts(&m));
  for (int s = FG_MEASURED_WRONG; s < FG_MEASURED_KINDS; s++) {
    m = usual();
    m.status = (fg_measured_status)s;
    ck_assert(!fg_measured_counts(&m));
  }
}

/* D1: what else may stand in a file. Good lines around it count. */
TEST(garbage) {
  static const char zero[] = "w1\t0\0garbage\n", newer[] = "w2\tnobody knows what this says\n";
  char *big = malloc(10 << 20), line[FG_WISDOM_LINE];
  fg_measured m = usual();
  ck_assert_ptr_nonnull(big);
  memset(big, 'x', 10 << 20);
  big[(10 << 20) - 1] = '\n';
  put(&m);
  add_text("# made by hand\n\n", 16);
  add_text("rubbish\n", 8);
  add_text(zero, sizeof zero - 1);
  add_text(newer, sizeof newer - 1);
  add_text(big, 10 << 20);
  int n = fg_measured_print(&m, line);
  strcpy(line + n - 1, "\r\n"); /* as an editor leaves it */
  add_text(line, (size_t)n + 1);
  fg_measured_print(&m, line);
  add_text(line, 40); /* torn */
  fg_wisdom_report r = count();
  ck_assert_int_eq(r.good, 2);
  ck_assert_int_eq(r.comments, 2);
  ck_assert_int_eq(r.newer, 1);
  ck_assert_int_eq(r.bad, 4);
  ck_assert_int_eq(r.first_bad, 4);
  ck_assert_str_eq(r.why, "it is no line of wisdom");
  m.when++;
  put(&m); /* behind the torn line */
  ck_assert_int_eq(count().good, 3);
  ck_assert_int_eq(count().bad, 4);
  free(big);
}

/* What is in the file that compaction leaves, and beside it. */
TEST(compaction_keeps_what_it_cannot_read) {
  struct stat bad;
  fg_wisdom_report r;
  fg_measured m = usual();
  add_text("# head\n", 7);
  put(&m);
  add_text("w2\tof tomorrow\n", 15);
  add_text("rubbish\n", 8);
  m.ms = 0.2, m.when++;
  put(&m); /* replaces the first */
  m.generation = 2;
  put(&m);
  m.shape.nq = 7;
  put(&m);
  put(&m); /* once more */
  add_text("w1\ttorn", 7);
  ck_assert_msg(fg_wisdom_compact(FILE_NAME, &r) == FG_OK, "%s", fg_error());
  ck_assert_int_eq(r.good, 5);
  ck_assert_int_eq(r.dropped, 2);
  ck_assert_int_eq(r.kept, 3);
  ck_assert_int_eq(r.bad, 2);
  r = count();
  ck_assert_int_eq(r.good, 3);
  ck_assert_int_eq(r.comments, 1);
  ck_assert_int_eq(r.newer, 1);
  ck_assert_int_eq(r.bad, 0);
  ck_assert_int_eq(stat(FILE_NAME ".bad", &bad), 0);
  ck_assert_int_eq(bad.st_size, 8 + 8);
  ck_assert_int_eq(scratch_files(), 2);                      /* no temporary */
  ck_assert_int_eq(fg_wisdom_compact(FILE_NAME, &r), FG_OK); /* nothing is left to do */
  ck_assert_int_eq(r.dropped + r.bad, 0);
  ck_assert_int_eq(count().good, 3);
}

/* The later one stays, wherever it stands. */
TEST(later_lines_win) {
  fg_wisdom w;
  fg_wisdom_report r;
  fg_measured m = usual(), back;
  const char *line;
  size_t at = 0, n;
  bool whole;
  m.ms = 2;
  put(&m);
  m.when -= 100, m.ms = 1;
  put(&m);
  ck_assert_int_eq(fg_wisdom_compact(FILE_NAME, &r), FG_OK);
  ck_assert_int_eq(fg_wisdom_read(FILE_NAME, false, &w), FG_OK);
  ck_assert(fg_wisdom_next(w.text, w.n, &at, &line, &n, &whole));
  ck_assert_int_eq(fg_measured_parse(line, n, &back, NULL), FG_LINE_GOOD);
  ck_assert(back.ms == 2);
  ck_assert(!fg_wisdom_next(w.text, w.n, &at, &line, &n, &whole));
  fg_wisdom_free(&w);
}

/* Merging: all or nothing. */
TEST(merge) {
  static const char *const parts[] = {"a.txt", "b.txt"};
  fg_wisdom_report r;
  fg_measured m = usual();
  put(&m);
  for (int i = 0; i < 2; i++) {
    m.shape.nq = 100 + i;
    ck_assert_int_eq(fg_wisdom_append(parts[i], &m), FG_OK);
    m = usual();
    ck_assert_int_eq(fg_wisdom_append(parts[i], &m), FG_OK);
  }
  ck_assert_msg(fg_wisdom_merge(FILE_NAME, 2, parts, &r) == FG_OK, "%s", fg_error());
  ck_assert_int_eq(r.good, 5);
  ck_assert_int_eq(r.kept, 3);
  ck_assert_int_eq(count().good, 3);
  FILE *f = fopen("b.txt", "a");
  fputs("rubbish\n", f);
  fclose(f);
  m.shape.nq = 555;
  ck_assert_int_eq(fg_wisdom_append("a.txt", &m), FG_OK);
  ck_assert_int_eq(fg_wisdom_merge(FILE_NAME, 2, parts, &r), FG_EIO);
  ck_assert_ptr_nonnull(strstr(fg_error(), "b.txt line 3: it is no line of wisdom; nothing was"));
  ck_assert_int_eq(count().good, 3);
  ck_assert_int_eq(fg_wisdom_merge("new.txt", 1, (const char *[]){"nowhere.txt"}, &r), FG_EIO);
  ck_assert_str_eq(fg_error(), "nowhere.txt cannot be read: No such file or directory");
  ck_assert_int_ne(access("new.txt", F_OK), 0);
}

TEST(no_files_of_wisdom) {
  fg_wisdom w;
  fg_measured m = usual();
  fg_wisdom_report r;
  ck_assert_int_eq(fg_wisdom_read("nowhere", true, &w), FG_OK);
  ck_assert_uint_eq(w.n, 0);
  fg_wisdom_free(&w);
  ck_assert_int_eq(fg_wisdom_read("nowhere", false, &w), FG_EIO);
  ck_assert_int_eq(mkdir("dir", 0700), 0);
  ck_assert_int_eq(mkfifo("pipe", 0700), 0);
  ck_assert_int_eq(fg_wisdom_read("dir", false, &w), FG_EIO);
  ck_assert_int_eq(fg_wisdom_read("pipe", false, &w), FG_EIO);
  ck_assert_str_eq(fg_error(), "pipe is no regular file, no file of wisdom");
  ck_assert_int_eq(fg_wisdom_append("dir", &m), FG_EIO);
  ck_assert_str_eq(fg_error(), "dir cannot be written: Is a directory");
  ck_assert_int_eq(fg_wisdom_append("pipe", &m), FG_EIO);
  ck_assert_int_eq(fg_wisdom_append("no/where", &m), FG_EIO);
  ck_assert_int_eq(fg_wisdom_compact("nowhere", &r), FG_EIO);
  ck_assert_int_ne(access("nowhere", F_OK), 0);
}

/* The time of a race, of few launches, is not ranked among those of the whole protocol. */
TEST(raced_times) {
  fg_measured_list list = {0};
  static const struct {
    const char *plan;
    double ms;
    fg_measured_status status;
  } rows[] = {{"mma-q64-k64-s1-w4", 1.0, FG_MEASURED_SLOW},
              {"mma-q64-k64-s2-w4", 3.0, FG_MEASURED_OK},
              {"mma-q128-k64-s1-w4", 2.0, FG_MEASURED_OK},
              {"mma-q128-k64-s2-w4", 0.5, FG_MEASURED_SLOW}};
  static const int order[] = {2, 1, 3, 0};
  fg_wisdom w;
  for (int i = 0; i < 4; i++) {
    fg_measured m = {.shape = {1, 1, 1, 5, 5, 16},
                     .generation = 1,
                     .ms = rows[i].ms,
                     .status = rows[i].status,
                     .verified = true,
                     .when = 1};
    snprintf(m.name, sizeof m.name, "attn_fwd-bf16-d64.%s.sm_90a", rows[i].plan);
    strcpy(m.device, "a GPU");
    ck_assert_int_eq(fg_wisdom_append("raced.txt", &m), FG_OK);
  }
  ck_assert_int_eq(fg_wisdom_read("raced.txt", false, &w), FG_OK);
  ck_assert_int_eq(fg_measured_add(w.text, w.n, &list), FG_OK);
  fg_measured_sort(&list);
  for (int i = 0; i < 4; i++)
    ck_assert_ptr_nonnull(strstr(list.item[i]->name, rows[order[i]].plan));
  fg_measured_free(&list);
  fg_wisdom_free(&w);
}

/* Shapes that differ in one extent are not peers. */
TEST(each_extent_tells_shapes_apart) {
  for (int x = 0; x < FG_EXTENTS; x++) {
    fg_measured a = usual(), b = usual();
    fg_extent_set(&fg_extents[x], &b.shape, 1 + fg_extent_get(&fg_extents[x], &a.shape));
    ck_assert(fg_measured_peers(&a, &a));
    ck_assert_msg(!fg_measured_peers(&a, &b), "%s does not count", fg_extents[x].name);
  }
}

/* Of lines whose shapes differ in the page alone the latest of each page stays, and none makes
 * another outdated. */
TEST(pages_have_lines_of_their_own) {
  fg_measured_list list = {0};
  fg_wisdom w;
  for (int i = 0; i < 6; i++) {
    fg_measured m = usual();
    m.shape.page = i % 3 ? 16 << i % 3 : 0;
    m.generation = 1 + i % 3, m.when += i, m.ms = 10 - i;
    put(&m);
  }
  ck_assert_int_eq(fg_wisdom_read(FILE_NAME, false, &w), FG_OK);
  ck_assert_int_eq(fg_measured_add(w.text, w.n, &list), FG_OK);
  fg_measured_sort(&list);
  ck_assert_int_eq(list.n, 3);
  for (int i = 0; i < list.n; i++) {
    ck_assert_int_ge(list.item[i]->when, usual().when + 3);
    ck_assert(!list.item[i]->outdated);
  }
  fg_measured_free(&list);
  fg_wisdom_free(&w);
}

/* What ships was measured while calls stood in names as hashes: it reads as calls. */
TEST(shipped_names) {
  fg_measured_list list = {0};
  int windows = 0, caps = 0, hashes = 0;
  ck_assert_int_eq(fg_measured_add(fg_shipped_wisdom, fg_shipped_wisdom_size, &list), FG_OK);
  for (int i = 0; i < list.n; i++) {
    windows += strstr(list.item[i]->name, "-window_1023_0") != NULL;
    caps += strstr(list.item[i]->name, "-softcap_30") != NULL;
    hashes += strstr(list.item[i]->name, "-mask_") != NULL;
  }
  ck_assert_int_gt(windows, 400);
  ck_assert_int_gt(caps, 200);
  ck_assert_int_eq(hashes, 0);
  fg_measured_free(&list);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
