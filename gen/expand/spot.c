/* spot.c - tells lines that are spots from others. */
#include "spot.h"

#include <ctype.h>
#include <string.h>

/* Goes over blanks, and over the word if it stands there. */
static bool skip(const char **at, const char *end, const char *word) {
  const size_t n = strlen(word);
  while (*at < end && (**at == ' ' || **at == '\t')) ++*at;
  if ((size_t)(end - *at) < n || memcmp(*at, word, n)) return false;
  *at += n;
  return true;
}

/* Of small letters, digits, and "." or "_" between them. */
static bool is_of_name(char c) {
  return islower((unsigned char)c) || isdigit((unsigned char)c) || c == '.' || c == '_';
}

bool fg_template_spot(const char *line, size_t n, const char **name, size_t *name_n) {
  const char *at = line, *const end = line + n;
  if (!skip(&at, end, "@") && !skip(&at, end, "--")) return false;
  if (!skip(&at, end, "spot") || !skip(&at, end, "\"")) return false;
  const char *const first = at;
  while (at < end && is_of_name(*at)) at++;
  const size_t length = (size_t)(at - first);
  if (!length || !skip(&at, end, "\"")) return false;
  skip(&at, end, "");
  if (at != end) return false;
  return *name = first, *name_n = length, true;
}
