/* kernel_case.c - words to loaded kernels, and kernels to verdicts. */
#include "kernel_case.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 32, WORDS_SIZE = 1024, SKIP = 77 };

static int split(char *text, const char *word[WORDS_MAX]) {
  int n = 0;
  for (char *rest, *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
    ck_assert_int_lt(n, WORDS_MAX);
    word[n++] = w;
  }
  return n;
}

fg_device *kernel_device(void) {
  static fg_device *device;
  const char *name = getenv("FLASHGEN_TEST_DEVICE"), *required = getenv("FLASHGEN_REQUIRE");
  if (device || fg_device_open(name && *name ? name : "host", &device) == FG_OK) return device;
  fprintf(stderr, "nothing is run: %s\n", fg_error());
  exit(required && strstr(required, "gpu") ? EXIT_FAILURE : SKIP);
}

/* The variant that made->list[made->n] describes; made->n counts what there is to free. */
static fg_status load(fg_gen *gen, kernels *made) {
  kernel *k = &made->list[made->n++];
  fg_variant_name(&k->variant, sizeof k->name, k->name);
  TRY(fg_gen_expand(gen, &k->variant, &k->source));
  return fg_module_new(kernel_device(), k->source, k->name, &k->module);
}

static fg_status load_point(fg_gen *gen, const fg_point *point, const fg_limits *limits,
                            kernels *made) {
  fg_plan *plans = NULL;
  int n;
  const char *arch = kernel_device()->arch;
  TRY(fg_gen_plans(gen, point, arch, limits, &plans, &n));
  fg_status status = FG_OK;
  made->list = realloc(made->list, (size_t)(made->n + n) * sizeof *made->list);
  ck_assert_ptr_nonnull(made->list);
  for (int i = 0; i < n && status == FG_OK; i++) {
    made->list[made->n] = (kernel){.variant = {.point = *point, .plan = plans[i]}};
    strcpy(made->list[made->n].variant.arch, arch);
    status = load(gen, made);
  }
  free(plans);
  return status;
}

fg_status kernels_make(const char *templates, const char *words, kernels *made) {
  char text[WORDS_SIZE];
  const char *word[WORDS_MAX];
  fg_grid *grid = NULL;
  fg_gen *gen = NULL;
  fg_status status = FG_OK;
  *made = (kernels){0};
  snprintf(text, sizeof text, "%s", words);
  int n = split(text, word);
  TRY_OUT(fg_grid_read(0, NULL, n, word, &grid));
  TRY_OUT(fg_gen_new(templates, &gen));
  for (int i = 0; i < grid->n; i++)
    TRY_OUT(load_point(gen, &grid->point[i], grid->limits[i], made));
out:
  fg_gen_free(gen);
  fg_grid_free(grid);
  return status;
}

kernels kernels_new(const char *format, ...) {
  char words[WORDS_SIZE];
  kernels made;
  va_list args;
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  ck_assert_msg(kernels_make(NULL, words, &made) == FG_OK, "%s: %s", words, fg_error());
  ck_assert_int_gt(made.n, 0);
  return made;
}

void kernels_free(kernels *made) {
  for (int i = 0; i < made->n; i++) {
    fg_module_free(made->list[i].module);
    fg_source_free(made->list[i].source);
  }
  free(made->list);
  *made = (kernels){0};
}

static void describe(const verify_case *c, size_t size, char *text) {
  const fg_shape *s = &c->shape;
  snprintf(text, size,
           "b=%" PRId64 " h=%" PRId64 " hk=%" PRId64 " nq=%" PRId64 " nk=%" PRId64
           " scale=%g style=%d seed=%" PRIu64,
           s->b, s->h, s->hk, s->nq, s->nk, (double)c->scale, (int)c->style, c->seed);
}

fg_status kernel_judge(const kernel *k, const verify_case *which, int *right, size_t size,
                       char *text) {
  verify_verdict verdict;
  size_t n = 0;
  text[0] = 0;
  TRY(verify_run(&k->variant, k->source, k->module, which, 0, &verdict));
  *right = verdict.pass;
  for (int i = 0; i < verdict.n && n < size; i++)
    n += (size_t)snprintf(text + n, size - n, " %s %.3g of %.3g", verdict.tensor[i].name,
                          verdict.tensor[i].error, verdict.tensor[i].limit);
  return FG_OK;
}

void kernel_verify(const kernel *k, const verify_case *which) {
  char place[256], errors[512];
  int right = 0;
  describe(which, sizeof place, place);
  fg_status status = kernel_judge(k, which, &right, sizeof errors, errors);
  ck_assert_msg(status == FG_OK, "%s, %s: %s", k->name, place, fg_error());
  ck_assert_msg(right, "%s, %s: wrong:%s", k->name, place, errors);
}
