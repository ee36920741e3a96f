/* compile_time.c - how long variants take to compile, and what ptxas makes of them: a row each.
 *
 *   compile_time ARCH[,ARCH...] PLANS THREADS ROUNDS WORD...
 *
 *   compile_time sm_80,sm_90a 1 1 3 family=mma pass=forward,backward head_dim=64,128,256
 *
 * PLANS: of each point, 0 = all, 1 = the first. Seconds are the wall clock's, in one process, of
 * the fastest round: what else a machine does has made single ones take half as much again (16
 * cores beside an H200, 2026-11-22: medians of rounds from 0.47 to 0.66 s). With one thread those
 * of the processor belong to one compile. Entry points follow with their registers and, in
 * parentheses, those that the recipe expects; the last lines are medians and worst cases by pass.
 */
#include "bench.h"
#include "compile_case.h"
#include "words.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    qsort(wall, (size_t)n, sizeof *wall, bench_by_value);
    qsort(busy, (size_t)n, sizeof *busy, bench_by_value);
    printf("%s: %d variants, median %.2f s, worst %.2f s; processor %.2f s, %.2f s; expansion "
           "%.1f ms on average\n",
           name, n, bench_median(wall, n), wall[n - 1], bench_median(busy, n), busy[n - 1],
           1e3 * expand / n);
  }
  free(wall);
  free(busy);
}

static void good(fg_status status) {
  if (status == FG_OK) return;
  fprintf(stderr, "%s\n", fg_error());
  exit(1);
}

/* Compiles all of them, and again: the figures of the last round, seconds of the fastest. */
static fg_status compile_rounds(const fg_nvrtc *nvrtc, compile_list *all, int threads, int rounds) {
  for (int round = 0; round < rounds; round++) {
    compile_list before = {all->n, malloc((size_t)all->n * sizeof *before.list + 1)};
    if (!before.list) return fg_fail(FG_EMEMORY, "no memory for %d variants", all->n);
    memcpy(before.list, all->list, (size_t)all->n * sizeof *before.list);
    fg_status status = compile_run(nvrtc, all, threads);
    for (int i = 0; round > 0 && i < all->n; i++) {
      compile_one *one = &all->list[i], *old = &before.list[i];
      if (old->status == FG_OK) fg_cubin_free(&old->cubin);
      one->seconds = fmin(one->seconds, old->seconds);
      one->processor_seconds = fmin(one->processor_seconds, old->processor_seconds);
    }
    free(before.list);
    TRY(status);
  }
  return FG_OK;
}

int main(int argc, char **argv) {
  const fg_nvrtc *nvrtc;
  compile_list all = {0};
  fg_gen *gen;
  char words[1024] = "";
  if (argc < 6 || atoi(argv[4]) < 1) {
    fprintf(stderr, "usage: compile_time ARCH[,ARCH...] PLANS THREADS ROUNDS WORD...\n");
    return 2;
  }
#ifdef __GLIBC__
  mallopt(M_TOP_PAD, 64 << 20); /* as flashgen does */
#endif
  good(fg_nvrtc_load(&nvrtc));
  good(fg_gen_new(NULL, &gen));
  for (int i = 5; i < argc; i++) {
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
  good(compile_rounds(nvrtc, &all, atoi(argv[3]), atoi(argv[4])));
  for (int i = 0; i < all.n; i++) print_one(&all.list[i]);
  print_pass(&all, FG_PASS_FORWARD, "forward");
  print_pass(&all, FG_PASS_BACKWARD, "backward");
  printf("processor time of the process %.1f s\n", (double)clock() / CLOCKS_PER_SEC);
  compile_free(&all);
  fg_gen_free(gen);
  return 0;
}
