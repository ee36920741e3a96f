/* recall.c - reads the times of an op's candidates from lines of wisdom, and finds the measured
 * class that is nearest to a shape. */
#include "recall.h"

#include "base/setting.h"
#include "ops.h"
#include "shape.h"
#include "shipped.h"
#include "spec/point_formula.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The context's files ----------------------------------------------------------------------- */

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
  if (n >= sizeof name) return fg_fail(FG_EARGUMENT, "a name of a file of wisdom is too long");
  snprintf(name, sizeof name, "%.*s", (int)n, path);
  TRY(fg_wisdom_read(name, optional, &grown[c->n_wisdom]));
  warn_of_file(c, &grown[c->n_wisdom++]);
  return FG_OK;
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
  for (int i = 0; i < c->n_wisdom; i++) fg_wisdom_free(&c->wisdom[i]);
  free(c->wisdom);
}

/* An op's lines ----------------------------------------------------------------------------- */

typedef struct {
  fg_op *op;
  fg_point point;                 /* of the lines */
  char head[2][FG_NAME_MAX + 16]; /* "variant=attn_fwd-bf16-d64.": how the op's lines begin, now and
                                     in older files */
  char expression[4096];
  struct judged { /* by candidate: the last verdict on its numbers or launch */
    bool here;    /* by this device, whose verdict outweighs later ones of others */
    int64_t when;
  } * judged; /* NULL: lines do not judge */
} search;

/* The index of the candidate that the line names, or -1. */
static int find_candidate(const search *s, const fg_measured *m) {
  const fg_op *op = s->op;
  fg_variant v = {.point = s->point};
  char name[FG_NAME_MAX];
  strcpy(v.arch, op->context->device->arch);
  for (int i = 0; i < op->n_candidates; i++) {
    v.plan = op->candidate[i].plan;
    fg_variant_name(&v, sizeof name, name);
    if (!strcmp(name, m->name)) return i;
  }
  return -1;
}

/* Whether a line of another device says something about this device: both run the same code, and
 * have about as many multiprocessors, such as an H200 and an H100. Memory is not compared: plans of
 * one spec move the same tensors, so the number of multiprocessors decides which plan is
 * fastest. */
static bool is_near(const fg_device *device, const fg_measured *line) {
  enum { PERCENT = 20 };
  const int ours = device->multiprocessors, theirs = line->multiprocessors;
  const int most = ours > theirs ? ours : theirs;
  return 100 * abs(ours - theirs) <= PERCENT * most; /* the variant's name holds the arch */
}

/* The entry for the candidate's time at the shape on the device, or a new one, which any line
 * replaces; NULL: no memory. */
static fg_memory *place(fg_op *op, int candidate, const fg_shape *shape, const char *device) {
  for (int i = 0; i < op->n_memory; i++)
    if (op->memory[i].candidate == candidate &&
        !memcmp(&op->memory[i].shape, shape, sizeof *shape) &&
        !strcmp(op->memory[i].device, device))
      return &op->memory[i];
  fg_memory *grown = realloc(op->memory, ((size_t)op->n_memory + 1) * sizeof *grown);
  if (!grown) return NULL;
  op->memory = grown;
  grown[op->n_memory] =
      (fg_memory){.candidate = candidate, .shape = *shape, .source = INT32_MAX, .when = -1};
  strcpy(grown[op->n_memory].device, device);
  return &grown[op->n_memory++];
}

/* Whether the line replaces an older one of the same candidate, shape and device: the newer
 * generation counts, then the file that comes first, then the later time. */
static bool replaces(const fg_measured *m, int source, const fg_memory *old) {
  if (m->generation != old->generation) return m->generation > old->generation;
  if (source != old->source) return source < old->source;
  return m->when >= old->when;
}

/* Marks candidate i as bad where its last verdict, the line's included, is wrong numbers or a
 * broken launch. */
static void judge(search *s, int i, const fg_measured *m, bool here) {
  const bool bad = m->status == FG_MEASURED_WRONG || m->status == FG_MEASURED_FAULT;
  fg_candidate *candidate = &s->op->candidate[i];
  struct judged *last = &s->judged[i];
  if ((!bad && !fg_measured_counts(m)) || m->generation != candidate->recipe.generation) return;
  if (here < last->here || (here == last->here && m->when < last->when)) return;
  *last = (struct judged){here, m->when};
  candidate->bad = bad;
}

/* Uses a line for the candidate that it names, if the line is of this device or a near one, of the
 * same expression, and of no newer generation than the candidate. */
static fg_status take_line(search *s, const fg_measured *m, int source) {
  fg_op *op = s->op;
  const fg_device *device = op->context->device;
  const bool here = !strcmp(m->device, device->model);
  int i = find_candidate(s, m);
  if (i < 0 || (!here && !is_near(device, m)) || strcmp(m->expression, s->expression) ||
      m->generation > op->candidate[i].recipe.generation)
    return FG_OK;
  if (s->judged) judge(s, i, m, here);
  if (!fg_measured_counts(m)) return FG_OK;
  fg_memory *memory = place(op, i, &m->shape, here ? "" : m->device);
  if (!memory) return fg_fail(FG_EMEMORY, "no memory for wisdom");
  if (replaces(m, source, memory))
    memory->generation = m->generation, memory->source = source, memory->when = m->when,
    memory->ms = m->ms;
  return FG_OK;
}

static bool begins(const char *line, size_t n, const char *head) {
  const size_t length = strlen(head);
  return n >= length && !memcmp(line, head, length);
}

/* Uses the op's lines of a text. Only these are parsed: the variant is the first field of a line.
 * source: place of the text among the files, from 0. */
static fg_status take_text(search *s, const char *text, size_t size, int source) {
  enum { HEAD = 20 }; /* "w1", tab, 16 digits, tab */
  const char *line;
  size_t at = 0, n;
  bool whole;
  while (fg_wisdom_next(text, size, &at, &line, &n, &whole)) {
    fg_measured m;
    if (n < HEAD) continue;
    const char *name = line + HEAD;
    if (!begins(name, n - HEAD, s->head[0]) && !begins(name, n - HEAD, s->head[1])) continue;
    if (fg_measured_parse(line, n, &m, NULL) == FG_LINE_GOOD) TRY(take_line(s, &m, source));
  }
  return FG_OK;
}

/* Uses the lines of s->point. */
static fg_status take_lines(search *s) {
  const fg_context *c = s->op->context;
  fg_status status = FG_OK;
  for (int i = 0; i < 2; i++) {
    int n = snprintf(s->head[i], sizeof s->head[i], "variant=");
    n += (i ? fg_point_name_before : fg_point_name)(&s->point, FG_NAME_MAX, s->head[i] + n);
    strcpy(s->head[i] + n, ".");
  }
  if (fg_point_expression(&s->point, sizeof s->expression, s->expression) >=
      (int)sizeof s->expression)
    return FG_OK; /* no line holds it */
  for (int i = 0; i < c->n_wisdom && status == FG_OK; i++)
    status = take_text(s, c->wisdom[i].text, c->wisdom[i].n, i);
  if (status == FG_OK && c->shipped)
    status = take_text(s, fg_shipped_wisdom, fg_shipped_wisdom_size, c->n_wisdom);
  return status;
}

/* Where bits are not to depend on the batch and nothing was measured, times of the same plans where
 * they may are the best guess. */
fg_status fg_op_remember(fg_op *op) {
  search s = {.op = op, .point = op->point};
  if (!op->context->n_wisdom && !op->context->shipped) return FG_OK;
  if (!(s.judged = calloc((size_t)op->n_candidates, sizeof *s.judged)))
    return fg_fail(FG_EMEMORY, "no memory for wisdom");
  fg_status status = take_lines(&s);
  free(s.judged), s.judged = NULL;
  if (status != FG_OK || op->n_memory || !op->point.batch_invariant) return status;
  s.point.batch_invariant = 0;
  return take_lines(&s);
}

/* Recalling --------------------------------------------------------------------------------- */

/* The largest fg_shape_distance of a class that is near: an octave of one length. Beyond it the
 * cost model chooses better than wisdom, as tests/bench/fit shows on shapes that are held out. */
enum { FAR = 4 };

/* The class nearest to the shape among the times of this device (`here`) or of near devices, with
 * its distance, shape and device in *r; 0: none is near. Of two classes at one distance it is the
 * one with more to compute, where a bad choice costs more. */
static uint64_t nearest(const fg_op *op, const fg_shape *shape, const bool *closed, bool here,
                        fg_recalled *r) {
  uint64_t best = 0;
  for (int i = 0; i < op->n_memory; i++) {
    const fg_memory *m = &op->memory[i];
    int distance = fg_shape_distance(&m->shape, shape);
    uint64_t class = fg_shape_timed_class(&m->shape);
    if (closed[m->candidate] || distance > FAR || here != !*m->device) continue;
    if (best && (distance > r->distance || (distance == r->distance && class <= best))) continue;
    best = class, r->distance = distance, r->shape = &m->shape, r->device = m->device;
  }
  return best;
}

/* The least time of the candidates that are not closed, at the shape and on the device of `at`. */
static double least_at(const fg_op *op, const fg_memory *at, const bool *closed) {
  double least = INFINITY;
  for (int i = 0; i < op->n_memory; i++) {
    const fg_memory *m = &op->memory[i];
    if (!closed[m->candidate] && m->ms < least && !memcmp(&m->shape, &at->shape, sizeof m->shape) &&
        !strcmp(m->device, at->device))
      least = m->ms;
  }
  return least;
}

/* Fills in r->ratio and r->ms. A ratio is the geometric mean over the shapes of the class at which
 * the candidate was measured. */
static void weigh(const fg_op *op, uint64_t class, const bool *closed, fg_recalled *r) {
  for (int c = 0; c < op->n_candidates; c++) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < op->n_memory && !closed[c]; i++) {
      const fg_memory *m = &op->memory[i];
      if (m->candidate != c || fg_shape_timed_class(&m->shape) != class ||
          strcmp(m->device, r->device))
        continue;
      sum += log(m->ms / least_at(op, m, closed)), n++;
      if (!r->ms[c] || !memcmp(&m->shape, r->shape, sizeof m->shape)) r->ms[c] = m->ms;
    }
    if (n) r->ratio[c] = exp(sum / n);
  }
}

fg_status fg_op_recall(const fg_op *op, const fg_shape *shape, const bool *closed,
                       fg_recalled *recalled) {
  *recalled = (fg_recalled){0};
  uint64_t class = nearest(op, shape, closed, true, recalled);
  if (!class) class = nearest(op, shape, closed, false, recalled);
  if (!class) return FG_OK;
  recalled->ratio = calloc(2 * (size_t)op->n_candidates, sizeof *recalled->ratio);
  if (!recalled->ratio) return fg_fail(FG_EMEMORY, "no memory for a choice");
  recalled->ms = recalled->ratio + op->n_candidates;
  weigh(op, class, closed, recalled);
  return FG_OK;
}

void fg_recalled_free(fg_recalled *recalled) { free(recalled->ratio); }
