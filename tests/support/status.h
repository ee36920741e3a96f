/* status.h - assertions on calls that return fg_status. */
#ifndef FG_TESTS_STATUS_H
#define FG_TESTS_STATUS_H

#include "base/error.h"

#include <check.h>
#include <string.h>

/* The call succeeds, or the test fails with its sentence. */
#define GOOD(call) ck_assert_msg((call) == FG_OK, "%s", fg_error())

/* The call fails with the status, and its sentence holds the text. */
#define FAILS(status, text, call)                                                                  \
  do {                                                                                             \
    ck_assert_int_eq((call), status);                                                              \
    ck_assert_msg(strstr(fg_error(), text), "expected \"%s\", got: %s", text, fg_error());         \
  } while (0)

/* The same; the sentence is the text. */
#define FAILS_AS(status, text, call)                                                               \
  do {                                                                                             \
    ck_assert_int_eq((call), status);                                                              \
    ck_assert_str_eq(fg_error(), text);                                                            \
  } while (0)

#endif
