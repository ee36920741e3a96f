/* error.c - the thread's last failure. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* All errors of a spec file come as one text, so the sentence may be long. */
enum { SENTENCE = 16384 };
static _Thread_local char sentence[SENTENCE];

const char *fg_error(void) { return sentence; }

/* A sentence may quote what a user gave: nothing of it may move a terminal's cursor. */
static void keep(char *text) {
  for (char *c = text; *c; c++)
    if (((unsigned char)*c < ' ' && *c != '\n') || *c == 0x7f) *c = *c == '\t' ? ' ' : '?';
  memcpy(sentence, text, strlen(text) + 1);
}

fg_status fg_fail(fg_status code, const char *format, ...) {
  char text[SENTENCE]; /* an argument may be fg_error() itself */
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  keep(text);
  return code;
}

fg_status fg_fail_in(fg_status code, const char *format, ...) {
  char context[512], text[SENTENCE];
  va_list args;
  va_start(args, format);
  vsnprintf(context, sizeof context, format, args);
  va_end(args);
  snprintf(text, sizeof text, "%s: %.*s", context, SENTENCE - 520, sentence);
  keep(text);
  return code;
}
