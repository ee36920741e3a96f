/* work_attention.c - attention: shapes, operations by visible pairs, and the keys that are seen. */
#include "work.h"

#include "lengths.h"

#include "formula/tree_bound.h"
#include "reference/oracle.h"
#include "spec/point_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A mask as the oracle reads it, and what gen knows of it for a run of keys. */
typedef struct {
  oracle_formula *visible, *never, *always; /* they point to the numbers */
  oracle_input number[sizeof((cli *)0)->number / sizeof *((cli *)0)->number];
  int n_numbers, left; /* runs that may still be halved */
  double name[ORACLE_NAMES];
} counter;

static void read_mask(const cli *c, const fg_point *point, counter *x) {
  *x = (counter){.n_numbers = c->n_numbers};
  for (int i = 0; i < c->n_numbers; i++)
    x->number[i] = (oracle_input){
        .name = c->number[i].name, .is_int = 1, .rank = -1, .number = c->number[i].value};
  const char *text = fg_field_text(&fg_fields[FG_FIELD_MASK], point);
  x->visible = oracle_formula_new(text, x->n_numbers, x->number, NULL);
}

static oracle_formula *read_node(const counter *x, const fg_formula *formula, int node) {
  int n = node ? fg_formula_print(formula, node, 0, NULL) : 0;
  char *text = n ? malloc((size_t)n + 1) : NULL;
  if (!text) return NULL;
  fg_formula_print(formula, node, (size_t)n + 1, text);
  oracle_formula *read = oracle_formula_new(text, x->n_numbers, x->number, NULL);
  free(text);
  return read;
}

/* Without bounds pairs are counted one by one. */
static void read_bounds(const fg_point *point, counter *x) {
  fg_formula formula;
  if (fg_point_formula(point, &formula) == FG_OK) {
    fg_tile_test test = fg_formula_tile(&formula);
    x->never = read_node(x, &formula, test.never);
    x->always = read_node(x, &formula, test.always);
  }
  fg_formula_free(&formula);
}

static bool holds(counter *x, oracle_formula *test, int64_t k0, int64_t k1) {
  x->name[ORACLE_K0] = (double)k0, x->name[ORACLE_K1] = (double)k1;
  return test && oracle_formula_value(test, x->name) != 0;
}

/* Keys k0 to k1 that the row sees: halves, until a bound says or few are left. Of a row so long
 * that there are too many runs without a bound, some keys stand for the rest. */
static double count(counter *x, int64_t k0, int64_t k1) {
  enum { FEW = 8, MANY = 509 };
  double n = 0, looked = 0;
  if (k1 - k0 > FEW && x->left-- > 0) {
    if (holds(x, x->never, k0, k1)) return 0;
    if (holds(x, x->always, k0, k1)) return (double)(k1 - k0);
    const int64_t middle = k0 + (k1 - k0) / 2;
    return count(x, k0, middle) + count(x, middle, k1);
  }
  for (int64_t k = k0; k < k1; k += (k1 - k0) / MANY + 1, looked++) {
    x->name[ORACLE_K] = (double)k;
    n += oracle_formula_value(x->visible, x->name) != 0;
  }
  return looked > 0 ? n / looked * (double)(k1 - k0) : 0;
}

static void name_shape(counter *x, const fg_shape *s) {
  x->name[ORACLE_NQ] = (double)s->nq, x->name[ORACLE_NK] = (double)s->nk;
  x->name[ORACLE_NH] = (double)s->h;
}

/* Visible pairs of one head; of a mask that reads tensors all pairs. Rows are taken one of so many
 * that nobody waits for it. */
static double visible_pairs(const cli *c, const fg_point *point, const fg_shape *s) {
  counter x;
  enum { RUNS = 1 << 15 }; /* of a row: 2^17 keys one by one */
  int64_t step = s->nq / 256 + 1, rows = 0;
  double pairs = 0;
  read_mask(c, point, &x);
  if (x.visible) read_bounds(point, &x);
  name_shape(&x, s);
  for (int64_t q = step / 2; x.visible && q < s->nq; q += step, rows++) {
    x.name[ORACLE_Q] = x.name[ORACLE_Q0] = (double)q, x.name[ORACLE_Q1] = (double)q + 1;
    x.name[ORACLE_P] = (double)(q + s->nk - s->nq);
    x.left = RUNS;
    pairs += count(&x, 0, s->nk);
  }
  oracle_formula_free(x.visible), oracle_formula_free(x.never), oracle_formula_free(x.always);
  return rows ? pairs / (double)rows * (double)s->nq : (double)s->nq * (double)s->nk;
}

static bool flops_known(const cli *c, const fg_point *p) {
  counter x;
  read_mask(c, p, &x);
  oracle_formula_free(x.visible);
  return x.visible != NULL;
}

/* The sum of a number of one sequence over all that the launch has. Equal ones, one behind the
 * other, are asked for once. */
typedef double of_sequence(const cli *c, const fg_point *point, const fg_shape *s);

static double sum_sequences(const cli *c, const fg_point *point, const fg_shape *s,
                            of_sequence *number) {
  cli_lengths lengths;
  fg_shape one = *s;
  double sum = 0, last = 0;
  if (cli_lengths_new(fg_point_layout(point), s, &lengths) != FG_OK) return 0;
  for (int64_t b = 0; b < lengths.n; b++) {
    const bool is_new = !b || one.nq != lengths.q[b] || one.nk != lengths.k[b];
    one.nq = lengths.q[b], one.nk = lengths.k[b];
    if (is_new) last = number(c, point, &one);
    sum += last;
  }
  cli_lengths_free(&lengths);
  return sum;
}

static double flops(const cli *c, const fg_point *p, const fg_shape *s) {
  double forward = 2.0 * (p->d + p->dv) * sum_sequences(c, p, s, visible_pairs) * (double)s->h;
  return p->pass == FG_PASS_BACKWARD ? 2.5 * forward : forward;
}

/* The value of a node of the shape alone; `without` if there is none, or it is not known. */
static double value_at(counter *x, const fg_formula *formula, int node, double without) {
  oracle_formula *read = read_node(x, formula, node);
  const double value = read ? oracle_formula_value(read, x->name) : without;
  oracle_formula_free(read);
  return value;
}

/* Keys of a sequence from the first to the last one that some row sees. */
static double seen_of_sequence(const cli *c, const fg_point *point, const fg_shape *s) {
  const double nk = (double)s->nk;
  double first = 0, end = nk;
  fg_formula formula;
  counter x;
  read_mask(c, point, &x);
  name_shape(&x, s);
  x.name[ORACLE_Q1] = (double)s->nq;
  if (x.visible && s->nk && fg_point_formula(point, &formula) == FG_OK) {
    fg_visible range = fg_formula_visible(&formula, false);
    first = fmax(0, value_at(&x, &formula, range.first, 0));
    end = fmin(nk, value_at(&x, &formula, range.end, nk));
    fg_formula_free(&formula);
  }
  oracle_formula_free(x.visible);
  return fmax(0, end - first);
}

static double seen_keys(const cli *c, const fg_point *point, const fg_shape *s) {
  const int64_t caches = s->pages ? s->pages : s->b;
  const double keys = point->kv_layout == FG_PACKED   ? (double)s->tokens_k
                      : point->kv_layout == FG_PAGED  ? (double)(s->pages * s->page)
                      : point->kv_layout == FG_CACHED ? (double)(caches * s->nk)
                                                      : (double)(s->b * s->nk);
  return keys > 0 ? sum_sequences(c, point, s, seen_of_sequence) / keys : 1;
}

/* As many tokens as fill a GPU: 16384, in rows of two lengths, 2048 columns of heads. On the host
 * device a block is a process's work: one small problem. */
static int bench(const fg_point *point, bool host, fg_shape shapes[CLI_BENCH_SHAPES]) {
  enum { TOKENS = 16384, WIDTH = 2048 };
  static const int64_t lengths[CLI_BENCH_SHAPES] = {1024, 4096};
  if (host) {
    shapes[0] = (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 128, .nk = 128};
    return 1;
  }
  for (int i = 0; i < CLI_BENCH_SHAPES; i++) {
    const int64_t h = WIDTH / point->d, n = lengths[i];
    shapes[i] = (fg_shape){.b = TOKENS / n, .h = h, .hk = h, .nq = n, .nk = n};
  }
  return CLI_BENCH_SHAPES;
}

/* Shapes of a check: tiles cut at both edges, nq != nk both ways, rows that see no key, more
 * batches and head groups than one, a single row. Of `tune`: two tiles of any plan in each
 * direction, cut at both edges, heads that share keys. */
const cli_work cli_work_attention = {
    .check = {{.b = 2, .h = 4, .hk = 2, .nq = 113, .nk = 203},
              {.b = 1, .h = 2, .hk = 1, .nq = 203, .nk = 113},
              {.b = 2, .h = 2, .hk = 2, .nq = 64, .nk = 64},
              {.b = 1, .h = 3, .hk = 3, .nq = 1, .nk = 339},
              {.b = 3, .h = 2, .hk = 1, .nq = 3, .nk = 1}},
    .one = {.b = 1, .h = 2, .hk = 2, .nq = 128, .nk = 128},
    .many = {.b = 7, .h = 1, .hk = 1, .nq = 33, .nk = 203},
    .far = {.b = 2, .h = 2, .hk = 2, .nq = 37, .nk = 70},
    .tune = {.b = 1, .h = 2, .hk = 1, .nq = 203, .nk = 333},
    .bench = bench,
    .flops = flops,
    .flops_known = flops_known,
    .shape_words =
        "A shape of attention reads b4 h32/8 1024×4096: 4 sequences, 32 query heads on 8 "
        "key heads, 1024 rows against 4096 keys.",
    .operation_words = "Attention does four operations for each visible pair and column of a head, "
                       "2.5 times that backward.",
    .seen_keys = seen_keys};
