/* t_formula_emit.c - the C text of random expressions, compiled and run beside the oracle.
 *
 * `float` is double there: what is compared is the text, not its rounding. The functions of
 * integers are those of templates/prelude.cut. */
#define _GNU_SOURCE /* asprintf, mkdtemp */
#include "suite.h"

#include "formula/tree_bound.h"
#include "formula/tree_emit.h"
#include "formula_case.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXPRESSIONS = 900, PAIRS = 12, BASE = 5 };

/* What texts call, besides what the prelude has. */
static const char primitives[] =
    "#define float double\n"
    "typedef unsigned u32; typedef long long i64;\n"
    "#define DEV static inline\n"
    "double exp(double), log(double), tanh(double), sqrt(double), floor(double), fmax(double, "
    "double);\n"
    "static double max_f32(double a, double b) { return fmax(a, b); }\n"
    "static double least_f32(double a, double b) { return -fmax(-a, -b); }\n"
    "static double abs_f32(double x) { return x < 0 ? -x : x; }\n"
    "static double exp_f32(double x) { return exp(x); }\n"
    "static double log_f32(double x) { return log(x); }\n"
    "static double log_approx_f32(double x) { return log(x); }\n"
    "static double tanh_f32(double x) { return tanh(x); }\n"
    "static double tanh_exact_f32(double x) { return tanh(x); }\n"
    "static double sqrt_f32(double x) { return sqrt(x); }\n"
    "static double divide_f32(double x, double y) { return x / y; }\n"
    "static double exact_quotient_f32(double x, double y) { return x / y; }\n"
    "static double exact_root_f32(double x) { return sqrt(x); }\n"
    "static double sigmoid_f32(double x) { return 1 / (1 + exp(-x)); }\n"
    "static double ldg_f32(const double *x) { return *x; }\n"
    "static u32 ldg_u32(const int *x) { return (u32)*x; }\n"
    "static int imin(int a, int b) { return a < b ? a : b; }\n"
    "static int imax(int a, int b) { return a > b ? a : b; }\n"
    "static int floor_i32(double x) { double w = floor(x); return w >= 0x1p31 ? 2147483647 : "
    "w >= -0x1p31 ? (int)w : x == x ? -2147483647 - 1 : 0; }\n"
    "struct params { const double *in_t, *in_u; const int *in_ids; i64 in_t_0, in_ids_0; double "
    "in_c; "
    "int in_w; };\n"
    "struct place { int q, k, b, h, nq, nk, nh, q0, q1, k0, k1; double unit, raw; };\n";

/* The same as here; values of tensors in the types of the text. */
typedef struct {
  const double *t, *u;
  const int *ids;
  long long t_0, ids_0;
  double c;
  int w;
} params;
typedef struct {
  int q, k, b, h, nq, nk, nh, q0, q1, k0, k1;
  double unit, raw;
} place;

/* A part of the prelude, up to the next one. */
static void put_part(FILE *to, const char *prelude, const char *name) {
  char head[64];
  snprintf(head, sizeof head, "@ part \"%s\"\n", name);
  const char *at = strstr(prelude, head), *end;
  ck_assert_msg(at != NULL, "%s", name);
  at += strlen(head);
  end = strstr(at, "@ part");
  fprintf(to, "%.*s", end ? (int)(end - at) : (int)strlen(at), at);
}

static void put_prelude(FILE *to) {
  static const char *const parts[] = {"floor_div", "floor_mod", "floor_div64", "floor_mod64",
                                      "min64",     "max64",     "abs64",       "iabs"};
  static char text[1 << 16];
  FILE *file = fopen(FLASHGEN_SOURCE "/templates/prelude.cut", "r");
  ck_assert_ptr_nonnull(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  fputs(primitives, to);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) put_part(to, text, parts[i]);
}

/* One expression and, of a mask, its bounds: four values a function. */
typedef struct {
  fg_formula f;
  int node[3], n;
  bool bounds;
} item;
static item items[EXPRESSIONS];
static int n_items;

static void put_function(FILE *to, int i, item *x) {
  fg_emit_names names = {.name = {"x.unit * x.raw", "x.q", "x.k", "x.q + x.nk - x.nq", "x.b", "x.h",
                                  "0", "x.nq", "x.nk", "x.nh", "x.q0", "x.q1", "x.k0", "x.k1"},
                         .hoist = !x->bounds};
  fg_emitted texts;
  if (i % 2 && !x->bounds) names.k_base = "x.k - 5", names.k_offset = "5";
  if (i % 3) names.s_unit = "x.unit", names.s_raw = "x.raw";
  ck_assert_msg(fg_formula_emit(&x->f, x->n, x->node, &names, &texts) == FG_OK, "%d", i);
  fprintf(to, "void f%d(struct params p, struct place x, double *out) {\n%s%s", i, texts.head,
          texts.row);
  for (int v = 0; v < x->n; v++) fprintf(to, "out[%d] = %s;\n", v, texts.value[v]);
  fprintf(to, "}\n");
  fg_emitted_free(&texts);
}

static void add_item(uint64_t *state, int i) {
  char text[CASE_TEXT];
  item *x = &items[n_items];
  bool test = i % 3 == 0;
  fg_formula_texts read = {.n_inputs = CASE_INPUTS, .input = case_declared};
  case_text(state, test ? FG_TYPE_BOOL : FG_TYPE_FLOAT, 1 + i % 5, text, NULL);
  *(test ? &read.mask : &read.score) = text;
  if (fg_formula_read(&read, &x->f, NULL) != FG_OK) {
    fg_formula_free(&x->f);
    return;
  }
  x->bounds = test && i % 2;
  x->node[x->n++] = test ? x->f.mask : x->f.score;
  if (x->bounds) {
    fg_tile_test tile = fg_formula_tile(&x->f);
    x->node[0] = tile.never, x->node[x->n++] = tile.always;
  }
  n_items++;
}

static void *compile(char *directory) {
  char path[256], command[1024];
  snprintf(path, sizeof path, "%s/texts.c", directory);
  FILE *to = fopen(path, "w");
  ck_assert_ptr_nonnull(to);
  put_prelude(to);
  for (int i = 0; i < n_items; i++) put_function(to, i, &items[i]);
  fclose(to);
  snprintf(command, sizeof command,
           "${FLASHGEN_CC:-cc} -O1 -w -ffp-contract=off -fsanitize=signed-integer-overflow "
           "-fsanitize-undefined-trap-on-error -shared -fPIC -o %s/texts.so %s -lm",
           directory, path);
  ck_assert_msg(system(command) == 0, "%s", command);
  snprintf(path, sizeof path, "%s/texts.so", directory);
  void *library = dlopen(path, RTLD_NOW);
  ck_assert_msg(library != NULL, "%s", dlerror());
  return library;
}

static void compare(void *library, int i, item *x, uint64_t *state) {
  char name[16];
  void (*function)(params, place, double *) = NULL;
  int ids[CASE_B * CASE_LENGTH];
  double names[ORACLE_NAMES], got[3];
  case_problem c;
  case_problem_new(state, &c);
  for (int e = 0; e < c.b * c.nk; e++) ids[e] = (int)c.ids[e];
  snprintf(name, sizeof name, "f%d", i);
  *(void **)&function = dlsym(library, name);
  const params p = {c.t, c.u, ids, 7, c.nk, c.input[0].number, (int)c.input[4].number};
  for (int v = 0; v < x->n; v++) {
    oracle_formula *want = case_read(&x->f, x->node[v], &c);
    for (int j = 0; j < PAIRS; j++) {
      place at = {case_below(state, c.nq),
                  case_below(state, c.nk),
                  case_below(state, c.b),
                  case_below(state, c.h),
                  c.nq,
                  c.nk,
                  c.h,
                  0,
                  0,
                  0,
                  0,
                  0.5,
                  0};
      at.q0 = at.q, at.q1 = at.q0 + 1 + case_below(state, c.nq - at.q0);
      at.k0 = at.k, at.k1 = at.k0 + 1 + case_below(state, c.nk - at.k0);
      at.raw = case_below(state, 4000) * 1e-3 - 2;
      case_names(&c, at.b, at.h, at.q, at.k, at.unit * at.raw, names);
      names[ORACLE_Q0] = at.q0, names[ORACLE_Q1] = at.q1;
      names[ORACLE_K0] = at.k0, names[ORACLE_K1] = at.k1;
      function(p, at, got);
      double value = oracle_formula_value(want, names);
      bool good = (isnan(value) && isnan(got[v])) || value == got[v] ||
                  fabs(value - got[v]) <= 1e-5 * (1 + fabs(value));
      if (!good) {
        char text[CASE_TEXT * 4];
        fg_formula_print(&x->f, x->node[v], sizeof text, text);
        ck_abort_msg("f%d: %g, not %g: %s", i, got[v], value, text);
      }
    }
    oracle_formula_free(want);
  }
}

TEST(texts_compute_the_expressions) {
  char directory[] = "/tmp/flashgen_emit_XXXXXX", command[64];
  uint64_t state = 7;
  ck_assert_ptr_nonnull(mkdtemp(directory));
  for (int i = 0; i < EXPRESSIONS; i++) add_item(&state, i);
  ck_assert_int_gt(n_items, EXPRESSIONS / 2);
  void *library = compile(directory);
  for (int i = 0; i < n_items; i++) compare(library, i, &items[i], &state);
  dlclose(library);
  snprintf(command, sizeof command, "rm -r %s", directory);
  ck_assert_int_eq(system(command), 0);
  for (int i = 0; i < n_items; i++) fg_formula_free(&items[i].f);
}
