/* t_zoo_make.c - zoos in the making: what an earlier run has left, full disks, other processes. */
#include "scratch.h"
#include "suite.h"
#include "zoo_case.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of a journal that is cut anywhere all whole blocks but the torn one are used, also behind what a
 * later run has added; figures are zoo_never those of another. */
TEST(torn_journal) {
  static char journal[ZOO_TEXT], rest[ZOO_TEXT];
  fg_zoo_record record[ZOO_ITEMS];
  fg_zoo_make *make = zoo_open_make();
  for (int i = 0; i < ZOO_ITEMS; i++) zoo_give(make, i, &record[i]);
  fg_zoo_make_close(make);
  size_t n = zoo_slurp("zoo/journal.txt", journal), third = n / ZOO_ITEMS;
  for (size_t cut = 0; cut <= n; cut += 5) {
    size_t kept = cut;
    memcpy(rest, journal, cut);
    memcpy(rest + cut, journal, third); /* "\n\nvariant ...": the first block, or most of it */
    scratch_put("zoo/journal.txt", rest, kept + third);
    make = zoo_open_make();
    int recalled = 0;
    for (int i = 0; i < ZOO_ITEMS; i++) {
      fg_zoo_item item = zoo_item(i);
      fg_code code = zoo_code(i);
      if (!fg_zoo_recall(make, &item)) continue;
      recalled++;
      ck_assert_str_eq(item.figures, code.figures);
      ck_assert_uint_eq(item.size, code.size);
    }
    ck_assert_int_ge(recalled, (int)(cut / (third + 60)));
    fg_zoo_make_close(make);
  }
}

/* What was staged for another text, or by another compiler, is made again. */
TEST(recall_compares) {
  zoo_made(0);
  fg_zoo_make *make = zoo_open_make();
  fg_zoo_item item = zoo_item(0);
  ck_assert(fg_zoo_recall(make, &item));
  item.compiler = "cc 2.0 -O1";
  ck_assert(!fg_zoo_recall(make, &item));
  item = zoo_item(0);
  item.source[0] ^= 1;
  ck_assert(!fg_zoo_recall(make, &item));
  item = zoo_item(0);
  item.expression = "causal";
  ck_assert(!fg_zoo_recall(make, &item));
  fg_zoo_make_close(make);
}

TEST(file_too_large) {
  const struct rlimit small = {ZOO_CODE / 2, RLIM_INFINITY};
  struct rlimit usual;
  fg_zoo_make *make = zoo_open_make();
  fg_code code = zoo_code(1);
  fg_zoo_item item = zoo_item(1);
  item.figures = code.figures;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &usual);
  setrlimit(RLIMIT_FSIZE, &small);
  ck_assert_int_eq(fg_zoo_stage(make, &code, &item), FG_EIO);
  setrlimit(RLIMIT_FSIZE, &usual);
  ck_assert_str_eq(fg_error(), "zoo/attn_fwd-bf16-d8.simt-q16-k32-w4.host.so.new cannot be "
                               "written: File too large");
  ck_assert_int_eq(zoo_files(), 0);
  fg_zoo_make_close(make);
}

/* Another process makes it: it is waited for, until the caller has enough. */
TEST(one_at_a_time) {
  static volatile int enough;
  char note[256], byte;
  int ready[2];
  fg_zoo_make *make = NULL;
  ck_assert_int_eq(pipe(ready), 0);
  ck_assert_int_eq(mkdir("zoo", 0777), 0);
  pid_t other = fork();
  if (other == 0) {
    int fd = open("zoo", O_RDONLY);
    if (flock(fd, LOCK_EX) || write(ready[1], "", 1) < 0) _exit(1);
    usleep(200000);
    _exit(0);
  }
  ck_assert_int_eq(read(ready[0], &byte, 1), 1);
  enough = 1;
  ck_assert_int_eq(fg_zoo_make_open("zoo", &enough, sizeof note, note, &make), FG_EIO);
  ck_assert_str_eq(fg_error(), "zoo is in use by another process");
  ck_assert_ptr_null(make);
  fg_zoo_make_close(zoo_open_make());
  int state;
  ck_assert_int_eq(waitpid(other, &state, WNOHANG), other);
  ck_assert_int_eq(state, 0);
}

/* A child that was forked while a zoo was made does not keep its lock. */
TEST(forked_meanwhile) {
  static const volatile int enough = 1;
  char note[256];
  fg_zoo_make *make = zoo_open_make();
  pid_t child = fork();
  if (child == 0) pause();
  fg_zoo_make_close(make);
  ck_assert_msg(fg_zoo_make_open("zoo", &enough, sizeof note, note, &make) == FG_OK, "%s",
                fg_error());
  fg_zoo_make_close(make);
  kill(child, SIGKILL);
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
