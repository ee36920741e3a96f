/* run_case.c - draws tensors, writes and reads their files, compares with the oracle. */
#include "run_case.h"
#include "base/random.h"

#include "reference/npy.h"
#include "reference/oracle.h"
#include "scratch.h"
#include "suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const run_case run_case_usual = {.b = 2,
                                 .h = 4,
                                 .hk = 2,
                                 .nq = 19,
                                 .nk = 37,
                                 .d = 40,
                                 .dv = 40,
                                 .dtype = FG_ELEM_BF16,
                                 .mask = "causal",
                                 .bias_axes = "bhqk",
                                 .scale = 0.125};

/* The axes of each tensor as its file has them; g: key/value heads, v: the head dim of v. */
static const struct {
  const char *name, *axes;
  int input;
} tensors[] = {{"q", "bqhd", 1},  {"k", "bkgd", 1},   {"v", "bkgv", 1},  {"bias", "bhqk", 1},
               {"do", "bqhv", 1}, {"dlse", "bhq", 1}, {"o", "bqhv", 0},  {"lse", "bhq", 0},
               {"dq", "bqhd", 0}, {"dk", "bkgd", 0},  {"dv", "bkgv", 0}, {"dbias", "bhqk", 0}};
enum { TENSORS = sizeof tensors / sizeof *tensors };
enum { Q, K, V, BIAS, DO, DLSE, O, LSE };

typedef struct {
  double *value[TENSORS]; /* of inputs, in the oracle's order: b h n d */
  oracle_problem problem;
  oracle_result result;
} judge;

static int index_of(const char *name) {
  for (int i = 0; i < TENSORS; i++)
    if (!strcmp(tensors[i].name, name)) return i;
  ck_abort_msg("no tensor %s", name);
  return -1;
}

/* Extents as in the file, 1 behind the last; returns how many elements. */
static int64_t extents_of(const run_case *c, int tensor, int64_t extent[4]) {
  static const char letters[] = "bhgqkdv";
  const int64_t all[] = {c->b, c->h, c->hk, c->nq, c->nk, c->d, c->dv};
  const char *axes = tensors[tensor].axes;
  int bias = strstr(tensors[tensor].name, "bias") != NULL;
  int64_t count = 1;
  for (int a = 0; a < 4; a++) {
    extent[a] = a < (int)strlen(axes) ? all[strchr(letters, axes[a]) - letters] : 1;
    if (bias && !(c->bias_axes && strchr(c->bias_axes, axes[a]))) extent[a] = 1;
    count *= extent[a];
  }
  return count;
}

/* Where element i of the file lies in the oracle's array: rows and heads change places, except in
 * bias, lse and their gradients, whose heads come before the rows in both. */
static int64_t place(int tensor, const int64_t e[4], int64_t i) {
  int swap = tensors[tensor].axes[2] == 'h' || tensors[tensor].axes[2] == 'g';
  int64_t l = i % e[3], k = i / e[3] % e[2], j = i / e[3] / e[2] % e[1], b = i / e[3] / e[2] / e[1];
  return swap ? ((b * e[2] + k) * e[1] + j) * e[3] + l : i;
}

/* ---- files ---- */

void run_case_file(const char *path, const char *descr, const char *order, int rank,
                   const int64_t *extent, const void *data, size_t bytes) {
  char head[256] = "\x93NUMPY\1", dict[192], *file;
  int n =
      snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': %s, 'shape': (", descr, order);
  for (int a = 0; a < rank; a++)
    n += snprintf(dict + n, sizeof dict - (size_t)n, "%d,", (int)extent[a]);
  snprintf(dict + n, sizeof dict - (size_t)n, "), }");
  head[8] = (char)(192 - 10);
  snprintf(head + 10, sizeof head - 10, "%-181s\n", dict);
  ck_assert_ptr_nonnull(file = malloc(192 + bytes));
  memcpy(file, head, 192);
  if (bytes) memcpy(file + 192, data, bytes);
  scratch_put(path, file, 192 + bytes);
  free(file);
}

void run_case_zeros(const char *name, const char *extents) { run_case_fill(name, extents, 0); }

void run_case_fill(const char *name, const char *extents, float value) {
  char path[64];
  int64_t extent[8], count = 1;
  int rank = 0;
  for (const char *at = extents; *at; at += strcspn(at, ","), at += *at == ',')
    count *= extent[rank++] = atoi(at);
  float *values = malloc(((size_t)count + 1) * sizeof *values);
  for (int64_t i = 0; i < count; i++) values[i] = value;
  snprintf(path, sizeof path, "%s.npy", name);
  run_case_file(path, "<f4", "False", rank, extent, values, (size_t)count * sizeof *values);
  free(values);
}

static void put(const run_case *c, int tensor, const float *values, const char *type) {
  fg_elem elem = strcmp(type, "f2") ? FG_ELEM_F32 : FG_ELEM_F16;
  int64_t extent[4], count = extents_of(c, tensor, extent);
  char path[64], descr[8], *bytes = malloc((size_t)count * 4 + 1);
  for (int64_t i = 0; i < count; i++) fg_elem_store(elem, bytes, i, values[i]);
  snprintf(path, sizeof path, "%s.npy", tensors[tensor].name);
  snprintf(descr, sizeof descr, "<%s", type);
  run_case_file(path, descr, "False", (int)strlen(tensors[tensor].axes), extent, bytes,
                (size_t)count * fg_elem_size(elem));
  free(bytes);
}

/* ---- values ---- */

/* A number of about normal size, the same for the same arguments. Eighths up to 3 in size are exact
 * in every dtype; what makes the rounding to dtype seen is added below them. */
static float draw(int tensor, int64_t i) {
  uint64_t x =
      fg_random_mix(((uint64_t)i + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)(tensor + 1) << 40);
  float sum = 0;
  for (int k = 0; k < 4; k++) sum += (float)(x >> (16 * k) & 0xffff) / 65536.0f - 0.5f;
  return 1.7f * sum;
}

static fg_elem elem_of(const run_case *c, int tensor) {
  return tensor == LSE || tensor == DLSE ? FG_ELEM_F32 : c->dtype;
}

static int given(const run_case *c, int tensor) {
  return tensors[tensor].input && (tensor != BIAS || c->bias_axes) && (tensor != DLSE || c->dlse);
}

void run_case_put(const run_case *c, const char *type) {
  for (int t = 0; t < TENSORS; t++) {
    int64_t extent[4], count = extents_of(c, t, extent);
    if (!given(c, t)) continue;
    float *values = malloc((size_t)(count + 1) * sizeof *values);
    for (int64_t i = 0; i < count; i++) values[i] = draw(t, i);
    put(c, t, values, type);
    free(values);
  }
}

/* Reads an input back and rounds it as the program must: the oracle sees what the kernel sees. */
static double *input(const run_case *c, int tensor) {
  char path[64];
  fg_array file;
  snprintf(path, sizeof path, "%s.npy", tensors[tensor].name);
  ck_assert_msg(fg_npy_read(tensors[tensor].name, path, &file) == FG_OK, "%s", path);
  double *values = malloc((size_t)(file.count + 1) * sizeof *values);
  for (int64_t i = 0; i < file.count; i++) {
    float x;
    fg_elem_store(elem_of(c, tensor), &x, 0, file.real[i]);
    values[place(tensor, file.extent, i)] = (double)fg_elem_load(elem_of(c, tensor), &x, 0);
  }
  fg_array_free(&file);
  return values;
}

static void ask_oracle(const run_case *c, int backward, judge *j) {
  *j = (judge){0};
  for (int t = 0; t < TENSORS; t++)
    if (given(c, t) && (backward || (t != DO && t != DLSE))) j->value[t] = input(c, t);
  oracle_problem *p = &j->problem;
  *p = (oracle_problem){.b = c->b, .h = c->h, .hk = c->hk, .nq = c->nq, .nk = c->nk};
  p->d = c->d, p->dv = c->dv;
  p->scale = c->scale != 0 ? c->scale : 1 / sqrt((double)c->d);
  p->q = j->value[Q], p->k = j->value[K], p->v = j->value[V];
  p->bias = j->value[BIAS], p->dout = j->value[DO], p->dlse = j->value[DLSE];
  extents_of(c, BIAS, p->bias_extent);
  p->visible = oracle_visible(c->mask);
  ck_assert_int_eq(backward ? oracle_backward(p, &j->result) : oracle_forward(p, &j->result), 0);
}

static void forget(judge *j) {
  for (int t = 0; t < TENSORS; t++) free(j->value[t]);
  oracle_free(&j->result);
}

void run_case_put_forward(const run_case *c) {
  judge j;
  ask_oracle(c, 0, &j);
  for (int t = O; t <= LSE; t++) {
    int64_t extent[4], count = extents_of(c, t, extent);
    float *values = malloc((size_t)(count + 1) * sizeof *values);
    for (int64_t i = 0; i < count; i++)
      values[i] = (float)(t == O ? j.result.o : j.result.lse)[place(t, extent, i)];
    put(c, t, values, "f4");
    free(values);
  }
  forget(&j);
}

/* ---- judging ---- */

static void compare(const run_case *c, const char *name, const judge *j, int64_t n,
                    const double *x) {
  const oracle_result *r = &j->result;
  const struct {
    const char *name;
    const double *ref, *rss;
  } rows[] = {{"o", r->o, r->o_rss},    {"lse", r->lse, NULL},
              {"dq", r->dq, r->dq_rss}, {"dk", r->dk, r->dk_rss},
              {"dv", r->dv, r->dv_rss}, {"dbias", r->dbias, r->dbias_rss}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].name, name)) continue;
    double limit = oracle_limit(c->dtype);
    double error = rows[i].rss ? oracle_error(n, x, rows[i].ref, rows[i].rss)
                               : oracle_lse_error(n, x, rows[i].ref, &limit);
    ck_assert_msg(error <= limit, "%s: error %g, limit %g", name, error, limit);
    return;
  }
  ck_abort_msg("%s is no output", name);
}

void run_case_judge(const run_case *c, const char *name) {
  char path[64];
  int tensor = index_of(name);
  int64_t extent[4], count = extents_of(c, tensor, extent);
  fg_array file;
  judge j;
  snprintf(path, sizeof path, "%s.npy", name);
  ck_assert_msg(fg_npy_read(name, path, &file) == FG_OK, "%s cannot be read", path);
  ck_assert_str_eq(file.type, "f4");
  ck_assert_int_eq(file.rank, (int)strlen(tensors[tensor].axes));
  for (int a = 0; a < 4; a++) ck_assert_int_eq(file.extent[a], extent[a]);
  double *x = malloc((size_t)(count + 1) * sizeof *x);
  for (int64_t i = 0; i < count; i++) x[place(tensor, extent, i)] = (double)file.real[i];
  ask_oracle(c, *name == 'd', &j);
  compare(c, name, &j, count, x);
  forget(&j);
  free(x);
  fg_array_free(&file);
}

void run_case_judge_gradients(const run_case *c) {
  run_case_judge(c, "dq");
  run_case_judge(c, "dk");
  run_case_judge(c, "dv");
}

static size_t slurp(const char *path, char **text) {
  FILE *f = fopen(path, "rb");
  ck_assert_msg(f != NULL, "no file %s", path);
  *text = malloc(1 << 20);
  size_t n = fread(*text, 1, 1 << 20, f);
  fclose(f);
  return n;
}

int run_case_equal(const char *a, const char *b) {
  char *x, *y;
  size_t n = slurp(a, &x), m = slurp(b, &y);
  int equal = n == m && !memcmp(x, y, n);
  free(x);
  free(y);
  return equal;
}
