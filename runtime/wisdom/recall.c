/* recall.c - reads the times of a spec's candidates from lines of wisdom, and finds the measured
 * class that is nearest to a shape. */
#include "recall.h"

#include "shape.h"
#include "spec/point_formula.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reading ----------------------------------------------------------------------------------- */

/* How the spec's lines begin, "variant=attn_fwd-bf16-d64." */
typedef struct {
  char text[FG_NAME_MAX + 16];
  size_t n;
} head;

typedef struct {
  const fg_question *question;
  const fg_wisdom_index *text;
  int source;
  char expression[4096];
  fg_memories *memories;
} search;

/* The index of the candidate that the line names, or -1. What stands before the dot is the head of
 * the line. */
static int find_candidate(const fg_question *q, const fg_measured *m) {
  const char *dot = strchr(m->name, '.');
  for (int i = 0; dot && i < q->n; i++)
    if (!strcmp(q->candidate[i].name, dot + 1)) return i;
  return -1;
}

/* Whether a line of another device says something about this device: both run the same code, and
 * have about as many multiprocessors, such as an H200 and an H100. Memory is not compared: plans of
 * one spec move the same tensors, so the number of multiprocessors decides which plan is
 * fastest. */
static bool is_near(const fg_question *q, const fg_measured *line) {
  enum { PERCENT = 20 };
  const int ours = q->multiprocessors, theirs = line->multiprocessors;
  const int most = ours > theirs ? ours : theirs;
  return 100 * abs(ours - theirs) <= PERCENT * most; /* the variant's name holds the arch */
}

/* The entry for the candidate's time at the shape on the device, or a new one, which any line
 * replaces; NULL: no memory. */
static fg_memory *place(fg_memories *all, int candidate, const fg_shape *shape,
                        const char *device) {
  for (int i = 0; i < all->n; i++)
    if (all->memory[i].candidate == candidate &&
        !memcmp(&all->memory[i].shape, shape, sizeof *shape) &&
        !strcmp(all->memory[i].device, device))
      return &all->memory[i];
  fg_memory *grown = realloc(all->memory, ((size_t)all->n + 1) * sizeof *grown);
  if (!grown) return NULL;
  all->memory = grown;
  grown[all->n] =
      (fg_memory){.candidate = candidate, .shape = *shape, .source = INT32_MAX, .when = -1};
  strcpy(grown[all->n].device, device);
  return &grown[all->n++];
}

/* Whether the line replaces an older one of the same candidate, shape and device: the newer
 * generation counts, then the file that comes first, then the later time. */
static bool replaces(const fg_measured *m, int source, const fg_memory *old) {
  if (m->generation != old->generation) return m->generation > old->generation;
  if (source != old->source) return source < old->source;
  return m->when >= old->when;
}

/* The candidate's last verdict, the line's included. */
static void judge(const fg_question *q, const fg_measured *m, bool here, int i, fg_verdict *last) {
  const bool bad = m->status == FG_MEASURED_WRONG || m->status == FG_MEASURED_FAULT;
  if ((!bad && !fg_measured_counts(m)) || m->generation != q->candidate[i].generation) return;
  if (here < last->here || (here == last->here && m->when < last->when)) return;
  *last = (fg_verdict){bad, here, m->when};
}

/* Uses a line for the candidate that it names, if the line is of this device or a near one, of the
 * same expression, and of no newer generation than the candidate. */
static fg_status take(search *s, const fg_measured *m) {
  const fg_question *q = s->question;
  const bool here = !strcmp(m->device, q->model);
  int i = find_candidate(q, m);
  if (i < 0 || (!here && !is_near(q, m)) || strcmp(m->expression, s->expression) ||
      m->generation > q->candidate[i].generation)
    return FG_OK;
  if (!q->times_only) judge(q, m, here, i, &s->memories->verdict[i]);
  if (!fg_measured_counts(m)) return FG_OK;
  fg_memory *memory = place(s->memories, i, &m->shape, here ? "" : m->device);
  if (!memory) return fg_fail(FG_EMEMORY, "no memory for wisdom");
  if (replaces(m, s->source, memory))
    memory->generation = m->generation, memory->source = s->source, memory->when = m->when,
    memory->ms = m->ms;
  return FG_OK;
}

static fg_status take_line(search *s, const head *h, const fg_indexed_line *line) {
  fg_measured m;
  if (!fg_wisdom_line_is(s->text, line, h->text, h->n) ||
      fg_measured_parse(s->text->text + line->at, line->n, &m, NULL) != FG_LINE_GOOD)
    return FG_OK;
  return take(s, &m);
}

/* The spec's lines as they begin now, and as they do in older files, in the order of the text. */
static fg_status take_lines(search *s) {
  const fg_indexed_line *at[2], *end[2];
  head heads[2];
  for (int i = 0; i < 2; i++) {
    head *h = &heads[i];
    h->n = (size_t)snprintf(h->text, sizeof h->text, "variant=");
    h->n += (size_t)(i ? fg_point_name_before : fg_point_name)(&s->question->point, FG_NAME_MAX,
                                                               h->text + h->n);
    strcpy(h->text + h->n++, ".");
    at[i] = fg_wisdom_lines(s->text, h->text, h->n, &end[i]);
  }
  if (!strcmp(heads[0].text, heads[1].text)) at[1] = end[1];
  while (at[0] < end[0] || at[1] < end[1]) {
    const int i = at[0] == end[0] || (at[1] < end[1] && at[1]->at < at[0]->at);
    TRY(take_line(s, &heads[i], at[i]++));
  }
  return FG_OK;
}

fg_status fg_memories_read(const fg_question *q, const fg_wisdom_index *text, int source,
                           fg_memories *memories) {
  search s = {.question = q, .text = text, .source = source, .memories = memories};
  const int n = fg_point_expression(&q->point, sizeof s.expression, s.expression);
  if (n >= (int)sizeof s.expression) return FG_OK; /* no line holds it */
  if (!memories->verdict) {
    if (!(memories->verdict = calloc((size_t)q->n, sizeof *memories->verdict)))
      return fg_fail(FG_EMEMORY, "no memory for wisdom");
    memories->n_candidates = q->n;
  }
  return take_lines(&s);
}

void fg_memories_free(fg_memories *memories) {
  free(memories->memory);
  free(memories->verdict);
  *memories = (fg_memories){0};
}

/* Recalling --------------------------------------------------------------------------------- */

/* The largest fg_shape_distance of a class that is near: an octave of one length. Beyond it the
 * cost model chooses better than wisdom, as tests/bench/fit shows on shapes that are held out. */
enum { FAR = 4 };

/* The class nearest to the shape among the times of this device (`here`) or of near devices, with
 * its distance, shape and device in *r; 0: none is near. Of two classes at one distance it is the
 * one with more to compute, where a bad choice costs more. */
static uint64_t nearest(const fg_memories *all, const fg_shape *shape, const bool *closed,
                        bool here, fg_recalled *r) {
  uint64_t best = 0;
  for (int i = 0; i < all->n; i++) {
    const fg_memory *m = &all->memory[i];
    int distance = fg_shape_distance(&m->shape, shape);
    uint64_t class = fg_shape_timed_class(&m->shape);
    if (closed[m->candidate] || distance > FAR || here != !*m->device) continue;
    if (best && (distance > r->distance || (distance == r->distance && class <= best))) continue;
    best = class, r->distance = distance, r->shape = &m->shape, r->device = m->device;
  }
  return best;
}

/* The least time of the candidates that are not closed, at the shape and on the device of `at`. */
static double least_at(const fg_memories *all, const fg_memory *at, const bool *closed) {
  double least = INFINITY;
  for (int i = 0; i < all->n; i++) {
    const fg_memory *m = &all->memory[i];
    if (!closed[m->candidate] && m->ms < least && !memcmp(&m->shape, &at->shape, sizeof m->shape) &&
        !strcmp(m->device, at->device))
      least = m->ms;
  }
  return least;
}

/* Fills in r->ratio and r->ms. A ratio is the geometric mean over the shapes of the class at which
 * the candidate was measured. */
static void weigh(const fg_memories *all, uint64_t class, const bool *closed, fg_recalled *r) {
  for (int c = 0; c < all->n_candidates; c++) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < all->n && !closed[c]; i++) {
      const fg_memory *m = &all->memory[i];
      if (m->candidate != c || fg_shape_timed_class(&m->shape) != class ||
          strcmp(m->device, r->device))
        continue;
      sum += log(m->ms / least_at(all, m, closed)), n++;
      if (!r->ms[c] || !memcmp(&m->shape, r->shape, sizeof m->shape)) r->ms[c] = m->ms;
    }
    if (n) r->ratio[c] = exp(sum / n);
  }
}

fg_status fg_memories_recall(const fg_memories *all, const fg_shape *shape, const bool *closed,
                             fg_recalled *recalled) {
  *recalled = (fg_recalled){0};
  uint64_t class = nearest(all, shape, closed, true, recalled);
  if (!class) class = nearest(all, shape, closed, false, recalled);
  if (!class) return FG_OK;
  recalled->ratio = calloc(2 * (size_t)all->n_candidates, sizeof *recalled->ratio);
  if (!recalled->ratio) return fg_fail(FG_EMEMORY, "no memory for a choice");
  recalled->ms = recalled->ratio + all->n_candidates;
  weigh(all, class, closed, recalled);
  return FG_OK;
}

void fg_recalled_free(fg_recalled *recalled) { free(recalled->ratio); }
