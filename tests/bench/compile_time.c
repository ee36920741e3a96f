/* compile_time.c - how long variants take to compile, and what ptxas makes of them: a row each.
 *
 *   compile_time ARCH[,ARCH...] PLANS THREADS WORD...
 *
 *   compile_time sm_80,sm_90a 1 1 family=mma pass=forward,backward head_dim=64,128,256
 *
 * PLANS: of each point, 0 = all, 1 = the first. Seconds are the wall clock's, in one process; with
 * one thread those of the processor belong to one compile, and mean something on a busy machine.
 * Entry points follow with their registers and, in parentheses, those that the recipe expects; the
 * last lines are medians and worst cases by pass. */
#include "compile_case.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_one(const compile_one *one) {
  printf("%5.2f s  %s", one->seconds, one->name);
  if (one->status != FG_OK) printf("  FAILED: %s", one->error);
  for (int i = 0; one->status == FG_OK && i < one->cubin.n_entries; i++) {
    const fg_figures *f = &one->cubin.entry[i];
    printf("  %s %d (%d)", f->entry, f->registers, compile_expected(one, f->entry));
    if (f->spill_bytes) printf(" SPILLS %d", f->spill_bytes);
  }
  if (one->status == FG_OK && *one->cubin.warning) printf("  WARNING: %s", one->cubin.warning);
  printf("\n");
}

static void print_pass(const compile_list *all, int pass, const char *name) {
  double *wall = calloc((size_t)all->n + 1, sizeof *wall), expand = 0;
  double *busy = calloc((size_t)all->n + 1, sizeof *busy);
  int n = 0;
  for (int i = 0; wall && busy && i < all->n; i++) {
    const compile_one *one = &all->list[i];
    if (one->variant.point.pass != pass) continue;
    wall[n] = one->seconds;
    busy[n++] = one->processor_seconds;
    expand += one->expand_seconds;
  }
  if (n) {
    qsort(wall, (size_t)n, sizeof *wall, by_value);
    qsort(busy, (size_t)n, sizeof *busy, by_value);
    printf("%s: %d variants, median %.2f s, worst %.2f s; processor %.2f s, %.2f s; expansion "
           "%.1f ms on average\n",
           name, n, wall[n / 2], wall[n - 1], busy[n / 2], busy[n - 1], 1e3 * expand / n);
  }
  free(wall);
  free(busy);
}

static void good(fg_status status) {
  if (status == FG_OK) return;
  fprintf(stderr, "%s\n", fg_error());
  exit(1);
}

int main(int argc, char **argv) {
  const fg_nvrtc *nvrtc;
  compile_list all = {0};
  fg_gen *gen;
  char words[1024] = "";
  if (argc < 5) {
    fprintf(stderr, "usage: compile_time ARCH[,ARCH...] PLANS THREADS WORD...\n");
    return 2;
  }
  good(fg_nvrtc_load(&nvrtc));
  good(fg_gen_new(NULL, &gen));
  for (int i = 4; i < argc; i++) {
    size_t n = strlen(words);
    snprintf(words + n, sizeof words - n, "%s ", argv[i]);
  }
  for (char *rest, *arch = strtok_r(argv[1], ",", &rest); arch; arch = strtok_r(NULL, ",", &rest)) {
    fg_variant *list;
    int n;
    good(words_variants(gen, words, arch, atoi(argv[2]), &list, &n));
    good(compile_add(&all, gen, n, list));
    free(list);
  }
  good(compile_run(nvrtc, &all, atoi(argv[3])));
  for (int i = 0; i < all.n; i++) print_one(&all.list[i]);
  print_pass(&all, FG_PASS_FORWARD, "forward");
  print_pass(&all, FG_PASS_BACKWARD, "backward");
  printf("processor time of the process %.1f s\n", (double)clock() / CLOCKS_PER_SEC);
  compile_free(&all);
  fg_gen_free(gen);
  return 0;
}
