/* t_extent.c - shapes as texts: words, objects of JSON, and what people read. */
#include "recipe/extent.h"
#include "suite.h"

#include <string.h>

/* A shape of each form, and of each layout of sequences. */
static const struct {
  fg_shape shape;
  const char *words, *json, *brief;
} cases[] = {
    {{.b = 4, .h = 32, .hk = 8, .nq = 1, .nk = 8192},
     "b=4 h=32 hk=8 nq=1 nk=8192",
     "{\"b\": 4, \"h\": 32, \"hk\": 8, \"nq\": 1, \"nk\": 8192}",
     "b4 h32/8 1x8192"},
    {{.b = 5, .h = 2, .hk = 1, .nq = 70, .nk = 90, .tokens_q = 200, .tokens_k = 300},
     "b=5 h=2 hk=1 nq=70 nk=90 tokens_q=200 tokens_k=300",
     "{\"b\": 5, \"h\": 2, \"hk\": 1, \"nq\": 70, \"nk\": 90, \"tokens_q\": 200, \"tokens_k\": "
     "300}",
     "b5 h2/1 70x90 tokens_q=200 tokens_k=300"},
    {{.b = 3, .h = 2, .hk = 1, .nq = 1, .nk = 90, .pages = 12, .page = 16, .align = 8},
     "b=3 h=2 hk=1 nq=1 nk=90 pages=12 page=16",
     "{\"b\": 3, \"h\": 2, \"hk\": 1, \"nq\": 1, \"nk\": 90, \"pages\": 12, \"page\": 16, "
     "\"align\": 8}",
     "b3 h2/1 1x90 pages=12 page=16"},
    {{.rows = 9}, "rows=9", "{\"rows\": 9}", "9 rows"},
    {{.parts = 4, .b = 1, .h = 2, .nq = 5},
     "parts=4 b=1 h=2 nq=5",
     "{\"parts\": 4, \"b\": 1, \"h\": 2, \"nq\": 5}",
     "4 parts b1 h2 5"},
    {{.b = 3, .h = 4, .hk = 2, .nq = 7, .nk = 40, .positions = 48, .tokens_q = 9, .pages = 6},
     "b=3 h=4 hk=2 nq=7 nk=40 positions=48 tokens_q=9 pages=6",
     "{\"b\": 3, \"h\": 4, \"hk\": 2, \"nq\": 7, \"nk\": 40, \"positions\": 48, \"tokens_q\": 9, "
     "\"pages\": 6}",
     "b3 h4/2 7 to 40 tokens_q=9 pages=6"},
};
enum { CASES = sizeof cases / sizeof *cases };

static int print_words(const fg_shape *shape, size_t size, char *text) {
  return fg_shape_words(fg_shape_form_of(shape), shape, size, text);
}

static int print_json(const fg_shape *shape, size_t size, char *text) {
  return fg_shape_json(fg_shape_form_of(shape), shape, size, text);
}

TEST_LOOP(texts, CASES) {
  char text[FG_SHAPE_JSON];
  ck_assert_int_eq(print_words(&cases[_i].shape, sizeof text, text), (int)strlen(cases[_i].words));
  ck_assert_str_eq(text, cases[_i].words);
  ck_assert_int_eq(print_json(&cases[_i].shape, sizeof text, text), (int)strlen(cases[_i].json));
  ck_assert_str_eq(text, cases[_i].json);
  ck_assert_int_eq(fg_shape_brief(&cases[_i].shape, sizeof text, text),
                   (int)strlen(cases[_i].brief));
  ck_assert_str_eq(text, cases[_i].brief);
}

/* No extent tells whose shape it is where all are 0. */
TEST(shape_of_nothing) {
  const fg_shape nothing = {0};
  char text[FG_SHAPE_WORDS];
  fg_shape_words(&fg_shape_forms[FG_FORM_ROWS], &nothing, sizeof text, text);
  ck_assert_str_eq(text, "rows=0");
}

typedef int print(const fg_shape *shape, size_t size, char *text);

/* A text for which there is no room is cut off, and what is behind its place stays. */
static void check_cut(print *printer, const fg_shape *shape, size_t most) {
  char whole[1024], text[1024];
  const int n = printer(shape, sizeof whole, whole);
  ck_assert_int_lt(n, (int)most);
  for (size_t size = 1; size <= (size_t)n + 1; size++) {
    memset(text, '#', sizeof text);
    ck_assert_int_eq(printer(shape, size, text), n);
    ck_assert_uint_eq(strlen(text), size - 1);
    ck_assert(!strncmp(text, whole, size - 1));
    ck_assert_int_eq(text[size], '#');
  }
}

/* Each form with all that its layouts may have, as large as may be. */
TEST_LOOP(large_numbers, FG_SHAPE_FORMS) {
  const fg_shape_form *form = &fg_shape_forms[_i];
  fg_shape s = {0};
  for (int x = 0; x < FG_EXTENTS; x++)
    if (fg_form_has(form, fg_extents[x].letter)) fg_extent_set(&fg_extents[x], &s, INT64_MIN);
  ck_assert_ptr_eq(fg_shape_form_of(&s), form);
  check_cut(print_words, &s, FG_SHAPE_WORDS);
  s.align = INT64_MIN;
  check_cut(print_json, &s, FG_SHAPE_JSON);
  check_cut(fg_shape_brief, &s, FG_BRIEF_MAX);
}
