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

enum {
  SKIP = 77,
  THREADS = 2,
  TENTHS = 10,
  IDENTITY_MAX = 256,
  LINE_MAX_BYTES = FG_NAME_MAX + 128
};

#define MANIFEST "tests/golden/cubins.txt"

static const char *const archs[] = {"sm_80", "sm_90a"};
enum { ARCHS = sizeof archs / sizeof *archs };

static const fg_nvrtc *nvrtc;
static char identity[IDENTITY_MAX];

/* Every kernel of the spec files, in the order of the manifest; the caller frees the list. */
static fg_variant *list_kernels(fg_gen *gen, int *n) {
  fg_variant *all = NULL;
  *n = 0;
  for (int i = 0; i < ARCHS; i++) {
    char path[64];
    fg_variant *more;
    int count;
    snprintf(path, sizeof path, "tests/golden/%s.lua", archs[i]);
    ck_assert_msg(words_file_variants(gen, path, archs[i], 1, &more, &count) == FG_OK, "%s",
                  fg_error());
    all = realloc(all, (size_t)(*n + count) * sizeof *all);
    ck_assert_ptr_nonnull(all);
    memcpy(all + *n, more, (size_t)count * sizeof *all);
    *n += count;
    free(more);
  }
  return all;
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

/* The next line of the manifest, without its end; "" after the last one. */
static void read_line(FILE *manifest, size_t size, char *line) {
  if (!fgets(line, (int)size, manifest)) *line = 0;
  line[strcspn(line, "\n")] = 0;
}

static FILE *open_manifest(const char *mode) {
  FILE *manifest = fopen(MANIFEST, mode);
  ck_assert_msg(manifest != NULL, "%s cannot be opened; is this the source tree?", MANIFEST);
  return manifest;
}

/* Compiles kernels part, part + parts, ... */
static void compile_part(fg_gen *gen, int n, const fg_variant *kernel, int part, int parts,
                         compile_list *all) {
  for (int i = part; i < n; i += parts)
    ck_assert_msg(compile_add(all, gen, 1, &kernel[i]) == FG_OK, "%s", fg_error());
  ck_assert_msg(compile_run(nvrtc, all, THREADS) == FG_OK, "%s", fg_error());
}

START_TEST(write_manifest) {
  compile_list all = {0};
  char line[LINE_MAX_BYTES];
  fg_gen *gen;
  int n;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  fg_variant *kernel = list_kernels(gen, &n);
  compile_part(gen, n, kernel, 0, 1, &all);
  FILE *manifest = open_manifest("w");
  fprintf(manifest, "%s\n", identity);
  for (int i = 0; i < all.n; i++) {
    print_line(&all.list[i], sizeof line, line);
    fprintf(manifest, "%s\n", line);
  }
  ck_assert_int_eq(fclose(manifest), 0);
  compile_free(&all);
  free(kernel);
  fg_gen_free(gen);
}
END_TEST

/* The names of all kernels are the manifest's, and of a tenth of them the whole lines. */
START_TEST(cubins_are_the_manifest_s) {
  compile_list all = {0};
  char was[LINE_MAX_BYTES], is[LINE_MAX_BYTES];
  fg_gen *gen;
  int n, differ = 0;
  ck_assert_msg(fg_gen_new(NULL, &gen) == FG_OK, "%s", fg_error());
  fg_variant *kernel = list_kernels(gen, &n);
  compile_part(gen, n, kernel, _i, TENTHS, &all);
  FILE *manifest = open_manifest("r");
  read_line(manifest, sizeof was, was); /* of the NVRTC */
  for (int i = 0; i < n; i++) {
    const bool is_compiled = i % TENTHS == _i;
    read_line(manifest, sizeof was, was);
    if (is_compiled)
      print_line(&all.list[i / TENTHS], sizeof is, is);
    else
      fg_variant_name(&kernel[i], sizeof is, is);
    const char *name = strrchr(was, ' ');
    if (is_compiled ? !strcmp(is, was) : name && !strcmp(is, name + 1)) continue;
    fprintf(stderr, "- %s\n+ %s\n", was, is);
    differ++;
  }
  read_line(manifest, sizeof was, was);
  ck_assert_msg(!*was, MANIFEST " has a kernel more: %s", was);
  ck_assert_int_eq(fclose(manifest), 0);
  ck_assert_msg(!differ,
                "%d of %d kernels differ; if this is wanted: FLASHGEN_GOLDEN=write "
                "build/tests/t_cubins",
                differ, n);
  compile_free(&all);
  free(kernel);
  fg_gen_free(gen);
}
END_TEST

static bool is_writing(void) {
  const char *mode = getenv("FLASHGEN_GOLDEN");
  return mode && !strcmp(mode, "write");
}

/* Whether the manifest, where it is to be compared, was made with the NVRTC that is here. */
static bool made_here(void) {
  char line[IDENTITY_MAX] = "";
  FILE *manifest = fopen(MANIFEST, "r");
  if (!manifest || is_writing()) return true;
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
  if (is_writing())
    suite_add(cubins, write_manifest);
  else
    suite_tenth(cubins, cubins_are_the_manifest_s, TENTHS);
  suite_add_tcase(suite, cubins);
  return suite_run(suite);
}
