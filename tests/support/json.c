/* json.c - RFC 8259, recognised by descent; UTF-8 is taken as it comes. */
#include "json.h"

#include "suite.h"

#include <ctype.h>
#include <string.h>

/* Where parsing stands; `bad` once it has failed. */
typedef struct {
  const char *at;
  int bad;
} reader;

static void value(reader *r);

static void space(reader *r) { r->at += strspn(r->at, " \t\r\n"); }

static int take(reader *r, char c) {
  space(r);
  if (r->bad || *r->at != c) return 0;
  r->at++;
  return 1;
}

static void expect(reader *r, char c) {
  if (!take(r, c)) r->bad = 1;
}

static void string(reader *r) {
  expect(r, '"');
  while (!r->bad && *r->at != '"') {
    if ((unsigned char)*r->at < 0x20) {
      r->bad = 1;
    } else if (*r->at++ == '\\') {
      int unicode = *r->at == 'u';
      if (!*r->at || !strchr("\"\\/bfnrtu", *r->at)) r->bad = 1;
      for (int i = 1; unicode && i <= 4; i++) r->bad |= !isxdigit((unsigned char)r->at[i]);
      if (!r->bad) r->at += unicode ? 5 : 1;
    }
  }
  expect(r, '"');
}

static void digits(reader *r) {
  if (!isdigit((unsigned char)*r->at)) r->bad = 1;
  while (isdigit((unsigned char)*r->at)) r->at++;
}

static void number(reader *r) {
  r->at += *r->at == '-';
  if (*r->at == '0' && isdigit((unsigned char)r->at[1])) r->bad = 1;
  digits(r);
  if (*r->at == '.') r->at++, digits(r);
  if (*r->at == 'e' || *r->at == 'E') {
    r->at++;
    r->at += *r->at == '+' || *r->at == '-';
    digits(r);
  }
}

static void members(reader *r, char close, int named) {
  if (take(r, close)) return;
  do {
    space(r);
    if (named) string(r), expect(r, ':');
    value(r);
  } while (take(r, ','));
  expect(r, close);
}

static void value(reader *r) {
  static const char *const words[] = {"true", "false", "null"};
  space(r);
  if (r->bad) return;
  for (int i = 0; i < 3; i++)
    if (!strncmp(r->at, words[i], strlen(words[i]))) {
      r->at += strlen(words[i]);
      return;
    }
  if (*r->at == '"')
    string(r);
  else if (take(r, '{'))
    members(r, '}', 1);
  else if (take(r, '['))
    members(r, ']', 0);
  else
    number(r);
}

const char *json_error(const char *text) {
  reader r = {.at = text};
  value(&r);
  space(&r);
  return r.bad || *r.at ? r.at : NULL;
}

void json_whole(const char *text) {
  const char *bad = json_error(text);
  ck_assert_msg(!bad, "no JSON at: %s", bad);
}
