/* t_cli_cache.c - `flashgen cache`: what it counts, removes, and says. */
#include "cache/cache.h"
#include "json.h"
#include "program.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES = 5, CODE = 300 << 10 };

static const program_setup own = {.env = {"FLASHGEN_CACHE=kernels"}};

static void exits(program_result r, int code, const char *out, const char *err) {
  ck_assert_msg(r.code == code, "exit %d, expected %d\n%s%s", r.code, code, r.out, r.err);
  if (out) ck_assert_str_eq(r.out, out);
  if (err) ck_assert_str_eq(r.err, err);
}

/* Entries of CODE bytes, written an hour ago: younger ones are not evicted. */
static void fill(void) {
  static char code[CODE];
  fg_cache *cache;
  umask(022);
  ck_assert_int_eq(fg_cache_open("kernels", NULL, NULL, &cache), FG_OK);
  for (int i = 0; i < ENTRIES; i++) {
    fg_key key = {0};
    ck_assert_int_eq(fg_key_add(&key, "number", &i, sizeof i), FG_OK);
    ck_assert(fg_cache_put(cache, &key, "meta", code, sizeof code));
    fg_key_free(&key);
  }
  fg_cache_close(cache);
  ck_assert_int_eq(system("find kernels/k -name '*.k' -exec touch -d '1 hour ago' {} +"), 0);
}

TEST(path) {
  char here[4096], line[5000];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  snprintf(line, sizeof line, "%s/kernels\n", here);
  exits(program_run(&own, "cache path"), 0, line, "");
  ck_assert_int_eq(access("kernels", F_OK), -1); /* asking makes nothing */
  const program_setup xdg = {.env = {"XDG_CACHE_HOME=/x/y"}};
  exits(program_run(&xdg, "cache path"), 0, "/x/y/flashgen\n", "");
}

TEST(empty) {
  program_result r = program_run(&own, "cache stat");
  exits(r, 0, NULL, "");
  program_says(r.out, "\nentries      0\nsize         0.0 MiB of 2048 MiB\ntemporaries  0\n");
  exits(program_run(&own, "cache verify"), 0, NULL, "");
  exits(program_run(&own, "cache gc"), 0, NULL, "");
  exits(program_run(&own, "cache clear"), 0, NULL, "");
  ck_assert_int_eq(access("kernels", F_OK), -1);
}

TEST(counts) {
  fill();
  program_result r = program_run(&own, "cache stat");
  exits(r, 0, NULL, "");
  program_says(r.out, "\nentries      5\nsize         1.5 MiB of 2048 MiB\ntemporaries  0\n");
  static const char *const actions[] = {"stat", "verify", "gc", "path", "clear"};
  for (int i = 0; i < 5; i++) {
    r = program_run(&own, "cache %s --json", actions[i]);
    exits(r, 0, NULL, "");
    ck_assert_msg(!json_error(r.out), "no JSON at: %s", json_error(r.out));
    ck_assert_int_eq(program_count(r.out, "\"path\": \"/"), 1);
    if (i < 3) program_says(r.out, "\"entries\": 5, ");
  }
  program_says(r.out, "\"removed\": 5, \"removed_bytes\": ");
  program_says(program_run(&own, "cache stat").out, "\nentries      0\n");
}

/* Damaged entries are named, removed, and make the exit code. */
TEST(verify) {
  fill();
  exits(program_run(&own, "cache verify"), 0, NULL, "");
  ck_assert_int_eq(system("for f in $(ls kernels/k/*/*.k | head -2); do "
                          "printf x | dd of=$f bs=1 seek=2000 conv=notrunc 2>dd.txt; done"),
                   0);
  program_result r = program_run(&own, "cache verify");
  exits(r, 1, NULL, NULL);
  program_says(r.out, "\nentries      3\n");
  program_says(r.out, "\ndamaged      2\nremoved      2, 0.6 MiB\n");
  ck_assert_int_eq(program_count(r.err, "flashgen: /"), 2);
  ck_assert_int_eq(program_count(r.err, ".k is damaged\n"), 2);
  exits(program_run(&own, "cache verify"), 0, NULL, "");
}

TEST(gc) {
  fill();
  program_result r = program_run(&own, "cache gc");
  program_says(r.out, "removed      0, 0.0 MiB\n");
  r = program_run(&own, "cache gc --size 1"); /* down to 7/8 MiB */
  exits(r, 0, NULL, "");
  program_says(r.out, "\nentries      2\n");
  program_says(r.out, "removed      3, 0.9 MiB\n");
  const program_setup small = {.env = {"FLASHGEN_CACHE=kernels", "FLASHGEN_CACHE_SIZE=1"}};
  program_says(program_run(&small, "cache gc").out, "\nsize         0.6 MiB of 1 MiB\n");
}

TEST(refusals) {
  static const char all[] = "expected stat, verify, gc, clear, path";
  program_refuses(2, "cache: expected one of stat, verify, gc, clear, path", "cache");
  program_refuses(2, "cache: expected one of stat, verify, gc, clear, path", "cache stat gc");
  char sentence[128];
  snprintf(sentence, sizeof sentence, "cache: no action \"claer\" (did you mean \"clear\"?); %s",
           all);
  program_refuses(2, sentence, "cache claer");
  program_refuses(2, "--size is for gc", "cache stat --size 4");
  program_refuses(2, "--size: \"0\" is not an integer of at least 1", "cache gc --size 0");
  program_says(program_gives(0, "cache --help").out, "flashgen cache gc --size 500");
}

/* A directory that cannot be used is the machine's matter, in one sentence. */
TEST(no_directory) {
  scratch_put("kernels", "x", 1);
  program_result r = program_run(&own, "cache stat");
  exits(r, 3, "", NULL);
  ck_assert_int_eq(program_count(r.err, "\n"), 1);
  program_says(r.err, "/kernels");
  unlink("kernels");
  ck_assert_int_eq(mkdir("kernels", 0700) | chmod("kernels", 0777), 0);
  r = program_run(&own, "cache clear");
  exits(r, 3, "", NULL);
  program_says(r.err, "flashgen: the kernel cache ");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
