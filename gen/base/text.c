/* text.c - see text.h. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

size_t fg_room(size_t size, int n) { return (size_t)n < size ? size - (size_t)n : 0; }

char *fg_room_at(size_t size, char *text, int n) {
  return text + ((size_t)n < size ? (size_t)n : size);
}

int fg_append(size_t size, char *text, int n, const char *format, ...) {
  va_list args;
  va_start(args, format);
  n += vsnprintf(fg_room_at(size, text, n), fg_room(size, n), format, args);
  va_end(args);
  return n;
}
