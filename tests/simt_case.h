/* simt_case.h - the numeric suite of one pass of the simt family, shared by its two programs. */
#ifndef FG_TESTS_SIMT_CASE_H
#define FG_TESTS_SIMT_CASE_H

#include "suite.h"

/* pass: "forward" or "backward". */
Suite *simt_suite(const char *pass);

#endif
