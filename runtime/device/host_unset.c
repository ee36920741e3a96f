/* host_unset.c - finds the declarations of a kernel's text.
 *
 * Emitted text has one form: a declaration begins a statement of a function with its type, and
 * each of its names is a variable or an array. Any other statement that begins with a type has an
 * initialiser. */
#include "host_unset.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64 };

typedef struct scan {
  const char *at, *end;
  FILE *to;
  int braces;       /* open ones, however deep */
  bool code[DEPTH]; /* whether the nth open brace holds statements */
  bool begins;      /* whether a statement begins here */
  char last[16];    /* the first letters of the last token, which tells the kind of a brace */
} scan;

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The end of a comment, a string or a directive that begins at s->at; NULL: none of them does. */
static const char *behind_gap(const scan *s, bool line_start) {
  const char *p = s->at;
  if (!strncmp(p, "//", 2)) return p + strcspn(p, "\n");
  if (!strncmp(p, "/*", 2)) {
    const char *close = strstr(p + 2, "*/");
    return close ? close + 2 : s->end;
  }
  if (*p == '"' || *p == '\'') {
    const char quote = *p++;
    while (p < s->end && *p != quote) p += *p == '\\' ? 2 : 1;
    return p < s->end ? p + 1 : s->end;
  }
  if (*p != '#' || !line_start) return NULL;
  for (p += strcspn(p, "\n"); p < s->end && p[-1] == '\\';) p += 1 + strcspn(p + 1, "\n");
  return p;
}

/* ---- declarations ---- */

/* Puts a declarator of the text and its value: "x[2][N]" becomes "x[2][N] = {[0 ... (2) - 1] = {[0
 * ... (N) - 1] = value}}". */
static void put_declarator(FILE *to, const char *from, const char *end, const char *value) {
  const char *dims = memchr(from, '[', (size_t)(end - from));
  int n = 0;
  fprintf(to, "%.*s = ", (int)(end - from), from);
  while (dims && dims < end) {
    const char *close = memchr(dims, ']', (size_t)(end - dims));
    if (!close) break;
    fprintf(to, "{[0 ... (%.*s) - 1] = ", (int)(close - dims - 1), dims + 1);
    n++;
    dims = memchr(close, '[', (size_t)(end - close));
  }
  fputs(value, to);
  while (n--) fputc('}', to);
}

/* Puts the names of a declaration, from behind its type up to its semicolon, each with the value
 * unless it has one. */
static void put_declaration(scan *s, const char *value) {
  const char *from = s->at;
  int depth = 0;
  bool plain = true; /* no initialiser, no pointer, no function, no comment */
  for (const char *p = from; p < s->end; p++) {
    plain &= depth > 0 || !strchr("=*(/", *p);
    depth += *p == '(' || *p == '[' || *p == '{';
    depth -= *p == ')' || *p == ']' || *p == '}';
    if (depth || (*p != ',' && *p != ';')) continue;
    if (plain)
      put_declarator(s->to, from, p, value);
    else
      fwrite(from, 1, (size_t)(p - from), s->to);
    s->at = p;
    if (*p == ';') return;
    fputc(',', s->to);
    from = s->at = p + 1;
    plain = true;
  }
}

/* Puts a word and, if it is the type of a declaration, the names behind it. */
static void put_word(scan *s) {
  static const struct {
    const char *type, *value;
  } types[] = {{"float", "FGH_UNSET_F32"}, {"u32", "FGH_UNSET_U32"}};
  const char *from = s->at;
  const bool declares = s->begins && s->braces > 0 && s->braces <= DEPTH && s->code[s->braces - 1];
  while (s->at < s->end && is_word(*s->at)) s->at++;
  const size_t n = (size_t)(s->at - from);
  fwrite(from, 1, n, s->to);
  snprintf(s->last, sizeof s->last, "%.*s", (int)n, from);
  s->begins = false;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (declares && *s->at == ' ' && !strcmp(s->last, types[i].type))
      put_declaration(s, types[i].value);
}

/* ---- the text ---- */

/* A brace opens. It holds statements if it stands behind ")", "else" or "do", or where a statement
 * begins. */
static void open_brace(scan *s) {
  const bool inside = s->braces > 0 && s->braces <= DEPTH && s->code[s->braces - 1];
  const bool code = *s->last == ')' ||
                    (inside && (s->begins || !strcmp(s->last, "else") || !strcmp(s->last, "do")));
  if (s->braces < DEPTH) s->code[s->braces] = code;
  s->braces++;
}

/* Puts one character that belongs to no word, and keeps count of braces and statements. */
static void put_sign(scan *s) {
  const char c = *s->at++;
  fputc(c, s->to);
  if (isspace((unsigned char)c)) return;
  if (c == '{') open_brace(s);
  if (c == '}' && s->braces) s->braces--;
  s->begins = c == '{' || c == '}' || c == ';';
  s->last[0] = c, s->last[1] = 0;
}

fg_status fg_host_unset(const char *text, size_t size, char **made, size_t *made_size) {
  scan s = {.at = text, .end = text + size, .to = open_memstream(made, made_size)};
  bool line_start = true;
  if (!s.to) return fg_fail(FG_EMEMORY, "no memory for a kernel's text");
  while (s.at < s.end) {
    const char *gap = behind_gap(&s, line_start);
    line_start = *s.at == '\n' || (line_start && isspace((unsigned char)*s.at));
    if (gap) {
      fwrite(s.at, 1, (size_t)(gap - s.at), s.to);
      s.at = gap;
    } else if (is_word(*s.at)) {
      put_word(&s);
    } else {
      put_sign(&s);
    }
  }
  const bool failed = ferror(s.to) != 0;
  if (!fclose(s.to) && !failed) return FG_OK;
  free(*made);
  return fg_fail(FG_EMEMORY, "no memory for a kernel's text");
}
