/* template.c - reads template files, and translates their text to Lua chunks. */
#include "template.h"
#include "spot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text that grows; `failed` once memory is short. */
typedef struct {
  char *data;
  size_t n, room;
  int failed;
} buffer;

/* Appends; once memory is lacking the buffer has failed, and stays so. */
static void put(buffer *b, const char *text, size_t n) {
  if (b->n + n + 1 > b->room) {
    size_t room = 2 * (b->n + n) + 256;
    char *data = realloc(b->data, room);
    if (!data) {
      b->failed = 1;
      return;
    }
    b->data = data, b->room = room;
  }
  memcpy(b->data + b->n, text, n);
  b->data[b->n += n] = 0;
}

static void put_text(buffer *b, const char *text) { put(b, text, strlen(text)); }

/* A Lua string literal. */
static void put_literal(buffer *b, const char *text, size_t n) {
  put_text(b, "\"");
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '"' || text[i] == '\\') put_text(b, "\\");
    if (text[i] == '\r')
      put_text(b, "\\r"); /* Lua would see a line's end in it */
    else
      put(b, text + i, 1);
  }
  put_text(b, "\"");
}

/* The length of the Lua expression that starts behind "$(", up to its closing parenthesis; -1 when
 * the line ends first. Parentheses in quoted strings do not count. */
static long expression(const char *text, size_t n) {
  int depth = 1;
  char quote = 0;
  for (size_t i = 0; i < n; i++) {
    if (quote) {
      if (text[i] == '\\')
        i++;
      else if (text[i] == quote)
        quote = 0;
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    } else if (text[i] == '(') {
      depth++;
    } else if (text[i] == ')' && --depth == 0) {
      return (long)i;
    }
  }
  return -1;
}

/* "emit(31, "for (int r = 0; r < ", (rows), "; r++) {")" */
static fg_status put_line(buffer *b, const char *name, int number, const char *text, size_t n) {
  char head[32];
  size_t literal = 0;
  snprintf(head, sizeof head, "emit(%d", number);
  put_text(b, head);
  for (size_t i = 0; i + 1 < n; i++) {
    if (text[i] != '$' || text[i + 1] != '(') continue;
    long length = expression(text + i + 2, n - i - 2);
    if (length < 0)
      return fg_fail(FG_ETEMPLATE, "%s:%d: $( is not closed on its line", name, number);
    put_text(b, ", ");
    put_literal(b, text + literal, i - literal);
    put_text(b, ", (");
    put(b, text + i + 2, (size_t)length);
    put_text(b, ")");
    i += (size_t)length + 2;
    literal = i + 1;
  }
  put_text(b, ", ");
  put_literal(b, text + literal, n - literal);
  put_text(b, ");");
  return FG_OK;
}

fg_status fg_template_translate(const char *name, const char *text, size_t size, char **lua,
                                size_t *lua_size) {
  buffer b = {0};
  const char *end = text + size;
  int number = 0;
  put_text(&b, "local emit, given = ...; ");
  while (text < end) {
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    size_t n = (size_t)((newline ? newline : end) - text), blank = 0, spot_n;
    const char *spot;
    number++;
    while (blank < n && (text[blank] == ' ' || text[blank] == '\t')) blank++;
    if (blank < n && text[blank] == '@') {
      if (!fg_template_spot(text, n, &spot, &spot_n)) put(&b, text + blank + 1, n - blank - 1);
    } else {
      fg_status status = put_line(&b, name, number, text, n);
      if (status != FG_OK) {
        free(b.data);
        return status;
      }
    }
    put_text(&b, "\n");
    text += n + 1;
  }
  if (b.failed) {
    free(b.data);
    return fg_fail(FG_EMEMORY, "%s: no memory to translate it", name);
  }
  *lua = b.data;
  *lua_size = b.n;
  return FG_OK;
}

fg_status fg_template_read(const char *path, char **text, size_t *size) {
  fg_status status = FG_OK;
  FILE *file = fopen(path, "rbe");
  if (!file)
    return fg_fail(errno == ENOMEM ? FG_EMEMORY : FG_ETEMPLATE, "template %s: %s", path,
                   strerror(errno));
  char *data = NULL;
  size_t n = 0, room = 0;
  do {
    if (n == room) {
      char *grown = realloc(data, room = 2 * room + 16384);
      if (!grown) {
        status = fg_fail(FG_EMEMORY, "template %s: no memory to read it", path);
        goto out;
      }
      data = grown;
    }
    n += fread(data + n, 1, room - n, file);
  } while (n == room);
  if (ferror(file)) {
    status = fg_fail(FG_ETEMPLATE, "template %s: cannot be read", path);
    goto out;
  }
  *text = data, *size = n;
  data = NULL;
out:
  free(data);
  fclose(file);
  return status;
}
