/* zoo_load.c - how long it takes to open a zoo of 1000 variants: prints a table.
 *
 *   zoo_load [LIMIT_MS]        fails where the first time is above the limit
 *
 * Real variants with their recipes and expressions, forward and backward of three masks; what
 * stands for their code is 40 KB of noise each, the size of a cubin. In one process, files in
 * the page cache; the median of 21. */
#include "bench.h"
#include "expand/expand.h"
#include "spec/point_formula.h"
#include "zoo/zoo_make.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VARIANTS = 1000, ROUNDS = 21, CODE = 40000 };

static const char *const words[] = {"head_dim=64,128,256,192/128,96", "dtype=bf16,f16",
                                    "mask=full,causal,window(1023, 0)", "bias=false,grad",
                                    "pass=forward,backward"};

/* The block of a variant in the manifest, its code staged. */
static void stage(fg_zoo_make *make, const fg_variant *variant, const fg_source *source,
                  fg_zoo_record *to) {
  static char code[CODE], block[FG_ZOO_BLOCK];
  char recipe[FG_RECIPE_TEXT], expression[FG_ZOO_EXPRESSION];
  fg_zoo_item item = {.name = to->name,
                      .expression = expression,
                      .compiler = "nvrtc 13.0 65be1f0a 08d1cc42 -arch=sm_90a -std=c++17 --minimal",
                      .figures = "attn registers 168 spill 0 stack 0\n",
                      .recipe = recipe};
  const fg_code made = {.data = code, .size = CODE};
  fg_variant_name(variant, sizeof to->name, to->name);
  for (int i = 0; i < CODE; i++) code[i] = (char)rand();
  fg_recipe_print(&source->recipe, sizeof recipe, recipe);
  fg_point_expression(&variant->point, sizeof expression, expression);
  fg_zoo_digest(source->text, source->size, item.source);
  GOOD(fg_zoo_stage(make, &made, &item));
  GOOD(fg_zoo_print(&item, block));
  to->block = strdup(block);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const fg_zoo_record *)a)->name, ((const fg_zoo_record *)b)->name);
}

/* All plans of one point after the other, until there are enough, each with the recipe of the
 * first: expansion is what takes time here. */
static int stage_all(fg_zoo_make *make, fg_zoo_record *records) {
  fg_gen *gen;
  fg_grid *grid;
  int n = 0;
  GOOD(fg_gen_new(NULL, &gen));
  GOOD(fg_grid_read(0, NULL, sizeof words / sizeof *words, words, &grid));
  for (int i = 0; i < grid->n && n < VARIANTS; i++) {
    fg_variant variant = {.point = grid->point[i], .arch = "sm_90a"};
    fg_plan *plans;
    fg_source *source;
    int count;
    GOOD(fg_gen_plans(gen, &variant.point, variant.arch, grid->limits[i], &plans, &count));
    variant.plan = plans[0];
    GOOD(fg_gen_expand(gen, &variant, &source));
    for (int p = 0; p < count && n < VARIANTS; p++) {
      variant.plan = plans[p];
      stage(make, &variant, source, &records[n++]);
    }
    fg_source_free(source);
    free(plans);
  }
  fg_grid_free(grid);
  fg_gen_free(gen);
  return n;
}

static void make_zoo(const char *dir) {
  static const volatile int never;
  static fg_zoo_record records[VARIANTS];
  char note[256];
  fg_zoo_make *make;
  int removed;
  bool changed;
  GOOD(fg_zoo_make_open(dir, &never, sizeof note, note, &make));
  int n = stage_all(make, records);
  if (n != VARIANTS) fprintf(stderr, "only %d variants\n", n), exit(1);
  qsort(records, (size_t)n, sizeof *records, by_name);
  GOOD(fg_zoo_finish(make, n, records, &removed, &changed));
  GOOD(fg_zoo_embed(make, dir, "load", n, records, &changed));
  for (int i = 0; i < n; i++) free(records[i].block);
  fg_zoo_make_close(make);
}

/* Prints how long it takes; returns the first time, in ms. */
static double time_open(const char *what, const fg_zoo *given) {
  double ms[ROUNDS], first;
  for (int i = 0; i < ROUNDS; i++) {
    fg_zoo_reader *zoo;
    double start = clock_now();
    GOOD(fg_zoo_open_given(given, &zoo));
    ms[i] = 1e3 * (clock_now() - start);
    if (fg_zoo_count(zoo) != VARIANTS) fprintf(stderr, "not all variants\n"), exit(1);
    fg_zoo_free(zoo);
  }
  first = ms[0];
  qsort(ms, ROUNDS, sizeof *ms, bench_by_value);
  printf("%d variants in %s: open in %.2f ms, the first time in %.2f\n", VARIANTS, what,
         ms[ROUNDS / 2], first);
  return first;
}

/* The zoo as the C compiler makes it part of a program. */
static const fg_zoo *embedded(const char *dir) {
  char command[512];
  snprintf(command, sizeof command,
           "cc -shared -fPIC -I" FLASHGEN_SOURCE "/runtime %s/load.c -o %s/load.so", dir, dir);
  if (system(command)) fprintf(stderr, "%s\n", command), exit(1);
  snprintf(command, sizeof command, "%s/load.so", dir);
  void *library = dlopen(command, RTLD_NOW | RTLD_LOCAL);
  const fg_zoo *zoo = library ? dlsym(library, "load") : NULL;
  if (!zoo) fprintf(stderr, "%s\n", dlerror()), exit(1);
  return zoo;
}

int main(int argc, char **argv) {
  char dir[] = "/tmp/flashgen_zoo_load_XXXXXX", command[128];
  const double limit = argc > 1 ? atof(argv[1]) : 1e9;
  if (!mkdtemp(dir)) return perror(dir), 1;
  make_zoo(dir);
  const fg_zoo given = {.size = sizeof given, .directory = dir};
  const double directory = time_open("a directory", &given);
  const double program = time_open("the program", embedded(dir));
  snprintf(command, sizeof command, "rm -rf %s", dir);
  if (system(command)) return 1;
  return directory > limit || program > limit;
}
