/* api_case.h - what the suites of the public functions share: contexts on the host device with a
 * cache in the test's own directory, and launches through fg_launch judged by the oracle.
 *
 * Failures in here fail the test, with the sentence. */
#ifndef FG_TESTS_API_CASE_H
#define FG_TESTS_API_CASE_H

#include "kernels.h"
#include "ops.h"
#include "reference/problem.h"
#include "reference/verify.h"
#include "status.h"
#include "suite.h"

/* A fixture: a scratch directory, none of flashgen's variables set, and no warnings yet. */
void api_enter(void);
void api_leave(void);

/* None of flashgen's variables set, and no warnings yet, without the directory. */
void api_reset(void);

/* A context's `warn`: keeps the sentence in api_warned and counts it. */
void api_keep_warning(void *context, const char *sentence);
extern char api_warned[2048]; /* the last one */
extern int api_warnings;

/* A context on the host device; cache and the rest of config as given, warnings are dropped. */
fg_config api_config(const char *cache);
fg_context *api_open(const char *cache);

/* "pass=backward head_dim=8": words parted by spaces, at most 16. They stay valid until the next
 * call in the thread. */
fg_spec api_spec(const char *words);
fg_op *api_define(fg_context *context, const char *words);
fg_kernel *api_select(fg_op *op, fg_shape shape);
/* All of it: the kernel of the words for a small shape. */
fg_kernel *api_kernel(fg_context *context, const char *words);
extern const fg_shape api_shape;

/* fg_build of the words, parted by spaces. */
fg_status api_build(fg_context *context, fg_order order, const char *words, fg_built *built);

/* hits, choices, compiles, loads of the context so far */
void api_counts(const fg_context *context, int hits, int choices, int compiles, int loads);

/* Tensors of one launch, contiguous, inputs drawn from `seed`, outputs NaN, with a workspace. */
fg_problem *api_problem(fg_kernel *kernel, fg_shape shape, uint64_t seed);
fg_status api_launch(fg_kernel *kernel, const fg_problem *problem);
/* All outputs of two launches have the same bits. */
void api_same_outputs(const fg_problem *a, const fg_problem *b);
/* Every element of every output has the bits that it started with. */
void api_untouched(const fg_problem *problem);

typedef enum api_layout { API_PADDED, API_TRANSPOSED } api_layout;
/* fg_launch gives the oracle's numbers, with strides that are padded, or with the heads outside the
 * rows (b h n d) and gaps between all. */
void api_verify(fg_kernel *kernel, api_layout layout, const verify_case *which);

/* A compiler of the test's own, ./NAME: `body` is a shell script's text in which $CC compiles.
 * --version answers `version`, NULL = that of the real one. Every compile adds a line to
 * NAME.log. */
void api_compiler(const char *name, const char *version, const char *body);
/* Lines in NAME.log: compiles so far. */
int api_compiled(const char *name);

#endif
