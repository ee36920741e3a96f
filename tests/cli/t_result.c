/* t_result.c - results that go to a file, which all commands do in the same way; and what `bench`
 * counts as the work of a launch. */
#include "scratch.h"
#include "tune_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define H200 FLASHGEN_SOURCE "/specs/wisdom/h200.txt"
#define PAGE "report " H200 " --filter attn_fwd-bf16-d256.* "

TEST(unwritable_output) {
  scratch_put("w.html", "what was there", 14);
  program_refuses(3, "no/page.html cannot be written: No such file or directory",
                  "report " H200 " -o no/page.html");
  program_refuses(3, ". cannot be written: Is a directory", "report " H200 " -o .");
  program_refuses(3, "/dev/full cannot be written: No space left on device",
                  "report " H200 " -o /dev/full");
  program_refuses(2, "--output needs a value: FILE", "report " H200 " -o");
  program_refuses(2, "--json=: no file is named", "list head_dim=64 --json=");
  program_refuses(3, "no/x.json cannot be written: No such file or directory",
                  "list head_dim=64 --json=no/x.json");
  program_refuses(3, "nowhere.txt cannot be read: No such file or directory",
                  "report nowhere.txt -o w.html");
  ck_assert_str_eq(program_text("w.html"), "what was there");
  ck_assert_int_eq(scratch_files(), 2); /* and tmp */
}

/* A slip of the hand costs no measurement and no spec. */
TEST(output_is_an_input) {
  static const char *const commands[] = {
      "report w.txt -o w.txt", "report w.txt -o ./link", "wisdom show w.txt --csv=w.txt",
      TUNE "-q --wisdom w.txt --json=w.txt", "list s.lua --json=s.lua"};
  scratch_put("s.lua", "return { head_dim = 64 }", 24);
  program_gives(0, TUNE "-q --wisdom w.txt");
  ck_assert_int_eq(symlink("w.txt", "link"), 0);
  const int files = scratch_files();
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    program_result r = program_gives(2, "%s", commands[i]);
    program_says(r.err, " is what this command works on: results go to another file\n");
  }
  program_refuses(2, "new.txt is what this command works on: results go to another file",
                  TUNE "-q --wisdom new.txt --json=new.txt");
  ck_assert_int_eq(tune_count("w.txt").good, 8);
  ck_assert_str_eq(program_text("s.lua"), "return { head_dim = 64 }");
  ck_assert_int_eq(scratch_files(), files + 1); /* new.txt, which is empty */
}

/* A disk that is full half way: the old page is still there, and nothing else. */
TEST(full_disk) {
  scratch_put("page.html", "what was there", 14);
  ck_assert_int_ne(system("trap '' XFSZ; ulimit -f 64; " FLASHGEN_PROGRAM " report " H200
                          " -o page.html 2> err.txt"),
                   0);
  ck_assert_str_eq(program_text("err.txt"),
                   "flashgen: page.html cannot be written: File too large\n");
  ck_assert_str_eq(program_text("page.html"), "what was there");
  ck_assert_int_eq(scratch_files(), 2);
}

/* The file of a link, its mode kept; what is no file is written to as it is. */
TEST(output_places) {
  struct stat info;
  scratch_put("real.html", "old", 3);
  ck_assert_int_eq(chmod("real.html", 0640), 0);
  ck_assert_int_eq(symlink("real.html", "link.html"), 0);
  program_gives(0, PAGE "-o link.html");
  ck_assert_int_eq(lstat("link.html", &info), 0);
  ck_assert(S_ISLNK(info.st_mode));
  program_page_says(program_text("real.html"), "</html>\n");
  ck_assert_int_eq(stat("real.html", &info), 0);
  ck_assert_int_eq(info.st_mode & 0777, 0640);
  program_gives(0, PAGE "-o /dev/null");
  program_result r = program_gives(0, PAGE "-o -");
  ck_assert_str_eq(r.out, program_text("real.html"));
}

/* Every command that prints tables writes them to a file in the same way. */
TEST(tables_in_files) {
  program_gives(0, TUNE "-q --wisdom w.txt");
  static const char *const commands[] = {TUNE "-q --wisdom w.txt", "wisdom show w.txt",
                                         "list head_dim=64", "cache stat",
                                         "bench head_dim=16 family=simt nq=16 --device host"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    for (int csv = 0; csv < 2; csv++) {
      char head[64];
      const char *form = csv ? "csv" : "json";
      if (csv && (i == 2 || i == 3)) continue; /* they have none */
      program_result r = program_gives(0, "%s --%s", commands[i], form);
      snprintf(head, sizeof head, "%.20s", r.out);
      r = program_gives(0, "%s --%s=t.%s", commands[i], form, form);
      ck_assert_str_eq(r.out, "");
      snprintf(head + 20, sizeof head - 20, "%s", ""); /* times differ from run to run */
      ck_assert_int_eq(strncmp(program_text(csv ? "t.csv" : "t.json"), head, 20), 0);
      ck_assert_int_eq(unlink(csv ? "t.csv" : "t.json"), 0);
    }
  program_refuses(2, "--json and --csv: give one of them", "bench head_dim=16 --json=a --csv=b");
}

/* Operations and bytes of masks whose rows are counted by bounds: `bench` has them, too. */
TEST(work) {
  static const struct {
    const char *words;
    double pairs,
        bytes; /* visible, of 300 x 451; bytes of q, o, lse and of the keys that are seen */
  } cases[] = {{"mask=full", 300 * 451, 300 * 68 + 451 * 64},
               {"mask=causal", 300 * 452 - 300 * 301 / 2, 300 * 68 + 451 * 64},
               {"'mask=k - p <= 0 && p - k <= 9'", 300 * 10, 300 * 68 + 309 * 64},
               {"'mask=k >= w' inputs.w=int w=400", 300 * 51, 300 * 68 + 51 * 64},
               {"'mask=k % 11 == q % 11'", 300 * 41, 300 * 68 + 451 * 64},
               {"'mask=k <= p && document(ids)' 'inputs.ids=i32[b, k] monotone'", 300 * 451, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char command[512];
    double ms, tflops, tbs;
    snprintf(command, sizeof command,
             FLASHGEN_PROGRAM " bench head_dim=16 family=simt nq=300 nk=451 --device host "
                              "--csv=b.csv %s && tail -1 b.csv | cut -d, -f7-9 > b.out",
             cases[i].words);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(sscanf(program_text("b.out"), "%lf,%lf,%lf", &ms, &tflops, &tbs), 3);
    const double pairs = tflops * ms * 1e9 / 64, bytes = tbs * ms * 1e9;
    ck_assert_msg(pairs > 0.99 * cases[i].pairs && pairs < 1.01 * cases[i].pairs, "%s: %g pairs",
                  cases[i].words, pairs);
    if (cases[i].bytes > 0)
      ck_assert_msg(bytes > 0.999 * cases[i].bytes && bytes < 1.001 * cases[i].bytes,
                    "%s: %g bytes", cases[i].words, bytes);
  }
}

TEST_FIXTURE(scratch_enter, scratch_leave)
