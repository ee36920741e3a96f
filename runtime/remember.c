/* remember.c - a context's files of wisdom, and what they say of an op's candidates. */
#include "ops.h"

#include "base/setting.h"
#include "base/text.h"
#include "wisdom/shipped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Warns of a file without any line of wisdom, which is probably the wrong file, and of lines in a
 * newer format. Only the beginnings of lines are read; the checksum of a line is checked when the
 * line is used. */
static void warn_of_file(const fg_context *c, const fg_wisdom *w) {
  const char *line;
  size_t at = 0, n;
  bool whole;
  int newer = 0, ours = 0, others = 0;
  while (fg_wisdom_next(w->text, w->n, &at, &line, &n, &whole)) {
    const bool any = n > 2 && line[0] == 'w' && line[1] >= '1' && line[1] <= '9';
    const bool future = any && strtol(line + 1, NULL, 10) > FG_WISDOM_FORMAT;
    newer += future;
    ours += any && !future;
    others += !any && n > 0 && *line != '#' && *line != '\r';
  }
  if (others && !ours && !newer)
    fg_context_warn(c, "%s: none of its %d lines is of wisdom", w->path, others);
  if (newer)
    fg_context_warn(c,
                    "%s: %d lines are of a newer flashgen and not used; this one reads format %d",
                    w->path, newer, FG_WISDOM_FORMAT);
}

/* Reads the file whose path is the n bytes at `path`, and adds it to the context. */
static fg_status add_file(fg_context *c, const char *path, size_t n, bool optional) {
  char name[4096];
  fg_wisdom *grown = realloc(c->wisdom, ((size_t)c->n_wisdom + 1) * sizeof *grown);
  if (!grown) return fg_fail(FG_EMEMORY, "no memory for a context");
  c->wisdom = grown;
  fg_wisdom_index *index = realloc(c->index, ((size_t)c->n_wisdom + 1) * sizeof *index);
  if (!index) return fg_fail(FG_EMEMORY, "no memory for a context");
  c->index = index;
  index[c->n_wisdom] = (fg_wisdom_index){0};
  if (n >= sizeof name) return fg_fail(FG_EARGUMENT, "a name of a file of wisdom is too long");
  snprintf(name, sizeof name, "%.*s", (int)n, path);
  TRY(fg_wisdom_read(name, optional, &grown[c->n_wisdom]));
  const fg_wisdom *w = &grown[c->n_wisdom++];
  warn_of_file(c, w);
  return fg_wisdom_index_new(w->text, w->n, &c->index[c->n_wisdom - 1]);
}

fg_status fg_context_wisdom(fg_context *c, int n, const char *const *files) {
  if (n < -1 || (n > 0 && !files))
    return fg_fail(FG_EARGUMENT, "config: n_wisdom is %d, wisdom %s", n,
                   files ? "is given" : "is NULL");
  c->shipped = n >= 0;
  for (int i = 0; i < n; i++)
    if (!files[i]) return fg_fail(FG_EARGUMENT, "config: wisdom[%d] is NULL", i);
  for (int i = 0; i < n; i++) TRY(add_file(c, files[i], strlen(files[i]), false));
  if (n) return FG_OK;
  const char *at = fg_setting_text(FG_SET_WISDOM, NULL);
  if (!strcmp(at, "none")) return c->shipped = false, FG_OK;
  while (*at) { /* a file may be missing: tune has not made it yet */
    size_t length = strcspn(at, ":");
    if (length) TRY(add_file(c, at, length, true));
    at += length + (at[length] == ':');
  }
  return FG_OK;
}

void fg_context_forget(fg_context *c) {
  for (int i = 0; i < c->n_wisdom; i++) {
    fg_wisdom_free(&c->wisdom[i]);
    fg_wisdom_index_free(&c->index[i]);
  }
  free(c->wisdom);
  free(c->index);
}

/* Reads the lines of the question's spec in all files, then in what is built in. */
static fg_status read_all(const fg_context *c, const fg_question *question, fg_memories *memories) {
  for (int i = 0; i < c->n_wisdom; i++) TRY(fg_memories_read(question, &c->index[i], i, memories));
  return c->shipped ? fg_memories_read(question, &fg_shipped_index, c->n_wisdom, memories) : FG_OK;
}

/* Where bits are not to depend on the batch and nothing was measured, times of the same plans where
 * they may are the best guess. */
static fg_status ask(fg_op *op, fg_question *question) {
  TRY(read_all(op->context, question, &op->memories));
  if (op->memories.n || !op->point.batch_invariant) return FG_OK;
  question->point.batch_invariant = 0;
  question->times_only = true;
  return read_all(op->context, question, &op->memories);
}

fg_status fg_op_remember(fg_op *op) {
  const fg_context *c = op->context;
  if (!c->n_wisdom && !c->shipped) return FG_OK;
  fg_asked *list = calloc((size_t)op->n_candidates, sizeof *list);
  if (!list) return fg_fail(FG_EMEMORY, "no memory for wisdom");
  for (int i = 0; i < op->n_candidates; i++) {
    const int n = fg_plan_name(&op->candidate[i].plan, sizeof list[i].name, list[i].name);
    fg_append(sizeof list[i].name, list[i].name, n, ".%s", c->device->arch);
    list[i].generation = op->candidate[i].recipe.generation;
  }
  fg_question question = {.point = op->point,
                          .model = c->device->model,
                          .multiprocessors = c->device->multiprocessors,
                          .n = op->n_candidates,
                          .candidate = list};
  fg_status status = ask(op, &question);
  free(list);
  return status;
}

bool fg_op_is_bad(const fg_op *op, int candidate) {
  return op->memories.verdict && op->memories.verdict[candidate].bad;
}
