/* design_case.h - the suite of one design: every row's kernel against the oracle. */
#ifndef FG_TESTS_DESIGN_CASE_H
#define FG_TESTS_DESIGN_CASE_H

#include "suite.h"

/* name: of a design, "mma_forward". Its rows come from tests/design/NAME.txt. */
Suite *design_suite(const char *name);

#endif
