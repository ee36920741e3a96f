/* sized.c - structs that callers fill: their sizes. */
#include "sized.h"

#include <stdbool.h>
#include <string.h>

fg_status fg_size_check(const char *what, size_t size, size_t known) {
  if (size >= sizeof size && size <= known && size % sizeof size == 0) return FG_OK;
  return fg_fail(FG_EARGUMENT, "%s: its size is %zu; expected FG_INIT's, at most %zu", what, size,
                 known);
}

fg_status fg_args_size_check(size_t size) {
  static const size_t runs[][2] = {{offsetof(fg_args, q), offsetof(fg_args, given)},
                                   {offsetof(fg_args, x), offsetof(fg_args, sm_margin)}};
  bool whole = true;
  TRY(fg_size_check("args", size, sizeof(fg_args)));
  for (int i = 0; i < 2; i++)
    whole &= size < runs[i][0] || size > runs[i][1] || (size - runs[i][0]) % sizeof(fg_tensor) == 0;
  if (whole) return FG_OK;
  return fg_fail(FG_EARGUMENT, "args: its size, %zu, ends within a tensor; expected FG_INIT's",
                 size);
}

fg_status fg_shape_copy(const fg_shape *given, fg_shape *own) {
  TRY(fg_size_check("shape", given->size, sizeof *given));
  memset(own, 0, sizeof *own);
  memcpy(own, given, given->size);
  return FG_OK;
}
