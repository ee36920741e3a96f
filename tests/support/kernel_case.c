/* kernel_case.c - words to loaded kernels, and kernels to verdicts. */
#include "kernel_case.h"

#include "kept_code.h"
#include "recipe/extent.h"
#include "words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_SIZE = 2048, ALL = -1, FIRST = -2 };

fg_device *kernel_device(void) {
  static fg_device *device;
  const char *name = getenv("FLASHGEN_TEST_DEVICE");
  if (!device && fg_device_open(name && *name ? name : "host", &device) != FG_OK)
    suite_skip("gpu", fg_error());
  return device;
}

bool kernel_device_is_host(void) { return !strcmp(kernel_device()->arch, "host"); }

fg_device *kernel_device_of_wgmma(void) {
  fg_device *device = kernel_device();
  if (!kernel_device_is_host() && strcmp(device->arch, "sm_90a") != 0)
    suite_skip("sm_90a", "the device has no products by a warpgroup");
  return device;
}

fg_status kernel_compile(fg_source *source, const fg_variant *variant, bool may_warn, kernel *k) {
  *k = (kernel){.variant = *variant, .source = source};
  fg_variant_name(variant, sizeof k->name, k->name);
  source->unskipped |= may_warn;
  return kept_module(kernel_device(), source, k->name, &k->module);
}

fg_status kernel_make(fg_gen *gen, const fg_variant *variant, bool may_warn, kernel *k) {
  fg_source *source;
  *k = (kernel){.variant = *variant};
  TRY(fg_gen_expand(gen, variant, &source));
  return kernel_compile(source, variant, may_warn, k);
}

void kernel_free(kernel *k) {
  fg_module_free(k->module);
  fg_source_free(k->source);
  *k = (kernel){0};
}

static bool is_simt(const fg_variant *v) { return !strcmp(fg_plan_family(&v->plan), "simt"); }

/* Keeps of each point the plans of simt and, before them, the turn-th of the others; returns how
 * many variants. */
static int keep_some(int turn, int n, fg_variant *list) {
  int kept = 0;
  for (int from = 0, to; from < n; from = to, turn++) {
    int others = 0;
    for (to = from; to < n && fg_point_equal(&list[to].point, &list[from].point); to++)
      others += !is_simt(&list[to]);
    int chosen = others ? turn % others : 0;
    for (int i = from; i < to; i++)
      if (is_simt(&list[i]) || chosen-- == 0) list[kept++] = list[i];
  }
  return kept;
}

/* Words to kernels; of all their plans, of each point's first, or as kernels_some with the turn. */
static fg_status make(const char *templates, bool may_warn, const char *words, int turn,
                      kernels *made) {
  fg_gen *gen;
  fg_variant *list = NULL;
  fg_status status = FG_OK;
  int n;
  *made = (kernels){0};
  TRY(fg_gen_new(templates, &gen));
  TRY_OUT(words_variants(gen, words, kernel_device()->arch, turn == FIRST, &list, &n));
  if (turn >= 0) n = keep_some(turn, n, list);
  made->list = calloc((size_t)n + 1, sizeof *made->list);
  ck_assert_ptr_nonnull(made->list);
  while (made->n < n) { /* counted before it is made: what there is to free */
    kernel *k = &made->list[made->n];
    TRY_OUT(kernel_make(gen, &list[made->n++], may_warn, k));
  }
out:
  free(list);
  fg_gen_free(gen);
  return status;
}

fg_status kernels_make(const char *templates, const char *words, kernels *made) {
  return make(templates, templates != NULL, words, ALL, made);
}

static kernels make_good(const char *templates, int turn, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static kernels make_good(const char *templates, int turn, const char *format, va_list args) {
  char words[WORDS_SIZE];
  kernels made;
  vsnprintf(words, sizeof words, format, args);
  ck_assert_msg(make(templates, false, words, turn, &made) == FG_OK, "%s: %s", words, fg_error());
  ck_assert_int_gt(made.n, 0);
  return made;
}

kernels kernels_new(const char *format, ...) {
  va_list args;
  va_start(args, format);
  kernels made = make_good(NULL, ALL, format, args);
  va_end(args);
  return made;
}

kernels kernels_first(const char *format, ...) {
  va_list args;
  va_start(args, format);
  kernels made = make_good(NULL, FIRST, format, args);
  va_end(args);
  return made;
}

kernels kernels_first_of(const char *templates, const char *format, ...) {
  va_list args;
  va_start(args, format);
  kernels made = make_good(templates, FIRST, format, args);
  va_end(args);
  return made;
}

kernels kernels_some(int turn, const char *format, ...) {
  va_list args;
  va_start(args, format);
  kernels made = make_good(NULL, turn, format, args);
  va_end(args);
  return made;
}

/* The plan of the family whose turn it is; false: the family leaves the spec to others. */
static bool make_of_family(fg_gen *gen, const char *words, const char *family, int turn,
                           kernel *k) {
  char all[WORDS_SIZE];
  fg_variant *list;
  int n;
  snprintf(all, sizeof all, "%s family=%s", words, family);
  const fg_status status = words_variants(gen, all, kernel_device()->arch, 0, &list, &n);
  const bool is_refused = status == FG_ESPEC && strstr(fg_error(), "no plan fits");
  ck_assert_msg(status == FG_OK || is_refused, "%s: %s", all, fg_error());
  if (!is_refused) GOOD(kernel_make(gen, &list[turn % n], false, k));
  free(list);
  return !is_refused;
}

kernels kernels_of_families(int turn, const char *format, ...) {
  static const char *const families[] = {"simt", "mma", "wgmma", "decode"};
  enum { FAMILIES = sizeof families / sizeof *families };
  char words[WORDS_SIZE - 64];
  fg_gen *gen;
  va_list args;
  kernels made = {.list = calloc(FAMILIES, sizeof *made.list)};
  ck_assert_ptr_nonnull(made.list);
  va_start(args, format);
  vsnprintf(words, sizeof words, format, args);
  va_end(args);
  GOOD(fg_gen_new(NULL, &gen));
  for (int i = 0; i < FAMILIES; i++)
    made.n += make_of_family(gen, words, families[i], turn, &made.list[made.n]);
  fg_gen_free(gen);
  ck_assert_int_gt(made.n, 0);
  return made;
}

void kernels_free(kernels *made) {
  for (int i = 0; i < made->n; i++) kernel_free(&made->list[i]);
  free(made->list);
  *made = (kernels){0};
}

static void describe(const verify_case *which, size_t size, char *text) {
  char shape[FG_SHAPE_WORDS];
  fg_shape_words(fg_shape_form_of(&which->shape), &which->shape, sizeof shape, shape);
  snprintf(text, size, "%s scale=%g style=%d seed=%" PRIu64, shape, (double)which->scale,
           which->style, which->seed);
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
  char place[384], errors[512];
  int right = 0;
  describe(which, sizeof place, place);
  fg_status status = kernel_judge(k, which, &right, sizeof errors, errors);
  ck_assert_msg(status == FG_OK, "%s, %s: %s", k->name, place, fg_error());
  ck_assert_msg(right, "%s, %s: wrong:%s", k->name, place, errors);
}
