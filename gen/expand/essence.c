/* essence.c - reads Lua no further than needed to tell comments and strings from the rest: from
 * a string or comment that does not end on, the text counts as it is. */
#include "essence.h"
#include "spot.h"

#include <ctype.h>
#include <string.h>

/* Members that hold remarks, by the end of a file's name. */
static const struct {
  const char *ending, *member[2];
} remarks[] = {{"_switches.lua", {"why", "gain"}},
               {"_plans.lua", {"measured", "about"}},
               {"_refused.lua", {"spilled", NULL}}};
enum { REMARKS = sizeof remarks / sizeof *remarks };

typedef struct {
  const char *at, *end;
  char *out;
  size_t n;
  bool with_lines;
  const char *const *member; /* of the row for the file; NULL: there is none */
  bool muted;                /* inside of a remark */
} reader;

static void put(reader *r, const char *text, size_t n) {
  if (r->muted) return;
  memmove(r->out + r->n, text, n);
  r->n += n;
}

/* Writes one blank for several. A line's end is a blank too, unless lines count. */
static void put_blank(reader *r, char c) {
  if (c == '\n' && r->with_lines)
    r->out[r->n++] = '\n';
  else if (r->n && !strchr(" \n", r->out[r->n - 1]))
    put(r, " ", 1);
}

static void skip_to(reader *r, const char *end) {
  for (; r->at < end; r->at++)
    if (*r->at == '\n') put_blank(r, '\n');
}

/* The end of "[[ ... ]]" or "[==[ ... ]==]" at `at`; NULL: there is none, or it does not end. */
static const char *long_bracket(const reader *r, const char *at, bool *open) {
  size_t level = 0;
  *open = false;
  if (at == r->end || *at++ != '[') return NULL;
  for (; at < r->end && *at == '='; at++) level++;
  if (at == r->end || *at++ != '[') return NULL;
  for (; at + level + 1 < r->end; at++) {
    size_t i = 0;
    if (*at != ']') continue;
    while (i < level && at[1 + i] == '=') i++;
    if (i == level && at[1 + level] == ']') return at + level + 2;
  }
  *open = true;
  return NULL;
}

/* The end of a quoted string at `at`; NULL: it does not end. */
static const char *quoted(const reader *r, const char *at) {
  const char quote = *at;
  for (at++; at < r->end && *at != quote; at++)
    if (*at == '\\') at++;
  return at < r->end ? at + 1 : NULL;
}

/* A comment at r->at, behind which it goes on; false: it does not end. */
static bool skip_comment(reader *r) {
  bool open;
  const char *end = long_bracket(r, r->at + 2, &open);
  if (open) return false;
  if (!end && !(end = memchr(r->at, '\n', (size_t)(r->end - r->at)))) end = r->end;
  put_blank(r, ' ');
  skip_to(r, end);
  return true;
}

/* A string at r->at, if one is there; false: it does not end. */
static bool copy_string(reader *r) {
  bool open = false;
  const char *end = *r->at == '[' ? long_bracket(r, r->at, &open) : quoted(r, r->at);
  if (open || (!end && *r->at != '[')) return false;
  if (!end) end = r->at + 1; /* a bracket of another kind */
  if (r->muted)
    skip_to(r, end);
  else
    put(r, r->at, (size_t)(end - r->at)), r->at = end;
  return true;
}

/* One comment, string or other character; false: it does not end. */
static bool step(reader *r) {
  const char c = *r->at;
  if (c == '-' && r->end - r->at > 1 && r->at[1] == '-') return skip_comment(r);
  if (strchr("\"'[", c) && c) return copy_string(r);
  if (isspace((unsigned char)c))
    put_blank(r, c);
  else
    put(r, r->at, 1);
  r->at++;
  return true;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The last character that was written and is no blank. */
static char *last(const reader *r) {
  size_t n = r->n;
  while (n && strchr(" \n", r->out[n - 1])) n--;
  return n ? &r->out[n - 1] : NULL;
}

/* Does a member of a table that is a remark begin here? Then r->at goes behind its "=". */
static bool enter_remark(reader *r) {
  size_t n = 0;
  const size_t most = (size_t)(r->end - r->at);
  const char *before = last(r);
  if (!r->member || !before || !strchr("{,;", *before)) return false;
  while (n < most && is_word(r->at[n])) n++;
  for (int i = 0; i < 2 && n && r->member[i]; i++) {
    if (strlen(r->member[i]) != n || strncmp(r->member[i], r->at, n)) continue;
    while (n < most && r->at[n] == ' ') n++;
    if (n + 1 >= most || r->at[n] != '=' || r->at[n + 1] == '=') return false;
    r->at += n + 1;
    return true;
  }
  return false;
}

/* Skips the value of a remark and one comma; false: something in it does not end. */
static bool skip_remark(reader *r) {
  int depth = 0;
  r->muted = true;
  while (r->at < r->end) {
    const char c = *r->at;
    if (!depth && strchr(",;}", c)) break;
    depth += c && strchr("({", c) ? 1 : c && strchr(")}", c) ? -1 : 0;
    if (!step(r)) return false;
  }
  r->muted = false;
  if (r->at < r->end && *r->at != '}') {
    r->at++;
  } else if (!r->with_lines && *last(r) != '{') {
    r->n = (size_t)(last(r) - r->out); /* the comma before it */
    put_blank(r, ' ');
  }
  return true;
}

/* Writes the essence of Lua from r->at to r->end; false: something in it does not end, and the text
 * from there on is not written. */
static bool read_lua(reader *r) {
  while (r->at < r->end) {
    const bool starts = !r->n || !is_word(r->out[r->n - 1]);
    if (!(starts && enter_remark(r) ? skip_remark(r) : step(r))) return false;
  }
  return true;
}

/* An @ line, with its end: a spot, or Lua that ends on it, else false and nothing is written. */
static bool read_line(reader *r, const char *end) {
  const size_t n = r->n;
  const char *name;
  if (fg_template_spot(r->at, (size_t)(end - r->at) - (end[-1] == '\n'), &name, &(size_t){0})) {
    r->at = end;
    if (r->with_lines) put(r, "@\n", 2);
    return true;
  }
  const char *const start = r->at, *const all = r->end;
  r->end = end;
  const bool whole = read_lua(r);
  r->end = all;
  if (!whole) return r->at = start, r->n = n, false;
  while (r->n > n && strchr(" \n", r->out[r->n - 1])) r->n--;
  if (r->n == n + 1 && !r->with_lines)
    r->n = n; /* "@" alone */
  else
    put(r, "\n", 1);
  return true;
}

/* Lines of a .cut file; false: from r->at on it is to be taken as it is. */
static bool read_cut(reader *r) {
  while (r->at < r->end) {
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at)), *at = r->at;
    end = end ? end + 1 : r->end;
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    if (at == end || *at != '@') {
      put(r, r->at, (size_t)(end - r->at));
      r->at = end;
    } else {
      r->at = at;
      if (!read_line(r, end)) return false;
    }
  }
  return true;
}

static bool ends_with(const char *name, const char *ending) {
  const size_t n = strlen(name), m = strlen(ending);
  return n >= m && !strcmp(name + n - m, ending);
}

/* Reads the whole text; what a string or comment that does not end leaves unread is copied. */
size_t fg_template_essence(const char *name, const char *text, size_t size, bool with_lines,
                           char *essence) {
  reader r = {.at = text, .end = text + size, .out = essence, .with_lines = with_lines};
  for (int i = 0; i < REMARKS; i++)
    if (ends_with(name, remarks[i].ending)) r.member = remarks[i].member;
  const bool whole = ends_with(name, ".cut") ? read_cut(&r) : read_lua(&r);
  r.muted = false;
  if (!whole) put(&r, r.at, (size_t)(r.end - r.at));
  return r.n;
}
