/* t_golden.c - emitted text byte for byte: golden files, and the same text whoever emits it.
 *
 * After a wanted change of text: FLASHGEN_GOLDEN=write build/tests/t_golden (in the source tree).
 */
#include "expand/expand.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Kernels that people read, the plainest of each sort; texts.txt has the hashes of all others. */
static const char *const golden[] = {
    "attn_fwd-bf16-d64-causal.simt-q16-k32-w4.sm_90a",
    "attn_fwd-bf16-d64-causal.mma-q128-k96-s2-w4.sm_90a",
    "attn_bwd-bf16-d64-causal.mma-q64-k128-s2-w4.sm_80",
    "attn_fwd-bf16-d128-causal.wgmma-q192-k64-s2-w16.sm_90a",
    "attn_bwd-bf16-d128-causal.wgmma-q64-k128-s2-w12.sm_90a",
    "attn_fwd-bf16-d128-causal-kvpaged.decode-q8-k16-s3-w6.sm_90a",
    "attn_fwd-e4m3-d64-causal.mma-q128-k64-s2-w8.sm_89",
    "linear_fwd-bf16-w512o2048-act_swiglu.mma-q128-k128-s3-w4.sm_80",
};
enum { GOLDEN = sizeof golden / sizeof *golden, SAMPLE = 8, NAMES = GOLDEN + SAMPLE };

/* The golden kernels, and as many of the manifest, evenly spread over it. */
static char names[NAMES][FG_NAME_MAX];

/* Puts the name at the end of a line of the manifest; false: words follow it, and it does not read
 * back. */
static bool read_name(char *line, char *name) {
  const char *at = strchr(line, ' ') + 1;
  line[strcspn(line, "\n")] = 0;
  if (strchr(at, ' ')) return false;
  snprintf(name, FG_NAME_MAX, "%s", at);
  return true;
}

static void read_names(void) {
  char line[4096], name[FG_NAME_MAX];
  int n = 0, at = 0, taken = GOLDEN;
  FILE *f = fopen("tests/golden/texts.txt", "r");
  ck_assert_msg(f != NULL, "tests/golden/texts.txt cannot be opened; is this the source tree?");
  for (int i = 0; i < GOLDEN; i++) snprintf(names[i], FG_NAME_MAX, "%s", golden[i]);
  while (fgets(line, sizeof line, f)) n += read_name(line, name);
  rewind(f);
  while (taken < NAMES && fgets(line, sizeof line, f))
    if (read_name(line, name) && at++ % (n / SAMPLE) == n / SAMPLE / 2)
      strcpy(names[taken++], name);
  fclose(f);
  ck_assert_int_eq(taken, NAMES);
}

static fg_source *expand(fg_gen *gen, const char *name) {
  fg_variant variant;
  fg_source *source = NULL;
  if (fg_variant_parse(name, &variant) != FG_OK || fg_gen_expand(gen, &variant, &source) != FG_OK) {
    fprintf(stderr, "%s\n", fg_error());
    exit(1);
  }
  return source;
}

static fg_gen *gen_new(void) {
  fg_gen *gen = NULL;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  return gen;
}

/* All that the stream has, with a 0 at its end; the caller frees it. */
static char *read_all(FILE *f) {
  char *text = NULL;
  size_t n = 0, room = 0;
  do {
    text = realloc(text, (room = 2 * room + 65536) + 1);
    ck_assert_ptr_nonnull(text);
    n += fread(text + n, 1, room - n, f);
  } while (n == room);
  text[n] = 0;
  return text;
}

/* Fails with the first line that differs. */
static void same(const char *what, const char *is, const char *was) {
  for (int line = 1;; line++) {
    size_t n = strcspn(is, "\n"), m = strcspn(was, "\n");
    if (n != m || strncmp(is, was, n))
      ck_abort_msg("%s, line %d:\n- %.*s\n+ %.*s\nif this is wanted: FLASHGEN_GOLDEN=write "
                   "build/tests/t_golden",
                   what, line, (int)m, was, (int)n, is);
    if (!is[n] && !was[m]) return;
    ck_assert_msg(is[n] && was[m], "%s, line %d: one text ends here", what, line);
    is += n + 1;
    was += m + 1;
  }
}

START_TEST(golden_files) {
  char path[256];
  const char *mode = getenv("FLASHGEN_GOLDEN");
  bool write = mode && !strcmp(mode, "write");
  snprintf(path, sizeof path, "tests/golden/%s.cu", golden[_i]);
  fg_gen *gen = gen_new();
  fg_source *source = expand(gen, golden[_i]);
  FILE *f = fopen(path, write ? "w" : "r");
  ck_assert_msg(f != NULL, "%s cannot be opened; the working directory is the source tree", path);
  if (write) {
    ck_assert_uint_eq(fwrite(source->text, 1, source->size, f), source->size);
  } else {
    char *was = read_all(f);
    same(path, source->text, was);
    free(was);
  }
  ck_assert_int_eq(fclose(f), 0);
  fg_source_free(source);
  fg_gen_free(gen);
}
END_TEST

/* One state may be used again and again, and between other variants; a fresh one makes the same. */
START_TEST(again_and_again) {
  enum { STRIDE = 7 }; /* no divisor of NAMES: another order than the first */
  fg_gen *gen = gen_new();
  fg_source *first[NAMES];
  read_names();
  for (int i = 0; i < NAMES; i++) first[i] = expand(gen, names[i]);
  for (int i = 0; i < 2 * NAMES; i++) {
    const int at = i * STRIDE % NAMES;
    fg_source *again = expand(gen, names[at]);
    same(names[at], again->text, first[at]->text);
    fg_source_free(again);
  }
  for (int i = 0; i < NAMES; i++) {
    fg_gen *other = gen_new();
    fg_source *fresh = expand(other, names[i]);
    same(names[i], fresh->text, first[i]->text);
    fg_source_free(fresh);
    fg_source_free(first[i]);
    fg_gen_free(other);
  }
  fg_gen_free(gen);
}
END_TEST

/* Other processes have other addresses, hash seeds, places, times and languages. */
START_TEST(other_processes) {
  static const char *const settings[] = {"LC_ALL=C TZ=UTC",
                                         "LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 TZ=Asia/Tokyo",
                                         "LC_ALL=tr_TR.UTF-8 TZ=America/Lima COLUMNS=20",
                                         "HOME=/nonexistent LUA_PATH=x LUA_INIT=nonsense"};
  char self[1024], command[8192];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  ck_assert_int_gt(n, 0);
  self[n] = 0;
  fg_gen *gen = gen_new();
  read_names();
  for (int i = 0; i < NAMES; i++) {
    const char *name = names[i];
    fg_source *source = expand(gen, name);
    snprintf(command, sizeof command, "cd %s && env -i %s '%s' emit %s", i % 3 ? "/" : "/usr",
             settings[i % 4], self, name);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    char *text = read_all(f);
    ck_assert_int_eq(pclose(f), 0);
    same(command, text, source->text);
    free(text);
    fg_source_free(source);
  }
  fg_gen_free(gen);
}
END_TEST

/* "t_golden emit <name>" is what other_processes runs. */
static int emit(const char *name) {
  fg_gen *gen;
  if (fg_gen_new(NULL, &gen) != FG_OK) return 1;
  fg_source *source = expand(gen, name);
  size_t n = fwrite(source->text, 1, source->size, stdout);
  int failed = n != source->size;
  fg_source_free(source);
  fg_gen_free(gen);
  return failed;
}

int main(int argc, char **argv) {
  if (argc == 3 && !strcmp(argv[1], "emit")) return emit(argv[2]);
  Suite *suite = suite_create("golden");
  TCase *texts = tcase_create("texts");
  suite_loop(texts, golden_files, GOLDEN);
  suite_add(texts, again_and_again);
  suite_add(texts, other_processes);
  suite_add_tcase(suite, texts);
  return suite_run(suite);
}
