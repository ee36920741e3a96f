/* run_mask.c - `flashgen run --out keep_mask=FILE`: which weights dropout keeps, for those who must
 * compare. Kernels have no such mask in memory; this one is made as the oracle's. */
#include "run.h"

#include "reference/oracle_dropout.h"

#include <stdlib.h>
#include <string.h>

bool run_is_mask(const run_job *j, const char *name) {
  return j->dropout && !strcmp(name, "keep_mask");
}

fg_status run_mask_check(const run_job *j) {
  if (j->layout.q == FG_DENSE && j->layout.kv == FG_DENSE && !j->layout.shard)
    return FG_OK; /* of slices too, where it goes by tokens */
  return fg_fail(FG_EARGUMENT, "--out keep_mask: it is of dense sequences alone, not of their parts");
}

fg_status run_mask_new(const run_job *j, const int64_t *given, int64_t extent[FG_AXES_MAX],
                       float **mask) {
  const fg_shape *s = &j->shape;
  const int64_t *words = given ? given : j->c->arguments.words, n = s->b * s->h * s->nq * s->nk;
  oracle_dropout x = {.below = oracle_dropout_below(j->c->arguments.launch.value[FG_NUMBER_KEEP])};
  for (int i = 0; i < 4; i++) x.words[i] = (uint32_t)words[i];
  extent[0] = s->b, extent[1] = s->h, extent[2] = s->nq, extent[3] = s->nk;
  float *values = malloc(((size_t)n + 1) * sizeof *values);
  if (!values) return fg_fail(FG_EMEMORY, "no memory for keep_mask");
  for (int64_t i = 0; i < n; i++) {
    const int64_t row = i / s->nk;
    values[i] = (float)oracle_dropout_keeps(&x, row / s->nq, row % s->nq, i % s->nk);
  }
  *mask = values;
  return FG_OK;
}
