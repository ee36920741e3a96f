/* reference.h - what a kind of kernel is judged by: a row each of how inputs are drawn and what the
 * float64 oracle makes of them. verify.c does the rest for every kind. */
#ifndef FG_REFERENCE_H
#define FG_REFERENCE_H

#include "problem.h"
#include "verify.h"

/* One verification under way. */
typedef struct reference_case {
  const fg_variant *variant;
  const verify_case *which;
  fg_problem *problem;
  /* Of each tensor, in the oracle's order: heads before rows. An input's as the kernel sees them,
   * rounded; NULL: an optional one that is not given. */
  double *value[FG_TENSOR_MAX];
  void *own; /* the kind's */
} reference_case;

/* An output as it should be. rss: the size of the terms behind each element (mathematics.md section
 * 6),
 * NULL: it is a log-sum-exp, judged in its own unit. plain: by an unfused computation in the spec's
 * dtype; NULL: none. limit: the most error that counts as right, 0: that of the dtype; of what is
 * judged in its own unit beside 1e-4, relative to its size, 0: 1e-6. cut: how much further each of
 * these may be off; NULL: no further. */
typedef struct reference_values {
  const double *ref, *rss, *plain;
  double limit;
  const double *cut;
} reference_values;

typedef struct reference {
  /* Inputs of a backward that its forward leaves: they are not drawn, `solve` puts them. */
  const char *const *saved;
  /* Before inputs are drawn: makes `own`, sets numbers of the launch. */
  fg_status (*start)(reference_case *c);
  /* The values of an input; its dtype's rounding follows. */
  void (*draw)(const reference_case *c, int tensor, double *values);
  /* Solves the case; `plain` asks for the unfused results too. */
  fg_status (*solve)(reference_case *c, int plain);
  reference_values (*find)(const reference_case *c, const char *name);
  /* Fills in what the verdict says besides errors: pairs, seen, reason. */
  void (*tell)(const reference_case *c, verify_verdict *verdict);
  void (*free)(reference_case *c);
  /* Makes those values of an output right that float32 cannot tell from the right ones, where they
   * lie far apart all the same; NULL: there are none such. */
  void (*forgive)(const reference_case *c, int tensor, double *values);
} reference;

/* The row of a kind. */
const reference *reference_of(const fg_kind *kind);
/* Does a forward of that kind leave the input for its backward? One that the spec declares may have
 * the name of one that another spec's forward leaves. */
bool reference_is_saved(const reference *of, const fg_recipe_tensor *tensor);
extern const reference reference_attention, reference_logsoftmax, reference_combine,
    reference_append, reference_layernorm, reference_linear;

/* FG_ESPEC unless the case's normaliser is the default, the only one that there is an oracle of. */
fg_status reference_check_normalizer(const reference_case *c);

/* The oracle's problem of a case of attention that is solved, of dense sequences; it reads the
 * case's values. */
struct oracle_problem;
const struct oracle_problem *reference_attention_problem(const reference_case *c);

/* The values of the tensor of that name; NULL: there is none. */
double *reference_value(const reference_case *c, const char *name);

/* Values of a tensor as a launch has them, to the oracle's order or back. */
void reference_reorder(const reference_case *c, int tensor, int to_oracle, float *stored,
                       double *ordered);

/* Puts an input's values, in the oracle's order, and reads them back rounded. */
fg_status reference_put(reference_case *c, int tensor, double *values);

/* Of norms of rows: eps of the launch; and the numbers of each row that a backward has of its
 * forward, which a kernel without that tensor is not given. */
double reference_eps(const reference_case *c);
/* The size of what a norm adds up, 1; where the case gives an eps, such that the eps shows. */
double reference_size_of_terms(const reference_case *c);
fg_status reference_put_rows(reference_case *c, const char *name, const double *from);

#endif
