/* t_api_build.c - fg_build: what it makes, keeps, leaves out and refuses. */
#include "api_case.h"
#include "scratch.h"
#include "zoo/zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define D8  "attn_fwd-bf16-d8.simt-q16-k32-w4.host"
#define D16 "attn_fwd-bf16-d16.simt-q16-k32-w4.host"

typedef struct {
  pthread_t caller; /* whose thread hears of it */
  int calls, failures, stop_at;
  char last[160];
} watch;

static int watch_build(void *context, const char *variant, const char *failure, int done,
                       int total) {
  watch *w = context;
  ck_assert(pthread_equal(w->caller, pthread_self()));
  ck_assert_int_eq(done, ++w->calls);
  ck_assert_int_le(done, total);
  ck_assert_int_lt(strcmp(w->last, variant), 0); /* in order */
  snprintf(w->last, sizeof w->last, "%s", variant);
  w->failures += failure != NULL;
  return done == w->stop_at;
}

static fg_order order_of(const char *directory) {
  fg_order order = FG_INIT(fg_order);
  order.directory = directory;
  return order;
}

static void expect_built(const fg_built *b, int variants, int made, int kept, int failed,
                         int removed) {
  ck_assert_msg(b->variants == variants && b->made == made && b->kept == kept &&
                    b->failed == failed && b->removed == removed,
                "variants %d made %d kept %d failed %d removed %d", b->variants, b->made, b->kept,
                b->failed, b->removed);
}

TEST(test_build) {
  static const char file[] = "return { head_dim = { 8, 16 }, family = \"simt\" }\n";
  fg_context *context;
  fg_built built = FG_INIT(fg_built);
  fg_order order = order_of("zoo");
  watch w = {.caller = pthread_self()};
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  context = api_open("cache");
  scratch_put("spec.lua", file, sizeof file - 1);
  order.progress = watch_build, order.progress_context = &w;
  GOOD(api_build(context, order, "spec.lua mask=full", &built));
  expect_built(&built, 2, 2, 0, 0, 0);
  ck_assert_int_eq(w.calls, 2);
  ck_assert_str_eq(w.last, D8);
  ck_assert_int_eq(api_compiled("compiler"), 2);
  order.progress = NULL;
  GOOD(api_build(context, order, "spec.lua", &built));
  expect_built(&built, 2, 0, 2, 0, 0);
  GOOD(api_build(context, order, "spec.lua head_dim=8,24", &built));
  expect_built(&built, 2, 1, 1, 0, 1);
  order.plans = -1;
  GOOD(api_build(context, order, "spec.lua head_dim=8", &built));
  expect_built(&built, 2, 1, 1, 0, 1);
  ck_assert_int_eq(api_compiled("compiler"), 4);
  GOOD(api_build(context, order, "spec.lua", NULL));
  api_counts(context, 0, 0, 0, 0); /* a zoo is no business of the cache */
  fg_close(context);
}

/* Stopped, the zoo is not there yet; the next call goes on. */
TEST(test_build_stopped) {
  fg_context *context = api_open("cache");
  fg_built built = FG_INIT(fg_built);
  fg_order order = order_of("zoo");
  watch w = {.caller = pthread_self(), .stop_at = 1};
  order.progress = watch_build, order.progress_context = &w;
  order.jobs = 1;
  GOOD(api_build(context, order, "head_dim=8,16 family=simt", &built));
  expect_built(&built, 2, 1, 0, 0, 0);
  ck_assert_int_ne(access("zoo/manifest.txt", F_OK), 0);
  ck_assert_int_eq(w.calls, 1);
  w = (watch){.caller = pthread_self()};
  GOOD(api_build(context, order, "head_dim=8,16 family=simt", &built));
  ck_assert_int_eq(built.made + built.kept, 2); /* the next one may have been under way */
  ck_assert_int_ge(built.kept, 1);
  ck_assert_int_eq(access("zoo/manifest.txt", F_OK), 0);
  fg_close(context);
}

/* A variant that fails is left out, and the failure said; the rest is there. */
TEST(test_build_failing) {
  fg_built built = FG_INIT(fg_built);
  fg_order order = order_of("zoo");
  watch w = {.caller = pthread_self()};
  api_compiler("compiler", NULL,
               "for f; do case $f in */kernel.c) head -3 $f | grep -q -- -d16 && exit 1;; esac; "
               "done; exec $CC \"$@\"");
  fg_context *context = api_open("cache");
  order.progress = watch_build, order.progress_context = &w;
  FAILS(FG_ECOMPILER, D16 ": ", api_build(context, order, "head_dim=8,16,24 family=simt", &built));
  expect_built(&built, 3, 2, 0, 1, 0);
  ck_assert_int_eq(w.calls, 3);
  ck_assert_int_eq(w.failures, 1);
  fg_zoo_reader *zoo;
  GOOD(fg_zoo_open("zoo", &zoo));
  ck_assert_int_eq(fg_zoo_count(zoo), 2);
  fg_zoo_free(zoo);
  fg_close(context);
}

/* Threads make what one makes, and one variant of each at a time. */
TEST(test_build_threads) {
  static const char words[] = "head_dim=8,16,24,32,40 pass=forward,backward family=simt";
  static const int jobs[] = {1, 0, 3, 1000};
  api_compiler("compiler", NULL, "exec $CC \"$@\"");
  fg_context *context = api_open("cache");
  for (int i = 0; i < 4; i++) {
    char directory[16], command[64];
    fg_built built = FG_INIT(fg_built);
    snprintf(directory, sizeof directory, "zoo%d", i);
    fg_order order = order_of(directory);
    watch w = {.caller = pthread_self()};
    order.jobs = jobs[i];
    order.progress = watch_build, order.progress_context = &w;
    GOOD(api_build(context, order, words, &built));
    expect_built(&built, 10, 10, 0, 0, 0);
    ck_assert_int_eq(w.calls, 10);
    ck_assert_int_eq(api_compiled("compiler"), 10 * (i + 1));
    snprintf(command, sizeof command, "diff -r zoo0 %s", directory);
    ck_assert_int_eq(system(command), 0);
  }
  fg_close(context);
}

/* The program's own form is written by the library too. */
TEST(test_build_embedded) {
  fg_context *context = api_open("cache");
  fg_order order = order_of("zoo");
  order.embed = "kernels";
  GOOD(api_build(context, order, "head_dim=8 family=simt", NULL));
  ck_assert_int_eq(access("zoo/kernels.c", F_OK) | access("zoo/kernels.h", F_OK), 0);
  order.embed = "1";
  FAILS(FG_EARGUMENT, "embed: \"1\" is not a name of C",
        api_build(context, order, "head_dim=8 family=simt", NULL));
  order.embed = "xor_eq";
  FAILS(FG_EARGUMENT, "embed: xor_eq is a word of C or C++, no name for a variable",
        api_build(context, order, "head_dim=8 family=simt", NULL));
  fg_close(context);
}

TEST(test_build_refused) {
  fg_context *context = api_open("cache");
  fg_order order = order_of("zoo");
  fg_built built = FG_INIT(fg_built);
  FAILS(FG_ESPEC, "simt joins a zoo only when named: family=simt",
        api_build(context, order, "head_dim=8 block_q=4", &built));
  FAILS(FG_ESPEC, "head_dim: \"7\"", api_build(context, order, "head_dim=7 family=simt", &built));
  FAILS(FG_ESPEC, "no-such.lua", api_build(context, order, "no-such.lua", &built));
  FAILS(FG_ESPEC, "attn_fwd-bf16-d8: no plan fits",
        api_build(context, order, "head_dim=8 family=simt warps=9", &built));
  order.arch = "sm90";
  FAILS(FG_EARGUMENT, "arch \"sm90\"", api_build(context, order, "head_dim=8 family=simt", &built));
  setenv("FLASHGEN_NVRTC", "/nonexistent", 1);
  order.arch = "sm_80";
  FAILS(FG_EENVIRONMENT, "NVRTC is not to be found",
        api_build(context, order, "head_dim=8 family=simt", &built));
  ck_assert_int_ne(access("zoo", F_OK), 0);
  order.arch = NULL, order.plans = -7;
  FAILS(FG_EARGUMENT,
        "order: plans = -7 and jobs = ", api_build(context, order, "head_dim=8", &built));
  order.plans = 0, order.directory = "no/zoo";
  FAILS(FG_EIO, "no/zoo", api_build(context, order, "head_dim=8 family=simt", &built));
  order.directory = NULL;
  FAILS(FG_EARGUMENT, "order: it needs a directory",
        api_build(context, order, "head_dim=8", &built));
  order.size = 0;
  FAILS(FG_EARGUMENT, "order: its size is 0", api_build(context, order, "head_dim=8", &built));
  expect_built(&built, 0, 0, 0, 0, 0);
  fg_close(context);
}

TEST_FIXTURE(api_enter, api_leave)
