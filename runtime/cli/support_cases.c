/* support_cases.c - see support.h. */
#include "support.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  cli_case *list;
  int n;
} cases;

/* The words without those of `field` and of pass, and then the word and the pass. */
static int replaced(const char *words, const char *field, const char *word, const char *pass,
                    size_t size, char *text) {
  const size_t length = strlen(field);
  int n = 0;
  for (const char *at = words; *at;) {
    const int w = (int)strcspn(at, " ");
    const bool is_own = !strncmp(at, field, length) && at[length] == '=';
    if (!is_own && strncmp(at, "pass=", 5)) n = fg_append(size, text, n, "%.*s ", w, at);
    at += w + (at[w] == ' ');
  }
  return fg_append(size, text, n, "%s%s%s", word, *pass ? " " : "", pass);
}

/* The point that words give, if they give one. */
static bool read_point(const char *words, fg_point *point) {
  char copy[320], *list[16];
  int n = 0;
  fg_grid *grid;
  snprintf(copy, sizeof copy, "%s", words);
  for (char *word = strtok(copy, " "); word && n < 16; word = strtok(NULL, " ")) list[n++] = word;
  if (fg_grid_read(0, NULL, n, (const char *const *)list, &grid) != FG_OK) return false;
  const bool is_one = grid->n == 1;
  if (is_one) *point = grid->point[0];
  fg_grid_free(grid);
  return is_one;
}

/* Has the point the value that the word gives? A pass may have no such value. */
static bool has_value(const fg_field *field, const char *word, const fg_point *point) {
  char text[64];
  if (!field->type->choice) return true;
  fg_field_print(field, point, sizeof text, text);
  return !strcmp(strchr(word, '=') + 1, text);
}

/* Adds the case unless no pass has it. plain: the kind's first case, NULL: this is it. */
static fg_status add(cases *all, const fg_kind *kind, const char *base, const fg_field *field,
                     const char *word, int plain) {
  static const char *const passes[CLI_PASSES] = {"pass=forward", "pass=backward"};
  cli_case made = {.kind = kind};
  char words[320];
  replaced(base, field->name, word, "", sizeof made.words, made.words);
  snprintf(made.label, sizeof made.label, "%s", plain < 0 ? base : word);
  for (int p = 0; p < CLI_PASSES; p++) {
    const bool has_pass = fg_kind_has_field(kind, FG_FIELD_PASS);
    if (p && !has_pass) continue;
    replaced(base, field->name, word, has_pass ? passes[p] : "", sizeof words, words);
    made.has[p] = read_point(words, &made.at[p]) && made.at[p].pass == p &&
                  has_value(field, word, &made.at[p]) &&
                  (plain < 0 || !fg_point_equal(&made.at[p], &all->list[plain].at[p]));
  }
  if (!made.has[0] && !made.has[1]) return FG_OK;
  cli_case *grown = realloc(all->list, sizeof *grown * (size_t)(all->n + 1));
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for %d cases", all->n + 1);
  all->list = grown;
  all->list[all->n++] = made;
  return FG_OK;
}

/* A value of a list that ends at a comma outside brackets: its length. */
static size_t value_length(const char *at) {
  int depth = 0;
  size_t n = 0;
  for (; at[n] && (at[n] != ',' || depth) && at[n] != ' '; n++)
    depth += (strchr("([", at[n]) != NULL) - (strchr(")]", at[n]) != NULL);
  return n;
}

/* Every value of the field: a choice has its list, others the values of the example. Where the
 * example is of another kind the value joins the kind's plainest words. */
static fg_status add_field(cases *all, const fg_kind *kind, const fg_field *field, int plain) {
  const bool is_own = !strncmp(kind->example, "kernel=", 7)
                          ? !strncmp(kind->example, field->example, strcspn(kind->example, " "))
                          : !strstr(field->example, "kernel=");
  const char *base = is_own ? field->example : kind->example;
  char word[128];
  if (field->type == &fg_type_choice) {
    for (int i = 0; field->choices[i]; i++) {
      snprintf(word, sizeof word, "%s=%s", field->name, field->choices[i]);
      if (strcmp(field->choices[i], field->fallback)) TRY(add(all, kind, base, field, word, plain));
    }
    return FG_OK;
  }
  const size_t length = strlen(field->name);
  const char *at = field->example;
  while (*at && (strncmp(at, field->name, length) || at[length] != '=')) at++;
  if (!*at) return fg_fail(FG_EBUG, "the example of %s does not name it", field->name);
  for (at += length + 1;; at++) {
    const size_t n = value_length(at);
    snprintf(word, sizeof word, "%s=%.*s", field->name, (int)n, at);
    TRY(add(all, kind, base, field, word, plain));
    at += n;
    if (*at != ',') return FG_OK;
  }
}

fg_status cli_cases_make(cli_case **list, int *n) {
  cases all = {0};
  fg_status status = FG_OK;
  for (int k = 0; k < FG_KINDS; k++) {
    const fg_kind *kind = &fg_kinds[k];
    const int plain = all.n;
    char kernel[64];
    snprintf(kernel, sizeof kernel, "kernel=%s", kind->name);
    TRY_OUT(add(&all, kind, kind->example, fg_fields, kernel, -1));
    for (int f = 1; f < FG_SPEC_FIELDS; f++) {
      const fg_field *field = &fg_fields[f];
      const bool has_values = !field->type->is_list && strcmp(field->name, "pass");
      if (fg_kind_has_field(kind, f) && has_values) TRY_OUT(add_field(&all, kind, field, plain));
    }
  }
  *list = all.list, *n = all.n;
  return FG_OK;
out:
  free(all.list);
  return status;
}
