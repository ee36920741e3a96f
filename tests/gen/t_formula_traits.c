/* t_formula_traits.c - what scores and masks are: each trait by expressions that have it, and by
 * ones that miss it by little. */
#include "suite.h"

#include "formula/tree_bound.h"
#include "formula/tree_linear.h"
#include "formula/tree_recipe.h"
#include "formula/tree_traits.h"

#include <stdio.h>
#include <string.h>

static const fg_pair inputs[] = {
    {"cap", "float"},         {"width", "int"},       {"ids", "i32[b, k]"},
    {"slope", "f32[h] grad"}, {"row", "f32[q]"},      {"key", "bf16[k] grad"},
    {"both", "f16[q, k]"},    {"one", "f32[1, k]"},   {"far", "f32[h, nq + nk - 1] grad"},
    {"bucket", "f32[h, 32]"}, {"big", "f32[nq * nk]"}};
enum { INPUTS = sizeof inputs / sizeof *inputs };

/* Has at most FG_INPUT_MAX inputs: those that the texts name. */
static void read_texts(const char *mask, const char *score, fg_formula *f) {
  fg_pair used[INPUTS];
  fg_formula_texts texts = {.mask = mask, .score = score, .input = used};
  for (int i = 0; i < INPUTS; i++)
    if (strstr(mask, inputs[i].name) || strstr(score, inputs[i].name))
      used[texts.n_inputs++] = inputs[i];
  ck_assert_msg(fg_formula_read(&texts, f, NULL) == FG_OK, "%s, %s: %s", mask, score, fg_error());
}

/* ---- scores ---- */

/* The traits that a score has, as words. */
static void put_score(const fg_traits *x, size_t size, char *text) {
  int n = snprintf(text, size, "%s%s%s%s%s", x->is_s ? " is_s" : "",
                   x->adds_to_s ? " adds_to_s" : "", x->is_linear_in_s_and_k ? " linear" : "",
                   x->is_uneven_in_k ? " uneven" : "", x->chooses_unevenly ? " chooses" : "");
  if (x->tanh_count) n += snprintf(text + n, size - (size_t)n, " tanhs=%d", x->tanh_count);
  if (x->tanhs_are_of_scaled_s) n += snprintf(text + n, size - (size_t)n, " scaled");
  if (x->cap > 0 || x->cap < 0) n += snprintf(text + n, size - (size_t)n, " cap=%g", x->cap);
  if (x->has_wide_quotient) snprintf(text + n, size - (size_t)n, " wide");
}

static const struct {
  const char *score, *traits;
} scores[] = {
    {"s", " is_s adds_to_s"},
    {"s * 1.0 + 0.0", " is_s adds_to_s"},
    {"s * 2.0", ""},
    {"-s", ""},
    {"s + slope[h]", " adds_to_s"},
    {"key[k] + s", " adds_to_s"},
    {"s + s", ""},
    {"k < 5 ? s : s + 1.0", " adds_to_s uneven chooses"},
    {"s * key[k]", ""},
    /* a multiple of s, one of k, and terms of the row */
    {"s + 0.5 * k", " adds_to_s linear"},
    {"s + slope[h] * (k - p)", " adds_to_s linear"},
    {"slope[h] * k + s * 3.0", " linear"},
    {"k * 0.5 + s / cap", " linear"},
    {"(s + 0.5 * k) * 2.0 - 3.0 * q", " linear"},
    {"s + 0.5 * k + (h < 3 ? slope[h] : 0.0)", " adds_to_s linear"},
    {"alibi", " adds_to_s linear"},
    {"s + 4.0 * k", " adds_to_s linear"},
    {"s + 4.5 * k", " adds_to_s"}, /* too steep: k goes by increments, the sum does not */
    {"s + cap * 4.5 * k", " adds_to_s linear"},
    {"s + q * k", " adds_to_s uneven"},                  /* an integer product */
    {"s + float(q) * float(k)", " adds_to_s"},           /* the slope by k is the row's */
    {"s + slope[h] * k + 0.5 * k", " adds_to_s uneven"}, /* two multiples of k */
    {"s + slope[h] * k + key[k]", " adds_to_s"},
    {"s + slope[h] * k + row[q]", " adds_to_s"},              /* the row reads */
    {"s + 0.5 * k + (q < 3 ? slope[h] : 0.0)", " adds_to_s"}, /* so it may here */
    {"s * slope[h] + 0.5 * k", ""},                           /* the factor of s is read */
    {"s + s * cap + 0.5 * k", ""},                            /* two multiples of s */
    {"s * q + 0.5 * k", ""},
    /* what differs from key to key */
    {"s + abs(k - p)", " adds_to_s uneven"},
    {"s + slope[h] * abs(k - p)", " adds_to_s uneven"},
    {"s + k / 3", " adds_to_s uneven"},
    {"s + both[q, k]", " adds_to_s"},
    {"s + far[h, k - q + nq - 1]", " adds_to_s"},
    {"s + bucket[h, k % 32]", " adds_to_s"}, /* only to find what it reads */
    {"s + bucket[h, k < 9 ? 1 : 0]", " adds_to_s"},
    {"s + bucket[h, k < 9 ? 1 : 0] + abs(k - p)", " adds_to_s uneven"},
    {"s > 0.0 ? s : 0.1 * s", ""}, /* chooses, by s */
    {"q < k ? s : 0.0", " uneven chooses"},
    {"s > 0.0 ? s : 0.1 * k", " uneven chooses"}, /* k is wanted for some pairs only */
    {"s > 0.0 ? s + abs(k - p) : s", " adds_to_s uneven chooses"},
    {"s + (q < 9 ? 1.0 : 0.0) + abs(k - p)", " adds_to_s uneven"}, /* the row chooses */
    /* tanh */
    {"tanh(s * 0.5)", " tanhs=1 scaled"},
    {"tanh(s)", " tanhs=1"}, /* no unit of its own */
    {"tanh(0.5 * s) * 50.0", " tanhs=1 scaled cap=50"},
    {"softcap(50.0)", " tanhs=1 scaled cap=50"},
    {"softcap(70.0)", " tanhs=1 scaled cap=70"},
    {"softcap(71.0)", " tanhs=1 scaled"}, /* off by too much */
    {"-50.0 * tanh(s / 50.0)", " tanhs=1 scaled cap=-50"},
    {"softcap(cap)", " tanhs=1 scaled"}, /* a number of the launch */
    {"tanh(s / cap) * 50.0", " tanhs=1 scaled cap=50"},
    {"tanh(s * slope[h]) * 50.0", " tanhs=1"}, /* a unit that is read */
    {"tanh(s * q) * 50.0", " tanhs=1"},
    {"tanh(s + 1.0) * 50.0", " tanhs=1"},
    {"tanh(s / 50.0) * 50.0 + 1.0", " tanhs=1 scaled"}, /* more than a cap */
    {"tanh(s * 0.1) + tanh(s * 0.2)", " tanhs=2 scaled"},
    {"tanh(s * 0.1) * tanh(s * 0.1)", " tanhs=2 scaled"},
    {"tanh(s * 0.1) + tanh(k * 0.2)", " tanhs=2"},
    {"tanh(tanh(s * 0.1))", " tanhs=2"},
    /* quotients of 64 bits */
    {"s + float(q * nk / (k + 1))", " adds_to_s uneven wide"},
    {"s + float((q * nk + k) % 17)", " adds_to_s uneven wide"},
    {"s + float(q * nk / 17)", " adds_to_s"}, /* once a row */
    {"s + float(q * nk / 17 + k)", " adds_to_s linear"},
    {"s + big[(q * nk + k) / 2]", " adds_to_s wide"},
    {"s + float(k / (q + 1))", " adds_to_s uneven"},
};

TEST_LOOP(scores_have_their_traits_and_no_others, sizeof scores / sizeof *scores) {
  fg_formula f;
  char found[256];
  read_texts("true", scores[_i].score, &f);
  fg_traits x = fg_formula_traits(&f, f.score);
  put_score(&x, sizeof found, found);
  ck_assert_msg(!strcmp(found, scores[_i].traits), "%s:%s, not%s", scores[_i].score, found,
                scores[_i].traits);
  fg_formula_free(&f);
}

/* ---- values of a pair ---- */

static const struct {
  const char *value;
  bool reads_or_calls;
} values[] = {
    {"s * 2.0 + q", false},
    {"s > 0.0 ? 1.0 : 0.1", false},
    {"s * exp(slope[h])", false},
    {"s + row[q]", false},
    {"s / cap", false},
    {"s / 3.0", false},
    {"s + float(k / 3)", false},
    {"exp(s)", true},
    {"abs(s)", true},
    {"max(s, 0.0)", true},
    {"s / (1.0 + s * s)", true},
    {"s + key[k]", true},
    {"s > 0.0 ? row[q] : 1.0", true},
};

TEST_LOOP(pairs_read_or_call, sizeof values / sizeof *values) {
  fg_formula f;
  read_texts("true", values[_i].value, &f);
  ck_assert_msg(fg_formula_reads_or_calls(&f, f.score) == values[_i].reads_or_calls, "%s",
                values[_i].value);
  fg_formula_free(&f);
}

/* ---- masks ---- */

static const struct {
  const char *mask;
  bool reads, uses_inputs, has_wide_quotient;
  const char *always_end; /* NULL: none */
} masks[] = {
    {"true", false, false, false, NULL},
    {"k <= p", false, false, false, NULL}, /* lengths are none of a tile's bounds */
    {"k <= q", false, false, false, "q0 + 1"},
    {"k <= q + 7", false, false, false, "q0 + 8"},
    {"k < q - 7", false, false, false, NULL},
    {"k < q && k > 3", false, false, false, NULL},
    {"k < width", false, true, false, NULL},
    {"k < nq", false, false, false, NULL},
    {"k < 100", false, false, false, "100"},
    {"k < ids[b, 0]", true, true, false, NULL},
    {"given(k < ids[b, 0], k < width)", false, true, false, NULL}, /* the range is not tested */
    {"given(k < ids[b, 0], k < 7)", false, false, false, "7"},
    {"given(k < 7, k < ids[b, 0])", true, true, false, NULL},
    {"cap > 0.5", false, true, false, NULL},
    {"k * nq / nk < 5", false, false, true, NULL},
    {"q * nk / nq < k", false, false, false, NULL},
};

TEST_LOOP(masks_have_their_traits, sizeof masks / sizeof *masks) {
  fg_formula f;
  char end[64] = "";
  read_texts(masks[_i].mask, "s", &f);
  fg_traits x = fg_formula_traits(&f, f.score);
  int node = fg_formula_always_end(&f);
  if (node) fg_formula_print(&f, node, sizeof end, end);
  ck_assert_msg(x.mask_reads == masks[_i].reads, "%s", masks[_i].mask);
  ck_assert_msg(x.mask_uses_inputs == masks[_i].uses_inputs, "%s", masks[_i].mask);
  ck_assert_msg(x.has_wide_quotient == masks[_i].has_wide_quotient, "%s", masks[_i].mask);
  ck_assert_msg(!strcmp(end, masks[_i].always_end ? masks[_i].always_end : ""), "%s: %s",
                masks[_i].mask, end);
  fg_formula_free(&f);
}

/* ---- sizes ---- */

static const struct {
  const char *mask, *score;
  int mask_size, score_size;
} sizes[] = {
    {"true", "s", 1, 1},
    {"k <= p", "s * 2.0", 3, 3},
    {"k <= q * 9 + nk", "s + q * 9", 3, 3},    /* a row's value is a name */
    {"k < 9", "s + slope[h] * (k - p)", 3, 8}, /* s, +, a name, *, float, k, -, a name */
    {"true", "s + both[q, k]", 1, 11},         /* an index takes 3 operations */
    {"true", "s + one[0, k]", 1, 7},           /* a broadcast one none */
    {"true", "k < 9 ? row[q] : 0.0", 1, 10},   /* read where it is wanted */
    {"given(k < q * 9, k < 9)", "s", 3, 1},
};

TEST_LOOP(sizes_count_what_a_pair_computes, sizeof sizes / sizeof *sizes) {
  fg_formula f;
  read_texts(sizes[_i].mask, sizes[_i].score, &f);
  fg_traits x = fg_formula_traits(&f, f.score);
  ck_assert_msg(x.mask_size == sizes[_i].mask_size, "%s: %d", sizes[_i].mask, x.mask_size);
  ck_assert_msg(x.score_size == sizes[_i].score_size, "%s: %d", sizes[_i].score, x.score_size);
  fg_formula_free(&f);
}

/* ---- linear forms ---- */

static const struct {
  const char *left; /* of a comparison with b */
  bool is_linear;
  double q, k;
  bool by_distance;
} forms[] = {
    {"k - q", true, -1, 1, true},
    {"k - p + nk", true, -1, 1, true},
    {"3 * (k - 2 * q) + q", true, -5, 3, false},
    {"q + k - p", true, 0, 1, false},
    {"-(k - q) * 7 + nq * nk", true, 7, -7, true},
    {"nq * nk", true, 0, 0, true},
    {"q * k", false, 0, 0, false},
    {"k * nk - q * nk", false, 0, 0, false}, /* of distance, by a factor that is no constant */
    {"abs(k - q)", false, 0, 0, true},
    {"abs(k + q)", false, 0, 0, false},
    {"(q < k ? 3 : 5) + (k - q) / 2", false, 0, 0, true},
    {"(q < k + k ? 3 : 5)", false, 0, 0, false},
    {"q / 2 - k / 2", false, 0, 0, false},
};

TEST_LOOP(forms_are_linear_where_their_factors_are_constants, sizeof forms / sizeof *forms) {
  fg_formula f;
  char mask[128];
  double q = 99, k = 99;
  snprintf(mask, sizeof mask, "h < %s", forms[_i].left);
  read_texts(mask, "s", &f);
  const fg_node *test = &f.tree.node[f.mask];
  ck_assert_msg(test->op == FG_NODE_LESS, "%s", mask);
  bool is_linear = fg_linear_in_q_and_k(&f.tree, test->arg[1], &q, &k);
  ck_assert_msg(is_linear == forms[_i].is_linear, "%s", mask);
  ck_assert_msg(q == (is_linear ? forms[_i].q : 99) && k == (is_linear ? forms[_i].k : 99),
                "%s: %g q, %g k", mask, q, k);
  ck_assert_msg(fg_tree_by_distance(&f.tree, test->arg[1]) == forms[_i].by_distance, "%s", mask);
  fg_formula_free(&f);
}

/* ---- recipes ---- */

static const struct {
  const char *mask;
  const char *last; /* the end of the keys that the middle row sees, NULL: not for recipes */
} recipes[] = {
    {"k <= p", "nk + (nq / 2 + 1) - nq"},
    {"k < 100", "100"},
    {"k <= q / 3", "(nq / 2 + 1 - 1) / 3 + 1"},
    {"k < q - 7", "nq / 2 + 1 - 8"},
    {"k < width", NULL},
    {"k < h", NULL},
    {"k < ids[b, 0]", NULL},
    {"k < abs(q - 9)", NULL},
    {"k < min(q, 77)", "min(nq / 2 + 1 - 1, 77)"},
    {"k < -nq", NULL}, /* no unary minus */
    {"k < min(q, -3)", NULL},
    {"k < nk % 5", "nk % 5"},
};

TEST_LOOP(bounds_are_recipes_where_lengths_make_them, sizeof recipes / sizeof *recipes) {
  static const fg_node_text middle[] = {{FG_NAME_Q0, "nq / 2"}, {FG_NAME_Q1, "nq / 2 + 1"}};
  fg_formula f;
  char text[FG_LENGTHS_TEXT] = "", few[4];
  read_texts(recipes[_i].mask, "s", &f);
  int last = fg_formula_visible(&f, false).end;
  ck_assert_msg(last != 0, "%s", recipes[_i].mask);
  bool is_one = fg_formula_recipe(&f, last, 2, middle, sizeof text, text);
  ck_assert_msg(is_one == (recipes[_i].last != NULL), "%s: %s", recipes[_i].mask, text);
  if (is_one) {
    ck_assert_msg(!strcmp(text, recipes[_i].last), "%s: %s", recipes[_i].mask, text);
    ck_assert(strlen(text) < sizeof few ||
              !fg_formula_recipe(&f, last, 2, middle, sizeof few, few));
  }
  fg_formula_free(&f);
}
