/* compile_case.c - expands variants, and compiles them by some threads. */
#include "compile_case.h"
#include "clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 16 };

static fg_status add_one(fg_gen *gen, const fg_variant *variant, compile_list *all) {
  compile_one *grown = realloc(all->list, (size_t)(all->n + 1) * sizeof *grown);
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for %d variants", all->n + 1);
  all->list = grown;
  compile_one *one = &grown[all->n];
  *one = (compile_one){.variant = *variant};
  fg_variant_name(variant, sizeof one->name, one->name);
  double start = clock_seconds(CLOCK_MONOTONIC);
  TRY(fg_gen_expand(gen, variant, &one->source));
  one->expand_seconds = clock_seconds(CLOCK_MONOTONIC) - start;
  all->n++;
  return FG_OK;
}

fg_status compile_add(compile_list *all, fg_gen *gen, int n, const fg_variant *list) {
  for (int i = 0; i < n; i++) TRY(add_one(gen, &list[i], all));
  return FG_OK;
}

typedef struct {
  const fg_nvrtc *nvrtc;
  compile_list *all;
  atomic_int next;
} work;

static void *compile_some(void *context) {
  work *w = context;
  for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->all->n;) {
    compile_one *one = &w->all->list[i];
    double start = clock_seconds(CLOCK_MONOTONIC), busy = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    one->status = fg_nvrtc_compile(w->nvrtc, one->name, one->source->text, one->source->size,
                                   one->variant.arch, &one->cubin);
    one->seconds = clock_seconds(CLOCK_MONOTONIC) - start;
    one->processor_seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - busy;
    if (one->status != FG_OK) snprintf(one->error, sizeof one->error, "%s", fg_error());
  }
  return NULL;
}

fg_status compile_run(const fg_nvrtc *nvrtc, compile_list *all, int threads) {
  pthread_t thread[THREADS_MAX];
  work w = {.nvrtc = nvrtc, .all = all};
  int n = 0;
  while (n < threads && n < THREADS_MAX && !pthread_create(&thread[n], NULL, compile_some, &w)) n++;
  for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
  return n ? FG_OK : fg_fail(FG_EMEMORY, "no thread to compile in");
}

int compile_expected(const compile_one *one, const char *entry) {
  const fg_recipe *r = &one->source->recipe;
  for (int i = 0; i < r->n_steps; i++)
    if (r->step[i].kind == FG_STEP_LAUNCH && !strcmp(r->step[i].entry, entry))
      return r->step[i].registers;
  return 0;
}

void compile_free(compile_list *all) {
  for (int i = 0; i < all->n; i++) {
    fg_source_free(all->list[i].source);
    if (all->list[i].status == FG_OK) fg_cubin_free(&all->list[i].cubin);
  }
  free(all->list);
  *all = (compile_list){0};
}
