/* page.c - see page.h. */
#include "page.h"

#include "base/text.h"

#include <stdarg.h>
#include <string.h>

enum { PROSE = 4096 }; /* the longest paragraph */

/* Prose in Markdown: what would be markup is escaped, but for code between backquotes. A cell may
 * hold no bar at all. */
static void put_prose(const cli_page *page, const char *text, bool is_cell) {
  bool code = false;
  for (; *text; text++) {
    code ^= *text == '`';
    if ((!code && strchr("\\*<[", *text)) || (is_cell && *text == '|')) fputc('\\', page->to);
    fputc(*text, page->to);
  }
}

/* A word of code; one that is empty shows nothing. */
static void put_code(const cli_page *page, const char *text) {
  if (!*text) return;
  fputc('`', page->to);
  for (; *text; text++)
    fprintf(page->to, "%s%c", *text == '|' && !page->is_list ? "\\" : "", *text);
  fputc('`', page->to);
}

void cli_page_title(cli_page *page, int level, const char *format, ...) {
  va_list args;
  char text[PROSE];
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (page->markdown) {
    fprintf(page->to, "%.*s ", level, "###");
    put_prose(page, text, false);
    fputs("\n\n", page->to);
  } else {
    fprintf(page->to, "%s%s\n%s", level > 1 ? "\n" : "", text, level == 1 ? "\n" : "");
  }
}

void cli_page_text(cli_page *page, const char *format, ...) {
  va_list args;
  char text[PROSE];
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (page->markdown)
    put_prose(page, text, false);
  else
    fputs(text, page->to);
  fputs(page->markdown ? "\n\n" : "\n", page->to);
}

/* Lines of code begin with two spaces, the others are prose. */
void cli_page_code(cli_page *page, const char *lines) {
  bool code = false;
  if (!page->markdown) {
    fputs(lines, page->to);
    return;
  }
  for (const char *at = lines; *at;) {
    const bool is_code = !strncmp(at, "  ", 2);
    const int n = (int)strcspn(at, "\n");
    char line[PROSE];
    if (is_code != code)
      fprintf(page->to, is_code ? "%s```sh\n" : "%s```\n\n", is_code && at > lines ? "\n" : "");
    snprintf(line, sizeof line, "%.*s\n", n, at);
    if (is_code)
      fputs(line + 2, page->to);
    else
      put_prose(page, line, false);
    code = is_code;
    at += n + (at[n] == '\n');
  }
  fputs(code ? "```\n\n" : "\n", page->to);
}

void cli_page_table(cli_page *page, int n, const cli_column *columns) {
  page->cells = n;
  page->is_list = page->markdown && !*columns[0].head;
  for (int i = 0; i < n; i++) {
    const bool code = *columns[i].head == '`';
    page->widths[i] = code ? -columns[i].width - 1 : columns[i].width;
    if (page->markdown && !page->is_list)
      fprintf(page->to, "%s%s", i ? " | " : "| ", columns[i].head + code);
  }
  if (!page->markdown || page->is_list) return;
  fputs(" |\n|", page->to);
  for (int i = 0; i < n; i++) fputs(" --- |", page->to);
  fputc('\n', page->to);
}

/* Widths of columns of code are kept as -width - 1. */
void cli_page_row(cli_page *page, const char *const *cells) {
  for (int i = 0; i < page->cells; i++) {
    const bool code = page->widths[i] < 0, last = i == page->cells - 1;
    const int width = code ? -page->widths[i] - 1 : page->widths[i];
    if (!page->markdown) {
      fprintf(page->to, "%s%-*s", i ? " " : "  ", last ? 0 : width, cells[i]);
      continue;
    }
    fputs(page->is_list ? (i ? ": " : "- ") : i ? " | " : "| ", page->to);
    if (code)
      put_code(page, cells[i]);
    else
      put_prose(page, cells[i], !page->is_list);
  }
  fputs(page->markdown && !page->is_list ? " |\n" : "\n", page->to);
}

void cli_page_end(cli_page *page) {
  if (page->markdown) fputc('\n', page->to);
}

int cli_shell_words(const char *words, size_t size, char *text) {
  int n = 0;
  for (const char *at = words; *at;) {
    const int length = (int)strcspn(at, " ");
    const bool plain = strcspn(at, "&|<>()[]?*;$' ") >= (size_t)length;
    n = fg_append(size, text, n, "%s%s%.*s%s", n ? " " : "", plain ? "" : "'", length, at,
                  plain ? "" : "'");
    at += length + (at[length] == ' ');
  }
  return n;
}
