/* t_zoo.c - zoos as files: what is written is read, and what is damaged is said. No compiler: the
 * code is made up. */
#include "scratch.h"
#include "status.h"
#include "suite.h"
#include "zoo_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const char *file) {
  static char path[512];
  snprintf(path, sizeof path, "zoo/%s", file);
  return path;
}

static void check_whole(void) {
  fg_zoo_reader *zoo = NULL;
  ck_assert_msg(fg_zoo_open("zoo", &zoo) == FG_OK, "%s", fg_error());
  ck_assert_int_eq(fg_zoo_count(zoo), ZOO_ITEMS);
  for (int i = 0; i < ZOO_ITEMS; i++) {
    const fg_zoo_item *item = fg_zoo_find(zoo, zoo_names[i]);
    fg_code code, made = zoo_code(i);
    ck_assert_ptr_eq(item, fg_zoo_at(zoo, i));
    ck_assert_str_eq(item->compiler, "cc 1.0 -O1");
    ck_assert_str_eq(item->expression, "");
    ck_assert_str_eq(item->recipe, ZOO_RECIPE);
    ck_assert_msg(fg_zoo_read(zoo, item, &code) == FG_OK, "%s", fg_error());
    ck_assert_uint_eq(code.size, made.size);
    ck_assert_mem_eq(code.data, made.data, made.size);
    ck_assert_str_eq(code.figures, made.figures);
    free(code.data);
  }
  ck_assert_ptr_null(fg_zoo_find(zoo, "attn_fwd-f16-d8.simt-q4-k32-w4.sm_90"));
  ck_assert_ptr_null(fg_zoo_find(zoo, ""));
  fg_zoo_free(zoo);
}

TEST(written_and_read) {
  ck_assert_int_eq(zoo_made(0), 0);
  check_whole();
  ck_assert_int_eq(zoo_files(), ZOO_ITEMS + 1);
  fg_zoo_free(NULL);
  fg_zoo_make_close(NULL);
}

/* Made again, nothing is written. */
TEST(second_time) {
  struct stat before, after;
  zoo_made(0);
  ck_assert(zoo_changed);
  ck_assert_int_eq(stat("zoo/manifest.txt", &before), 0);
  ck_assert_int_eq(zoo_made(0), ZOO_ITEMS);
  ck_assert(!zoo_changed);
  ck_assert_int_eq(stat("zoo/manifest.txt", &after), 0);
  ck_assert(before.st_ino == after.st_ino && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}

/* Of what is in no manifest only a zoo's own kind goes. */
TEST(stale_files_go) {
  static const char *const stale[] = {"attn_fwd-bf16-d64.simt-q16-k32-w4.sm_80.cubin",
                                      "attn_fwd-bf16-d64.simt-q16-k32-w4.sm_80.cubin.new",
                                      "attn_fwd-bf16-d8.simt-q16-k32-w4.host.so.new",
                                      "manifest.txt.new", "journal.txt"};
  static const char *const others[] = {"README", "notes.txt.new", "libfoo.so", "x.cubin",
                                       "attn_fwd-bf16-d64.simt-q16-k32-w4.sm_80.so"};
  zoo_made(0);
  for (int i = 0; i < 5; i++) scratch_put(path_of(stale[i]), "x", 1);
  for (int i = 0; i < 5; i++) scratch_put(path_of(others[i]), "x", 1);
  ck_assert_int_eq(zoo_made(1), ZOO_ITEMS);
  for (int i = 0; i < 5; i++) ck_assert_int_eq(access(path_of(stale[i]), F_OK), -1);
  for (int i = 0; i < 5; i++) ck_assert_int_eq(access(path_of(others[i]), F_OK), 0);
  check_whole();
}

/* ---- code files ---- */

static void read_refused(int i, const char *error) {
  fg_zoo_reader *zoo;
  fg_code code = {.size = 77};
  ck_assert_int_eq(fg_zoo_open("zoo", &zoo), FG_OK);
  FAILS_AS(FG_EIO, error, fg_zoo_read(zoo, fg_zoo_at(zoo, i), &code));
  ck_assert_uint_eq(code.size, 77);
  fg_zoo_free(zoo);
}

TEST(damaged_code) {
  static const char file[] = "zoo/attn_fwd-bf16-d8.simt-q16-k32-w4.host.so";
  char text[ZOO_TEXT], error[300];
  zoo_made(0);
  size_t n = zoo_slurp(file, text);
  snprintf(error, sizeof error, "%s is damaged: its size does not fit the manifest", file);
  scratch_put(file, text, n - 1);
  read_refused(1, error);
  scratch_put(file, text, 0);
  read_refused(1, error);
  text[n / 2] ^= 4;
  scratch_put(file, text, n);
  snprintf(error, sizeof error, "%s is damaged: its checksum does not fit the manifest", file);
  read_refused(1, error);
  unlink(file);
  snprintf(error, sizeof error, "the zoo zoo cannot be read: %s: No such file or directory",
           file + 4);
  read_refused(1, error);
  ck_assert_int_eq(symlink("/dev/zero", file), 0);
  snprintf(error, sizeof error, "the zoo zoo cannot be read: %s: Too many levels of symbolic links",
           file + 4);
  read_refused(1, error);
  unlink(file);
  ck_assert_int_eq(mkfifo(file, 0600), 0);
  snprintf(error, sizeof error, "the zoo zoo cannot be read: %s: Invalid argument", file + 4);
  read_refused(1, error);
  unlink(file);
  ck_assert_int_eq(zoo_made(0), ZOO_ITEMS - 1);
  check_whole();
}

/* ---- manifests ---- */

static int refused(const char *text, size_t n) {
  fg_zoo_reader *zoo = NULL;
  scratch_put("zoo/manifest.txt", text, n);
  fg_status status = fg_zoo_open("zoo", &zoo);
  fg_zoo_free(zoo);
  return status == FG_EIO && !strncmp(fg_error(), "zoo/manifest.txt ", 17);
}

TEST(damaged_manifests) {
  char text[ZOO_TEXT];
  zoo_made(0);
  size_t n = zoo_slurp("zoo/manifest.txt", text);
  for (size_t i = 0; i < n; i++) ck_assert_msg(refused(text, i), "cut to %zu bytes", i);
  ck_assert_str_eq(fg_error(), "zoo/manifest.txt is damaged: its end is missing");
  for (size_t i = 0; i < n; i += 3) {
    char was = text[i];
    text[i] = (char)(was ^ (1 << i % 8));
    ck_assert_msg(refused(text, n), "bit flipped in byte %zu", i);
    text[i] = was;
  }
  text[n / 2] ^= 1;
  ck_assert(refused(text, n));
  ck_assert_str_eq(fg_error(), "zoo/manifest.txt is damaged: its checksum does not fit");
  text[n / 2] ^= 1;
  scratch_put("zoo/manifest.txt", text, n);
  check_whole();
}

/* The manifest with `from` replaced by `to`, and a checksum that fits. */
static void craft(const char *from, const char *to) {
  static char text[ZOO_TEXT], other[ZOO_TEXT];
  char digest[FG_DIGEST_HEX];
  zoo_slurp("good.txt", text);
  *strstr(text, "checksum ") = 0;
  char *at = strstr(text, from);
  ck_assert_msg(at != NULL, "no %s", from);
  int n = snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  fg_zoo_digest(other, (size_t)n, digest);
  n += sprintf(other + n, "checksum %s\n", digest);
  scratch_put("zoo/manifest.txt", other, (size_t)n);
}

TEST(crafted_manifests) {
  static const struct {
    const char *from, *to, *error;
  } kinds[] = {
      {"zoo 1", "zoo 2", " has format 2; this flashgen reads format 1"},
      {"zoo 1\n", "zoo 1", " is damaged: line 2: expected \"variant\""},
      {"zoo 1", "zoo x", " is damaged: it is no manifest of a zoo"},
      {"flashgen", "flaxhgen", " is damaged: it is no manifest of a zoo"},
      {"variant attn_fwd-bf16-d16.", "variant ../../etc/x.",
       " is damaged: line 2: expected a variant's name"},
      {"expression", "expresion", " is damaged: line 3: expected \"expression\""},
      {"compiler", "kompiler", " is damaged: line 4: expected \"compiler\""},
      {"source ", "source x", " is damaged: line 5: expected a digest"},
      {"code ", "code 0", " is damaged: line 6: expected a digest and a size"},
      {" 5000\n", " -5000\n", " is damaged: line 6: expected a digest and a size"},
      {" 5000\n", " 99999999999\n", " is damaged: line 6: expected a digest and a size"},
      {"figures\n", "figure\n", " is damaged: line 7: expected \"figures\""},
      {"end\nvariant", "\nvariant", " is damaged: line 10: expected a recipe, then \"end\""},
      {"recipe\n", "\n", " is damaged: line 8: expected figures, then \"recipe\""},
      {"d8.simt-q16-k32-w4.host", "d16.simt-q16-k32-w4.sm_80",
       " is damaged: its names are not in order"},
  };
  zoo_made(0);
  ck_assert_int_eq(rename("zoo/manifest.txt", "good.txt"), 0);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    fg_zoo_reader *zoo;
    craft(kinds[i].from, kinds[i].to);
    ck_assert_int_eq(fg_zoo_open("zoo", &zoo), FG_EIO);
    ck_assert_str_eq(fg_error() + strlen("zoo/manifest.txt"), kinds[i].error);
  }
}

static void craft_all(const char *text, size_t n) {
  static char whole[ZOO_TEXT + 64];
  char digest[FG_DIGEST_HEX];
  memcpy(whole, text, n);
  fg_zoo_digest(whole, n, digest);
  n += (size_t)sprintf(whole + n, "checksum %s\n", digest);
  scratch_put("zoo/manifest.txt", whole, n);
}

/* A checksum that fits behind all sorts of text: opened or refused, by the reader and by who makes
 * the zoo anew. */
TEST(crafted_anyhow) {
  static char good[ZOO_TEXT], text[ZOO_TEXT];
  uint64_t state = 7;
  zoo_made(0);
  zoo_slurp("zoo/manifest.txt", good);
  *strstr(good, "checksum ") = 0;
  const size_t n = strlen(good);
  craft_all(good, strlen("flashgen zoo 1")); /* nothing behind it, not even the line's end */
  fg_zoo_reader *zoo = NULL;
  FAILS_AS(FG_EIO, "zoo/manifest.txt is damaged: its first line does not end",
           fg_zoo_open("zoo", &zoo));
  char note[256];
  fg_zoo_make *make;
  ck_assert_int_eq(fg_zoo_make_open("zoo", &zoo_never, sizeof note, note, &make), FG_OK);
  ck_assert_str_eq(note,
                   "zoo/manifest.txt is damaged: its first line does not end; it is made anew");
  fg_zoo_make_close(make);
  for (int i = 0; i < 3000; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    size_t at = (size_t)(state >> 33) % n, length = (size_t)(state >> 20) % 40;
    memcpy(text, good, n);
    if (at + length > n) length = n - at;
    if (i % 3 == 0) /* cut to so much, or without some of it, or with another byte */
      craft_all(text, at);
    else if (i % 3 == 1)
      memmove(text + at, text + at + length, n - at - length), craft_all(text, n - length);
    else
      text[at] = (char)(1 + (state >> 12) % 255), craft_all(text, n);
    if (fg_zoo_open("zoo", &zoo) != FG_OK) continue;
    for (int j = 0; j < fg_zoo_count(zoo); j++) {
      fg_recipe recipe;
      fg_code code = {0};
      fg_zoo_recipe(zoo, fg_zoo_at(zoo, j), &recipe);
      if (fg_zoo_read(zoo, fg_zoo_at(zoo, j), &code) == FG_OK) free(code.data);
    }
    fg_zoo_free(zoo);
  }
}

/* What the checksum does not tell is told when the item is used; the others are as good as ever. */
TEST(crafted_recipe) {
  static const struct {
    const char *from, *to, *why;
  } kinds[] = {
      {"head_dim 8 8", "head_dim 8 x", "recipe line 1: dv is not a number from 1 to 1048576"},
      {"end\n", "", "recipe line 5: \"variant\" begins no line of a recipe"}};
  zoo_made(0);
  ck_assert_int_eq(rename("zoo/manifest.txt", "good.txt"), 0);
  for (int i = 0; i < 2; i++) {
    char error[300];
    fg_zoo_reader *zoo;
    fg_recipe recipe;
    craft(kinds[i].from, kinds[i].to);
    ck_assert_msg(fg_zoo_open("zoo", &zoo) == FG_OK, "%s", fg_error());
    ck_assert_int_eq(fg_zoo_recipe(zoo, fg_zoo_at(zoo, 0), &recipe), FG_EIO);
    snprintf(error, sizeof error, "zoo/manifest.txt is damaged: %s: %s", zoo_names[0],
             kinds[i].why);
    ck_assert_str_eq(fg_error(), error);
    ck_assert_int_eq(fg_zoo_recipe(zoo, fg_zoo_find(zoo, zoo_names[2]), &recipe), FG_OK);
    fg_zoo_free(zoo);
  }
}

TEST(no_zoo) {
  fg_zoo_reader *zoo = NULL;
  FAILS_AS(FG_EIO, "the zoo none cannot be read: No such file or directory",
           fg_zoo_open("none", &zoo));
  ck_assert_int_eq(mkdir("none", 0777), 0);
  FAILS_AS(FG_EIO, "none is no zoo: it has no manifest.txt", fg_zoo_open("none", &zoo));
  ck_assert_int_eq(mkdir("none/manifest.txt", 0777), 0);
  FAILS_AS(FG_EIO, "the zoo none cannot be read: manifest.txt: Is a directory",
           fg_zoo_open("none", &zoo));
  ck_assert_ptr_null(zoo);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
