/* t_cubins.c - the manifest of cubins: a refactoring of gen or templates that leaves each kernel's
 * machine code as it was changes no line of tests/golden/cubins.txt.
 *
 * The kernels are the first plans of the spec files tests/golden/<arch>.lua; a line of the manifest
 * is the XXH3-64 of a cubin, the registers of its entry points and the kernel's name. After a
 * wanted change: FLASHGEN_GOLDEN=write build/tests/t_cubins (in the source tree).
 *
 * Label compile: skipped where there is no libnvrtc, unless FLASHGEN_REQUIRE names the label, and
 * where another NVRTC is than the manifest's first line names: code differs from one to the next.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "compile_case.h"
#include "suite.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIP = 77, THREADS = 2, IDENTITY_MAX = 256, LINE_MAX_BYTES = FG_NAME_MAX + 128 };

#define MANIFEST "tests/golden/cubins.txt"

static const char *const archs[] = {"sm_80", "sm_90a"};
enum { ARCHS = sizeof archs / sizeof *archs };

static const fg_nvrtc *nvrtc;
static char identity[IDENTITY_MAX];

/* Every kernel of the arch's spec file, compiled. */
static void compile_arch(const char *arch, compile_list *all) {
  char path[64];
  fg_gen *gen;
  fg_variant *list;
  int n;
  snprintf(path, sizeof path, "tests/golden/%s.lua", arch);
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  ck_assert_msg(words_file_variants(gen, path, arch, 1, &list, &n) == FG_OK, "%s", fg_error());
  ck_assert_msg(compile_add(all, gen, n, list) == FG_OK, "%s", fg_error());
  ck_assert_msg(compile_run(nvrtc, all, THREADS) == FG_OK, "%s", fg_error());
  free(list);
  fg_gen_free(gen);
}

/* The kernel's line of the manifest, without the line's end. */
static void print_line(const compile_one *one, size_t size, char *line) {
  ck_assert_msg(one->status == FG_OK, "%s: %s", one->name, one->error);
  const fg_cubin *cubin = &one->cubin;
  int n =
      snprintf(line, size, "%016llx ", (unsigned long long)XXH3_64bits(cubin->data, cubin->size));
  for (int i = 0; i < cubin->n_entries; i++)
    n += snprintf(line + n, size - (size_t)n, "%s%d", i ? "," : "", cubin->entry[i].registers);
  snprintf(line + n, size - (size_t)n, " %s", one->name);
}

static void write_lines(FILE *manifest, const compile_list *all) {
  char line[LINE_MAX_BYTES];
  for (int i = 0; i < all->n; i++) {
    print_line(&all->list[i], sizeof line, line);
    fprintf(manifest, "%s\n", line);
  }
}

/* The next line of the manifest, without its end; "" behind the last one. */
static void read_line(FILE *manifest, size_t size, char *line) {
  if (!fgets(line, (int)size, manifest)) *line = 0;
  line[strcspn(line, "\n")] = 0;
}

/* Says which lines differ; returns how many. */
static int compare_lines(FILE *manifest, const compile_list *all) {
  int differ = 0;
  for (int i = 0; i < all->n; i++) {
    char is[LINE_MAX_BYTES], was[LINE_MAX_BYTES];
    print_line(&all->list[i], sizeof is, is);
    read_line(manifest, sizeof was, was);
    if (!strcmp(is, was)) continue;
    fprintf(stderr, "- %s\n+ %s\n", was, is);
    differ++;
  }
  return differ;
}

START_TEST(cubins_are_the_manifest_s) {
  const char *mode = getenv("FLASHGEN_GOLDEN");
  bool write = mode && !strcmp(mode, "write");
  int differ = 0, n = 0;
  FILE *manifest = fopen(MANIFEST, write ? "w" : "r");
  ck_assert_msg(manifest != NULL, "%s cannot be opened; is this the source tree?", MANIFEST);
  char line[LINE_MAX_BYTES];
  if (write)
    fprintf(manifest, "%s\n", identity);
  else
    read_line(manifest, sizeof line, line);
  for (int i = 0; i < ARCHS; i++) {
    compile_list all = {0};
    compile_arch(archs[i], &all);
    if (write)
      write_lines(manifest, &all);
    else
      differ += compare_lines(manifest, &all);
    n += all.n;
    compile_free(&all);
  }
  if (!write) {
    read_line(manifest, sizeof line, line);
    ck_assert_msg(!*line, MANIFEST " has a kernel more: %s", line);
  }
  ck_assert_int_eq(fclose(manifest), 0);
  ck_assert_msg(!differ,
                "%d of %d kernels differ; if this is wanted: FLASHGEN_GOLDEN=write "
                "build/tests/t_cubins",
                differ, n);
}
END_TEST

/* Whether the manifest, where it is to be compared, was made with the NVRTC that is here. */
static bool made_here(void) {
  char line[IDENTITY_MAX] = "";
  const char *mode = getenv("FLASHGEN_GOLDEN");
  FILE *manifest = fopen(MANIFEST, "r");
  if (!manifest || (mode && !strcmp(mode, "write"))) return true;
  read_line(manifest, sizeof line, line);
  fclose(manifest);
  if (strcmp(line, identity))
    printf("skipped: " MANIFEST " is of %s, here is %s\n", line, identity);
  return !strcmp(line, identity);
}

int main(void) {
  const char *labels = getenv("FLASHGEN_REQUIRE");
  if (fg_nvrtc_load(&nvrtc) != FG_OK || fg_nvrtc_identity(sizeof identity, identity) != FG_OK) {
    printf("skipped: %s\n", fg_error());
    return labels && strstr(labels, "compile") ? 1 : SKIP;
  }
  if (!made_here()) return SKIP;
  Suite *suite = suite_create("cubins");
  TCase *cubins = tcase_create("cubins");
  tcase_set_timeout(cubins, 600);
  suite_add(cubins, cubins_are_the_manifest_s);
  suite_add_tcase(suite, cubins);
  return suite_run(suite);
}
