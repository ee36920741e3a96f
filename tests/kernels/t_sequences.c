/* t_sequences.c - sequences that are packed, cached or paged: what holds of them whatever the
 * numbers; t_sequence_places.c judges them by the oracle, t_sequence_wrong.c has places that are
 * wrong.
 *
 * Kernels are one of each family that takes the layout. */
#include "launch_case.h"

#include "expand/expand.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKED "q_layout=packed kv_layout=packed"

/* What a sequence gives does not depend on the others, nor on how many blocks there are. */
#define ALONE "batch_invariant=true "

/* Of backward kernels dQ too has its order. */
#define BACKWARD "pass=backward deterministic=true"

static const char *const masks[] = {"full", "causal", "window(20,3)"};

static bool is_backward(const kernel *k) { return k->variant.point.pass == FG_PASS_BACKWARD; }

/* The kernel of the same plan for dense sequences. */
static kernel dense_of(const kernel *k) {
  fg_variant v = k->variant;
  fg_gen *gen;
  kernel made;
  v.point.q_layout = v.point.kv_layout = FG_DENSE;
  GOOD(fg_gen_new(NULL, &gen));
  GOOD(kernel_make(gen, &v, false, &made));
  fg_gen_free(gen);
  return made;
}

/* ---- the dense kernel's bits ---- */

static const fg_shape shape = {.b = 2, .h = 4, .hk = 2, .nq = 70, .nk = 90};
enum { B = 2, H = 4, HK = 2, NQ = 70, NK = 90 };

/* Numbers kept of rows: dense [b, h, nq] to packed [h, b, nq]. */
static void pack_kept(const float *dense, float *packed) {
  for (int b = 0; b < B; b++)
    for (int h = 0; h < H; h++)
      memcpy(packed + (h * B + b) * NQ, dense + (b * H + h) * NQ, NQ * sizeof *dense);
}

/* The tensor has the same bits in both, lse in the order of each. */
static void same(const launch *dense, const launch *other, const char *name) {
  if (strcmp(name, "lse") != 0 || other->kernel->variant.point.q_layout == FG_DENSE) {
    launch_same(dense, other, name);
    return;
  }
  float *x = launch_get(dense, name), *y = launch_get(other, name), packed[B * H * NQ];
  pack_kept(x, packed);
  for (int i = 0; i < B * H * NQ; i++)
    ck_assert_msg(!memcmp(packed + i, y + i, sizeof *y), "%s: lse[%d]: %.9g and %.9g",
                  other->kernel->name, i, (double)packed[i], (double)y[i]);
  free(x);
  free(y);
}

/* A packed launch with the inputs of a dense one. */
static void take_packed(launch *packed, const launch *dense) {
  static const char *const kept[] = {"lse", "dlse"};
  int64_t starts_q[B + 1], starts_k[B + 1];
  for (int b = 0; b <= B; b++) starts_q[b] = b * NQ, starts_k[b] = b * NK;
  launch_set_ints(packed, "starts_q", starts_q);
  launch_set_ints(packed, "starts_k", starts_k);
  launch_drop(packed, "used_q");
  launch_drop(packed, "used_k");
  for (int i = 0; i < 2 && is_backward(dense->kernel); i++) {
    float *x = launch_get(dense, kept[i]), values[B * H * NQ];
    pack_kept(x, values);
    launch_set(packed, kept[i], values);
    free(x);
  }
  if (!is_backward(dense->kernel)) return;
  float *o = launch_get(dense, "o");
  launch_set(packed, "o", o);
  free(o);
}

/* Sequences of equal lengths, whatever bound of them is given. */
static void equal_lengths(const kernel *k, const kernel *forward) {
  static const int64_t bounds[] = {0, NQ, 1 << 29};
  static const char *const results[2][4] = {{"o", "lse"}, {"dq", "dk", "dv"}};
  kernel dense = dense_of(k);
  launch a = launch_new(&dense, shape, 1);
  if (is_backward(k)) launch_take_forward(&a, forward);
  launch_run(&a, 1);
  for (int i = 0; i < 3; i++) {
    const fg_shape packed = {.b = B,
                             .h = H,
                             .hk = HK,
                             .nq = bounds[i],
                             .nk = bounds[2 - i],
                             .tokens_q = B * NQ,
                             .tokens_k = B * NK};
    launch b = launch_new(k, packed, 1);
    take_packed(&b, &a);
    launch_run(&b, 2);
    for (const char *const *name = results[is_backward(k)]; *name; name++) same(&a, &b, *name);
    launch_free(&b);
  }
  launch_free(&a);
  kernel_free(&dense);
}

TEST_TENTH(packed_is_dense, 3) {
  kernels forward =
      kernels_of_families(_i, "head_dim=40 score=alibi mask=%s " ALONE PACKED, masks[_i]);
  for (int i = 0; i < forward.n; i++) equal_lengths(&forward.list[i], NULL);
  kernels_free(&forward);
  forward = kernels_first("family=simt head_dim=64 score=alibi mask=%s", masks[_i]);
  kernels backward =
      kernels_of_families(_i, BACKWARD " head_dim=64 score=alibi mask=%s " PACKED, masks[_i]);
  for (int i = 0; i < backward.n; i++) equal_lengths(&backward.list[i], &forward.list[0]);
  kernels_free(&forward);
  kernels_free(&backward);
}

/* ---- keys elsewhere ---- */

enum { ROWS = 16 + NK };

/* Key row i of sequence b, the skipped ones too, among all rows: caches lie in another order than
 * sequences, and pages in none. */
typedef struct placed {
  const char *words;
  int64_t page;  /* 0: caches */
  int64_t first; /* rows that are skipped */
} placed;
static const placed places[] = {{"cached", 0, 5},  {"paged", 1, 5},  {"paged", 7, 5},
                                {"paged", 16, 5},  {"paged", 64, 5}, {"paged", 512, 5},
                                {"paged", 16, 16}, {"paged", 64, 0}, {"paged", 12, 12},
                                {"cached", 0, 16}, {"paged", 512, 0}};
enum { PLACES = sizeof places / sizeof *places };

static int64_t columns_of(const placed *p) { return (ROWS + p->page - 1) / p->page; }
static int64_t units_of(const placed *p) { return p->page ? B * columns_of(p) + 1 : B + 1; }
static int64_t unit_of(const placed *p, int64_t b, int64_t column) {
  return p->page ? (4 * (b * columns_of(p) + column) + 2) % units_of(p) : B - b;
}
static int64_t row_of(const placed *p, int64_t b, int64_t i) {
  if (!p->page) return unit_of(p, b, 0) * ROWS + i;
  return unit_of(p, b, i / p->page) * p->page + i % p->page;
}

/* The keys of a dense launch there, behind the rows that are skipped; all else is NaN. */
static void place_keys(const placed *p, const launch *dense, launch *l, const char *name) {
  const int64_t width = (int64_t)HK * (*name == 'k' ? dense->kernel->variant.point.d
                                                    : dense->kernel->variant.point.dv);
  float *from = launch_get(dense, name), *to = launch_get(l, name);
  for (int64_t i = 0; i < launch_count(l, name); i++) to[i] = NAN;
  for (int64_t b = 0; b < B; b++)
    for (int64_t i = 0; i < NK; i++)
      memcpy(to + row_of(p, b, p->first + i) * width, from + (b * NK + i) * width,
             (size_t)width * sizeof *to);
  launch_set(l, name, to);
  free(from);
  free(to);
}

/* The table; what no key lies in is no page. */
static void place_pages(const placed *p, const launch *l) {
  const int64_t columns = columns_of(p);
  int64_t *table = malloc((size_t)(B * columns) * sizeof *table);
  ck_assert_ptr_nonnull(table);
  for (int64_t b = 0; b < B; b++)
    for (int64_t c = 0; c < columns; c++)
      table[b * columns + c] = c < p->first / p->page || c > (p->first + NK - 1) / p->page
                                   ? INT32_MIN
                                   : unit_of(p, b, c);
  launch_set_ints(l, "table", table);
  free(table);
}

static void elsewhere(const kernel *k, const placed *p) {
  const int64_t used[B] = {p->first + NK, p->first + NK}, first[B] = {p->first, p->first};
  const int64_t rows[B] = {unit_of(p, 0, 0), unit_of(p, 1, 0)};
  kernel dense = dense_of(k);
  fg_shape other = shape;
  other.nk = ROWS, other.pages = units_of(p), other.page = p->page;
  launch a = launch_new(&dense, shape, 3), b = launch_new(k, other, 3);
  place_keys(p, &a, &b, "k");
  place_keys(p, &a, &b, "v");
  launch_set_ints(&b, "used_k", used);
  launch_set_ints(&b, "first_k", first);
  launch_set_ints(&b, "rows", rows);
  if (p->page) place_pages(p, &b);
  launch_run(&a, 1);
  launch_run(&b, 2);
  launch_same_outputs(&a, &b);
  launch_free(&a);
  launch_free(&b);
  kernel_free(&dense);
}

TEST_TENTH(elsewhere_is_dense, PLACES) {
  const placed p = places[_i];
  kernels made = kernels_of_families(_i, ALONE "head_dim=%d score=alibi mask=%s kv_layout=%s",
                                     _i % 2 ? 40 : 64, masks[_i % 3], p.words);
  for (int i = 0; i < made.n; i++) elsewhere(&made.list[i], &p);
  kernels_free(&made);
}

/* ---- one beside another ---- */

/* Three sequences, and tokens before, between and behind them that none has. */
enum { TOKENS_Q = 130, TOKENS_K = 150 };
static const int64_t some_q[] = {3, 45, 90, 120}, some_k[] = {2, 60, 62, 141};
static const int64_t used_q[] = {42, 40, 29}, used_k[] = {57, 2, 79};
static const fg_shape some = {.b = 3, .h = H, .hk = HK, .tokens_q = TOKENS_Q, .tokens_k = TOKENS_K};

static launch start_some(const kernel *k, uint64_t draw) {
  launch l = launch_new(k, some, draw);
  launch_set_ints(&l, "starts_q", some_q);
  launch_set_ints(&l, "starts_k", some_k);
  launch_set_ints(&l, "used_q", used_q);
  launch_set_ints(&l, "used_k", used_k);
  return l;
}

static bool is_of_keys(const char *name) { return strchr("kv", name[*name == 'd']); }

static bool has(int sequence, const char *name, int64_t token) {
  const int64_t first = (is_of_keys(name) ? some_k : some_q)[sequence];
  return token >= first && token < first + (is_of_keys(name) ? used_k : used_q)[sequence];
}

/* The token of a tensor's element: of lse and dlse the last axis. */
static int64_t token_of(const launch *l, const char *name, int64_t element) {
  const int64_t tokens = is_of_keys(name) ? TOKENS_K : TOKENS_Q;
  if (strstr(name, "lse")) return element % tokens;
  return element / (launch_count(l, name) / tokens);
}

/* What sequence 1 has and what none has is NaN in every input. */
static void spoil_second(const launch *l) {
  static const char *const names[] = {"q", "k", "v", "do", "dlse"};
  for (int t = 0; t < 5; t++) {
    if (!launch_has(l, names[t])) continue;
    float *x = launch_get(l, names[t]);
    for (int64_t i = 0; i < launch_count(l, names[t]); i++) {
      const int64_t token = token_of(l, names[t], i);
      if (!has(0, names[t], token) && !has(2, names[t], token)) x[i] = NAN;
    }
    launch_set(l, names[t], x);
    free(x);
  }
}

/* Sequences 0 and 2 have the same bits in both; what no sequence has is as nothing leaves it. */
static void same_beside(const launch *a, const launch *b, const char *name) {
  float *x = launch_get(a, name), *y = launch_get(b, name);
  const float rest = strcmp(name, "lse") ? 0 : -INFINITY;
  for (int64_t i = 0; i < launch_count(a, name); i++) {
    const int64_t token = token_of(a, name, i);
    if (has(0, name, token) || has(2, name, token))
      ck_assert_msg(!memcmp(x + i, y + i, sizeof *x), "%s: %s, token %d: %.9g and %.9g",
                    a->kernel->name, name, (int)token, (double)x[i], (double)y[i]);
    else if (!has(1, name, token))
      ck_assert_msg(x[i] == rest && y[i] == rest, "%s: %s, token %d: %.9g, %.9g", a->kernel->name,
                    name, (int)token, (double)x[i], (double)y[i]);
  }
  free(x);
  free(y);
}

static void beside(const kernel *k, const kernel *forward) {
  const fg_recipe *r = &k->source->recipe;
  launch a = start_some(k, 4), b = start_some(k, 4);
  spoil_second(&b);
  if (forward) {
    launch_take_forward(&a, forward);
    launch_take_forward(&b, forward);
  }
  launch_run(&a, 1);
  launch_run(&b, 2);
  for (int t = 0; t < r->n_tensors; t++)
    if (r->tensor[t].output) same_beside(&a, &b, r->tensor[t].name);
  launch_free(&a);
  launch_free(&b);
}

TEST_TENTH(nan_stays_where_it_is, 3) {
  kernels forward = kernels_of_families(_i, "head_dim=40 mask=%s " ALONE PACKED, masks[_i]);
  kernels backward = kernels_of_families(_i, BACKWARD " head_dim=40 mask=%s " PACKED, masks[_i]);
  for (int i = 0; i < forward.n; i++) beside(&forward.list[i], NULL);
  for (int i = 0; i < backward.n; i++) beside(&backward.list[i], &forward.list[0]);
  kernels_free(&forward);
  kernels_free(&backward);
}
