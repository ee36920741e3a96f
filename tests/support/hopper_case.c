/* hopper_case.c - kernels of a test's own on a device. */
#include "hopper_case.h"

#include "scratch.h"
#include "templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char family[] =
    "local family = { template = 'attention/simt/forward.cut', library = {} }\n"
    "function family.applies() return true end\n"
    "function family.candidates() return { { block_q = 16, block_kv = 32, warps = 4 } } end\n"
    "function family.describe(spec, plan)\n"
    "  local steps = { { entry = 'attn_fwd', grid = { case.grid or '1' }, threads = case.threads "
    "or "
    "128,\n"
    "    registers = 128, work = 'nk', cluster = case.cluster, early = case.early } }\n"
    "  local regions = { case.words and { name = 'words', count = case.words } }\n"
    "  if case.words then table.insert(steps, 1, { zero = 'words' }) end\n"
    "  return {\n"
    "    about = 'A test.', align = 16, inputs = { 'q', 'k', 'v' }, outputs = { 'o', 'lse' },\n"
    "    regions = regions, maps = case.maps, steps = steps,\n"
    "    constants = {}, shared = { { 'SM', case.shared or 1024, 'all' } },\n"
    "  }\n"
    "end\n"
    "return family\n";

/* Puts the kernel in place. */
static void hopper_write(const char *which, const char *text) {
  char lua[sizeof family + 1024];
  int n = snprintf(lua, sizeof lua, "case = %s\n%s", which, family);
  ck_assert_int_lt(n, (int)sizeof lua);
  scratch_put("t/attention/simt/forward.lua", lua, (size_t)n);
  scratch_put("t/attention/simt/forward.cut", text, strlen(text));
}

hopper hopper_new(const char *which, const char *text, const char *type, int d, fg_shape shape) {
  char words[128];
  hopper h;
  hopper_write(which, text);
  snprintf(words, sizeof words, "dtype=%s family=simt head_dim=%d", type, d);
  GOOD(kernels_make("t", words, &h.made));
  ck_assert_int_eq(h.made.n, 1);
  GOOD(fg_problem_new(kernel_device(), &h.made.list[0].source->recipe, &shape, 0, 0, &h.problem));
  return h;
}

void hopper_free(hopper *h) {
  fg_problem_free(h->problem);
  kernels_free(&h->made);
}

void hopper_set(const hopper *h, const char *tensor, const float *values) {
  GOOD(fg_problem_set(h->problem, fg_problem_find(h->problem, tensor), values));
}

void hopper_get(const hopper *h, const char *tensor, float *values) {
  GOOD(fg_problem_get(h->problem, fg_problem_find(h->problem, tensor), values));
}

void hopper_run(const hopper *h) { GOOD(fg_problem_run(h->problem, h->made.list[0].module)); }

void hopper_fill(float *x, int n) {
  for (int i = 0; i < n; i++) x[i] = (float)(rand() % 17 - 8);
}
