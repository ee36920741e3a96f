/* t_shard.c - shard=true: the parts of a problem, cut anyhow, whose results together are those of
 * one launch of a kernel that knows no parts. The designs judge each part by itself. */
#include "base/random.h"
#include "launch_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKWARD "pass=backward "
#define PACKED   "q_layout=packed kv_layout=packed "

static const char *const wholes[] = {
    "head_dim=64 mask=causal",
    "head_dim=32 mask=causal_top_left dropout=true",
    "head_dim=64 mask=window(30,5) score=alibi",
    "head_dim=128 mask=k>q+9 score=softcap(4.0)",
    "head_dim=64 mask=own[q]==ids[k] inputs.own=i32[q] inputs.ids=i32[k]",
    "head_dim=64 mask=causal bias=true bias_dims=[q,k]",
    PACKED "head_dim=64 mask=causal dropout=true",
    PACKED "head_dim=32 mask=window(12,0)&&own[q]==ids[k] inputs.own=i32[q] inputs.ids=i32[k]",
};
enum { WHOLES = sizeof wholes / sizeof *wholes, SEQUENCES = 3, CUTS = 3, H = 2, HK = 1 };

/* Rows or keys of a problem, of which each sequence is cut in CUTS parts that may be empty. */
typedef struct side {
  bool packed;
  int64_t n, tokens; /* of the longest sequence, of all */
  int64_t start[SEQUENCES + 1], cut[SEQUENCES][CUTS + 1];
} side;

static int64_t below(uint64_t *state, int64_t n) {
  return n > 0 ? (int64_t)(fg_random_next(state) % (uint64_t)n) : 0;
}

/* Dense sequences are cut alike, so that their parts are as long as each other. */
static side side_new(bool packed, int64_t most, uint64_t *state) {
  side x = {.packed = packed, .n = most};
  for (int s = 0; s < SEQUENCES; s++) {
    const int64_t n = packed ? most - below(state, most) : most;
    const int64_t a = below(state, n + 1), b = below(state, 3) ? below(state, n + 1) : a + (a < n);
    x.start[s + 1] = x.start[s] + n;
    x.cut[s][1] = a < b ? a : b, x.cut[s][2] = a < b ? b : a, x.cut[s][CUTS] = n;
    if (!packed && s) memcpy(x.cut[s], x.cut[0], sizeof x.cut[s]);
  }
  x.tokens = x.start[SEQUENCES];
  return x;
}

static int64_t length_of(const side *x, int part, int s) {
  return x->cut[s][part + 1] - x->cut[s][part];
}

/* Where row i of a sequence's part is among the tokens of the whole, and of the part. */
static int64_t token_of(const side *x, int part, int s, int64_t i) {
  return x->start[s] + x->cut[s][part] + i;
}
static int64_t start_of(const side *x, int part, int s) {
  int64_t start = 0;
  for (int before = 0; before < s; before++) start += length_of(x, part, before);
  return start;
}
static int64_t tokens_of(const side *x, int part) { return start_of(x, part, SEQUENCES); }

/* Tokens of a part in a tensor of tokens of `width` values, and back: added to what is there. */
static float *cut_out(const float *all, const side *x, int part, int64_t width) {
  float *own = calloc((size_t)(tokens_of(x, part) * width) + 1, sizeof *own);
  for (int s = 0; s < SEQUENCES; s++)
    memcpy(own + start_of(x, part, s) * width, all + token_of(x, part, s, 0) * width,
           (size_t)(length_of(x, part, s) * width) * sizeof *own);
  return own;
}
static void add_to(double *all, const float *own, const side *x, int part, int64_t width) {
  for (int s = 0; s < SEQUENCES; s++)
    for (int64_t i = 0; i < length_of(x, part, s) * width; i++)
      all[token_of(x, part, s, 0) * width + i] += (double)own[start_of(x, part, s) * width + i];
}

/* The place of row i's number of a head, [b, h, nq] or [h, tokens]. */
static int64_t kept_at(const side *x, int64_t n, int64_t tokens, int s, int64_t start, int64_t h,
                       int64_t i) {
  return x->packed ? h * tokens + start + i : (s * H + h) * n + i;
}
static int64_t kept_of_whole(const side *x, int part, int s, int64_t h, int64_t i) {
  return kept_at(x, x->n, x->tokens, s, x->start[s], h, x->cut[s][part] + i);
}
static int64_t kept_of_part(const side *x, int part, int s, int64_t h, int64_t i) {
  return kept_at(x, length_of(x, part, 0), tokens_of(x, part), s, start_of(x, part, s), h, i);
}

typedef struct problem {
  side q, k;
  launch forward, backward; /* of the whole */
} problem;

static fg_shape shape_of(const side *q, const side *k, int i, int j) {
  fg_shape shape = SHAPE(SEQUENCES, H, HK, i < 0 ? q->n : length_of(q, i, 0),
                         j < 0 ? k->n : length_of(k, j, 0), 0);
  if (!q->packed) return shape;
  shape.nq = q->n, shape.nk = k->n;
  shape.tokens_q = i < 0 ? q->tokens : tokens_of(q, i);
  shape.tokens_k = j < 0 ? k->tokens : tokens_of(k, j);
  return shape;
}

/* Documents of 23 tokens. */
static void set_ids(launch *l, const char *name, int64_t first, int64_t n) {
  int64_t *ids = calloc((size_t)n + 1, sizeof *ids);
  for (int64_t i = 0; i < n; i++) ids[i] = (first + i) / 23;
  if (launch_has(l, name)) launch_set_ints(l, name, ids);
  free(ids);
}

/* What says where the sequences of a launch are, part < 0: all of them. Documents are told by
 * tokens of the whole. */
static void place_side(launch *l, const side *x, int part, char letter) {
  int64_t starts[SEQUENCES + 1], pos[SEQUENCES], whole[SEQUENCES];
  char name[16];
  for (int s = 0; s <= SEQUENCES; s++) starts[s] = part < 0 ? x->start[s] : start_of(x, part, s);
  for (int s = 0; s < SEQUENCES; s++)
    pos[s] = part < 0 ? 0 : x->cut[s][part], whole[s] = x->start[s + 1] - x->start[s];
  snprintf(name, sizeof name, "starts_%c", letter), launch_set_ints(l, name, starts);
  snprintf(name, sizeof name, "used_%c", letter);
  if (launch_has(l, name)) launch_drop(l, name);
  snprintf(name, sizeof name, "pos_%c", letter), launch_set_ints(l, name, pos);
  snprintf(name, sizeof name, "whole_%c", letter), launch_set_ints(l, name, whole);
  const char *ids = letter == 'q' ? "own" : "ids";
  if (!x->packed) {
    set_ids(l, ids, pos[0], part < 0 ? x->n : length_of(x, part, 0));
  } else if (launch_has(l, ids)) {
    int64_t *own = calloc((size_t)x->tokens + 1, sizeof *own), n = 0;
    for (int s = 0; s < SEQUENCES; s++)
      for (int64_t i = 0; i < (part < 0 ? whole[s] : length_of(x, part, s)); i++)
        own[n++] = (x->start[s] + pos[s] + i) / 23;
    launch_set_ints(l, ids, own);
    free(own);
  }
}

static void place(launch *l, const problem *p, int i, int j) {
  place_side(l, &p->q, i, 'q');
  place_side(l, &p->k, j, 'k');
}

/* The tokens of part i of the rows, or of the keys, of a tensor of the whole. */
static void give_part(launch *l, const launch *whole, const char *name, const side *x, int part) {
  float *all = launch_get(whole, name);
  float *own = cut_out(all, x, part, launch_count(whole, name) / x->tokens);
  launch_set(l, name, own);
  free(all), free(own);
}

/* A bias of [1, 1, nq, nk]. */
static void give_bias(launch *l, const problem *p, int i, int j) {
  if (!launch_has(l, "bias")) return;
  const int64_t q = p->q.cut[0][i], k = p->k.cut[0][j];
  const int64_t nq = length_of(&p->q, i, 0), nk = length_of(&p->k, j, 0);
  float *all = launch_get(&p->forward, "bias"), *own = calloc((size_t)(nq * nk) + 1, sizeof *own);
  for (int64_t e = 0; e < nq * nk; e++) own[e] = all[(q + e / nk) * p->k.n + k + e % nk];
  launch_set(l, "bias", own);
  free(all), free(own);
}

static void give_dropout(launch *l) {
  const int64_t words[4] = {5, 0, 9, 0};
  launch_set_ints(l, "seed", words);
  if (launch_has(l, "seed")) l->problem->args.given |= FG_GIVEN_KEEP, l->problem->args.keep = 0.7F;
}

/* A launch of rows' part i and keys' part j, of equal seed of dropout. */
static launch launch_part(const kernel *k, const problem *p, const launch *whole, int i, int j) {
  launch l = launch_new(k, shape_of(&p->q, &p->k, i, j), 7);
  place(&l, p, i, j), give_dropout(&l);
  give_part(&l, whole, "q", &p->q, i);
  give_part(&l, whole, "k", &p->k, j);
  give_part(&l, whole, "v", &p->k, j);
  give_bias(&l, p, i, j);
  return l;
}

static void same(const char *name, const char *what, const double *own, const float *right,
                 int64_t n) {
  double apart = 0, size = 0;
  for (int64_t i = 0; i < n; i++) {
    apart += (own[i] - (double)right[i]) * (own[i] - (double)right[i]);
    size += (double)right[i] * (double)right[i];
  }
  ck_assert_msg(sqrt(apart) <= 8e-3 * sqrt(size), "%s: %s of all parts is off by %g of %g", name,
                what, sqrt(apart), sqrt(size));
}

/* Adds a part's o and lse to those of the parts before it (mathematics.md section 2). */
static void combine(const problem *p, int i, const float *o, const float *lse, int64_t dv,
                    double *all_o, double *all_lse) {
  for (int s = 0; s < SEQUENCES; s++)
    for (int64_t r = 0; r < length_of(&p->q, i, s) * H; r++) {
      const int64_t row = r / H, h = r % H;
      double *lse_a = all_lse + kept_of_whole(&p->q, i, s, h, row);
      const double lse_b = (double)lse[kept_of_part(&p->q, i, s, h, row)];
      const double most = fmax(*lse_a, lse_b);
      double *a = all_o + (token_of(&p->q, i, s, row) * H + h) * dv;
      const float *b = o + ((start_of(&p->q, i, s) + row) * H + h) * dv;
      if (isinf(most)) {
        for (int64_t c = 0; c < dv; c++) ck_assert_msg(fabsf(b[c]) <= 0, "o of no keys is not 0");
        continue;
      }
      const double w_a = exp(*lse_a - most), w_b = exp(lse_b - most), sum = w_a + w_b;
      for (int64_t c = 0; c < dv; c++) a[c] = (w_a * a[c] + w_b * (double)b[c]) / sum;
      *lse_a = most + log(sum);
    }
}

static void forward_of_parts(const kernel *k, const problem *p) {
  const int64_t n_o = launch_count(&p->forward, "o"), n_lse = launch_count(&p->forward, "lse");
  double *o = calloc((size_t)n_o, sizeof *o), *lse = calloc((size_t)n_lse, sizeof *lse);
  for (int64_t i = 0; i < n_lse; i++) lse[i] = -INFINITY;
  for (int i = 0; i < CUTS; i++)
    for (int j = 0; j < CUTS; j++) {
      launch l = launch_part(k, p, &p->forward, i, j);
      launch_run(&l, (uint64_t)(3 * i + j));
      float *own_o = launch_get(&l, "o"), *own_lse = launch_get(&l, "lse");
      combine(p, i, own_o, own_lse, n_o / (p->q.tokens * H), o, lse);
      free(own_o), free(own_lse), launch_free(&l);
    }
  float *right = launch_get(&p->forward, "o"), *right_lse = launch_get(&p->forward, "lse");
  same(k->name, "o", o, right, n_o);
  for (int64_t i = 0; i < n_lse; i++)
    ck_assert_msg(lse[i] == (double)right_lse[i] || fabs(lse[i] - (double)right_lse[i]) < 2e-3,
                  "%s: lse[%d] of all parts is %g, expected %g", k->name, (int)i, lse[i],
                  (double)right_lse[i]);
  free(o), free(lse), free(right), free(right_lse);
}

/* o, lse and the gradient of o are those of the whole. */
static void give_forward(launch *l, const problem *p, int i) {
  float *all = launch_get(&p->backward, "lse"), *own = launch_get(l, "lse");
  for (int s = 0; s < SEQUENCES; s++)
    for (int64_t r = 0; r < length_of(&p->q, i, s) * H; r++)
      own[kept_of_part(&p->q, i, s, r % H, r / H)] = all[kept_of_whole(&p->q, i, s, r % H, r / H)];
  launch_set(l, "lse", own);
  free(all), free(own);
  give_part(l, &p->backward, "o", &p->q, i);
  give_part(l, &p->backward, "do", &p->q, i);
  launch_drop(l, "dlse");
}

static void backward_of_parts(const kernel *k, const problem *p) {
  static const char *const names[] = {"dq", "dk", "dv"};
  double *sum[3];
  for (int t = 0; t < 3; t++)
    sum[t] = calloc((size_t)launch_count(&p->backward, names[t]), sizeof *sum[t]);
  for (int i = 0; i < CUTS; i++)
    for (int j = 0; j < CUTS; j++) {
      launch l = launch_part(k, p, &p->backward, i, j);
      give_forward(&l, p, i);
      launch_run(&l, (uint64_t)(3 * i + j));
      for (int t = 0; t < 3; t++) {
        const side *x = t ? &p->k : &p->q;
        float *own = launch_get(&l, names[t]);
        add_to(sum[t], own, x, t ? j : i, launch_count(&p->backward, names[t]) / x->tokens);
        free(own);
      }
      launch_free(&l);
    }
  for (int t = 0; t < 3; t++) {
    float *right = launch_get(&p->backward, names[t]);
    same(k->name, names[t], sum[t], right, launch_count(&p->backward, names[t]));
    free(right), free(sum[t]);
  }
}

/* The problem of a seed, solved by kernels that know no parts. */
static problem problem_new(const kernel *forward, const kernel *backward, uint64_t seed) {
  uint64_t state = 15485863 * seed;
  const bool packed = forward->variant.point.q_layout;
  problem p = {.q = side_new(packed, 60 + below(&state, 90), &state),
               .k = side_new(packed, 60 + below(&state, 200), &state)};
  const fg_shape shape = shape_of(&p.q, &p.k, -1, -1);
  p.forward = launch_new(forward, shape, 7), p.backward = launch_new(backward, shape, 7);
  place(&p.forward, &p, -1, -1), place(&p.backward, &p, -1, -1);
  give_dropout(&p.forward), give_dropout(&p.backward);
  launch_drop(&p.backward, "dlse");
  launch_run(&p.forward, seed);
  float *o = launch_get(&p.forward, "o"), *lse = launch_get(&p.forward, "lse");
  launch_set(&p.backward, "o", o), launch_set(&p.backward, "lse", lse);
  free(o), free(lse);
  launch_run(&p.backward, seed);
  return p;
}

TEST_TENTH(parts_make_the_whole, WHOLES) {
  kernels forward = kernels_first("family=simt %s", wholes[_i]);
  kernels backward = kernels_first("family=simt " BACKWARD "%s", wholes[_i]);
  kernels parts = kernels_of_families(_i, "shard=true %s", wholes[_i]);
  kernels gradients = kernels_of_families(_i, "shard=true " BACKWARD "%s", wholes[_i]);
  ck_assert_int_ge(parts.n, 3);
  ck_assert_int_ge(gradients.n, 3);
  for (uint64_t seed = 1; seed <= 3; seed++) {
    problem p = problem_new(&forward.list[0], &backward.list[0], seed + 10 * (uint64_t)_i);
    for (int n = 0; n < parts.n; n++) forward_of_parts(&parts.list[n], &p);
    for (int n = 0; n < gradients.n; n++) backward_of_parts(&gradients.list[n], &p);
    launch_free(&p.forward), launch_free(&p.backward);
  }
  kernels_free(&forward), kernels_free(&backward), kernels_free(&parts), kernels_free(&gradients);
}
