/* error.h - the one way to fail: a status code, and a sentence kept for the thread.
 *
 * fg_fail writes the sentence and returns the code, so `return fg_fail(FG_ESPEC, "...")` raises;
 * TRY passes a failure on; functions that must clean up use TRY_OUT and one `out:` label. */
#ifndef FG_ERROR_H
#define FG_ERROR_H

#include "flashgen.h"

fg_status fg_fail(fg_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the present sentence and returns `code` unchanged. */
fg_status fg_fail_in(fg_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define TRY(call)                                                                                  \
  do {                                                                                             \
    fg_status try_ = (call);                                                                       \
    if (try_ != FG_OK) return try_;                                                                \
  } while (0)

#define TRY_OUT(call)                                                                              \
  do {                                                                                             \
    if ((status = (call)) != FG_OK) goto out;                                                      \
  } while (0)

#endif
