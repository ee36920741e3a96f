/* help_mask.c - the masks and scores that have a name. */
#include "help.h"

#include "draw.h"
#include "formula/formula_parse.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

/* "document(starts, ends)" as the name of a file: document_starts_ends. */
static void file_name(const char *head, size_t size, char *name) {
  size_t n = 0;
  for (; *head && n + 1 < size; head++) {
    if (isalnum((unsigned char)*head) || *head == '_')
      name[n++] = *head;
    else if (*head == '(' || *head == ',')
      name[n++] = '_';
  }
  name[n] = 0;
}

/* The command line "draw WORDS". */
static fg_status read_example(const char *words, size_t size, char *copy, cli *c) {
  char *argv[CLI_LIST_MAX];
  int n = 0;
  snprintf(copy, size, "%s", words);
  for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[n++] = word;
  c->command = &cli_draw;
  return cli_parse(n, argv, c);
}

/* In a folder a file beside the page, else text. */
static fg_status print_picture(cli_page *page, const char *head, const cli_picture *picture) {
  char name[64], path[PATH_MAX];
  file_name(head, sizeof name, name);
  if (!page->folder || !page->markdown) {
    fputs(page->markdown ? "```text\n" : "", page->to);
    cli_picture_text(picture, page->to);
    fputs(page->markdown ? "```\n\n" : "\n", page->to);
    return FG_OK;
  }
  snprintf(path, sizeof path, "%.3000s/mask_%s.svg", page->folder, name);
  FILE *file = fopen(path, "we");
  if (!file) return fg_fail(FG_EIO, "cannot write %s: %s", path, strerror(errno));
  cli_picture_svg(picture, file);
  if (fclose(file)) return fg_fail(FG_EIO, "cannot write %s: %s", path, strerror(errno));
  fprintf(page->to, "![%s, %d queries and %d keys](mask_%s.svg)\n\n", head, (int)picture->shape.nq,
          (int)picture->shape.nk, name);
  return FG_OK;
}

static void print_head(cli_page *page, const fg_pair *definition, const char *help) {
  if (page->markdown)
    fprintf(page->to, "## `%s`\n\n", definition->name);
  else
    cli_page_title(page, 2, "%s", definition->name);
  cli_page_text(page, "%s%s", page->markdown ? "" : "  ", help);
}

static void print_example(cli_page *page, const char *command, const char *before,
                          const char *words) {
  char line[512], shell[512];
  snprintf(line, sizeof line, "%s%s", before, words);
  cli_shell_words(line, sizeof shell, shell);
  snprintf(line, sizeof line, "  flashgen %s %.480s\n", command, shell);
  cli_page_code(page, line);
}

static fg_status print_mask(cli_page *page, const fg_pair *definition, fg_definition_note note) {
  static cli c; /* large */
  char words[512];
  cli_picture picture;
  memset(&c, 0, sizeof c);
  TRY(read_example(note.example, sizeof words, words, &c));
  TRY(cli_picture_new(&c, &picture));
  print_head(page, definition, note.help);
  cli_page_table(page, 2, (const cli_column[]){{"", 8}, {"`", 0}});
  cli_page_row(page, (const char *[]){"formula", definition->value});
  cli_page_row(page, (const char *[]){"example", c.words[0] + strlen("mask=")});
  cli_page_end(page);
  cli_page_text(page, "%sThe example is %s.", page->markdown ? "" : "  ",
                picture.is_causal ? "causal: no query sees a key after its own place"
                                  : "not causal");
  fg_status status = print_picture(page, definition->name, &picture);
  if (status == FG_OK) print_example(page, "draw", "", note.example);
  cli_picture_free(&picture);
  return status;
}

static fg_status print_score(cli_page *page, const fg_pair *definition, fg_definition_note note) {
  print_head(page, definition, note.help);
  cli_page_table(page, 2, (const cli_column[]){{"", 8}, {"`", 0}});
  cli_page_row(page, (const char *[]){"formula", definition->value});
  cli_page_end(page);
  print_example(page, "list", "head_dim=64 ", note.example);
  return FG_OK;
}

/* A definition whose example has a score is a score. */
static fg_status print_all(cli_page *page, bool scores) {
  const fg_definitions all = fg_formula_builtin();
  for (int i = 0; i < all.n; i++) {
    const fg_definition_note note = fg_formula_note(i);
    if (!note.example || (strstr(note.example, "score=") != NULL) != scores) continue;
    TRY(scores ? print_score(page, &all.list[i], note) : print_mask(page, &all.list[i], note));
  }
  return FG_OK;
}

static fg_status print_masks(cli_page *page, const cli *c, int i) {
  (void)c, (void)i;
  cli_page_title(page, 1, "Named masks");
  cli_page_text(page, "A mask says which keys a query sees. q and k are the numbers of a query and "
                      "of a key, and p = q + nk - nq is the query's place among the keys. In a "
                      "picture each row is a query and each column a key; filled squares are "
                      "visible.");
  return print_all(page, false);
}

static fg_status print_scores(cli_page *page, const cli *c, int i) {
  (void)c, (void)i;
  cli_page_title(page, 1, "Named scores");
  cli_page_text(page, "A score is an expression of s, the scaled product of a query and a key. q "
                      "and k are their numbers, p = q + nk - nq is the query's place among the "
                      "keys, h is the head and nh the number of heads.");
  return print_all(page, true);
}

const cli_topic cli_topic_masks = {.name = "masks",
                                   .line = "the masks that have a name, each with a picture",
                                   .print = print_masks};
const cli_topic cli_topic_scores = {
    .name = "scores", .line = "the scores that have a name", .print = print_scores};
