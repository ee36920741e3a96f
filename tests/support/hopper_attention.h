/* hopper_attention.h - the kernel `pipeline`, or one like it, with tensors and what they should
 * give. */
#ifndef FG_TESTS_HOPPER_ATTENTION_H
#define FG_TESTS_HOPPER_ATTENTION_H

#include "base/elem.h"
#include "hopper_case.h"
#include "hopper_pipeline.h"

#include <stdlib.h>
#include <string.h>

enum { D = 128, NQ = 128, NK_MAX = 320 };

/* -1, 0 and 1: S is exact in bfloat16. */
static inline void fill(float *x, int n) {
  for (int i = 0; i < n; i++) x[i] = (float)(rand() % 3 - 1);
}

/* Makes the kernel with tensors, and what o should be. */
static inline hopper begin(const char *text, int nk, float *want) {
  static float q[NQ * D], k[NK_MAX * D], v[NK_MAX * D];
  hopper h = hopper_new(pipeline_recipe, text, "bf16", D,
                        (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = NQ, .nk = nk});
  fill(q, NQ * D), fill(k, nk * D), fill(v, nk * D);
  hopper_set(&h, "q", q), hopper_set(&h, "k", k), hopper_set(&h, "v", v);
  memset(want, 0, NQ * D * sizeof *want);
  for (int i = 0; i < NQ * nk; i++) {
    float s = 0;
    for (int c = 0; c < D; c++) s += q[i / nk * D + c] * k[i % nk * D + c];
    for (int c = 0; c < D; c++) want[i / nk * D + c] += s * v[i % nk * D + c];
  }
  for (int i = 0; i < NQ * D; i++) {
    uint16_t bits;
    fg_elem_store(FG_ELEM_BF16, &bits, 0, want[i]);
    want[i] = fg_elem_load(FG_ELEM_BF16, &bits, 0);
  }
  return h;
}

static inline int right(const hopper *h, const float *want) {
  static float o[NQ * D];
  hopper_get(h, "o", o);
  return !memcmp(o, want, sizeof o);
}

#endif
