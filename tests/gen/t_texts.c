/* t_texts.c - the manifest of texts: a refactoring of gen or templates changes no line of
 * tests/golden/texts.txt.
 *
 * The variants are the first plans of the spec files in `files` and of the lines of `lists`. A line
 * of the manifest is the XXH3-64 of a text and the variant's name; where the name has hashes of
 * expressions, the words follow from which `flashgen emit` makes the text again. The hash leaves
 * out the line of the text that names flashgen's version.
 *
 * A case is a tenth of the variants. The tenth of a variant depends only on its spec and arch, so
 * that a new variant moves no other one, and a tenth finds lines whose variant is gone.
 * After a wanted change: FLASHGEN_GOLDEN=write build/tests/t_texts (in the source tree).
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "expand/expand.h"
#include "suite.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TENTHS = 10, NAMED = 20, LINE_BYTES = 4096, PROCESSES = 256 };

#define MANIFEST "tests/golden/texts.txt"

static const struct {
  const char *path, *archs;
} files[] = {
    {"specs/hooks.lua", "host,sm_80,sm_90a"},    {"specs/inference.lua", "host,sm_80,sm_90a"},
    {"specs/linear.lua", "host,sm_80,sm_90a"},   {"specs/quickstart.lua", "host,sm_80,sm_90a"},
    {"specs/rows.lua", "host,sm_80,sm_90a"},     {"specs/serving.lua", "host,sm_80,sm_90a"},
    {"specs/training.lua", "host,sm_80,sm_90a"}, {"specs/variants.lua", "host,sm_80,sm_90a"},
    {"tests/golden/sm_80.lua", "sm_80"},         {"tests/golden/sm_90a.lua", "sm_90a"}};
enum { FILES = sizeof files / sizeof *files };

/* A line is the name of a variant, or archs and the words of a grid; "#" begins a comment. */
static const char *const lists[] = {"tests/golden/words.txt", "tests/golden/combos.txt"};
enum { LISTS = sizeof lists / sizeof *lists };

/* One of `parts` equal parts of the variants, and what has been made of it. */
typedef struct {
  int part, parts;
  fg_gen *gen;
  int n;
  char **line; /* of the manifest, without its end; sorted by name, each once */
} texts;

/* Ends the process, be it Check's or the writer's. */
static void die(const char *what) {
  fprintf(stderr, "%s: %s\n", what, fg_error());
  exit(1);
}

static const char *name_of(const char *line) { return strchr(line, ' ') + 1; }

static size_t name_length(const char *line) { return strcspn(name_of(line), " "); }

/* Orders lines by their names. */
static int compare(const char *a, const char *b) {
  const size_t n = name_length(a), m = name_length(b);
  const int order = memcmp(name_of(a), name_of(b), n < m ? n : m);
  return order ? order : (n > m) - (n < m);
}

static int compare_lines(const void *a, const void *b) {
  return compare(*(char *const *)a, *(char *const *)b);
}

static void add_line(texts *all, const char *line) {
  all->line = realloc(all->line, (size_t)(all->n + 1) * sizeof *all->line);
  if (!all->line || !(all->line[all->n++] = strdup(line))) die("no memory");
}

/* Sorts the lines; of equal ones, which several sources name, the first stays. */
static void sort_lines(texts *all) {
  int n = 0;
  qsort(all->line, (size_t)all->n, sizeof *all->line, compare_lines);
  for (int i = 0; i < all->n; i++) {
    if (n && !strcmp(all->line[n - 1], all->line[i]))
      free(all->line[i]);
    else
      all->line[n++] = all->line[i];
  }
  all->n = n;
}

static void free_lines(texts *all) {
  for (int i = 0; i < all->n; i++) free(all->line[i]);
  free(all->line);
  fg_gen_free(all->gen);
}

/* Is a variant with this name, or with any other plan, in the part? */
static bool is_mine(const texts *all, const char *name, size_t n) {
  char key[FG_NAME_MAX];
  const size_t point = strcspn(name, ".");
  size_t arch = n;
  while (arch > point && name[arch - 1] != '.') arch--;
  const int length =
      snprintf(key, sizeof key, "%.*s %.*s", (int)point, name, (int)(n - arch), name + arch);
  return XXH3_64bits(key, (size_t)length) % (unsigned)all->parts == (unsigned)all->part;
}

/* The words after "flashgen emit" in the text's header, on one line. */
static void read_words(const char *text, size_t size, char *words) {
  static const char start[] = "flashgen emit",
                    switches[] = "\n// switches:", end[] = "\n// made by";
  const char *at = strstr(strstr(text, "// again:"), start) + sizeof start - 1;
  size_t n = 0;
  at += strspn(at, " \n/");
  while (strncmp(at, switches, sizeof switches - 1) && strncmp(at, end, sizeof end - 1)) {
    const bool is_end = *at == '\n'; /* then "//" and blanks begin the next line */
    if (n + 1 == size) die("the words of a text are too long");
    words[n++] = is_end ? ' ' : *at;
    at += is_end ? strspn(at, " \n/") : 1;
  }
  words[n] = 0;
}

/* Of the text without the line of the version. */
static unsigned long long hash_of(const fg_source *source) {
  XXH3_state_t state;
  const char *version = strstr(source->text, "// made by flashgen ");
  const char *rest = strchr(version, '\n') + 1;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, source->text, (size_t)(version - source->text));
  XXH3_64bits_update(&state, rest, source->size - (size_t)(rest - source->text));
  return XXH3_64bits_digest(&state);
}

static void add_variant(texts *all, const fg_variant *variant) {
  char name[FG_NAME_MAX], words[LINE_BYTES], line[2 * LINE_BYTES];
  fg_source *source;
  fg_variant_name(variant, sizeof name, name);
  if (fg_gen_expand(all->gen, variant, &source) != FG_OK) die(name);
  read_words(source->text, sizeof words, words);
  const bool is_hashed = strcmp(words, name) != 0;
  snprintf(line, sizeof line, "%016llx %s%s%s", hash_of(source), name, is_hashed ? " " : "",
           is_hashed ? words : "");
  add_line(all, line);
  fg_source_free(source);
}

/* The first plan of each point that is in the part; the grid is freed. */
static void add_grid(texts *all, fg_grid *grid, const char *arch, const char *source) {
  for (int i = 0; i < grid->n; i++) {
    fg_variant variant = {.point = grid->point[i]};
    char name[FG_NAME_MAX];
    fg_plan *plans;
    int n = fg_point_name(&variant.point, sizeof name, name);
    n += snprintf(name + n, sizeof name - (size_t)n, ".%s", arch);
    if (!is_mine(all, name, (size_t)n)) continue;
    if (fg_gen_plans(all->gen, &variant.point, arch, grid->limits[i], &plans, &n) != FG_OK)
      die(source);
    variant.plan = plans[0];
    snprintf(variant.arch, sizeof variant.arch, "%s", arch);
    add_variant(all, &variant);
    free(plans);
  }
  fg_grid_free(grid);
}

/* A grid for each of the archs, "host,sm_80": of a spec file, or of words. */
static void add_archs(texts *all, const char *archs, const char *path, const char *words) {
  for (const char *at = archs; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
    char arch[FG_ARCH_MAX];
    fg_grid *grid;
    snprintf(arch, sizeof arch, "%.*s", (int)strcspn(at, ","), at);
    const fg_status status =
        path ? fg_grid_read(1, &path, 0, NULL, &grid) : words_grid(words, &grid);
    if (status != FG_OK) die(path ? path : words);
    add_grid(all, grid, arch, path ? path : words);
  }
}

/* Calls `each` with every line of the file but comments. */
static void read_file(const char *path, void each(texts *all, char *line), texts *all) {
  char line[LINE_BYTES];
  FILE *f = fopen(path, "r");
  if (!f) {
    fprintf(stderr, "%s cannot be opened; is this the source tree?\n", path);
    exit(1);
  }
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    if (*line && *line != '#') each(all, line);
  }
  fclose(f);
}

static void add_listed(texts *all, char *line) {
  char *words = strchr(line, ' ');
  fg_variant variant;
  if (words) {
    *words = 0;
    add_archs(all, line, NULL, words + 1);
  } else if (is_mine(all, line, strlen(line))) {
    if (fg_variant_parse(line, &variant) != FG_OK) die(line);
    add_variant(all, &variant);
  }
}

/* Expands every variant of the part. */
static void make_texts(texts *all) {
  if (fg_gen_new(NULL, &all->gen) != FG_OK) die("templates");
  for (int i = 0; i < FILES; i++) add_archs(all, files[i].archs, files[i].path, NULL);
  for (int i = 0; i < LISTS; i++) read_file(lists[i], add_listed, all);
  sort_lines(all);
}

static void add_manifest(texts *all, char *line) {
  ck_assert_msg(strlen(line) > 17 && line[16] == ' ', MANIFEST ": %s", line);
  if (is_mine(all, name_of(line), name_length(line))) add_line(all, line);
}

/* Names a line that differs, among the first. */
static void report(int *n, const char *what, const char *line) {
  if ((*n)++ < NAMED) fprintf(stderr, "%s %.*s\n", what, (int)name_length(line), name_of(line));
}

START_TEST(texts_are_the_manifest_s) {
  texts is = {.part = _i, .parts = TENTHS}, was = is;
  int differ = 0, i = 0, j = 0;
  make_texts(&is);
  read_file(MANIFEST, add_manifest, &was);
  while (i < is.n || j < was.n) {
    const int order = i == is.n ? 1 : j == was.n ? -1 : compare(is.line[i], was.line[j]);
    if (order < 0)
      report(&differ, "new    ", is.line[i]);
    else if (order > 0)
      report(&differ, "gone   ", was.line[j]);
    else if (strcmp(is.line[i], was.line[j]))
      report(&differ, "changed", is.line[i]);
    i += order <= 0;
    j += order >= 0;
  }
  ck_assert_msg(!differ,
                "%d of %d texts differ.\nWhat changed: tests/golden/diff NAME...\n"
                "If it is wanted: FLASHGEN_GOLDEN=write build/tests/t_texts",
                differ, is.n);
  ck_assert_int_gt(is.n, 100);
  free_lines(&is);
  free_lines(&was);
}
END_TEST

static void write_part(int part, int parts, FILE *f) {
  texts all = {.part = part, .parts = parts};
  make_texts(&all);
  for (int i = 0; i < all.n; i++) fprintf(f, "%s\n", all.line[i]);
  free_lines(&all);
  exit(fclose(f) != 0);
}

/* Renews the manifest by a process for each core. */
static int write_manifest(void) {
  FILE *made[PROCESSES];
  texts all = {.parts = 1};
  long parts = sysconf(_SC_NPROCESSORS_ONLN);
  int failed = 0;
  if (parts > PROCESSES) parts = PROCESSES;
  for (int i = 0; i < parts; i++) {
    if (!(made[i] = tmpfile())) return 1;
    const pid_t child = fork();
    if (child < 0) return 1;
    if (!child) write_part(i, (int)parts, made[i]);
  }
  for (int status; wait(&status) > 0;) failed |= status != 0;
  if (failed) return 1;
  for (int i = 0; i < parts; i++) {
    char line[LINE_BYTES];
    rewind(made[i]);
    while (fgets(line, sizeof line, made[i])) {
      line[strcspn(line, "\n")] = 0;
      add_line(&all, line);
    }
    fclose(made[i]);
  }
  sort_lines(&all);
  FILE *f = fopen(MANIFEST, "w");
  if (!f) return 1;
  for (int i = 0; i < all.n; i++) fprintf(f, "%s\n", all.line[i]);
  printf("%d texts; contributing.md has the number\n", all.n);
  free_lines(&all);
  return fclose(f) != 0;
}

int main(void) {
  const char *mode = getenv("FLASHGEN_GOLDEN");
  if (mode && !strcmp(mode, "write")) return write_manifest();
  Suite *suite = suite_create("texts");
  TCase *cases = tcase_create("texts");
  suite_tenth(cases, texts_are_the_manifest_s, TENTHS);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}
