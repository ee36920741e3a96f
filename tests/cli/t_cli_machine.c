/* t_cli_machine.c - what surrounds the program: doctor, the environment, streams that fail,
 * terminals, interrupts. */
#include "base/setting.h"
#include "json.h"
#include "program.h"
#include "scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL "b=1 h=1 nq=9 nk=9 --seed 1"
#define MANY  "check head_dim=8,16,24,32,40,48 mask=full,causal -j 1 " SMALL
enum { MANY_VARIANTS = 12 };

static void exits(program_result r, int code, const char *out, const char *err) {
  ck_assert_msg(r.code == code, "exit %d, expected %d\n%s%s", r.code, code, r.out, r.err);
  if (out) ck_assert_str_eq(r.out, out);
  if (err) ck_assert_str_eq(r.err, err);
}

/* ---- doctor and the environment ---- */

/* The line of a variable: name, value, origin, help, with spaces between. */
static void doctor_says(const char *report, fg_setting i, const char *value, const char *origin) {
  char start[64], got_value[512], got_origin[64];
  int help = 0;
  const char *at = strstr(report, "\nenvironment\n");
  ck_assert_ptr_nonnull(at);
  snprintf(start, sizeof start, "\n  %s ", fg_settings[i].name);
  ck_assert_msg((at = strstr(at, start)) != NULL, "no %s in %s", fg_settings[i].name, report);
  at += strlen(start);
  ck_assert_int_eq(sscanf(at, "%511s %63s %n", got_value, got_origin, &help), 2);
  ck_assert_str_eq(got_value, value);
  ck_assert_str_eq(got_origin, origin);
  ck_assert_int_eq(strncmp(at + help, fg_settings[i].help, strlen(fg_settings[i].help)), 0);
}

TEST(bad_numbers) {
  const program_setup given = {.env = {"FLASHGEN_CACHE_SIZE=2GB"}};
  program_result r = program_run(&given, "doctor");
  ck_assert_ptr_nonnull(strstr(r.out, " is not allowed; expected a number above 0\n"));
  r = program_run(&given, "list head_dim=8");
  exits(r, 2, "",
        "flashgen: FLASHGEN_CACHE_SIZE: \"2GB\" is not allowed; expected a number above 0\n");
  const program_setup jit = {.env = {"FLASHGEN_JIT=no"}};
  exits(program_run(&jit, "list head_dim=8"), 2, "",
        "flashgen: FLASHGEN_JIT: \"no\" is not allowed; expected 0 or 1\n");
  const program_setup topics = {.env = {"FLASHGEN_VERBOSE=cache,all"}};
  exits(program_run(&topics, "check head_dim=8"), 2, "",
        "flashgen: FLASHGEN_VERBOSE: \"cache,all\" is not allowed; expected words of "
        "dispatch,cache,compile\n");
}

TEST(doctor) {
  const program_setup bare = {.env = {"HOME", "XDG_CACHE_HOME", "FLASHGEN_DEVICE"}};
  program_result r = program_run(&bare, "doctor");
  exits(r, 0, NULL, "");
  program_says(r.out, "\n  compiler     ok       cc ");
  program_says(r.out, "\n  Lua          ok       Lua 5.4");
  program_says(r.out, "\n  a kernel     ok       o ");
  ck_assert_int_eq(program_count(r.out, " missing "), 0);
  for (int i = 0; i < FG_SETTINGS; i++) {
    const char *value = fg_settings[i].fallback;
    if (i != FG_SET_TMPDIR) doctor_says(r.out, (fg_setting)i, *value ? value : "-", "default");
  }
  for (int i = 0; i < FG_SETTINGS; i++) {
    char variable[64];
    program_setup given = {.env = {variable}};
    snprintf(variable, sizeof variable, "%s=0123", fg_settings[i].name);
    doctor_says(program_run(&given, "doctor").out, (fg_setting)i, "0123", "environment");
  }
}

/* How many files of a directory of templates are used, and a name that may be misspelt. */
TEST(doctor_counts_templates) {
  const program_setup with = {.env = {"FLASHGEN_TEMPLATES=t"}};
  scratch_put("t/tile/none.cut", "x\n", 2);
  program_says(
      program_run(&with, "doctor").out,
      "\n  directory    ok       t replaces 0 built-in templates, and has 1 of other names: "
      "tile/none.cut\n");
  ck_assert_int_eq(system("cp " FLASHGEN_SOURCE "/templates/tile/rows.cut t/tile"), 0);
  scratch_put("t/tile/more.cut", "x\n", 2);
  program_says(program_run(&with, "doctor").out,
               "t replaces 1 built-in template, and has 2 of other names: tile/more.cut, ...\n");
  ck_assert_int_eq(system("rm -r t/tile"), 0);
  program_result r = program_run(&with, "doctor");
  ck_assert_int_eq(r.code, 1);
  program_says(r.out, "\n  directory    missing  templates t: there is no .cut or .lua file\n");
}

/* The same as one JSON document. */
TEST(doctor_as_json) {
  const program_setup bad = {.env = {"FLASHGEN_WISDOM=absent.txt", "FLASHGEN_JIT=no"}};
  program_result r = program_run(&bad, "doctor --json");
  ck_assert_msg(json_error(r.out) == NULL, "%s", r.out);
  ck_assert_str_eq(r.err, "");
  program_says(r.out, "{\"section\": \"machine\", \"what\": \"compiler\", \"state\": \"ok\", ");
  program_says(r.out, "{\"section\": \"device host\", \"what\": \"a kernel\", \"state\": ");
  program_says(r.out, "{\"arch\": \"sm_90a\", \"families\": \"wgmma, mma, decode, simt\", ");
  program_says(r.out, "\"trouble\": \"absent.txt cannot be used: No such file or directory\"}");
  program_says(r.out, "{\"name\": \"FLASHGEN_JIT\", \"value\": \"no\", \"origin\": "
                      "\"environment\", \"expected\": \"0 or 1\", \"trouble\": null}");
  for (int i = 0; i < FG_SETTINGS; i++) program_says(r.out, fg_settings[i].name);
}

TEST(no_compiler) {
  const program_setup none = {.env = {"FLASHGEN_CC=/nonexistent"}};
  static const char sentence[] = "the C compiler of the host device (FLASHGEN_CC): /nonexistent "
                                 "cannot be started: No such file or directory\n";
  program_result r = program_run(&none, "check head_dim=8,16 -j 2 -q " SMALL);
  ck_assert_int_eq(r.code, 3);
  ck_assert_int_eq(program_count(r.out, "FAIL") + program_count(r.out, "PASS"), 0);
  ck_assert_int_eq(program_count(r.err, "\n"), 2); /* the variable, and the sentence */
  program_says(r.err, sentence);
  r = program_run(&none, "check head_dim=8,16 --json -q " SMALL);
  ck_assert_int_eq(r.code, 3);
  ck_assert_ptr_null(json_error(r.out));
  r = program_run(&none, "doctor");
  ck_assert_int_eq(r.code, 3);
  ck_assert_int_eq(program_count(r.out, "/nonexistent"), 3); /* the sentence, and the variable */
  program_says(r.out, sentence);
  program_says(r.out, "\n  a kernel     missing  not tried: there is no compiler\n");
  static const char variable[] = "flashgen: FLASHGEN_CC: /nonexistent cannot be used: No such file "
                                 "or directory\n";
  exits(program_run(&none, "list head_dim=8 -q"), 0, NULL, variable);
  exits(program_run(&none, "emit head_dim=8 --arch host"), 0, NULL, variable);
}

/* A variable that names what is not there is said once, whether or not the command needs it. */
TEST(named_and_not_there) {
  static const struct {
    const char *variable, *why;
  } rows[] = {
      {"FLASHGEN_WISDOM=absent.txt", "absent.txt cannot be used: No such file or directory"},
      {"FLASHGEN_WISDOM=here.txt:absent.txt",
       "absent.txt cannot be used: No such file or directory"},
      {"FLASHGEN_WISDOM=.", ". cannot be used: Is a directory"},
      {"FLASHGEN_CC=no-such-cc", "no-such-cc cannot be used: No such file or directory"},
      {"FLASHGEN_CC=./here.txt", "./here.txt cannot be used: Permission denied"},
      {"FLASHGEN_NVRTC=./absent.so", "./absent.so cannot be used: No such file or directory"},
      {"FLASHGEN_CACHE_RO=.::absent", "absent cannot be used: No such file or directory"},
      {"FLASHGEN_TEMPLATES=here.txt", "here.txt cannot be used: Not a directory"}};
  char sentence[256];
  scratch_put("here.txt", "", 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const program_setup setup = {.env = {rows[i].variable}};
    snprintf(sentence, sizeof sentence, "flashgen: %.*s: %s\n", (int)strcspn(rows[i].variable, "="),
             rows[i].variable, rows[i].why);
    program_result r = program_run(&setup, "check head_dim=8,16 -j 2 -q " SMALL);
    ck_assert_msg(!strncmp(r.err, sentence, strlen(sentence)), "%s", r.err);
    ck_assert_int_eq(program_count(r.err, sentence), 1);
    exits(program_run(&setup, "cache path"), 0, NULL, sentence);
    snprintf(sentence, sizeof sentence, "  %s\n", rows[i].why);
    program_says(program_run(&setup, "doctor").out, sentence);
  }
  const program_setup own = {.env = {"FLASHGEN_WISDOM=absent.txt"}}; /* tune would make it */
  exits(program_run(&own, "tune head_dim=8"), 2, "", "flashgen: tune needs --shapes FILE.lua\n");
  static const char *const good[] = {"FLASHGEN_WISDOM=here.txt:", "FLASHGEN_WISDOM=none",
                                     "FLASHGEN_CC=cc", "FLASHGEN_CACHE_RO=:."};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    const program_setup setup = {.env = {good[i]}};
    exits(program_run(&setup, "list head_dim=8 -q"), 0, NULL, "");
  }
}

/* One that is there and refuses everything is a matter of the kernel. */
TEST(compiler_that_fails) {
  const program_setup bad = {.env = {"FLASHGEN_CC=false"}};
  program_result r = program_run(&bad, "check head_dim=8 -q " SMALL);
  ck_assert_int_eq(r.code, 1);
  program_says(r.out, ": false refused it (exit 1):");
  r = program_run(&bad, "doctor");
  ck_assert_int_eq(r.code, 3);
}

TEST(no_directory) {
  const program_setup none = {.env = {"TMPDIR=/nonexistent"}};
  static const char sentence[] = "/nonexistent: no temporary directory there: No such file or "
                                 "directory\n";
  program_result r = program_run(&none, "check head_dim=8,16 -q " SMALL);
  ck_assert_int_eq(r.code, 3);
  ck_assert_int_eq(program_count(r.err, "\n"), 1);
  program_says(r.err, sentence);
  r = program_run(&none, "doctor");
  ck_assert_int_eq(r.code, 3);
  program_says(r.out, sentence);
}

TEST(bare_environment) {
  const program_setup bare = {.env = {"HOME", "XDG_CACHE_HOME", "TERM", "LANG"}};
  exits(program_run(&bare, "check head_dim=8 -q " SMALL), 0, NULL, "");
  exits(program_run(&bare, "doctor"), 0, NULL, "");
}

/* ---- streams ---- */

TEST(stdout_that_cannot_be_written) {
  const program_setup closed = {.out = PROGRAM_CLOSED}, full = {.out = PROGRAM_FULL};
  static const char no_file[] = "flashgen: stdout cannot be written: Bad file descriptor\n";
  static const char no_space[] = "flashgen: stdout cannot be written: No space left on device\n";
  static const char *const words[] = {"list -q head_dim=8", "check -q head_dim=8 " SMALL,
                                      "list --help", "--help", "--version"};
  for (int i = 0; i < 5; i++) {
    exits(program_run(&closed, "%s", words[i]), 3, "", no_file);
    exits(program_run(&full, "%s", words[i]), 3, "", no_space);
  }
  program_result r = program_run(&full, "emit head_dim=64"); /* more than a buffer */
  ck_assert_int_eq(r.code, 3);
  program_says(r.err, "flashgen: stdout cannot be written");
}

/* A reader that has seen enough: no noise, and no work for nobody. */
TEST(reader_that_left) {
  const program_setup left = {.out = PROGRAM_LEFT};
  exits(program_run(&left, "list -q " FLASHGEN_SOURCE "/specs/quickstart.lua --json"), 0, "", "");
  exits(program_run(&left, "emit head_dim=64"), 0, "", "");
  exits(program_run(&left, "--help"), 0, "", "");
  program_result r = program_run(&left, MANY);
  ck_assert_int_eq(r.code, 0);
  ck_assert_ptr_null(strstr(r.err, "12/12"));
  ck_assert_ptr_null(strstr(r.err, "flashgen"));
}

/* ---- progress ---- */

/* The longest stretch without a carriage return or line's end, in bytes. */
static int longest(const char *text) {
  int most = 0;
  for (size_t n; *text; text += n + (text[n] != 0)) {
    n = strcspn(text, "\r\n");
    if ((int)n > most) most = (int)n;
  }
  return most;
}

TEST(progress_without_a_terminal) {
  program_result r = program_gives(0, "check head_dim=8,16,24 -j 1 " SMALL);
  program_says(r.err, "1/3 done, 0 failed, ");
  program_says(r.err, "\n3/3 done, 0 failed, 0 s left\n");
  ck_assert_ptr_null(strchr(r.err, '\r'));
  ck_assert_ptr_null(strchr(r.out, '\r'));
}

/* One line, in place, without escape sequences and never wider than the terminal. */
TEST(progress_on_a_terminal) {
  static const int columns[] = {10, 80};
  for (int i = 0; i < 2; i++) {
    const program_setup terminal = {.terminal = columns[i], .env = {"TERM=dumb", "COLUMNS=10"}};
    program_result r = program_run(&terminal, "check head_dim=8,16 " SMALL);
    ck_assert_int_eq(r.code, 0);
    ck_assert_ptr_null(strchr(r.err, '\033'));
    ck_assert_ptr_null(strchr(r.err, '\n'));
    program_says(r.err, "\r[1/2] 0 f");
    ck_assert_int_lt(longest(r.err), columns[i]);
    ck_assert_int_eq(r.err[strlen(r.err) - 1], '\r');
    ck_assert_str_eq(program_run(&terminal, "check -q head_dim=8 " SMALL).err, "");
  }
}

/* ---- interrupts ---- */

/* What is under way ends, nothing new begins, and what was done is said. */
TEST(interrupt) {
  static const struct {
    int signal, group;
    const char *text;
  } kind[] = {{SIGINT, 0, "PASS"}, {SIGTERM, 0, "PASS"}, {SIGINT, 1, NULL}};
  for (int i = 0; i < 3; i++) {
    const program_setup setup = {.group = kind[i].group};
    program_result r = program_interrupted(&setup, kind[i].text, kind[i].signal, 1, MANY);
    ck_assert_msg(r.code == 130, "exit %d\n%s%s", r.code, r.out, r.err);
    ck_assert_int_lt(program_count(r.out, "PASS"), MANY_VARIANTS);
    if (kind[i].text) ck_assert_int_ge(program_count(r.out, "PASS"), 1);
    ck_assert_int_eq(program_count(r.out, "FAIL"), 0); /* though the compiler was interrupted */
    ck_assert_ptr_null(strstr(r.err, "flashgen"));
    program_says(r.out, ", seed 1: 0 failed, 0 wrong\n");
  }
}

/* A second interrupt ends it at once; the workers clean up after themselves. */
TEST(interrupt_twice) {
  program_result r = program_interrupted(NULL, "PASS", SIGINT, 2, MANY);
  ck_assert_int_eq(r.code, 130);
  ck_assert_int_lt(program_count(r.out, "PASS"), MANY_VARIANTS);
}

/* Killed, it can do nothing; its workers end what they are at, and begin nothing of the 60 variants
 * left. The compiler counts. */
TEST(killed) {
  enum { A_FEW = 12 };
  const program_setup counted = {.env = {program_compiler("echo >>calls")}};
  program_result r =
      program_interrupted(&counted, "PASS", SIGKILL, 1,
                          "check head_dim=8,16,24,32,40,48,56,64 mask=full,causal dtype=bf16,f16 "
                          "pass=forward,backward -j 1 " SMALL);
  ck_assert_int_eq(r.code, 128 + SIGKILL);
  const int calls = program_count(program_text("calls"), "\n");
  ck_assert_int_ge(calls, 1);
  ck_assert_int_le(calls, A_FEW);
}

TEST(interrupt_switched_off) {
  const program_setup off = {.interrupts_ignored = 1};
  program_result r =
      program_interrupted(&off, "PASS", SIGINT, 2, "check head_dim=8,16,24 -j 1 " SMALL);
  ck_assert_int_eq(r.code, 0);
  ck_assert_int_eq(program_count(r.out, "PASS"), 3);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
