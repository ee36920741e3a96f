/* formula_builtin.c - the definitions of definitions.lua, read without Lua: the file's quoted texts
 * are, in turn, a definition's head and its body, and what users read of it. */
#include "formula_parse.h"

#include <pthread.h>
#include <string.h>

extern const char fg_definitions_text[]; /* made by the build from definitions.lua */
enum { DEFINITIONS_MAX = 64, TEXT_MAX = 16384 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char texts[TEXT_MAX];
static fg_pair list[DEFINITIONS_MAX];
static fg_definition_note notes[DEFINITIONS_MAX];
static int n;

/* Copies what stands between the next two quotes; NULL when there is none in the line of `at`. */
static const char *quoted(const char **at, char **to) {
  const char *open = strchr(*at, '"'), *close = open ? strchr(open + 1, '"') : NULL;
  char *copy = *to;
  if (!close || close - open > texts + TEXT_MAX - *to) return NULL;
  size_t length = (size_t)(close - open) - 1;
  memcpy(copy, open + 1, length);
  copy[length] = 0;
  *to += length + 1;
  *at = close + 1;
  return copy;
}

/* Reads the lines ["head"] = "text" or { "text", and the lines example = "text" and help = "text"
 * of the row that they end; other lines are comments. Runs once. */
static void read_all(void) {
  char *to = texts;
  for (const char *at = fg_definitions_text; *at && n < DEFINITIONS_MAX;) {
    const char *line = at + strspn(at, " ");
    at += strcspn(at, "\n");
    at += *at == '\n';
    if (n && !strncmp(line, "example", 7)) notes[n - 1].example = quoted(&line, &to);
    if (n && !strncmp(line, "help", 4)) notes[n - 1].help = quoted(&line, &to);
    if (*line != '[') continue;
    list[n].name = quoted(&line, &to);
    list[n].value = list[n].name ? quoted(&line, &to) : NULL;
    n += list[n].value != NULL;
  }
}

fg_definitions fg_formula_builtin(void) {
  pthread_once(&once, read_all);
  return (fg_definitions){list, n};
}

fg_definition_note fg_formula_note(int i) {
  pthread_once(&once, read_all);
  return notes[i];
}
