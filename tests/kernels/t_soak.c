/* t_soak.c - random specs and shapes: every plan of a tensor-core family beside simt on the same
 * inputs and the same device, and repeated launches that promise equal bits.
 *
 * simt is judged by the oracle elsewhere; here two kernels that share little may differ by twice
 * the accuracy of math.md section 6. FLASHGEN_SOAK_SECONDS says for how long (default 6);
 * FLASHGEN_SOAK_SEED begins with a round that an earlier run has named. */
#include "clock.h"
#include "launch_case.h"
#include "reference/oracle.h"
#include "base/random.h"
#include "words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECONDS = 6, SHAPES = 2, HOST_REPEATS = 3, REPEATS = 100 };

static int on_host(void) { return !strcmp(kernel_device()->arch, "host"); }

static double seconds(void) {
  const char *text = getenv("FLASHGEN_SOAK_SECONDS");
  return text && *text ? atof(text) : SECONDS;
}

static uint64_t first_seed(void) {
  const char *text = getenv("FLASHGEN_SOAK_SEED");
  return text && *text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
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
  if (backward && below(2)) snprintf(words + n, size - (size_t)n, " deterministic=true");
}

static int draw_length(void) {
  switch (below(8)) {
  case 0:
    return below(3);
  case 1:
    return 8 * (1 + below(on_host() ? 12 : 60));
  case 2:
    return 1 + below(on_host() ? 200 : 3000);
  case 3:
    return 2 * below(on_host() ? 60 : 600) + 1;
  default:
    return 1 + below(on_host() ? 100 : 400);
  }
}

/* Pairs and elements are bounded by what is drawn and copied in a second or so. */
static fg_shape draw_shape(const fg_point *point) {
  static const int heads[][2] = {{1, 1}, {2, 2}, {2, 1}, {4, 2}, {6, 2}, {3, 3}, {8, 1}};
  const int64_t pairs = on_host() ? 30000 : 4000000, elements = on_host() ? 200000 : 4000000;
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
  ck_assert_msg(status == FG_ECOMPILER && !on_host() && strstr(fg_error(), " spills "), "%s",
                fg_error());
  fprintf(stderr, "skipped: %s\n", fg_error());
  kernel_free(k);
  return 0;
}

/* The plans of one of the families that have any; n = 0 where none fits, which is judged elsewhere.
 */
static fg_variant *draw_plans(fg_gen *gen, const char *words, int *n) {
  char all[512];
  fg_variant *list;
  int hopper = !strstr(words, "pass=backward") && below(2);
  snprintf(all, sizeof all, "%s family=%s", words, hopper ? "wgmma" : "mma");
  fg_status status = words_variants(gen, all, kernel_device()->arch, 0, &list, n);
  ck_assert_msg(status == FG_OK || strstr(fg_error(), "no plan fits"), "%s", fg_error());
  if (status != FG_OK) fprintf(stderr, "skipped: %s: %s\n", all, fg_error());
  return list;
}

/* ---- beside simt ---- */

static void place(const launch *l, size_t size, char *text) {
  const fg_shape *s = &l->problem->shape;
  snprintf(text, size, "%s, b=%d h=%d hk=%d nq=%d nk=%d scale=%g", l->kernel->name, (int)s->b,
           (int)s->h, (int)s->hk, (int)s->nq, (int)s->nk, (double)l->problem->args.scale);
}

static void compare_lse(const char *where, int64_t n, const float *x, const float *y) {
  for (int64_t i = 0; i < n; i++) {
    double difference = x[i] == y[i] ? 0 : fabs((double)x[i] - (double)y[i]);
    ck_assert_msg(difference <= 2 * (1e-4 + 1e-6 * fabs((double)y[i])),
                  "%s: lse[%" PRId64 "]: %.9g, by simt %.9g", where, i, (double)x[i], (double)y[i]);
  }
}

/* What the gradient of an input has of terms at least, which may cancel: the squares of dS of the
 * rows that see a key. A row's dS sum to its dLSE, of at most nk of them. */
static double terms_of(const launch *l, const char *name) {
  if (strcmp(name, "dbias") != 0) return 0;
  float *dlse = launch_get(l, "dlse"), *lse = launch_get(l, "lse");
  double sum = 0;
  for (int64_t i = 0; i < launch_count(l, "lse"); i++)
    if (lse[i] != -INFINITY) sum += pow((double)dlse[i], 2);
  free(dlse);
  free(lse);
  return sum / fmax(1, (double)l->problem->shape.nk);
}

static void compare(const launch *l, const launch *other, const fg_recipe_tensor *t) {
  char where[256];
  const char *name = t->argument->name;
  int64_t n = launch_count(l, name);
  float *x = launch_get(l, name), *y = launch_get(other, name);
  double difference = 0, size = 0;
  place(l, sizeof where, where);
  if (!strcmp(name, "lse")) {
    compare_lse(where, n, x, y);
  } else {
    double spec = oracle_limit(fg_point_elem(&l->kernel->variant.point));
    double limit = 2 * fmax(spec, oracle_limit(t->elem));
    for (int64_t i = 0; i < n; i++) {
      difference += pow((double)x[i] - (double)y[i], 2);
      size += pow((double)y[i], 2);
    }
    size = fmax(size, terms_of(l, name));
    ck_assert_msg(sqrt(difference) <= limit * sqrt(size), "%s: %s differs by %.3g of its norm",
                  where, name, sqrt(difference / size));
  }
  free(x);
  free(y);
}

/* One shape: the same inputs for both; of backward, o and lse as simt's forward gives them. */
static void beside(const kernel *k, const kernel *simt, const kernel *forward) {
  const fg_recipe *r = &k->source->recipe;
  fg_shape shape = draw_shape(&k->variant.point);
  uint64_t draw = (uint64_t)below(1 << 30);
  launch x = launch_new(k, shape, draw), y = launch_new(simt, shape, draw);
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
  int backward = below(2);
  draw_words(backward, sizeof words, words);
  printf("round %" PRIu64 ": %s\n", seed, words);
  fflush(stdout);
  simt = make_simt(gen, words);
  if (backward) {
    forward_words(words, sizeof before, before);
    forward = make_simt(gen, before);
  }
  fg_variant *list = draw_plans(gen, words, &n);
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

START_TEST(families_beside_simt) {
  double end = clock_now() + seconds();
  uint64_t seed = first_seed();
  int launches = 0, rounds = 0;
  fg_gen *gen;
  GOOD(fg_gen_new(NULL, &gen));
  for (; clock_now() < end; rounds++) launches += round_of(gen, seed++, end);
  fg_gen_free(gen);
  printf("%d specs, %d launches beside simt\n", rounds, launches);
}
END_TEST

/* ---- equal bits ---- */

/* Sums of dQ and of inputs' gradients have no fixed order unless that is asked for. */
static int promised(const launch *l, const char *name) {
  if (l->kernel->variant.point.deterministic) return 1;
  return strcmp(name, "dq") && strcmp(name, "dbias");
}

/* Weights need not be a softmax's, but finite. */
static launch start(const kernel *k, fg_shape shape, uint64_t draw) {
  launch l = launch_new(k, shape, draw);
  if (k->variant.point.pass == FG_PASS_BACKWARD) launch_fill(&l, "lse", 3);
  return l;
}

static void repeat(const kernel *k) {
  const fg_recipe *r = &k->source->recipe;
  fg_shape shape = draw_shape(&k->variant.point);
  uint64_t draw = (uint64_t)below(1 << 30);
  launch first = start(k, shape, draw), again = start(k, shape, draw);
  int n = on_host() ? HOST_REPEATS : REPEATS;
  launch_run(&first, 0);
  for (int i = 1; i < n; i++) {
    for (int t = 0; t < r->n_tensors; t++)
      if (r->tensor[t].output) launch_fill(&again, r->tensor[t].argument->name, NAN);
    launch_run(&again, (uint64_t)i);
    for (int t = 0; t < r->n_tensors; t++) {
      const char *name = r->tensor[t].argument->name;
      if (r->tensor[t].output && promised(&again, name)) launch_same(&first, &again, name);
    }
  }
  launch_free(&first);
  launch_free(&again);
}

START_TEST(repeats_are_equal) {
  double end = clock_now() + seconds() / 2;
  uint64_t seed = first_seed();
  char words[256];
  fg_gen *gen;
  GOOD(fg_gen_new(NULL, &gen));
  for (int turn = 0; clock_now() < end; turn++) {
    kernel k;
    int n;
    state = seed + (uint64_t)turn;
    draw_words(turn % 2, sizeof words, words);
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
END_TEST

int main(void) {
  char limit[32];
  snprintf(limit, sizeof limit, "%d", 60 + 3 * (int)seconds());
  setenv("CK_DEFAULT_TIMEOUT", limit, 1);
  Suite *suite = suite_create("soak");
  TCase *tests = tcase_create("soak");
  kernel_device();
  tcase_add_test(tests, families_beside_simt);
  tcase_add_test(tests, repeats_are_equal);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
