/* kernel_case.h - kernels made ready to run on a device, for suites that launch them.
 *
 * Failures in here fail the test, with the kernel's name, the case and the sentence. */
#ifndef FG_TESTS_KERNEL_CASE_H
#define FG_TESTS_KERNEL_CASE_H

#include "reference/verify.h"
#include "status.h"
#include "suite.h"

typedef struct kernel {
  fg_variant variant;
  char name[FG_NAME_MAX];
  fg_source *source;
  fg_module *module;
} kernel;

typedef struct kernels {
  int n;
  kernel *list;
} kernels;

/* The device that kernels run on: host, or what FLASHGEN_TEST_DEVICE names; opened once. Where it
 * cannot be opened the program ends: skipped, or failed if FLASHGEN_REQUIRE names gpu. */
fg_device *kernel_device(void);

/* The same for suites of wgmma alone, which a GPU of another kind cannot run: skipped there. */
fg_device *kernel_device_of_wgmma(void);
bool kernel_device_is_host(void);

/* Expands, compiles and loads one. may_warn: of templates with a bug, which leaves names unused.
 * The caller frees what is made, also on failure. */
fg_status kernel_make(fg_gen *gen, const fg_variant *variant, bool may_warn, kernel *k);

/* The same of a text that is expanded already; the kernel frees the source. */
fg_status kernel_compile(fg_source *source, const fg_variant *variant, bool may_warn, kernel *k);
void kernel_free(kernel *k);

/* Every plan of every point of the grid that the words ("pass=backward head_dim=8,40", parted by
 * spaces) describe, expanded and compiled; words of plan fields restrict the plans. templates: the
 * directory to expand, NULL = the built-in ones. The caller frees what is made, also on failure. */
fg_status kernels_make(const char *templates, const char *words, kernels *made);

/* The same with the built-in templates and words given as to printf; cannot fail. */
kernels kernels_new(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with the first plan of each point. */
kernels kernels_first(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with the templates of a directory. */
kernels kernels_first_of(const char *templates, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same with fewer plans, for tests of what plans hardly differ in: of each point those of simt
 * and, before them, one of the others; `turn` says which, and the next point has the next. */
kernels kernels_some(int turn, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Of each family that takes the one spec that the words describe, the plan whose turn it is. */
kernels kernels_of_families(int turn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void kernels_free(kernels *made);

/* The kernel's results on the case are right. */
void kernel_verify(const kernel *k, const verify_case *which);

/* What kernel_verify would say: FG_OK and *right, or the kernel's fault; text has each tensor's
 * error. */
fg_status kernel_judge(const kernel *k, const verify_case *which, int *right, size_t size,
                       char *text);

#endif
