/* error.c - the thread's last failure. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* All errors of a spec file come as one text, so the sentence may be long. */
enum { SENTENCE = 16384 };
static _Thread_local char sentence[SENTENCE];

const char *fg_error(void) { return sentence; }

/* The bytes of the UTF-8 letter at `c`; 0: it is none, or a control character above ASCII. */
static int letter_bytes(const unsigned char *c) {
  const int n = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
  for (int i = 1; i < n; i++)
    if ((c[i] & 0xc0) != 0x80) return 0;
  return n == 2 && *c == 0xc2 && c[1] < 0xa0 ? 0 : n;
}

/* A sentence may quote what a user gave, cut anywhere: nothing of it may move a terminal's cursor,
 * and it is UTF-8 whatever was given. */
static void keep(char *text) {
  for (char *c = text; *c;) {
    const int n = letter_bytes((unsigned char *)c);
    if (n <= 1 && (!n || ((unsigned char)*c < ' ' && *c != '\n') || *c == 0x7f))
      *c = *c == '\t' ? ' ' : '?';
    c += n ? n : 1;
  }
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
