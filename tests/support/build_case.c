/* build_case.c - a counting compiler, and zoos compared. */
#include "build_case.h"

#include "scratch.h"
#include "zoo/zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char count[] = "here=$(dirname \"$0\")\n"
                            "for word; do\n"
                            "  case $word in\n"
                            "  *kernel.c)\n"
                            "    echo compile >>\"$here/compiles\"\n"
                            "    if head -3 \"$word\" | grep -q -- -d24; then\n"
                            "      echo 'kernel.c:9:1: error: not this one'\n"
                            "      exit 1\n"
                            "    fi\n"
                            "    if head -3 \"$word\" | grep -q -- -d56.simt-q16-k32-w4; then\n"
                            "      echo 'kernel.c:9:1: error: not this plan'\n"
                            "      exit 1\n"
                            "    fi\n"
                            "    head -3 \"$word\" | grep -q -- -d32 && kill -9 $PPID && exit 1\n"
                            "    ;;\n"
                            "  esac\n"
                            "done";

static const char *compiler;

void build_enter(void) {
  scratch_enter();
  compiler = program_compiler(count);
}

void build_leave(void) { scratch_leave(); }

const char *build_cc(void) { return compiler; }

int build_compiles(void) {
  char text[1 << 14] = "";
  FILE *f = fopen("compiles", "rb");
  if (f) {
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
  }
  unlink("compiles");
  return program_count(text, "\n");
}

program_result build_gives(int code, const char *words) {
  const program_setup setup = {.env = {build_cc()}};
  program_result r = program_run(&setup, "%s", words);
  ck_assert_msg(r.code == code, "flashgen %s: exit %d, expected %d\n%s%s", words, r.code, code,
                r.out, r.err);
  return r;
}

void build_same(const char *a, const char *b) {
  char command[512];
  snprintf(command, sizeof command, "diff -r %s %s", a, b);
  ck_assert_msg(system(command) == 0, "%s and %s differ", a, b);
}

void build_is_whole(const char *dir, int n) {
  fg_zoo_reader *zoo;
  fg_recipe recipe;
  ck_assert_msg(fg_zoo_open(dir, &zoo) == FG_OK, "%s", fg_error());
  ck_assert_int_eq(fg_zoo_count(zoo), n);
  for (int i = 0; i < n; i++) {
    fg_code code;
    ck_assert_msg(fg_zoo_read(zoo, fg_zoo_at(zoo, i), &code) == FG_OK, "%s", fg_error());
    ck_assert_msg(fg_recipe_parse(fg_zoo_at(zoo, i)->recipe, &recipe) == FG_OK, "%s", fg_error());
    free(code.data);
  }
  fg_zoo_free(zoo);
  ck_assert_int_eq(build_files(dir), n + 1);
}

int build_files(const char *dir) {
  char here[4096];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  ck_assert_int_eq(chdir(dir), 0);
  int n = scratch_files();
  ck_assert_int_eq(chdir(here), 0);
  return n;
}

int build_has(const char *dir, const char *file) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", dir, file);
  return access(path, F_OK) == 0;
}
