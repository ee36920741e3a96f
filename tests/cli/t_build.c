/* t_build.c - `flashgen build` on the host device: what it makes, keeps, drops, refuses. */
#include "build_case.h"
#include "json.h"
#include "scratch.h"
#include "zoo/zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST  "family=simt --arch host -q "
#define THREE "build head_dim=8,16,40 " HOST
enum { OF_THREE = 3 };
#define D56_NEXT "attn_fwd-bf16-d56.simt-q4-k32-w4.host"
#define D8       "attn_fwd-bf16-d8.simt-q16-k32-w4.host"

static const char *first(const char *text) {
  static char line[512];
  snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
  return line;
}

/* ---- the same bytes ---- */

TEST(same_bytes) {
  build_gives(0, THREE "-j 1 -o a");
  build_gives(0, THREE "-j 3 -o b");
  ck_assert_int_eq(build_compiles(), 2 * OF_THREE);
  build_same("a", "b");
  build_is_whole("a", OF_THREE);
  const program_setup elsewhere = {.env = {build_cc(), "LANG=C", "TZ=Asia/Tokyo", "HOME=/"}};
  program_result r = program_run(&elsewhere, "build head_dim=40,16,8,8 " HOST "-o c");
  ck_assert_int_eq(r.code, 0);
  build_same("a", "c");
  ck_assert_int_eq(mkdir("deep", 0777) | chdir("deep"), 0); /* its own TMPDIR, too */
  program_gives(0, "build head_dim=8,16,40 " HOST "-o d");  /* the same compiler by its own name */
  ck_assert_int_eq(chdir(".."), 0);
  build_same("a", "deep/d");
}

/* One mechanism behind the program and the library. */
TEST(as_the_library_does) {
  static const char *const specs[] = {"head_dim=8,16,40", "family=simt"};
  fg_config config = FG_INIT(fg_config);
  fg_order order = FG_INIT(fg_order);
  fg_built built = FG_INIT(fg_built);
  fg_context *context;
  build_gives(0, THREE "-o program");
  build_compiles();
  const char *cc = build_cc();
  setenv("FLASHGEN_CC", strchr(cc, '=') + 1, 1);
  config.device = "host", config.cache = "cache";
  order.specs = specs, order.n_specs = 2;
  order.directory = "program";
  ck_assert_int_eq(fg_open(&config, &context), FG_OK);
  ck_assert_int_eq(fg_build(context, &order, &built), FG_OK);
  ck_assert_int_eq(built.kept, OF_THREE);
  ck_assert_int_eq(build_compiles(), 0);
  order.directory = "library";
  ck_assert_int_eq(fg_build(context, &order, &built), FG_OK);
  ck_assert_int_eq(built.made, OF_THREE);
  ck_assert_int_eq(build_compiles(), OF_THREE);
  fg_close(context);
  unsetenv("FLASHGEN_CC");
  build_same("program", "library");
}

/* What is made is what `flashgen list` says, and it is what would be launched. */
TEST(as_list_says) {
  build_gives(0, "build head_dim=8 pass=forward,backward mask=causal --plans 2 " HOST "-o zoo");
  program_result r = program_gives(0, "list head_dim=8 pass=forward,backward mask=causal "
                                      "family=simt --plans 2 --arch host -q");
  fg_zoo_reader *zoo;
  ck_assert_int_eq(fg_zoo_open("zoo", &zoo), FG_OK);
  ck_assert_int_eq(fg_zoo_count(zoo), program_count(r.out, "\n"));
  for (int i = 0; i < fg_zoo_count(zoo); i++) program_says(r.out, fg_zoo_at(zoo, i)->name);
  const fg_zoo_item *item = fg_zoo_at(zoo, 0);
  r = program_gives(0, "emit --recipe %s", item->name);
  ck_assert_str_eq(r.out, item->recipe);
  ck_assert_str_eq(item->expression, "");
  ck_assert_str_eq(item->figures, "");
  program_says(item->compiler, " -std=gnu11 ");
  ck_assert_ptr_null(strchr(item->compiler, '/'));
  fg_zoo_free(zoo);
}

/* ---- a second time ---- */

TEST(nothing_to_do) {
  struct stat before, after;
  program_result r = build_gives(0, THREE "-o zoo");
  program_says(r.out, "made  " D8 "  ");
  program_says(r.out, "\nzoo: 3 variants: 3 made, 0 kept, 0 failed, 0 removed\n");
  ck_assert_int_eq(build_compiles(), OF_THREE);
  stat("zoo/manifest.txt", &before);
  r = build_gives(0, THREE "-o zoo");
  ck_assert_str_eq(r.out, "zoo is up to date: 3 variants, nothing to do\n");
  ck_assert_str_eq(r.err, "");
  ck_assert_int_eq(build_compiles(), 0);
  stat("zoo/manifest.txt", &after);
  ck_assert(before.st_ino == after.st_ino);
  program_says(build_gives(0, THREE "-v -o zoo").out, "kept  " D8 "  ");
}

TEST(changed_spec) {
  build_gives(0, THREE "-o zoo");
  build_compiles();
  program_result r = build_gives(0, "build head_dim=16,40,48 " HOST "-o zoo");
  program_says(r.out, "zoo: 3 variants: 1 made, 2 kept, 0 failed, 1 removed\n");
  ck_assert_int_eq(build_compiles(), 1);
  ck_assert_int_eq(build_has("zoo", D8 ".so"), 0);
  build_is_whole("zoo", 3);
  build_gives(0, "build head_dim=16,40,48 " HOST "-o fresh");
  build_same("zoo", "fresh");
  r = build_gives(0, "build head_dim=16 " HOST "-o zoo");
  program_says(r.out, "zoo: 1 variant: 0 made, 1 kept, 0 failed, 2 removed\n");
  build_is_whole("zoo", 1);
}

/* Another text is another kernel, whatever its name. */
TEST(changed_template) {
  const program_setup own = {.env = {build_cc(), "FLASHGEN_TEMPLATES=templates"}};
  ck_assert_int_eq(system("cp -r " FLASHGEN_SOURCE "/templates ."), 0);
  build_gives(0, "build head_dim=8 pass=forward,backward " HOST "-o zoo");
  ck_assert_int_eq(build_compiles(), 2);
  ck_assert_int_eq(system("echo '// more' >>templates/attention/simt/forward.cut"), 0);
  program_result r = program_run(&own, "build head_dim=8 pass=forward,backward " HOST "-o zoo");
  program_says(r.out, "zoo: 2 variants: 1 made, 1 kept, 0 failed, 0 removed\n");
  ck_assert_int_eq(build_compiles(), 1);
}

TEST(damaged_files) {
  static const char file[] = "zoo/" D8 ".so";
  build_gives(0, THREE "-o good");
  build_gives(0, THREE "-o zoo");
  build_compiles();
  ck_assert_int_eq(truncate(file, 100), 0);
  program_says(build_gives(0, THREE "-o zoo").out, ": 1 made, 2 kept, 0 failed, 0 removed\n");
  ck_assert_int_eq(unlink(file), 0);
  program_says(build_gives(0, THREE "-o zoo").out, ": 1 made, 2 kept, 0 failed, 0 removed\n");
  ck_assert_int_eq(build_compiles(), 2);
  build_same("zoo", "good");
  ck_assert_int_eq(truncate("zoo/manifest.txt", 300), 0);
  program_result r = build_gives(0, THREE "-o zoo");
  ck_assert_str_eq(r.err, "flashgen: zoo/manifest.txt is damaged: its end is missing; it is made "
                          "anew\n");
  build_same("zoo", "good");
}

/* ---- variants that fail ---- */

TEST(refused_by_the_compiler) {
  program_result r = build_gives(1, "build head_dim=8,24,40 " HOST "-o zoo");
  program_says(r.out, "FAIL  attn_fwd-bf16-d24.simt-q16-k32-w4.host\n      attn_fwd-bf16-d24.");
  program_says(r.out, " refused it (exit 1):\n  kernel.c:9:1: error: not this one [");
  program_says(r.out, "\nzoo: 3 variants: 2 made, 0 kept, 1 failed, 0 removed\n");
  build_is_whole("zoo", 2);
  r = build_gives(1, "build head_dim=8,24,40 " HOST "-o zoo");
  program_says(r.out, "\nzoo: 3 variants: 0 made, 2 kept, 1 failed, 0 removed\n");
  r = build_gives(1, "build head_dim=24 " HOST "-o zoo");
  program_says(r.out, "\nzoo: 1 variant: 0 made, 0 kept, 1 failed, 2 removed\n");
  build_is_whole("zoo", 0);
}

/* `flashgen check` tries the plan that would be launched, unless its own is named. */
static void check_takes_another(void) {
  const program_setup own = {.env = {build_cc()}};
  static const char words[] =
      "check head_dim=56 family=simt --device host b=1 h=1 hk=1 nq=9 nk=9 --seed 1 -q%s";
  program_result r = program_run(&own, words, "");
  ck_assert_int_eq(r.code, 0);
  program_says(r.out, "\nPASS  " D56_NEXT "  ");
  program_says(r.out, "\n      instead of another plan: attn_fwd-bf16-d56.simt-q16-k32-w4.host: ");
  program_says(r.out, "\n1 variant, 1 case, seed 1: 0 failed, 0 wrong\n");
  r = program_run(&own, words, " --plan simt-q16-k32-w4");
  ck_assert_int_eq(r.code, 1);
  program_says(r.out, "\nFAIL  attn_fwd-bf16-d56.simt-q16-k32-w4.host");
}

/* A best plan that the compiler refuses gives way to the next, for the program and the library. */
TEST(another_plan) {
  static const char *const specs[] = {"head_dim=8,56", "family=simt"};
  static const char why[] = "attn_fwd-bf16-d56.simt-q16-k32-w4.host: ";
  fg_config config = FG_INIT(fg_config);
  fg_order order = FG_INIT(fg_order);
  fg_built built = FG_INIT(fg_built);
  fg_context *context;
  program_result r = build_gives(0, "build head_dim=8,56 " HOST "-o zoo");
  program_says(r.out, "made  " D56_NEXT "  ");
  program_says(r.out, "      instead of another plan: ");
  program_says(r.out, why);
  program_says(r.out, "\nzoo: 2 variants: 2 made, 0 kept, 0 failed, 0 removed\n");
  build_is_whole("zoo", 2);
  ck_assert_int_eq(build_has("zoo", D56_NEXT ".so"), 1);
  r = build_gives(0, "build head_dim=8,56 " HOST "-o zoo");
  program_says(r.out, "kept  " D56_NEXT "  ");
  r = build_gives(1, "build head_dim=56 " HOST "-o other --plan simt-q16-k32-w4");
  program_says(r.out, "FAIL  attn_fwd-bf16-d56.simt-q16-k32-w4.host\n");
  build_gives(1, "build head_dim=56 " HOST "-o other --plans 2");
  check_takes_another();
  const char *cc = build_cc();
  setenv("FLASHGEN_CC", strchr(cc, '=') + 1, 1);
  config.device = "host", config.cache = "cache";
  order.specs = specs, order.n_specs = 2, order.directory = "library";
  ck_assert_int_eq(fg_open(&config, &context), FG_OK);
  ck_assert_int_eq(fg_build(context, &order, &built), FG_OK);
  ck_assert_int_eq(built.made, 2);
  fg_close(context);
  unsetenv("FLASHGEN_CC");
  build_same("zoo", "library");
}

/* A worker that dies takes one variant with it. */
TEST(worker_that_dies) {
  const program_setup own = {.env = {"TMPDIR=.", build_cc()}}; /* where it leaves its files */
  program_result r = program_run(&own, "build head_dim=8,32,40 " HOST "-o zoo -j 2");
  ck_assert_int_eq(r.code, 1);
  program_says(r.out, "FAIL  attn_fwd-bf16-d32.simt-q16-k32-w4.host\n"
                      "      its process died of signal 9\n");
  program_says(r.out, "\nzoo: 3 variants: 2 made, 0 kept, 1 failed, 0 removed\n");
  build_is_whole("zoo", 2);
}

/* For build systems: a file as new as the zoo, and what it depends on. */
TEST(stamp) {
  static const char spec[] = "return { head_dim = { 8, 16 }, family = \"simt\" }\n";
  char rule[1 << 14] = "";
  scratch_put("spec#1$.lua", spec, sizeof spec - 1);
  build_gives(0, "build spec#1$.lua --arch host -q -o zoo --stamp zoo.stamp");
  FILE *f = fopen("zoo.stamp.d", "r");
  ck_assert_ptr_nonnull(f);
  rule[fread(rule, 1, sizeof rule - 1, f)] = 0;
  fclose(f);
  ck_assert_str_eq(rule, "zoo.stamp: \\\n  " FLASHGEN_PROGRAM " \\\n  spec\\#1$$.lua\n");
  ck_assert_int_eq(system("cp -r " FLASHGEN_SOURCE "/templates ."), 0);
  const program_setup own = {.env = {build_cc(), "FLASHGEN_TEMPLATES=templates"}};
  program_result r = program_run(&own, "build head_dim=8 " HOST "-o zoo --stamp other.stamp");
  ck_assert_int_eq(r.code, 0);
  f = fopen("other.stamp.d", "r");
  rule[fread(rule, 1, sizeof rule - 1, f)] = 0;
  fclose(f);
  ck_assert_int_eq(strncmp(rule, "other.stamp: ", 13), 0);
  program_says(rule, " \\\n  templates/attention/simt/forward.cut \\\n");
  program_says(rule, " \\\n  templates/host/target.lua \\\n");
  ck_assert_ptr_null(strstr(rule, "spec"));
}

/* It is not there, or not touched, where the zoo is not what was ordered. */
TEST(stamp_of_a_failure) {
  build_gives(1, "build head_dim=8,24 " HOST "-o zoo --stamp zoo.stamp");
  ck_assert_int_eq(build_has(".", "zoo.stamp") | build_has(".", "zoo.stamp.d"), 0);
  program_result r = program_gives(3, "build head_dim=8 " HOST "-o zoo --stamp no/zoo.stamp");
  ck_assert_str_eq(r.err,
                   "flashgen: no/zoo.stamp.d cannot be written: No such file or directory\n");
  build_is_whole("zoo", 1);
}

TEST(json) {
  program_result r = build_gives(1, "build head_dim=8,24 " HOST "-o zoo --json");
  ck_assert_msg(!json_error(r.out), "no JSON at: %s", json_error(r.out));
  program_says(r.out, "{\"schema\": 1, \"results\": [\n  {\"name\": \"attn_fwd-bf16-d24.");
  program_says(r.out, "\"result\": \"FAIL\", \"bytes\": 0, \"signal\": 0, \"text\": \"attn_fwd-");
  program_says(r.out, "\"result\": \"made\", \"bytes\": ");
  program_says(r.out,
               "], \"variants\": 2, \"made\": 1, \"kept\": 0, \"failed\": 1, \"removed\": 0, "
               "\"complete\": true}\n");
}

TEST(progress) {
  program_result r = build_gives(0, "build head_dim=8 family=simt --arch host -o zoo");
  ck_assert_str_eq(r.err, "1/1 done, 0 failed, 0 s left\n");
  r = build_gives(0, "build " D8 " --device host -o zoo -q"); /* a name is naming the family */
  ck_assert_str_eq(r.out, "zoo is up to date: 1 variant, nothing to do\n");
}

/* ---- what it refuses ---- */

TEST(refusals) {
  program_refuses(2, "build needs -o DIR, the zoo", "build head_dim=8 family=simt");
  program_refuses(2, "--arch and --device: give one of them",
                  "build head_dim=8 --arch host --device host -o zoo");
  program_refuses(2,
                  "simt joins a zoo only when named: family=simt; no other family computes any of "
                  "these",
                  "build head_dim=8,16 block_q=4 --arch host -o zoo");
  program_refuses(2, "no variant matches --filter x",
                  "build head_dim=8 family=simt --filter x -o zoo");
  ck_assert_int_eq(build_has(".", "zoo"), 0);
  ck_assert_int_eq(program_gives(2, "build head_dim=8 --arch sm90 -o zoo").out[0], 0);
  program_refuses(3, "the directory no/zoo cannot be made: No such file or directory",
                  "build head_dim=8 " HOST "-o no/zoo");
  scratch_put("file", "x", 1);
  program_refuses(3, "the directory file cannot be read: Not a directory",
                  "build head_dim=8 " HOST "-o file");
}

TEST(no_compiler) {
  const program_setup no_cc = {.env = {"FLASHGEN_CC=/nonexistent"}};
  const program_setup no_nvrtc = {.env = {"FLASHGEN_NVRTC=/nonexistent"}};
  program_result r = program_run(&no_cc, "build head_dim=8 " HOST "-o zoo");
  ck_assert_int_eq(r.code, 3);
  program_says(r.err, "FLASHGEN_CC): /nonexistent cannot be started");
  ck_assert_str_eq(first(r.err), r.err[strlen(r.err) - 1] == '\n' ? first(r.err) : "");
  r = program_run(&no_nvrtc, "build head_dim=8 family=simt --arch sm_80 -o zoo -q");
  ck_assert_int_eq(r.code, 3);
  program_says(r.err, "flashgen: NVRTC is not to be found: tried /nonexistent; FLASHGEN_NVRTC ");
  ck_assert_int_eq(build_has(".", "zoo"), 0);
}

/* A zoo of a newer flashgen is not touched. */
TEST(newer_zoo) {
  static const char newer[] = "flashgen zoo 2\nwho knows\n";
  ck_assert_int_eq(mkdir("zoo", 0777), 0);
  scratch_put("zoo/manifest.txt", newer, sizeof newer - 1);
  program_refuses(3, "zoo/manifest.txt has format 2; this flashgen reads format 1",
                  "build head_dim=8 " HOST "-o zoo");
  ck_assert_int_eq(build_files("zoo"), 1);
}

/* Nor is another program's file of that name; an empty one is what a full disk may leave. */
TEST(foreign_manifest) {
  static const char foreign[] = "name,size\nmine,1\n";
  char text[64] = "";
  ck_assert_int_eq(mkdir("zoo", 0777), 0);
  scratch_put("zoo/manifest.txt", foreign, sizeof foreign - 1);
  program_refuses(3,
                  "zoo/manifest.txt is no manifest of a zoo: remove it, or take another directory",
                  "build head_dim=8 " HOST "-o zoo");
  ck_assert_int_eq(build_files("zoo"), 1);
  FILE *file = fopen("zoo/manifest.txt", "r");
  ck_assert_uint_eq(fread(text, 1, sizeof text - 1, file), sizeof foreign - 1);
  fclose(file);
  ck_assert_str_eq(text, foreign);
  ck_assert_int_eq(truncate("zoo/manifest.txt", 0), 0);
  program_result r = program_run(NULL, "build head_dim=8 " HOST "-o zoo -q");
  ck_assert_int_eq(r.code, 0);
  program_says(r.err, "zoo/manifest.txt is damaged: it is no manifest of a zoo; it is made anew");
}

TEST_FIXTURE(build_enter, build_leave)
