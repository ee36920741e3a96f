/* formula_token.c - the tokens of an expression, and what is said where they are wrong. */
#include "formula_parser.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 72 };

/* A byte of UTF-8 that goes on with a letter. */
static bool is_inside_letter(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

void fg_parse_next(fg_parser *p) {
  while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n') p->at++;
  const char *start = p->word = p->at;
  if (isdigit((unsigned char)*start) || (*start == '.' && isdigit((unsigned char)start[1]))) {
    char *end;
    if (start[0] == '0' && (start[1] | 32) == 'x') /* strtod would take it */
      end = (char *)start + 1;
    else
      strtod(start, &end);
    p->at = end;
    while (fg_formula_word(*p->at)) p->at++;
  } else if (fg_formula_word(*start)) {
    while (fg_formula_word(*p->at)) p->at++;
  } else if (*start) {
    static const char *const pairs[] = {"&&", "||", "==", "!=", "<=", ">="};
    p->at++;
    while (is_inside_letter(*p->at)) p->at++;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
      if (!strncmp(start, pairs[i], 2)) p->at = start + 2;
  }
  p->n = (size_t)(p->at - start);
}

bool fg_parse_is(const fg_parser *p, const char *text) {
  return strlen(text) == p->n && !strncmp(p->word, text, p->n);
}

/* Letters of the first n bytes. */
static int letters(const char *text, int n) {
  int count = 0;
  for (int i = 0; i < n; i++) count += !is_inside_letter(text[i]);
  return count;
}

fg_status fg_parse_bad(const fg_parser *p, const char *where, const char *format, ...) {
  char what[256], shown[SHOWN + 1];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  const int at = (int)(where - p->text);
  int from = at > SHOWN / 2 ? at - SHOWN / 2 : 0;
  while (is_inside_letter(p->text[from])) from++;
  snprintf(shown, sizeof shown, "%s", p->text + from);
  for (char *c = shown; *c; c++)
    if (*c == '\n' || *c == '\t') *c = ' ';
  return fg_fail(FG_ESPEC, "%s: column %d: %s\n  %s\n  %*s^", p->field, letters(p->text, at) + 1,
                 what, shown, letters(p->text + from, at - from), "");
}

fg_status fg_parse_unexpected(const fg_parser *p, const char *expected) {
  if (!p->n) return fg_parse_bad(p, p->word, "expected %s, found the end", expected);
  return fg_parse_bad(p, p->word, "expected %s, found \"%.*s\"", expected,
                      (int)(p->n < 24 ? p->n : 24), p->word);
}

fg_status fg_parse_expect(fg_parser *p, const char *text) {
  char quoted[8];
  snprintf(quoted, sizeof quoted, "\"%s\"", text);
  if (!fg_parse_is(p, text)) return fg_parse_unexpected(p, quoted);
  fg_parse_next(p);
  return FG_OK;
}
