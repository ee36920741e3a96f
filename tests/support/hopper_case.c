/* hopper_case.c - kernels of a test's own on a device. */
#include "hopper_case.h"

#include "scratch.h"
#include "templates.h"

#include <fnmatch.h>
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

void hopper_device(void) {
  enum { SKIP = 77 };
  const char *arch = kernel_device()->arch;
  if (!strcmp(arch, "host") || !strcmp(arch, "sm_90a")) return;
  fprintf(stderr, "nothing is run: %s has no wgmma\n", arch);
  exit(SKIP);
}

void hopper_write(const char *which, const char *text) {
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

int hopper_runs(const hopper *h) {
  return fg_problem_run(h->problem, h->made.list[0].module) == FG_OK;
}

void hopper_fails(const hopper *h, const char *patterns) {
  char all[512], *rest = all;
  int found = 0;
  snprintf(all, sizeof all, "%s", patterns);
  fg_status status = fg_problem_run(h->problem, h->made.list[0].module);
  ck_assert_msg(status == FG_ETEMPLATE, "no fault, want %s", patterns);
  for (char *one; (one = strsep(&rest, "|"));) found |= fnmatch(one, fg_error(), 0) == 0;
  ck_assert_msg(found, "%s\nwant %s", fg_error(), patterns);
  ck_assert_msg(strstr(fg_error(), "\n  at attention/simt/forward.cut:"), "no place: %s",
                fg_error());
}

void hopper_fill(float *x, int n) {
  for (int i = 0; i < n; i++) x[i] = (float)(rand() % 17 - 8);
}
