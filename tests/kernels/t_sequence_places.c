/* t_sequence_places.c - where sequences are that few callers have, judged by the oracle: none at
 * all, empty ones, one that has everything, very many, tokens that none has, pages that several
 * have. What no sequence reads is NaN. */
#include "kernel_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKED "q_layout=packed kv_layout=packed"

/* Tensors of integers that a case is given. */
typedef struct given {
  fg_array array[4];
  verify_array list[4];
  int n;
} given;

static void give(given *g, const char *name, int64_t rows, int64_t columns, int64_t *values) {
  fg_array *a = &g->array[g->n];
  *a = (fg_array){.rank = columns ? 2 : 1,
                  .extent = {rows, columns ? columns : 1, 1, 1},
                  .count = rows * (columns ? columns : 1),
                  .type = "i8",
                  .integer = values};
  g->list[g->n++] = (verify_array){name, a};
}

static void verify(const kernel *k, verify_case which, const given *g) {
  which.n_arrays = g->n, which.array = g->list;
  kernel_verify(k, &which);
}

/* ---- packed ---- */

static struct {
  int64_t b, tokens_q, tokens_k, starts_q[5], starts_k[5];
} packed[] = {
    {0, 10, 20, {0}, {0}},
    {0, 1, 20, {0}, {0}},
    {0, 0, 0, {0}, {0}},
    {3, 0, 0, {0, 0, 0, 0}, {0, 0, 0, 0}},
    {3, 0, 70, {0, 0, 0, 0}, {0, 30, 50, 70}},
    {3, 70, 0, {0, 30, 50, 70}, {0, 0, 0, 0}},
    {3, 10, 20, {5, 5, 5, 5}, {0, 0, 0, 0}},
    {3, 10, 20, {10, 10, 10, 10}, {20, 20, 20, 20}},
    {4, 90, 150, {0, 0, 0, 90, 90}, {0, 0, 0, 150, 150}},
    {2, 70, 150, {3, 17, 40}, {5, 40, 130}},
    {3, 64, 128, {0, 32, 32, 64}, {0, 0, 64, 128}},
    {4, 200, 60, {0, 150, 150, 199, 200}, {0, 1, 30, 31, 60}},
};
enum { PLACES = sizeof packed / sizeof *packed };

/* An odd seed leaves out what may be left out; an even one draws how many tokens count. */
static void places_of(const kernel *k) {
  for (int i = 0; i < PLACES; i++) {
    given g = {.n = 0};
    give(&g, "starts_q", packed[i].b + 1, 0, packed[i].starts_q);
    give(&g, "starts_k", packed[i].b + 1, 0, packed[i].starts_k);
    const fg_shape shape = {.b = packed[i].b,
                            .h = 4,
                            .hk = 2,
                            .tokens_q = packed[i].tokens_q,
                            .tokens_k = packed[i].tokens_k};
    for (uint64_t seed = 0; seed < 2; seed++)
      verify(k, (verify_case){.shape = shape, .seed = 2 * (uint64_t)i + seed}, &g);
  }
}

TEST_TENTH(packed_places, 4) {
  static const char *const words[] = {
      "mask=causal",
      "mask=full bias=true bias_dims=[h,q]",
      "pass=backward mask=causal",
      "pass=backward mask=window(20,3) deterministic=true bias=grad bias_dims=[h,k]",
  };
  kernels made = kernels_of_families(_i, "head_dim=40 " PACKED " %s", words[_i]);
  for (int i = 0; i < made.n; i++) places_of(&made.list[i]);
  kernels_free(&made);
}

/* ---- very many ---- */

/* So many sequences of a token each, or one in so many has a token and the others none. */
static void many(const kernel *k, int64_t b, int64_t h, int64_t every) {
  const int64_t tokens = b / every;
  int64_t *starts = malloc((size_t)(b + 1) * sizeof *starts);
  ck_assert_ptr_nonnull(starts);
  for (int64_t i = 0; i <= b; i++) starts[i] = i / every;
  given g = {.n = 0};
  give(&g, "starts_q", b + 1, 0, starts);
  give(&g, "starts_k", b + 1, 0, starts);
  const fg_shape shape = {.b = b, .h = h, .hk = 1, .tokens_q = tokens, .tokens_k = tokens};
  verify(k, (verify_case){.shape = shape, .seed = 1}, &g);
  free(starts);
}

/* More sequences, and sequences times heads, than an axis of a grid has blocks; fewer where the
 * host runs a block of tensor cores at a time. */
TEST_TENTH(very_many, 2) {
  static const char *const words[] = {"mask=causal", "pass=backward"};
  const bool on_host = kernel_device_is_host();
  kernels made = kernels_of_families(0, "head_dim=8 " PACKED " %s", words[_i]);
  for (int i = 0; i < made.n; i++) {
    many(&made.list[i], !on_host ? 100000 : i ? 700 : 66000, 1, !on_host ? 1 : i ? 2 : 11);
    if (!on_host) many(&made.list[i], 66000, 2, 66);
  }
  kernels_free(&made);
}

/* ---- pages ---- */

/* One page for all keys of all sequences; entries of keys that are skipped or do not count are no
 * pages. On the host also where pages and rows lie so far apart that offsets exceed 32 bits. */
TEST_TENTH(pages, 2) {
  static int64_t used[] = {60, 0, 17}, first[] = {20, 0, 16};
  static int64_t table[] = {INT32_MIN, 2, 2, 2, -7, INT32_MAX, INT32_MAX, -1, -1, 2, 1000, 1 << 30};
  kernels made = kernels_of_families(_i, "head_dim=40 mask=causal kv_layout=paged");
  given g = {.n = 0};
  give(&g, "used_k", 3, 0, used);
  give(&g, "first_k", 3, 0, first);
  give(&g, "table", 3, 4, table);
  const fg_shape shape = {.b = 3, .h = 4, .hk = 2, .nq = 33, .nk = 60, .pages = 4, .page = 16};
  for (int i = 0; i < made.n; i++)
    for (int far = 0; far < 1 + kernel_device_is_host(); far++)
      verify(&made.list[i], (verify_case){.shape = shape, .seed = 3, .far = far}, &g);
  kernels_free(&made);
}

/* ---- gradients that no kernel makes ---- */

TEST_LOOP(refused, 4) {
  static const struct {
    const char *words, *says;
  } specs[] = {
      {"family=simt bias=grad",
       "simt: the gradient of bias would be of all pairs of packed queries and keys"},
      {"family=mma inputs.x=f32[q,k]grad score=s+x[q,k]",
       "mma: the gradient of x would be of all pairs of packed queries and keys"},
      {"family=simt inputs.x=f32[b,k]grad score=s+x[b,k]",
       "simt: the gradient of x has an axis of the batch beside one of packed tokens, which say "
       "it"},
      {"family=mma deterministic=true inputs.x=f32[q]grad score=s+x[q-k+7]",
       "mma: deterministic=true: the gradient of x by distance runs over packed tokens"},
  };
  kernels made;
  char words[256];
  snprintf(words, sizeof words, "pass=backward head_dim=64 " PACKED " %s", specs[_i].words);
  ck_assert_int_eq(kernels_make(NULL, words, &made), FG_ESPEC);
  ck_assert_msg(strstr(fg_error(), specs[_i].says) != NULL, "%s", fg_error());
  kernels_free(&made);
}
