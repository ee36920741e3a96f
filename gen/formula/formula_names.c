/* formula_names.c - what may be a name, and the heads of definitions. */
#include "formula_parse.h"

#include <ctype.h>
#include <string.h>

bool fg_formula_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

bool fg_formula_good_name(const char *name) {
  size_t n = 0;
  while (fg_formula_word(name[n])) n++;
  return n > 0 && n < FG_INPUT_NAME && !name[n] && !isdigit((unsigned char)*name);
}

const char *fg_formula_reserved(const char *name) {
  static const char *const others[] = {"true", "false", "bias"};
  for (int i = 0; i < FG_NAMES; i++)
    if (!strcmp(fg_name_text[i], name)) return "a name of the language";
  if (fg_formula_function(name)) return "a function of the language";
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (!strcmp(others[i], name)) return "a name of the language";
  return NULL;
}

fg_status fg_formula_head(const char *text, fg_head *head) {
  fg_head h = {.n = 0};
  const char *at = text;
  char(*to)[FG_INPUT_NAME] = &h.name;
  for (;;) {
    size_t n = 0;
    while (*at == ' ') at++;
    while (fg_formula_word(at[n])) n++;
    if (!n || n >= FG_INPUT_NAME || isdigit((unsigned char)*at)) break;
    memcpy(*to, at, n);
    (*to)[n] = 0;
    at += n;
    while (*at == ' ') at++;
    char wanted = to == &h.name ? '(' : ',';
    if ((to == &h.name && !*at) || (*at == ')' && !at[1] && to != &h.name)) {
      *head = h;
      return FG_OK;
    }
    if (*at++ != wanted || h.n == FG_PARAMETER_NAMES) break;
    to = &h.parameter[h.n++];
  }
  return fg_fail(FG_ESPEC, "\"%.60s\": expected a name, or name(a, b) with at most %d parameters",
                 text, FG_PARAMETER_NAMES);
}
