/* page.h - a page of reference: one printer, plain text for a terminal or Markdown.
 *
 * What is printed is prose unless it is code: Markdown shows each character of prose as it is. Code
 * between backquotes, `mask`, is code in Markdown. */
#ifndef FG_CLI_PAGE_H
#define FG_CLI_PAGE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

enum { CLI_PAGE_CELLS = 6 };

typedef struct cli_page {
  FILE *to;
  bool markdown;
  const char *folder;                /* where files beside the page go; NULL: the page is alone */
  int widths[CLI_PAGE_CELLS], cells; /* of the table that is printed */
  bool is_list;                      /* its rows are items of a list */
} cli_page;

/* A title: level 1 is the page's, 2 a section's. */
__attribute__((format(printf, 3, 4))) void cli_page_title(cli_page *page, int level,
                                                          const char *format, ...);
/* A paragraph. */
__attribute__((format(printf, 2, 3))) void cli_page_text(cli_page *page, const char *format, ...);
/* Lines for a shell, which begin with two spaces, and lines of prose about them. */
void cli_page_code(cli_page *page, const char *lines);

/* A table: the heads of its columns, which text does not show, and how wide they are in text (the
 * last one: 0). A column whose head begins with ` holds code. Where the first column has no head,
 * rows are a name and what is said of it: a list in Markdown. */
typedef struct cli_column {
  const char *head;
  int width;
} cli_column;
void cli_page_table(cli_page *page, int n, const cli_column *columns);
void cli_page_row(cli_page *page, const char *const *cells);
/* Ends the table. */
void cli_page_end(cli_page *page);

/* Words as a shell wants them: each word that has letters for the shell is quoted. Returns the
 * length, as snprintf does. */
int cli_shell_words(const char *words, size_t size, char *text);

#endif
