/* t_gen_memory.c - memory runs out for good at any allocation of gen, Lua's too: a clear failure,
 * nothing lost, and what is left still works.
 *
 * Lua collects garbage and tries again when an allocation fails, so all behind it fail too. */
#include "status.h"
#include "suite.h"

#include "alloc_watch.h"
#include "expand/expand.h"
#include "expand/state.h"
#include "scratch.h"
#include "spec/grid.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *expected; /* the text, when nothing fails */

/* Check's assertions allocate, so none is in what fails. */
static fg_status emit(fg_gen *gen, char **text) {
  fg_variant variant;
  fg_source *source;
  fg_planned *planned;
  int n;
  TRY(fg_variant_parse("attn_fwd-bf16-d8.simt-q4-k32-w4.host", &variant));
  const fg_limits simt = {.n = {1, 1}, .value = {{variant.plan.value[0]}, {4}}};
  TRY(fg_gen_candidates(gen, &variant.point, variant.arch, &simt, &planned, &n));
  free(planned);
  TRY(fg_gen_expand(gen, &variant, &source));
  *text = source->text;
  source->text = NULL;
  fg_source_free(source);
  return FG_OK;
}

static void expect_text(fg_gen *gen) {
  char *text;
  GOOD(emit(gen, &text));
  ck_assert_str_eq(text, expected);
  free(text);
}

/* Judges a call in which the nth allocation was to fail; with `all`, those behind it too. Were
 * there fewer? */
static int ended(long n, int all, fg_status status) {
  int failed = alloc_failed();
  alloc_fail(0);
  int good = failed ? status == FG_EMEMORY || (!all && status == FG_OK) : status == FG_OK;
  ck_assert_msg(good, "allocation %ld: %d, %s", n, status, fg_error());
  ck_assert_msg(!status || strstr(fg_error(), "memory"), "allocation %ld: %s", n, fg_error());
  return !failed;
}

static void none_lost(long n, long live) {
  ck_assert_msg(alloc_live() <= live, "allocation %ld: %ld blocks are lost", n,
                alloc_live() - live);
}

/* A case looks at a tenth of the allocations: each tenth of them, from the case's number on. */
enum { TENTHS = 10 };

/* A template state, with templates of a directory. */
TEST_TENTH(test_new, TENTHS) {
  long live = alloc_live(), n = 1 + _i - TENTHS;
  for (int done = !ALLOC_WATCH; !done;) {
    fg_gen *gen = NULL;
    alloc_starve(n += TENTHS);
    done = ended(n, 1, fg_gen_new("t", &gen));
    fg_gen_free(gen);
    none_lost(n, live);
  }
  ck_assert_int_ge(n, ALLOC_WATCH * 1000);
}

/* Texts of one state, which outlives each failure. Every allocation up to the end of the plans,
 * then one of 7: all of them take half a minute. */
TEST_TENTH(test_emit, 2 * TENTHS) {
  enum { ALL = 1000, STEP = 7 };
  long live = alloc_live(), n = 1 + _i % TENTHS - TENTHS;
  int tries = 0;
  fg_gen *gen;
  GOOD(fg_gen_new(_i / TENTHS ? "t" : NULL, &gen));
  for (int done = !ALLOC_WATCH; !done;) {
    char *text = NULL;
    alloc_starve(n += n < ALL ? TENTHS : TENTHS * STEP);
    done = ended(n, 1, emit(gen, &text));
    free(text);
    if (++tries % 10 == 0) expect_text(gen);
  }
  expect_text(gen);
  fg_gen_free(gen);
  none_lost(n, live);
  ck_assert_int_ge(n, ALLOC_WATCH * 5000);
}

/* Lua's allocations are all made by one function. */
static void spare_lua(void) {
  enum { FUNCTION = 512 }; /* more than that function's bytes; nothing behind it allocates */
  lua_State *L;
  void *user;
  GOOD(fg_template_state_new(&L));
  union {
    lua_Alloc function;
    const void *code;
  } allocate = {.function = lua_getallocf(L, &user)};
  fg_state_free(L);
  alloc_spare(allocate.code, FUNCTION);
}

/* One of C's own allocations fails, which comes out through Lua as what it is; libc has means of
 * its own where one of its files gets no buffer. */
TEST_TENTH(test_c, TENTHS) {
  long live = alloc_live(), n = 1 + _i - TENTHS, reported = 0;
  spare_lua();
  for (int done = !ALLOC_WATCH; !done;) {
    fg_gen *gen = NULL;
    char *text = NULL;
    alloc_fail(n += TENTHS);
    fg_status status = fg_gen_new("t", &gen);
    if (status == FG_OK) status = emit(gen, &text);
    done = ended(n, 0, status);
    reported += status == FG_EMEMORY;
    if (text) ck_assert_str_eq(text, expected);
    free(text);
    fg_gen_free(gen);
    none_lost(n, live);
  }
  ck_assert_int_ge(reported, ALLOC_WATCH * 50 / TENTHS);
}

static const char spec[] =
    "return { { head_dim = { 8, 64 }, mask = 'causal', block_q = 16 },\n"
    "  { head_dim = '192/128', when = function(s) return s.head_dim > 64 end } }\n";

static fg_status read_spec(int *points) {
  const char *const file = "a.lua", *const word = "dtype=bf16,f16";
  fg_grid *grid;
  TRY(fg_grid_read(1, &file, 1, &word, &grid));
  *points = grid->n;
  fg_grid_free(grid);
  return FG_OK;
}

TEST(test_spec_file) {
  long n = 0;
  int points = 0;
  scratch_put("a.lua", spec, sizeof spec - 1);
  GOOD(read_spec(&points));
  long live = alloc_live();
  for (int done = !ALLOC_WATCH; !done;) {
    alloc_starve(++n);
    done = ended(n, 1, read_spec(&points));
    none_lost(n, live);
  }
  ck_assert_int_eq(points, 6);
  ck_assert_int_ge(n, ALLOC_WATCH * 500);
}

static void enter(void) {
  fg_gen *gen;
  templates_enter();
  templates_copy();
  GOOD(fg_gen_new(NULL, &gen));
  GOOD(emit(gen, &expected));
  fg_gen_free(gen);
}

TEST_FIXTURE(enter, templates_leave)
