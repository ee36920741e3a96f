/* t_zoo_embed.c - zoos as parts of programs: what --embed writes is compiled, loaded and read as
 * the directory is; what is damaged is said. */
#include "build_case.h"
#include "scratch.h"
#include "status.h"
#include "zoo/zoo.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TWO "build head_dim=8,16 mask=causal family=simt --arch host -q -o zoo --embed kernels"
#define D8  "attn_fwd-bf16-d8-causal.simt-q16-k32-w4.host"

static void *library;
static char *copy; /* of all that is embedded, to be damaged */

/* What the C compiler makes of zoo/kernels.c. */
static const fg_zoo *embedded(const char *compiler) {
  char command[512];
  snprintf(command, sizeof command,
           "%s -shared -fPIC -Wall -Wextra -pedantic -Werror -std=c11 -I" FLASHGEN_SOURCE
           "/runtime zoo/kernels.c -o kernels.so",
           compiler);
  ck_assert_msg(system(command) == 0, "%s", command);
  library = dlopen("./kernels.so", RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  const fg_zoo *zoo = dlsym(library, "kernels");
  ck_assert_ptr_nonnull(zoo);
  ck_assert_uint_eq(zoo->size, sizeof *zoo);
  return zoo;
}

/* A zoo in memory that may be written. */
static fg_zoo copied(const fg_zoo *zoo) {
  const char *from = zoo->manifest;
  size_t n = (size_t)((const char *)zoo->end - from);
  fg_zoo mine = *zoo;
  copy = malloc(n);
  memcpy(copy, from, n);
  mine.manifest = copy;
  mine.code = copy + ((const char *)zoo->code - from);
  mine.end = copy + n;
  return mine;
}

static void leave(void) {
  if (library) dlclose(library);
  free(copy);
  library = copy = NULL;
  build_leave();
}

static void same_items(const fg_zoo_reader *a, const fg_zoo_reader *b) {
  ck_assert_int_eq(fg_zoo_count(a), fg_zoo_count(b));
  for (int i = 0; i < fg_zoo_count(a); i++) {
    const fg_zoo_item *x = fg_zoo_at(a, i), *y = fg_zoo_at(b, i);
    fg_code x_code, y_code;
    ck_assert_str_eq(x->name, y->name);
    ck_assert_str_eq(x->recipe, y->recipe);
    ck_assert_msg(fg_zoo_read(a, x, &x_code) == FG_OK, "%s", fg_error());
    ck_assert_msg(fg_zoo_read(b, y, &y_code) == FG_OK, "%s", fg_error());
    ck_assert_uint_eq(x_code.size, y_code.size);
    ck_assert_mem_eq(x_code.data, y_code.data, x_code.size);
    free(x_code.data);
    free(y_code.data);
  }
}

TEST_LOOP(as_the_directory, 3) {
  static const char *const compilers[] = {"cc", "cc -O2 -flto", "clang"};
  fg_zoo_reader *directory, *memory;
  if (_i == 2 && system("clang --version >/dev/null 2>&1")) return; /* cc is what must do */
  build_gives(0, TWO);
  ck_assert_int_eq(fg_zoo_open("zoo", &directory), FG_OK);
  ck_assert_int_eq(fg_zoo_count(directory), 2);
  ck_assert_msg(fg_zoo_open_given(embedded(compilers[_i]), &memory) == FG_OK, "%s", fg_error());
  same_items(directory, memory);
  fg_zoo_free(directory);
  fg_zoo_free(memory);
}

/* A name that a C program can use, and nothing that is written for another one. */
TEST(refused_names) {
  static const char *const names[] = {"8kernels", "ker-nels", "a/b", "flashgen"};
  for (int i = 0; i < 4; i++) {
    char words[256];
    snprintf(words, sizeof words, "build head_dim=8 family=simt --arch host -o zoo --embed %s",
             names[i]);
    program_result r = program_gives(2, "%s", words);
    program_says(r.err, "flashgen: embed: ");
  }
  program_refuses(2, "embed: the path z\"oo has a letter that no text of C may hold",
                  "build head_dim=8 family=simt --arch host -o z\"oo --embed kernels");
  ck_assert_int_eq(build_has(".", "zoo"), 0);
}

/* Files that are right are not written, so that nothing is compiled for them. */
TEST(written_when_new) {
  struct stat before, after;
  build_gives(0, TWO);
  ck_assert_int_eq(build_files("zoo"), 5);
  stat("zoo/kernels.c", &before);
  program_says(build_gives(0, TWO).out, "zoo is up to date: 2 variants, nothing to do\n");
  stat("zoo/kernels.c", &after);
  ck_assert(before.st_ino == after.st_ino);
  ck_assert_int_eq(unlink("zoo/kernels.h"), 0);
  program_says(build_gives(0, TWO).out, "zoo: 2 variants: 0 made, 2 kept, 0 failed, 0 removed\n");
  ck_assert_int_eq(build_has("zoo", "kernels.h"), 1);
  /* another kernel under the same name: the C file must differ */
  ck_assert_int_eq(system("cp -r " FLASHGEN_SOURCE "/templates . && "
                          "echo '// more' >>templates/attention/simt/forward.cut"),
                   0);
  const program_setup own = {.env = {build_cc(), "FLASHGEN_TEMPLATES=templates"}};
  program_result r = program_run(&own, TWO);
  program_says(r.out, "zoo: 2 variants: 2 made, 0 kept, 0 failed, 0 removed\n");
  stat("zoo/kernels.c", &after);
  ck_assert(before.st_ino != after.st_ino);
}

/* ---- damage ---- */

static void refuses(const fg_zoo *zoo, const char *error) {
  fg_zoo_reader *reader = NULL;
  FAILS_AS(FG_EIO, error, fg_zoo_open_given(zoo, &reader));
  ck_assert_ptr_null(reader);
}

TEST(damaged_manifest) {
  build_gives(0, TWO);
  fg_zoo zoo = copied(embedded("cc"));
  const size_t n = (size_t)((const char *)zoo.code - copy);
  copy[n / 2] ^= 1;
  refuses(&zoo, "the embedded zoo kernels is damaged: its checksum does not fit");
  copy[n / 2] ^= 1;
  memset(copy + n - 200, 0, 200);
  refuses(&zoo, "the embedded zoo kernels is damaged: its end is missing");
  memset(copy, 0, n);
  refuses(&zoo, "the embedded zoo kernels is damaged: it is no manifest of a zoo");
  zoo.code = zoo.manifest;
  refuses(&zoo, "the embedded zoo kernels is damaged: it is no manifest of a zoo");
}

TEST(damaged_code) {
  fg_zoo_reader *reader;
  fg_code code;
  build_gives(0, TWO);
  fg_zoo zoo = copied(embedded("cc"));
  char *start = copy + ((const char *)zoo.code - copy);
  const void *end = zoo.end;
  zoo.end = (const char *)end - 128; /* within the last code file */
  refuses(&zoo, "the embedded zoo kernels is damaged: its code ends early");
  zoo.end = zoo.code;
  refuses(&zoo, "the embedded zoo kernels is damaged: its code ends early");
  zoo.end = end;
  ck_assert_int_eq(fg_zoo_open_given(&zoo, &reader), FG_OK);
  const fg_zoo_item *item = fg_zoo_find(reader, D8);
  ck_assert_uint_gt(item->offset, 0);
  ck_assert_uint_eq(item->offset % FG_ZOO_ALIGN, 0);
  start[item->offset + item->size - 1] ^= 1;
  FAILS_AS(FG_EIO, "kernels/" D8 ".so is damaged: its checksum does not fit the manifest",
           fg_zoo_read(reader, item, &code));
  ck_assert_int_eq(fg_zoo_read(reader, fg_zoo_at(reader, 0), &code), FG_OK);
  free(code.data);
  fg_zoo_free(reader);
}

TEST_FIXTURE(build_enter, leave)
