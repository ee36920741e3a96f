/* t_soak.c - random specs, layouts and shapes: every plan of a tensor-core family beside simt on
 * the same inputs and the same device, and repeated launches that promise equal bits.
 *
 * simt is judged by the oracle elsewhere; here two kernels that share little may differ by twice
 * the accuracy of mathematics.md section 6. Each difference is a line with the words that repeat
 * it; the
 * others are looked for all the same. FLASHGEN_SOAK_SECONDS says for how long (default 6);
 * FLASHGEN_SOAK_SEED begins with a round that an earlier run has named; FLASHGEN_SOAK_FAMILY and
 * FLASHGEN_SOAK_PASS name the only family (mma, wgmma, decode: forward alone) and pass (forward,
 * backward). */
#include "base/random.h"
#include "clock.h"
#include "launch_sequences.h"
#include "reference/oracle.h"
#include "words.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECONDS = 6, SHAPES = 2, HOST_REPEATS = 3, REPEATS = 100 };

static double seconds(void) {
  const char *text = getenv("FLASHGEN_SOAK_SECONDS");
  return text && *text ? atof(text) : SECONDS;
}

static uint64_t first_seed(void) {
  const char *text = getenv("FLASHGEN_SOAK_SEED");
  return text && *text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
}

/* Is the pass backward? FLASHGEN_SOAK_PASS says so, or else the draw. */
static int is_backward(int drawn) {
  const char *text = getenv("FLASHGEN_SOAK_PASS");
  return text && *text ? !strcmp(text, "backward") : drawn;
}

/* ---- what is drawn ---- */

static uint64_t state;

static int below(int n) { return (int)((fg_random_next(&state) >> 33) % (uint64_t)n); }

#define ONE_OF(list) (list)[below((int)(sizeof(list) / sizeof *(list)))]

static void draw_words(int backward, size_t size, char *words) {
  static const char *const dims[] = {"",    "b",   "h",   "q",     "k",
                                     "b,h", "h,k", "q,k", "h,q,k", "b,h,q,k"};
  static const char *const biases[] = {"false", "true", "grad"};
  static const char *const elems[] = {"spec", "f32"};
  static const char *const masks[] = {
      "full",         "full",         "causal",     "causal",      "causal",    "causal_top_left",
      "window(70,0)", "window(9,33)", "prefix(40)", "chunked(48)", "dilated(3)"};
  static const char *const scores[] = {"s", "s", "s", "softcap(5.0)", "alibi", "s-0.02*abs(k-p)"};
  int d = 8 * (1 + below(32)), dv = below(3) ? d : 8 * (1 + below(32)), bias = below(3);
  int n = snprintf(words, size, "pass=%s dtype=%s head_dim=%d/%d mask=%s score=%s bias=%s",
                   backward ? "backward" : "forward", below(2) ? "bf16" : "f16", d, dv,
                   ONE_OF(masks), ONE_OF(scores), biases[bias == 2 && !backward ? 1 : bias]);
  if (bias)
    n += snprintf(words + n, size - (size_t)n, " bias_dims=[%s] bias_dtype=%s", ONE_OF(dims),
                  ONE_OF(elems));
  n += snprintf(words + n, size - (size_t)n, "%s", launch_draw_layout(backward, &state));
  if (backward && below(2)) snprintf(words + n, size - (size_t)n, " deterministic=true");
}

static int draw_length(void) {
  switch (below(8)) {
  case 0:
    return below(3);
  case 1:
    return 8 * (1 + below(kernel_device_is_host() ? 12 : 60));
  case 2:
    return 1 + below(kernel_device_is_host() ? 200 : 3000);
  case 3:
    return 2 * below(kernel_device_is_host() ? 60 : 600) + 1;
  default:
    return 1 + below(kernel_device_is_host() ? 100 : 400);
  }
}

/* Pairs and elements are bounded by what is drawn and copied in a second or so. */
static fg_shape draw_shape(const fg_point *point) {
  static const int heads[][2] = {{1, 1}, {2, 2}, {2, 1}, {4, 2}, {6, 2}, {3, 3}, {8, 1}};
  const int64_t pairs = kernel_device_is_host() ? 30000 : 4000000,
                elements = kernel_device_is_host() ? 200000 : 4000000;
  for (;;) {
    const int *h = ONE_OF(heads);
    int b = below(12) ? 1 + below(3) : 0;
    fg_shape s = {.b = b, .h = h[0], .hk = h[1], .nq = draw_length(), .nk = draw_length()};
    int64_t width = point->d + point->dv;
    if (s.b * s.h * s.nq * s.nk <= pairs && s.b * s.h * (s.nq + s.nk) * width <= elements) return s;
  }
}

static const float scales[] = {0, 0, 0, -0.1f, 0.3f};

/* ---- kernels ---- */

/* The one plan of simt. */
static kernel make_simt(fg_gen *gen, const char *words) {
  char all[512];
  fg_variant *list;
  kernel k;
  int n;
  snprintf(all, sizeof all, "%s family=simt", words);
  GOOD(words_variants(gen, all, kernel_device()->arch, 1, &list, &n));
  GOOD(kernel_make(gen, list, false, &k));
  free(list);
  return k;
}

/* 0: NVRTC spills; other versions of it may, and the dispatcher takes another plan then. */
static int make_plan(fg_gen *gen, const fg_variant *v, kernel *k) {
  fg_status status = kernel_make(gen, v, false, k);
  if (status == FG_OK) return 1;
  ck_assert_msg(status == FG_ECOMPILER && !kernel_device_is_host() &&
                    strstr(fg_error(), " spills "),
                "%s", fg_error());
  fprintf(stderr, "skipped: %s\n", fg_error());
  kernel_free(k);
  return 0;
}

/* The family that the environment names, or one that has the words' pass. */
static const char *draw_family(const char *words) {
  static const char *const families[] = {"wgmma", "mma", "decode"};
  const char *text = getenv("FLASHGEN_SOAK_FAMILY");
  const int drawn = below(strstr(words, "pass=backward") ? 2 : 3);
  return text && *text ? text : families[drawn];
}

/* The plans of one of the families that have any; n = 0 where none fits, which is judged elsewhere.
 */
static fg_variant *draw_plans(fg_gen *gen, const char *words, int *n) {
  char all[512];
  fg_variant *list;
  const char *family = draw_family(words);
  snprintf(all, sizeof all, "%s family=%s", words, family);
  fg_status status = words_variants(gen, all, kernel_device()->arch, 0, &list, n);
  ck_assert_msg(status == FG_OK || strstr(fg_error(), "no plan fits"), "%s", fg_error());
  if (status != FG_OK) fprintf(stderr, "skipped: %s: %s\n", all, fg_error());
  return list;
}

/* ---- beside simt ---- */

static struct {
  uint64_t seed;
  const char *words;
  int failures;
} now; /* the round */

/* A difference, and how to see it again: here, and beside the oracle. */
static void report(const launch *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void report(const launch *l, const char *format, ...) {
  const fg_variant *v = &l->kernel->variant;
  char plan[64], shape[FG_SHAPE_WORDS];
  va_list args;
  fg_plan_name(&v->plan, sizeof plan, plan);
  fg_shape_words(fg_point_kind(&v->point)->form, &l->problem->shape, sizeof shape, shape);
  printf("FAILED: ");
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  printf(": FLASHGEN_SOAK_SEED=%" PRIu64 " FLASHGEN_SOAK_FAMILY=%s FLASHGEN_SOAK_PASS=%s t_soak, "
         "or flashgen check %s --plan %s %s",
         now.seed, fg_plan_family(&v->plan),
         v->point.pass == FG_PASS_BACKWARD ? "backward" : "forward", now.words, plan, shape);
  if (l->problem->args.given) printf(" scale=%g", (double)l->problem->args.scale);
  printf("\n");
  fflush(stdout);
  now.failures++;
}

static void compare_lse(const launch *l, int64_t n, const float *x, const float *y) {
  for (int64_t i = 0; i < n; i++) {
    double difference = x[i] == y[i] ? 0 : fabs((double)x[i] - (double)y[i]);
    if (difference <= 2 * (1e-4 + 1e-6 * fabs((double)y[i]))) continue;
    report(l, "lse[%" PRId64 "] is %.9g, by simt %.9g", i, (double)x[i], (double)y[i]);
    return;
  }
}

/* What the terms of a row's dS have in all at least, sum P (|dP| + |Delta|) of mathematics.md
 * section 6:
 * the sum of P dP is dO O, Delta is that without dLSE. `row` is of lse. */
static double terms_of_row(const launch *l, int64_t row, const float *o, const float *d_o,
                           float dlse) {
  const fg_shape *s = &l->problem->shape;
  const bool is_packed = l->kernel->variant.point.q_layout == FG_PACKED;
  const int64_t nq = is_packed ? s->tokens_q : s->nq; /* packed: one batch */
  const int64_t dv = l->kernel->variant.point.dv, h = row / nq % s->h;
  const int64_t at = ((row / nq / s->h * nq + row % nq) * s->h + h) * dv; /* b nq h dv */
  double dot = 0;
  for (int64_t i = 0; i < dv; i++) dot += (double)o[at + i] * (double)d_o[at + i];
  return fabs(dot) + fabs(dot - (double)dlse);
}

/* The square of the terms' size in dbias, which may cancel, at least: by rows where keys share an
 * element; else of at most nk keys in a row. */
static double terms_of(const launch *l, const fg_recipe_tensor *t) {
  const fg_shape *s = &l->problem->shape;
  if (strcmp(t->argument->name, "dbias") != 0) return 0;
  float *dlse = launch_get(l, "dlse"), *lse = launch_get(l, "lse"), *o = launch_get(l, "o"),
        *d_o = launch_get(l, "do");
  const bool keys_share = fg_recipe_extent(l->problem->recipe, t->axes[3], s) == 1;
  double sum = 0;
  for (int64_t i = 0; i < launch_count(l, "lse"); i++)
    if (lse[i] != -INFINITY) sum += pow(terms_of_row(l, i, o, d_o, dlse[i]), 2);
  free(dlse);
  free(lse);
  free(o);
  free(d_o);
  return keys_share ? sum : sum / fmax(1, (double)s->nk);
}

static void compare(const launch *l, const launch *other, const fg_recipe_tensor *t) {
  const char *name = t->argument->name;
  int64_t n = launch_count(l, name);
  float *x = launch_get(l, name), *y = launch_get(other, name);
  double difference = 0, size = 0;
  if (!strcmp(name, "lse")) {
    compare_lse(l, n, x, y);
  } else {
    double spec = oracle_limit(fg_point_elem(&l->kernel->variant.point));
    double limit = 2 * fmax(spec, oracle_limit(t->elem));
    for (int64_t i = 0; i < n; i++) {
      difference += pow((double)x[i] - (double)y[i], 2);
      size += pow((double)y[i], 2);
    }
    size = fmax(size, terms_of(l, t));
    if (!(sqrt(difference) <= limit * sqrt(size)))
      report(l, "%s differs by %.3g of its norm", name, sqrt(difference / size));
  }
  free(x);
  free(y);
}

/* One shape: the same inputs for both; of backward, o and lse as simt's forward gives them. */
static void beside(const kernel *k, const kernel *simt, const kernel *forward) {
  const fg_recipe *r = &k->source->recipe;
  fg_shape shape = draw_shape(&k->variant.point);
  uint64_t draw = (uint64_t)below(1 << 30);
  launch x = launch_new_sequences(k, shape, draw), y = launch_new_sequences(simt, shape, draw);
  x.problem->args.scale = y.problem->args.scale = ONE_OF(scales);
  x.problem->args.given = y.problem->args.given = x.problem->args.scale != 0 ? FG_GIVEN_SCALE : 0;
  if (forward) {
    launch_take_forward(&x, forward);
    launch_take_forward(&y, forward);
  }
  launch_run(&y, draw);
  launch_run(&x, draw);
  for (int i = 0; i < r->n_tensors; i++)
    if (r->tensor[i].output) compare(&x, &y, &r->tensor[i]);
  launch_free(&x);
  launch_free(&y);
}

/* The same spec as a forward one. */
static void forward_words(const char *words, size_t size, char *text) {
  const char *deterministic = strstr(words, " deterministic");
  int n = deterministic ? (int)(deterministic - words) : (int)strlen(words);
  snprintf(text, size, "%.*s", n, words);
  memcpy(text, "pass=forward ", strlen("pass=forward "));
}

/* One spec, every plan; returns how many launches were compared. */
static int round_of(fg_gen *gen, uint64_t seed, double end) {
  char words[256], before[256];
  kernel simt, forward = {0}, k;
  int n, launches = 0;
  state = seed;
  int backward = is_backward(below(2));
  draw_words(backward, sizeof words, words);
  now.seed = seed, now.words = words;
  printf("round %" PRIu64 ": %s\n", seed, words);
  fflush(stdout);
  fg_variant *list = draw_plans(gen, words, &n);
  if (!n) return 0;
  simt = make_simt(gen, words);
  if (backward) {
    forward_words(words, sizeof before, before);
    forward = make_simt(gen, before);
  }
  for (int i = 0; i < n && clock_now() < end; i++) {
    if (!make_plan(gen, &list[i], &k)) continue;
    for (int s = 0; s < SHAPES; s++, launches++) beside(&k, &simt, backward ? &forward : NULL);
    kernel_free(&k);
  }
  free(list);
  kernel_free(&simt);
  kernel_free(&forward);
  return launches;
}

TEST_TENTH(families_beside_simt, 1) {
  double end = clock_now() + seconds();
  uint64_t seed = first_seed();
  int launches = 0, rounds = 0;
  fg_gen *gen;
  GOOD(fg_gen_new(NULL, &gen));
  for (; clock_now() < end; rounds++) launches += round_of(gen, seed++, end);
  fg_gen_free(gen);
  printf("%d specs, %d launches beside simt\n", rounds, launches);
  ck_assert_msg(!now.failures, "%d outputs differ", now.failures);
}

/* ---- equal bits ---- */

/* Weights need not be a softmax's, but finite. */
static launch start(const kernel *k, fg_shape shape, uint64_t draw) {
  launch l = launch_new_sequences(k, shape, draw);
  if (k->variant.point.pass == FG_PASS_BACKWARD) launch_fill(&l, "lse", 3);
  return l;
}

static void repeat(const kernel *k) {
  const fg_recipe *r = &k->source->recipe;
  fg_shape shape = draw_shape(&k->variant.point);
  uint64_t draw = (uint64_t)below(1 << 30);
  launch first = start(k, shape, draw), again = start(k, shape, draw);
  int n = kernel_device_is_host() ? HOST_REPEATS : REPEATS;
  launch_run(&first, 0);
  for (int i = 1; i < n; i++) {
    launch_poison(&again);
    launch_run(&again, launch_order(&again, i));
    for (int t = 0; t < r->n_tensors; t++) {
      const char *name = r->tensor[t].argument->name;
      if (r->tensor[t].output && launch_promised(&again, name)) launch_same(&first, &again, name);
    }
  }
  launch_free(&first);
  launch_free(&again);
}

TEST_TENTH(repeats_are_equal, 1) {
  double end = clock_now() + seconds() / 2;
  uint64_t seed = first_seed();
  char words[256];
  fg_gen *gen;
  GOOD(fg_gen_new(NULL, &gen));
  for (int turn = 0; clock_now() < end; turn++) {
    kernel k;
    int n;
    state = seed + (uint64_t)turn;
    draw_words(is_backward(turn % 2), sizeof words, words);
    printf("repeats %" PRIu64 ": %s\n", seed + (uint64_t)turn, words);
    fg_variant *list = draw_plans(gen, words, &n);
    if (n && make_plan(gen, &list[below(n)], &k)) {
      repeat(&k);
      kernel_free(&k);
    }
    free(list);
  }
  fg_gen_free(gen);
}

TEST_BEGIN {
  kernel_device();
  suite_timeout(60 + 3 * seconds());
}
