/* t_build_fault.c - `flashgen build` that is interrupted, killed at any step, or out of disk: the
 * next run goes on, and ends with the same bytes as one that was never disturbed. */
#include "build_case.h"
#include "scratch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREE "build head_dim=8,16,40 family=simt --arch host -q "
#define TWO   "build head_dim=8,16 family=simt --arch host -q "
enum { OF_THREE = 3 };

static const char *words = THREE; /* of the build that is disturbed */
static int variants = OF_THREE;

/* The run under the fault "call nth error", in this directory. */
static program_result disturbed(const char *call, int nth, int error, const char *dir) {
  char fault[64];
  const program_setup setup = {.env = {build_cc(), "LD_PRELOAD=" ZOO_FAULT, fault}};
  snprintf(fault, sizeof fault, "ZOO_FAULT=%s %d %d", call, nth, error);
  return program_run(&setup, "%s-j 1 -o %s", words, dir);
}

/* The next run ends the work, compiling at most `most` variants. */
static void goes_on(const char *dir, int most) {
  char again[256];
  build_compiles();
  snprintf(again, sizeof again, "%s-o %s", words, dir);
  build_gives(0, again);
  int compiled = build_compiles();
  ck_assert_msg(compiled <= most, "%s: %d compiles, expected %d", dir, compiled, most);
  build_same(dir, "good");
  ck_assert_int_eq(build_files(dir), variants + 1);
}

/* Killed before the nth call of each kind: a worker at code files and the journal, the program
 * itself at the manifest and where files get their names. */
static const struct {
  const char *call;
  int calls;
} kinds[] = {{"write", 4}, {"fsync", 2}, {"renameat", 3}, {"unlinkat", 2}};

TEST_LOOP(killed_at_every_call, sizeof kinds / sizeof *kinds) {
  char dir[32];
  words = TWO, variants = 2;
  build_gives(0, TWO "-o good");
  for (int n = 1; n <= kinds[_i].calls; n++) {
    snprintf(dir, sizeof dir, "zoo%d", n);
    ck_assert_int_ne(disturbed(kinds[_i].call, n, 0, dir).code, 0);
    goes_on(dir, variants);
  }
}

/* The code that was whole when the program died is not compiled again. */
TEST(killed_late) {
  build_gives(0, THREE "-o good");
  program_result r = disturbed("renameat", 2, 0, "zoo");
  ck_assert_int_eq(r.code, 128 + SIGKILL);
  ck_assert(!build_has("zoo", "manifest.txt"));
  ck_assert(build_has("zoo", "journal.txt"));
  goes_on("zoo", 0);
}

/* An old zoo stays whole until the new one is. */
TEST(old_zoo_stays) {
  build_gives(0, THREE "-o good");
  build_gives(0, "build head_dim=8,48 family=simt --arch host -q -o zoo");
  ck_assert_int_eq(disturbed("renameat", 1, 0, "zoo").code, 128 + SIGKILL);
  ck_assert_int_eq(unlink("zoo/journal.txt"), 0);
  ck_assert_int_eq(system("rm zoo/*.new"), 0);
  build_is_whole("zoo", 2);
  goes_on("zoo", 2);
}

TEST(disk_full) {
  static const struct {
    const char *call;
    int nth, error;
    const char *sentence;
  } faults[] = {
      {"write", 1, ENOSPC, "d16.simt-q16-k32-w4.host.so.new cannot be written: No space left on "},
      {"write", 2, ENOSPC, "journal.txt cannot be written: No space left on device\n"},
      {"fsync", 1, EIO, "d16.simt-q16-k32-w4.host.so.new cannot be written: Input/output error\n"},
      {"renameat", 1, EDQUOT, "d16.simt-q16-k32-w4.host.so cannot be renamed: Disk quota exceeded"},
      {"renameat", 3, ENOSPC, "manifest.txt cannot be renamed: No space left on device\n"},
  };
  char dir[32];
  words = TWO, variants = 2;
  build_gives(0, TWO "-o good");
  for (int i = 0; i < (int)(sizeof faults / sizeof *faults); i++) {
    snprintf(dir, sizeof dir, "zoo%d", i);
    program_result r = disturbed(faults[i].call, faults[i].nth, faults[i].error, dir);
    ck_assert_msg(r.code == 3, "%s: exit %d\n%s", faults[i].sentence, r.code, r.err);
    program_says(r.err, faults[i].sentence);
    program_says(r.err, " of 2 variants are done; the same command goes on from there\n");
    ck_assert_int_eq(program_count(r.err, "\n"), 2);
    ck_assert(!build_has(dir, "manifest.txt"));
    goes_on(dir, i < 3 ? variants : 0);
  }
}

TEST(place_taken) {
  build_gives(0, THREE "-o good");
  ck_assert_int_eq(mkdir("zoo", 0777), 0);
  ck_assert_int_eq(mkdir("zoo/attn_fwd-bf16-d16.simt-q16-k32-w4.host.so.new", 0777), 0);
  program_result r = build_gives(3, THREE "-o zoo");
  program_says(r.err, ".host.so.new cannot be replaced: Is a directory\n");
  ck_assert_int_eq(rmdir("zoo/attn_fwd-bf16-d16.simt-q16-k32-w4.host.so.new"), 0);
  goes_on("zoo", OF_THREE);
}

/* An unprivileged user's run in a directory of which only the reading is allowed. */
TEST(read_only) {
  build_gives(0, THREE "-o good");
  build_gives(0, THREE "-o zoo");
  ck_assert_int_eq(chmod("zoo", 0555), 0);
  program_says(build_gives(0, THREE "-o zoo").out, "nothing to do");
  if (geteuid()) {
    program_result r = build_gives(3, "build head_dim=48 family=simt --arch host -q -o zoo");
    program_says(r.err, "cannot be made: Permission denied\n");
    build_same("zoo", "good");
  }
  ck_assert_int_eq(chmod("zoo", 0755), 0);
}

/* What is under way ends, and counts. */
TEST(interrupted) {
  static const struct {
    int signal, times, code;
    const char *text;
  } ways[] = {{SIGINT, 1, 130, "made"}, {SIGTERM, 1, 130, "made"},
              {SIGINT, 2, 130, "made"}, {SIGKILL, 1, 128 + SIGKILL, "made"},
              {SIGINT, 1, 130, NULL},   {SIGKILL, 1, 128 + SIGKILL, NULL}};
  const program_setup setup = {.env = {build_cc()}};
  char dir[32], first[128];
  build_gives(0, THREE "-o good");
  for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++) {
    snprintf(dir, sizeof dir, "zoo%d", i);
    snprintf(first, sizeof first, THREE "-j 1 -o %s", dir);
    build_compiles();
    program_result r =
        program_interrupted(&setup, ways[i].text, ways[i].signal, ways[i].times, first);
    ck_assert_msg(r.code == ways[i].code, "exit %d\n%s%s", r.code, r.out, r.err);
    ck_assert(!build_has(dir, "manifest.txt"));
    if (ways[i].times == 1 && r.code == 130)
      program_says(r.err, " of 3 variants are done; the same command goes on from there\n");
    goes_on(dir, ways[i].text ? OF_THREE - 1 : OF_THREE);
  }
}

TEST_FIXTURE(build_enter, build_leave)
