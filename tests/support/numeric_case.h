/* numeric_case.h - the numeric suite of one pass of one family, shared by its programs. */
#ifndef FG_TESTS_NUMERIC_CASE_H
#define FG_TESTS_NUMERIC_CASE_H

#include "suite.h"

/* family: "simt", "mma", "wgmma" or "decode"; pass: "forward" or "backward". */
Suite *numeric_suite(const char *family, const char *pass);

#endif
