/* words.c - words to a grid, its points to plans. */
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 32, WORDS_SIZE = 8192 };

fg_status words_grid(const char *words, fg_grid **grid) {
  char text[WORDS_SIZE];
  const char *word[WORDS_MAX];
  int n = 0;
  snprintf(text, sizeof text, "%s", words);
  for (char *rest, *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
    if (n == WORDS_MAX) return fg_fail(FG_EARGUMENT, "more than %d words", WORDS_MAX);
    word[n++] = w;
  }
  return fg_grid_read(0, NULL, n, word, grid);
}

static fg_status add_point(fg_gen *gen, const fg_point *point, const char *arch,
                           const fg_limits *limits, int most, fg_variant **list, int *n) {
  fg_plan *plans;
  int count;
  TRY(fg_gen_plans(gen, point, arch, limits, &plans, &count));
  if (most && count > most) count = most;
  fg_variant *grown = realloc(*list, (size_t)(*n + count) * sizeof *grown);
  if (grown) *list = grown;
  for (int i = 0; grown && i < count; i++) {
    fg_variant *v = &grown[(*n)++];
    *v = (fg_variant){.point = *point, .plan = plans[i]};
    snprintf(v->arch, sizeof v->arch, "%s", arch);
  }
  free(plans);
  return grown ? FG_OK : fg_fail(FG_EMEMORY, "no memory for %d variants", *n + count);
}

/* The variants of one grid, which it frees. */
static fg_status add_grid(fg_gen *gen, fg_grid *grid, const char *arch, int most, fg_variant **list,
                          int *n) {
  fg_status status = FG_OK;
  for (int i = 0; i < grid->n && status == FG_OK; i++)
    status = add_point(gen, &grid->point[i], arch, grid->limits[i], most, list, n);
  fg_grid_free(grid);
  return status;
}

fg_status words_file_variants(fg_gen *gen, const char *path, const char *arch, int most,
                              fg_variant **list, int *n) {
  fg_grid *grid;
  *list = NULL;
  *n = 0;
  TRY(fg_grid_read(1, &path, 0, NULL, &grid));
  return add_grid(gen, grid, arch, most, list, n);
}

fg_status words_variants(fg_gen *gen, const char *words, const char *arch, int most,
                         fg_variant **list, int *n) {
  char text[WORDS_SIZE];
  fg_status status = FG_OK;
  *list = NULL;
  *n = 0;
  if (snprintf(text, sizeof text, "%s", words) >= WORDS_SIZE)
    return fg_fail(FG_EARGUMENT, "more than %d bytes of words", WORDS_SIZE);
  for (char *rest, *at = strtok_r(text, ";", &rest); at && status == FG_OK;
       at = strtok_r(NULL, ";", &rest)) {
    fg_grid *grid;
    status = words_grid(at, &grid);
    if (status == FG_OK) status = add_grid(gen, grid, arch, most, list, n);
  }
  return status;
}

int words_generation(const char *words) {
  fg_variant *list = NULL;
  fg_recipe recipe = {0};
  fg_gen *gen;
  int n = 0;
  if (fg_gen_new("", &gen) != FG_OK) return 0;
  if (words_variants(gen, words, "host", 1, &list, &n) != FG_OK || n < 1 ||
      fg_gen_recipe(gen, list, &recipe) != FG_OK)
    recipe.generation = 0;
  free(list);
  fg_gen_free(gen);
  return recipe.generation;
}
