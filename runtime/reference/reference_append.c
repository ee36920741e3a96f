/* reference_append.c - new rows of a cache, keys and queries turned, in float64 (mathematics.md
 * section
 * 5).
 *
 * Values are in the oracle's order: heads before rows, but for packed rows, [tokens, heads, d]. */
#include "reference_sequence.h"

#include "base/random.h"
#include "oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What k, v and q_out become. */
typedef struct {
  const char *name;
  double *ref, *rss, *plain;
} result;
enum { RESULTS = 3 };
typedef struct {
  result of[RESULTS];
} append;

static fg_status start(reference_case *c) {
  append *x = c->own = calloc(1, sizeof *x);
  return x ? FG_OK : fg_fail(FG_EMEMORY, "no memory for the oracle");
}

/* ---- what is drawn ---- */

static int64_t below(uint64_t *state, int64_t n) {
  return n > 0 ? (int64_t)(fg_random_next(state) % (uint64_t)n) : 0;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* n different numbers, below `most` as far as there are so many. */
static void draw_distinct(uint64_t *state, int64_t n, int64_t most, double *values) {
  const int64_t all = n > most ? n : most, first = below(state, all);
  int64_t step = 1 + below(state, all);
  while (all && common_divisor(step, all) > 1) step++;
  for (int64_t i = 0; i < n; i++) values[i] = (double)((first + i * step) % all);
}

/* Lengths of caches with room for the new rows, and without; some below 0. */
static void draw_used(const reference_case *c, uint64_t *state, double *used) {
  const fg_shape *s = &c->problem->shape;
  for (int64_t b = 0; b < s->b; b++) {
    const int64_t kind = below(state, 8);
    used[b] = (double)(kind == 0 ? s->nk - 1 : kind == 1 ? -2 : below(state, s->nk + 1));
  }
}

/* Caches and pages that are written are different ones; some are none. */
static void draw_places(const reference_case *c, uint64_t *state, int64_t n, double *values) {
  const int64_t wild[] = {-1, INT32_MIN, INT32_MAX, c->problem->shape.pages};
  draw_distinct(state, n, c->problem->shape.pages, values);
  for (int64_t i = 0; i < n; i++)
    if (below(state, 6) == 0) values[i] = (double)wild[below(state, 4)];
}

static void draw_positions(const reference_case *c, uint64_t *state, int64_t n, double *values) {
  const int64_t positions = c->problem->shape.positions;
  for (int64_t i = 0; i < n; i++)
    values[i] = (double)(below(state, 8)   ? below(state, positions)
                         : below(state, 2) ? positions
                                           : -1);
}

/* Some are so small that most of what is divided by them is more than 448. */
static double draw_descale(uint64_t *state) {
  const double x = 0.5 + fg_random_uniform(state);
  return below(state, 4) ? x : 0x1p-8 * x;
}

static void draw(const reference_case *c, int tensor, double *values) {
  const fg_recipe_tensor *t = &c->problem->recipe->tensor[tensor];
  const int64_t n = fg_problem_count(c->problem, tensor);
  uint64_t state = c->which->seed * 1000003 + (uint64_t)tensor;
  const bool turns = !strncmp(t->name, "rotary_", 7);
  const bool is_descale = strstr(t->name, "_descale") != NULL;
  if (!strcmp(t->name, "used_k"))
    draw_used(c, &state, values);
  else if (!strcmp(t->name, "rows") || !strcmp(t->name, "table"))
    draw_places(c, &state, n, values);
  else if (!strcmp(t->name, "row_positions"))
    draw_positions(c, &state, n, values);
  else if (!reference_draw_layout(c, tensor, values))
    for (int64_t i = 0; i < n; i++)
      values[i] = is_descale ? draw_descale(&state)
                  : turns    ? cos(6.3 * fg_random_uniform(&state))
                             : fg_random_normal(&state);
}

/* ---- what is right ---- */

static int64_t int_at(const reference_case *c, const char *name, int64_t i, int64_t otherwise) {
  const double *values = reference_value(c, name);
  return values ? (int64_t)values[i] : otherwise;
}

/* The place of a slot's row of head g in the cache, in rows; -1: it has none. */
static int64_t cache_row(const reference_case *c, int64_t b, int64_t g, int64_t slot) {
  const fg_shape *s = &c->problem->shape;
  const bool paged = c->problem->recipe->layout.kv == FG_PAGED;
  if (slot < 0 || slot >= s->nk) return -1;
  const int64_t columns = paged ? (s->nk - 1) / s->page + 1 : 0;
  const int64_t place =
      paged ? int_at(c, "table", b * columns + slot / s->page, 0) : int_at(c, "rows", b, b);
  const int64_t rows = paged ? s->page : s->nk, most = s->pages || paged ? s->pages : s->b;
  if (place < 0 || place >= most) return -1;
  return (place * s->hk + g) * rows + (paged ? slot % s->page : slot);
}

/* Column i of a row, turned by a position; also the size of its terms and what plain rounding
 * gives. */
static double turned(const reference_case *c, const double *row, int64_t position, int i,
                     double (*round)(double), double *size, double *plain) {
  const fg_point *p = &c->variant->point;
  const int dim = p->rotary_dim ? p->rotary_dim : p->d, half = dim / 2;
  const bool halves = p->rotary == 2;
  *size = fabs(row[i]), *plain = row[i];
  if (!p->rotary || i >= dim) return row[i];
  const int pair = halves ? i % half : i / 2;
  const bool is_first = halves ? i < half : i % 2 == 0;
  const double other = row[halves ? (is_first ? i + half : i - half) : i ^ 1];
  const double cosine = reference_value(c, "rotary_cos")[position * half + pair];
  const double sine = reference_value(c, "rotary_sin")[position * half + pair];
  const double a = row[i] * cosine, b = is_first ? -other * sine : other * sine;
  *size = sqrt(a * a + b * b);
  *plain = round(round(a) + round(b));
  return a + b;
}

/* How rows go to a tensor: turned or not, and, where it is a cache of e4m3, divided by a descale
 * and rounded. */
typedef struct {
  int width;
  bool turns, is_quantized;
  double descale;
} way;

/* The number as the tensor has it. */
static double stored(const way *w, double x) {
  return w->is_quantized ? oracle_round(FG_ELEM_E4M3)(x / w->descale) : x;
}

static void put_row(const reference_case *c, const double *row, int64_t position, way w,
                    double (*round)(double), result *to, int64_t at) {
  for (int i = 0; i < w.width; i++) {
    double size = fabs(row[i]), plain = row[i], value = row[i];
    if (w.turns) value = turned(c, row, position, i, round, &size, &plain);
    to->ref[at * w.width + i] = stored(&w, value);
    to->rss[at * w.width + i] = fabs(stored(&w, size));
    to->plain[at * w.width + i] = stored(&w, plain);
  }
}

/* The way to a head of the cache. */
static way way_to_cache(const reference_case *c, bool of_k, int64_t head) {
  const fg_point *p = &c->variant->point;
  const double *descales = reference_value(c, of_k ? "k_descale" : "v_descale");
  return (way){.width = of_k ? p->d : p->dv,
               .turns = of_k,
               .is_quantized = fg_point_has_descales(p),
               .descale = descales ? descales[head] : 1};
}

/* Row i of sequence s: to the cache, and the query to its place. */
static void solve_row(reference_case *c, const reference_sequence *s, int64_t i,
                      double (*round)(double)) {
  append *x = c->own;
  const fg_point *p = &c->variant->point;
  const fg_shape *shape = &c->problem->shape;
  const int64_t slot = int_at(c, "used_k", s->b, 0) + i;
  const int64_t number =
      c->problem->recipe->layout.q == FG_PACKED ? s->first_q + i : s->b * shape->nq + i;
  const int64_t position = int_at(c, "row_positions", number, slot);
  const bool has_position = !p->rotary || (position >= 0 && position < shape->positions);
  for (int64_t g = 0; g < shape->hk; g++) {
    const int64_t to = cache_row(c, s->b, g, slot);
    const bool packed = c->problem->recipe->layout.q == FG_PACKED;
    const int64_t head = s->b * shape->hk + g;
    const int64_t from = packed ? number * shape->hk + g : (s->b * shape->hk + g) * shape->nq + i;
    if (to >= 0 && has_position)
      put_row(c, reference_value(c, "k_new") + from * p->d, position, way_to_cache(c, true, head),
              round, &x->of[0], to);
    if (to >= 0)
      put_row(c, reference_value(c, "v_new") + from * p->dv, 0, way_to_cache(c, false, head), round,
              &x->of[1], to);
  }
  const double *q = reference_value(c, "q");
  for (int64_t h = 0; q && x->of[2].ref && has_position && h < shape->h; h++) {
    const int64_t at = reference_row_q(s, h, i);
    put_row(c, q + at * p->d, position, (way){.width = p->d, .turns = true}, round, &x->of[2], at);
  }
}

/* Caches begin as they were drawn, queries as 0; where there are no queries nothing is written. */
static fg_status begin(reference_case *c, result *r, const char *name) {
  const int tensor = fg_problem_find(c->problem, name);
  if (tensor < 0) return FG_OK;
  const size_t n = (size_t)fg_problem_count(c->problem, tensor) + 1;
  const bool kept = c->problem->recipe->tensor[tensor].kept;
  r->name = name;
  r->ref = calloc(n, sizeof *r->ref), r->rss = calloc(n, sizeof *r->rss);
  r->plain = calloc(n, sizeof *r->plain);
  if (!r->ref || !r->rss || !r->plain) return fg_fail(FG_EMEMORY, "no memory for the oracle");
  for (size_t i = 0; i + 1 < n && kept; i++) {
    r->ref[i] = r->plain[i] = c->value[tensor][i];
    r->rss[i] = fabs(r->ref[i]);
  }
  if (!kept && !reference_value(c, "q")) fg_problem_drop(c->problem, tensor);
  return FG_OK;
}

static fg_status solve(reference_case *c, int plain) {
  static const char *const names[RESULTS] = {"k", "v", "q_out"};
  append *x = c->own;
  double (*round)(double) = oracle_round(fg_point_elem(&c->variant->point));
  (void)plain; /* it costs nothing here */
  for (int i = 0; i < RESULTS; i++) TRY(begin(c, &x->of[i], names[i]));
  for (int64_t b = 0; b < c->problem->shape.b; b++) {
    const reference_sequence s = reference_sequence_of(c, b);
    for (int64_t i = 0; i < s.nq; i++) solve_row(c, &s, i, round);
  }
  return FG_OK;
}

static reference_values find(const reference_case *c, const char *name) {
  const append *x = c->own;
  for (int i = 0; i < RESULTS; i++)
    if (x->of[i].name && !strcmp(x->of[i].name, name))
      return (reference_values){.ref = x->of[i].ref, .rss = x->of[i].rss, .plain = x->of[i].plain};
  return (reference_values){0};
}

/* There are no pairs. */
static void tell(const reference_case *c, verify_verdict *verdict) { (void)c, (void)verdict; }

static void free_own(reference_case *c) {
  append *x = c->own;
  for (int i = 0; x && i < RESULTS; i++) {
    free(x->of[i].ref);
    free(x->of[i].rss);
    free(x->of[i].plain);
  }
  free(x);
}

static const char *const saved[] = {NULL};
const reference reference_append = {saved, start, draw, solve, find, tell, free_own, NULL};
