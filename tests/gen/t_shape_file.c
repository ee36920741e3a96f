/* t_shape_file.c - files of shapes: what they give, and every mistake in one text. */
#include "scratch.h"
#include "spec/shape_file.h"
#include "spec/spec.h"
#include "status.h"
#include "suite.h"

#include <string.h>
#include <sys/stat.h>

static fg_status open_text(const char *text, fg_shape_file **file) {
  scratch_put("s.lua", text, strlen(text));
  return fg_shape_file_open("s.lua", file);
}

static void refused(const char *text, const char *sentence) {
  fg_shape_file *file = NULL;
  ck_assert_int_eq(open_text(text, &file), FG_ESPEC);
  ck_assert_msg(!strcmp(fg_error(), sentence), "expected \"%s\", got \"%s\"", sentence, fg_error());
  ck_assert_ptr_null(file);
}

TEST(defaults) {
  fg_shape_file *file;
  ck_assert_int_eq(
      open_text(
          "return { { h = 8, nq = 100 }, { b = 3, h = 8, hk = 2, nq = 1, nk = 7 }, { rows = 9 }, "
          "{ parts = 4, h = 2, nq = 5 } }",
          &file),
      FG_OK);
  ck_assert_int_eq(fg_shape_file_count(file), 4);
  const fg_shape first = {.b = 1, .h = 8, .hk = 8, .nq = 100, .nk = 100, .align = 16};
  const fg_shape second = {.b = 3, .h = 8, .hk = 2, .nq = 1, .nk = 7, .align = 16};
  ck_assert(!memcmp(fg_shape_file_at(file, 0), &first, sizeof first));
  ck_assert(!memcmp(fg_shape_file_at(file, 1), &second, sizeof second));
  const fg_shape third = {.rows = 9, .align = 16};
  ck_assert(!memcmp(fg_shape_file_at(file, 2), &third, sizeof third));
  const fg_shape fourth = {.b = 1, .h = 2, .nq = 5, .parts = 4, .align = 16};
  ck_assert(!memcmp(fg_shape_file_at(file, 3), &fourth, sizeof fourth));
  fg_shape_file_free(file);
}

/* Those for specs/hooks.lua are among those that all is tuned at, so that classes are the same. */
TEST(shipped_hooks) {
  fg_shape_file *all, *hooks;
  fg_grid *grid;
  const char *spec = FLASHGEN_SOURCE "/specs/hooks.lua";
  int cells = 0;
  GOOD(fg_shape_file_open(FLASHGEN_SOURCE "/specs/shapes/llm.lua", &all));
  GOOD(fg_shape_file_open(FLASHGEN_SOURCE "/specs/shapes/hooks.lua", &hooks));
  ck_assert_msg(fg_grid_read(1, &spec, 0, NULL, &grid) == FG_OK, "%s", fg_error());
  for (int i = 0; i < fg_shape_file_count(hooks); i++) {
    const fg_shape *s = fg_shape_file_at(hooks, i);
    int found = 0;
    for (int j = 0; j < fg_shape_file_count(all); j++)
      found += !memcmp(fg_shape_file_at(all, j), s, sizeof *s);
    ck_assert_msg(found, "shape %d", i);
    for (int p = 0; p < grid->n; p++) {
      fg_shape shape;
      bool keep;
      ck_assert_int_eq(fg_shape_file_for(hooks, i, &grid->point[p], &shape, &keep), FG_OK);
      cells += keep;
    }
  }
  ck_assert_int_eq(cells, 2 * grid->n); /* two shapes each */
  fg_grid_free(grid);
  fg_shape_file_free(all);
  fg_shape_file_free(hooks);
}

TEST(when) {
  fg_shape_file *file;
  fg_point point = {.d = 64, .dv = 64};
  fg_shape shape;
  bool keep;
  ck_assert_int_eq(open_text("return { { h = 8, nq = 1, when = function(s) return s.head_dim == 64 "
                             "and s.pass == 'forward' end }, { h = 8, nq = 1, "
                             "when = function(s) return s.no.thing end } }",
                             &file),
                   FG_OK);
  ck_assert_int_eq(fg_shape_file_for(file, 0, &point, &shape, &keep), FG_OK);
  ck_assert(keep);
  point.pass = FG_PASS_BACKWARD;
  ck_assert_int_eq(fg_shape_file_for(file, 0, &point, &shape, &keep), FG_OK);
  ck_assert(!keep);
  FAILS(FG_ESPEC, "s.lua:1: ", fg_shape_file_for(file, 1, &point, &shape, &keep));
  fg_shape_file_free(file);
}

/* Does shape i suit attention of these layouts? *shape is the shape then. */
static bool suits(fg_shape_file *file, int i, int q, int kv, fg_shape *shape) {
  const fg_point point = {.d = 64, .dv = 64, .q_layout = q, .kv_layout = kv};
  bool keep;
  ck_assert_int_eq(fg_shape_file_for(file, i, &point, shape, &keep), FG_OK);
  return keep;
}

/* A shape is for the layouts that have its extents, and gets those that it leaves out. */
TEST(layouts) {
  enum { DENSE, TOKENS, PAGES, POOL };
  fg_shape_file *file;
  fg_shape s;
  ck_assert_int_eq(open_text("return { { b = 3, h = 2, nq = 10, nk = 33 }, "
                             "{ b = 3, h = 2, nq = 10, tokens_q = 20, tokens_k = 25 }, "
                             "{ b = 3, h = 2, nq = 10, nk = 33, page = 16 }, "
                             "{ b = 3, h = 2, nq = 10, nk = 33, page = 16, pages = 4 } }",
                             &file),
                   FG_OK);
  ck_assert(suits(file, DENSE, FG_DENSE, FG_DENSE, &s) && !s.tokens_q && !s.tokens_k && !s.pages);
  ck_assert(suits(file, DENSE, FG_PACKED, FG_PACKED, &s) && s.tokens_q == 30 && s.tokens_k == 99);
  ck_assert(suits(file, DENSE, FG_PACKED, FG_CACHED, &s) && s.tokens_q == 30 && !s.tokens_k);
  ck_assert(!suits(file, DENSE, FG_DENSE, FG_PAGED, &s));
  ck_assert(suits(file, TOKENS, FG_PACKED, FG_PACKED, &s) && s.tokens_q == 20 && s.tokens_k == 25);
  ck_assert(!suits(file, TOKENS, FG_DENSE, FG_DENSE, &s));
  ck_assert(!suits(file, TOKENS, FG_DENSE, FG_PACKED, &s));
  ck_assert(!suits(file, TOKENS, FG_PACKED, FG_CACHED, &s));
  ck_assert(suits(file, PAGES, FG_DENSE, FG_PAGED, &s) && s.pages == 9);
  ck_assert(suits(file, PAGES, FG_PACKED, FG_PAGED, &s) && s.pages == 9 && s.tokens_q == 30);
  ck_assert(!suits(file, PAGES, FG_DENSE, FG_CACHED, &s));
  ck_assert(suits(file, POOL, FG_DENSE, FG_PAGED, &s) && s.pages == 4);
  fg_shape_file_free(file);
}

/* How many of the shapes suit a spec with these words. */
static int count_of(fg_shape_file *file, const char *const *words, int n) {
  fg_grid *grid;
  int count = 0;
  ck_assert_msg(fg_grid_read(0, NULL, n, words, &grid) == FG_OK, "%s", fg_error());
  for (int i = 0; i < fg_shape_file_count(file); i++) {
    fg_shape shape;
    bool keep;
    ck_assert_int_eq(fg_shape_file_for(file, i, &grid->point[0], &shape, &keep), FG_OK);
    count += keep;
  }
  fg_grid_free(grid);
  return count;
}

TEST(shipped_serving) {
  fg_shape_file *file;
  GOOD(fg_shape_file_open(FLASHGEN_SOURCE "/specs/shapes/serving.lua", &file));
#define COUNT(...)                                                                                 \
  count_of(file, (const char *[]){__VA_ARGS__},                                                    \
           (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(const char *)))
  ck_assert_int_eq(COUNT("head_dim=128", "q_layout=packed", "kv_layout=packed"), 4);
  ck_assert_int_eq(COUNT("head_dim=64", "q_layout=packed", "kv_layout=packed", "pass=backward"), 4);
  ck_assert_int_eq(COUNT("head_dim=128", "kv_layout=cached"), 15);
  ck_assert_int_eq(COUNT("head_dim=64"), 15);
  ck_assert_int_eq(COUNT("head_dim=64", "kv_layout=paged"), 30);
  ck_assert_int_eq(COUNT("head_dim=128", "q_layout=packed", "kv_layout=paged"), 2);
  ck_assert_int_eq(COUNT("kernel=append", "head_dim=64", "kv_layout=paged"), 2);
  ck_assert_int_eq(COUNT("kernel=append", "head_dim=64", "kv_layout=cached"), 2);
  ck_assert_int_eq(COUNT("head_dim=96", "kv_layout=paged"), 0);
  fg_shape_file_free(file);
}

TEST(mistakes) {
  refused("return 7", "s.lua: returns no list of shapes; expected { { b = 1, h = 16, nq = 4096 }, "
                      "... }");
  refused("return {}", "s.lua: returns no list of shapes; expected { { b = 1, h = 16, nq = 4096 }, "
                       "... }");
  refused("return { { h = 8 }, { nq = 4 }, 5, { h = 8.0, nq = 1 }, { h = 8, nq = -1 }, "
          "{ h = 6, hk = 4, nq = 1 }, { h = 8, nq = 1 << 30 }, { h = 1, nq = 1, when = 3 }, "
          "{ h = 1, nq = 1, bh = 2 }, { h = 1, nq = 1, rows = 3 }, { parts = 257, h = 3, nq = 2 }, "
          "{ parts = 2, h = 3 } }",
          "s.lua: shape 1: nq: is missing\n"
          "s.lua: shape 2: h: is missing\n"
          "s.lua: shape 3: it: is no table; expected { b = 1, h = 16, nq = 4096 }\n"
          "s.lua: shape 4: h: expected an integer from 0 to 2^30 - 1\n"
          "s.lua: shape 5: nq: expected an integer from 0 to 2^30 - 1\n"
          "s.lua: shape 6: h: is not a multiple of hk\n"
          "s.lua: shape 7: nq: expected an integer from 0 to 2^30 - 1\n"
          "s.lua: shape 8: when: expected a function\n"
          "s.lua: shape 9: bh: no such field (did you mean \"b\"?); a shape has b, h, hk, nq, nk, "
          "rows, tokens_q, tokens_k, pages, page, parts, positions, slices and when\n"
          "s.lua: shape 10: rows: does not go with the others\n"
          "s.lua: shape 11: parts: expected an integer from 1 to 256\n"
          "s.lua: shape 12: nq: is missing");
}

/* What no spec file may do either. */
TEST(accidents) {
  fg_shape_file *file = NULL;
  FAILS(FG_ESPEC, "million steps", open_text("while true do end", &file));
  FAILS(FG_ESPEC, "s.lua:1: ", open_text("return {", &file));
  ck_assert_int_eq(open_text("return os.time()", &file), FG_ESPEC);
  FAILS(FG_ESPEC, "nowhere.lua: cannot be opened", fg_shape_file_open("nowhere.lua", &file));
  ck_assert_int_eq(mkdir("d.lua", 0700), 0);
  ck_assert_int_eq(fg_shape_file_open("d.lua", &file), FG_ESPEC);
  ck_assert_ptr_null(file);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
