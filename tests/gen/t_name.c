/* t_name.c - canonical names: every one reads back; t_name_refused.c: nothing else reads. */
#include "base/intern.h"
#include "spec/field_type.h"
#include "spec/point_formula.h"
#include "spec/variant.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

static const int dims[] = {8, 40, 64, 72, 128, 192, 256};
enum { DIMS = sizeof dims / sizeof *dims };

static int choices(const char *field) {
  int n = 0;
  const fg_field *row = fg_field_find(field);
  while (row->type->choice(row, n)) n++;
  return n;
}

/* Interned, as the texts of points are: a definition's name, and one that only its hash names. */
enum { MASKS = 3 };
static const char *masks[MASKS];

static const char *normalizers[2];

static void intern_texts(void) {
  ck_assert_int_eq(fg_intern("none", &normalizers[1]), FG_OK);
  ck_assert_int_eq(fg_intern("causal", &masks[1]), FG_OK);
  ck_assert_int_eq(fg_intern("k <= p && h < 3", &masks[2]), FG_OK);
}

/* Counts of the mixed-radix number that stands for one point. There are so many that tests look at
 * each STRIDE-th, a prime that no radix is. */
enum { DIGITS = 19, STRIDE = 47, TENTHS = 10, RUN = 97 };
typedef struct {
  int radix[DIGITS];
  int64_t total;
} product;

static product points(void) {
  intern_texts();
  product p = {{1 /* kernel */, choices("pass"), 2 /* dtypes */, DIMS, DIMS, MASKS, choices("bias"),
                16, choices("bias_dtype"), choices("grad_dtype"), 2, choices("deterministic"),
                choices("sink"), choices("batch_invariant"), choices("q_layout"),
                choices("kv_layout"), choices("slices"), choices("o_dtype"), choices("dqkv_dtype")},
               1};
  for (int i = 0; i < DIGITS; i++) p.total *= p.radix[i];
  return p;
}

/* Is the nth number that is looked at in the tenth? Runs of them are, which no radix divides. */
static bool is_in_tenth(int64_t nth, int tenth) { return nth / RUN % TENTHS == tenth; }

/* False: it settles as another one, which has a number of its own. */
static bool point_of(const product *p, int64_t number, fg_point *point) {
  int digit[DIGITS];
  for (int i = 0; i < DIGITS; i++) {
    digit[i] = (int)(number % p->radix[i]);
    number /= p->radix[i];
  }
  const fg_point given = {.kernel = digit[0],
                          .pass = digit[1],
                          .dtype = digit[2],
                          .d = dims[digit[3]],
                          .dv = dims[digit[4]],
                          .mask = masks[digit[5]],
                          .bias = digit[6],
                          .bias_dims = digit[7],
                          .bias_dtype = digit[8],
                          .grad_dtype = digit[9],
                          .normalizer = normalizers[digit[10]],
                          .deterministic = digit[11],
                          .sink = digit[12],
                          .batch_invariant = digit[13],
                          .q_layout = digit[14],
                          .kv_layout = digit[15],
                          .slices = digit[16],
                          .o_dtype = digit[17],
                          .dqkv_dtype = digit[18]};
  *point = given;
  fg_point_settle(point);
  if (fg_point_check_dtype(point) != FG_OK) return false; /* o of its own type goes with e4m3 */
  return !memcmp(point, &given, sizeof given);
}

static void point_reads_back(const fg_point *point) {
  fg_point again;
  char name[FG_NAME_MAX];
  int n = fg_point_name(point, sizeof name, name);
  if ((size_t)n != strlen(name)) ck_abort_msg("%s: length %d", name, n);
  const char *end = fg_point_parse(name, &again);
  if (!end || *end || !fg_point_equal(point, &again)) ck_abort_msg("%s does not read back", name);
}

TEST_TENTH(points_read_back, TENTHS) {
  product all = points();
  ck_assert_int_gt(all.total, 100000 * STRIDE);
  int64_t settled = 0;
  for (int64_t i = 0; i < all.total; i += STRIDE) {
    fg_point point;
    if (!is_in_tenth(i / STRIDE, _i) || !point_of(&all, i, &point)) continue;
    point_reads_back(&point);
    settled++;
  }
  ck_assert_int_gt(settled, 10000 / TENTHS);
}

TEST(rows_read_back) {
  const fg_kind *kind = fg_kind_find("logsoftmax");
  for (int i = 0; i < 2 * 2 * 3; i++)
    for (int width = 1; width <= 262144; width += 1 + width / 7) {
      fg_point point = {.kernel = (int)(kind - fg_kinds),
                        .pass = i & 1,
                        .dtype = i >> 2,
                        .target = i >> 1 & 1,
                        .width = width,
                        .width_out = width};
      fg_point_settle(&point);
      point_reads_back(&point);
    }
  for (int i = 0; i < 2 * 2 * 2 * 3 * 3; i++) {
    fg_point point = {.kernel = (int)(fg_kind_find("layernorm") - fg_kinds),
                      .pass = i & 1,
                      .residual = i >> 1 & 1,
                      .norm = i >> 2 & 1,
                      .bias = i / 8 % 3,
                      .dtype = i / 24,
                      .width = 1000,
                      .width_out = 1000};
    fg_point_settle(&point);
    point_reads_back(&point);
  }
}

/* Fields of append count beside others: a rotation that there is, fewer columns than all. */
TEST(appends_read_back) {
  const int kinds[] = {(int)(fg_kind_find("append") - fg_kinds),
                       (int)(fg_kind_find("combine") - fg_kinds)};
  int settled = 0;
  for (int i = 0; i < 2 * 3 * 4 * 2 * 2; i++) {
    fg_point point = {.kernel = kinds[i & 1], .d = 64, .dv = i & 2 ? 24 : 64, .bias_dims = 15};
    if (i & 1)
      point.parts_dtype = i / 4 % 2;
    else
      point.rotary = i / 4 % 3, point.rotary_dim = i / 12 % 4 * 16, point.rotary_dtype = i / 48 % 2,
      point.q_layout = i & 2 ? FG_PACKED : FG_DENSE, point.kv_layout = FG_PAGED;
    fg_point_settle(&point);
    point_reads_back(&point);
    settled += point.rotary_dim > 0;
  }
  ck_assert_int_gt(settled, 4);
}

/* The same point in any other way of writing it has another name or none. */
TEST_TENTH(variants_read_back, TENTHS) {
  static const char *const archs[] = {"host", "sm_80", "sm_90a", "sm_100a", "sm_120a"};
  product all = points();
  for (int64_t i = 0; i < all.total; i += 7 * STRIDE) {
    fg_variant v = {{0}, {{0, (int)(i % 3) * 16, (int)(i % 5) * 8, 0, 4}}, ""}, again;
    if (!is_in_tenth(i / (7 * STRIDE), _i) || !point_of(&all, i, &v.point)) continue;
    strcpy(v.arch, archs[i % 5]);
    char name[FG_NAME_MAX];
    int n = fg_variant_name(&v, sizeof name, name);
    if ((size_t)n != strlen(name)) ck_abort_msg("%s: length %d", name, n);
    if (fg_variant_parse(name, &again) != FG_OK) ck_abort_msg("%s", fg_error());
    if (memcmp(&v, &again, sizeof v)) ck_abort_msg("%s does not read back", name);
  }
}

/* Masks and scores that are a word or a number, and inputs that are called as tags are: the name of
 * what a spec gives reads back, and so does that of its other pass. */
TEST(short_texts_read_back) {
  static const char *const words[][3] = {{"score=x", "inputs.x=float"},
                                         {"score=x*1.0", "inputs.x=float"},
                                         {"score=in", "inputs.in=float"},
                                         {"score=det", "inputs.det=float"},
                                         {"score=mask", "inputs.mask=float"},
                                         {"score=score", "inputs.score=int"},
                                         {"score=biasf", "inputs.biasf=float"},
                                         {"score=score_a", "inputs.score_a=float"},
                                         {"score=causal_", "inputs.causal_=float"},
                                         {"score=x1", "inputs.x1=float"},
                                         {"score=bwd", "inputs.bwd=float"},
                                         {"score=d", "inputs.d=float"},
                                         {"score=alibi_", "inputs.alibi_=float"},
                                         {"score=1.0"},
                                         {"score=0.3"},
                                         {"score=q"},
                                         {"score=alibi_slope"},
                                         {"score=alibi_power"},
                                         {"score=alibi"},
                                         {"score=s"},
                                         {"mask=true"},
                                         {"mask=false"},
                                         {"mask=full"},
                                         {"mask=causal", "score=x", "inputs.x=float"},
                                         {"mask=false", "score=x", "inputs.x=float"},
                                         {"mask=h==n", "score=n", "inputs.n=int"},
                                         {"mask=on", "define.on=true"},
                                         {"score=on", "define.on=1.0"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const char *word[5] = {"head_dim=64", "pass=forward,backward"};
    int n = 2;
    for (int j = 0; j < 3 && words[i][j]; j++) word[n++] = words[i][j];
    fg_grid *grid = NULL;
    ck_assert_msg(fg_grid_read(0, NULL, n, word, &grid) == FG_OK, "%s: %s", words[i][0],
                  fg_error());
    ck_assert_int_eq(grid->n, 2);
    for (int j = 0; j < 2; j++) {
      char name[FG_NAME_MAX];
      fg_point point = grid->point[j], again;
      fg_point_name(&point, sizeof name, name);
      const char *end = fg_point_parse(name, &again);
      ck_assert_msg(end && !*end && fg_point_equal(&point, &again), "%s: %s does not read back",
                    words[i][0], name);
    }
    fg_grid_free(grid);
  }
}

TEST(known_names) {
  static const char *const good[] = {
      "attn_fwd-bf16-d64.simt-q16-k32-w4.host",
      "attn_fwd-bf16-d128-causal-bias_hqk.simt-q16-k32-w4.sm_90a",
      "attn_bwd-f16-d192v128-causal-biasgrad_bhqk-biasf32-gradbf16.simt-q4-k32-w4.sm_100a",
      "attn_bwd-bf16-d8-biasgrad_1.simt-q4-k32-w4.sm_80",
      "attn_fwd-bf16-d256-bias_bk.simt-q1-k1048576-s2-w1.host"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    fg_variant v;
    char again[FG_NAME_MAX];
    ck_assert_msg(fg_variant_parse(good[i], &v) == FG_OK, "%s", fg_error());
    fg_variant_name(&v, sizeof again, again);
    ck_assert_str_eq(again, good[i]);
  }
}

/* Calls of shipped definitions with numbers stand as such; equal spellings have one name, which is
 * a call wherever one is the same, and reads back, as does the name from before calls. */
TEST(calls) {
  static const struct {
    const char *mask, *score, *name;
  } rows[] = {{"window(128, 0)", NULL, "-window_128_0"},
              {"window(128,0)", NULL, "-window_128_0"},
              {"p - k <= 128 && k - p <= 0", NULL, "-window_128_0"},
              {"window(60 + 68, 3 - 3)", NULL, "-window_128_0"},
              {"window(-5, 9)", NULL, "-window_m5_9"},
              {"window(7, 7)", NULL, "-window_7_7"},
              {"window(1048576, 0)", NULL, "-window_1048576_0"},
              {"prefix(16)", NULL, "-prefix_16"},
              {"k <= p || 16 > k", NULL, "-prefix_16"},
              {"chunked(64)", NULL, "-chunked_64"},
              {"dilated(4)", NULL, "-dilated_4"},
              {NULL, "softcap(30.0)", "-softcap_30"},
              {NULL, "softcap(30)", "-softcap_30"},
              {NULL, "30.0 * tanh(s / 30.0)", "-softcap_30"},
              {NULL, "softcap(0.5)", "-softcap_0p5"},
              {NULL, "softcap(1e-9)", "-softcap_1em09"},
              {NULL, "softcap(1e30)", "-softcap_1e18"}, /* no cap at all: one kernel */
              {"window(128, 0)", "softcap(2.5)", "-window_128_0-softcap_2p5"},
              {"causal", "alibi", "-causal-alibi"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    fg_variant v = {.point = {.d = 64, .dv = 64, .bias_dims = 15}, .arch = "host"}, again;
    char name[FG_NAME_MAX], before[FG_NAME_MAX], expected[FG_NAME_MAX];
    const fg_formula_texts texts = {.mask = rows[i].mask, .score = rows[i].score};
    ck_assert_msg(fg_point_set_formula(&v.point, &texts, NULL) == FG_OK, "%s", fg_error());
    v.plan = (fg_plan){{3, 16, 32, 0, 4}};
    snprintf(expected, sizeof expected, "attn_fwd-bf16-d64%s.simt-q16-k32-w4.host", rows[i].name);
    fg_variant_name(&v, sizeof name, name);
    ck_assert_str_eq(name, expected);
    ck_assert_msg(fg_variant_parse(name, &again) == FG_OK, "%s", fg_error());
    ck_assert(fg_point_equal(&v.point, &again.point));
    fg_variant_name_before(&v, sizeof before, before);
    ck_assert(!strstr(before, "softcap") && !strstr(before, "window"));
    ck_assert_int_le((int)strlen(name), (int)strlen(before));
    ck_assert_msg(fg_variant_parse(before, &again) == FG_OK, "%s", fg_error());
    ck_assert(fg_point_equal(&v.point, &again.point));
  }
}

/* What is no call, and one that would be longer than the hash, stays one. */
TEST(no_calls) {
  static const char *const masks_of[] = {"k <= p && p - k <= 128", "window(1048576, 1048576)",
                                         "k < 7 && q < 9 && h < 3 && b < 5", "k <= p && h < 3"};
  for (size_t i = 0; i < sizeof masks_of / sizeof *masks_of; i++) {
    fg_point point = {.d = 64, .dv = 64};
    char name[FG_NAME_MAX];
    const fg_formula_texts texts = {.mask = masks_of[i]};
    ck_assert_msg(fg_point_set_formula(&point, &texts, NULL) == FG_OK, "%s", fg_error());
    fg_point_name(&point, sizeof name, name);
    ck_assert_msg(strstr(name, "-mask_") != NULL, "%s", name);
  }
}

/* The value of a field whose tag is longest. */
static void take_longest(const fg_field *field, fg_point *point) {
  char *place = (char *)point + field->value;
  const fg_field_type *type = field->type;
  if (type == &fg_type_choice) {
    for (int i = 0, longest = 0; type->choice(field, i); i++) {
      const int n = (int)strlen(type->choice_tag(field, i));
      if (n > longest) longest = n, *(int *)(void *)place = i;
    }
  } else if (type == &fg_type_word) {
    ck_assert_int_eq(fg_intern("a_word_of_24_letters_abc", (const char **)(void *)place), FG_OK);
  } else if (type == &fg_type_formula || type == &fg_type_named) {
    if (field->value)
      ck_assert_int_eq(fg_intern("a text that no call is", (const char **)(void *)place), FG_OK);
  } else if (type == &fg_type_even) {
    *(int *)(void *)place = FG_HEAD_DIM_MAX;
  }
}

/* A spec of the kind and pass that has every field, whether or not they go together; is_legal: but
 * those that its pass does not have, and slices beside packed sequences. */
static fg_variant longest_variant(int kind, int pass, bool is_legal) {
  fg_variant v = {.point = {.kernel = kind,
                            .d = FG_HEAD_DIM_MAX,
                            .dv = FG_HEAD_DIM_V_MAX,
                            .width = FG_WIDTH_MAX,
                            .width_out = FG_WIDTH_MAX - 8,
                            .bias_dims = 15},
                  .arch = "sm_100a"};
  for (int i = 0; i < FG_SPEC_FIELDS; i++)
    if (fg_field_belongs(&fg_fields[i], &v.point)) take_longest(&fg_fields[i], &v.point);
  v.point.pass = pass;
  if (is_legal) v.point.slices = 0, fg_point_settle(&v.point);
  for (int i = 1; i < FG_PLAN_FIELDS; i++)
    v.plan.value[i] = is_legal && !fg_field_is_of(&fg_fields[FG_SPEC_FIELDS + i], "wgmma") ? 0
                      : is_legal                                                           ? 512
                                 : FG_PLAN_MAX;
  return v;
}

/* The longest name of each kind has room, also as that of a file of a zoo, ".cubin.new" behind it.
 */
TEST(longest_names) {
  enum { FILE_NAME_MOST = 255 };
  for (int i = 0; i < 4 * FG_KINDS; i++) {
    const fg_variant v = longest_variant(i / 4, i / 2 % 2, i % 2);
    char name[2 * FG_NAME_MAX];
    const int n = fg_variant_name(&v, sizeof name, name);
    printf("%3d %s\n", n, name);
    ck_assert_int_eq(n, (int)strlen(name));
    ck_assert_int_lt(n, FG_NAME_MAX);
    if (i % 2) ck_assert_int_le(n + (int)strlen(".cubin.new"), FILE_NAME_MOST);
  }
}

/* A name that is cut says how long it is, and writes no further. */
TEST(cut_names) {
  const fg_variant v = longest_variant(0, 0, false);
  char name[FG_NAME_MAX], cut[FG_NAME_MAX];
  const int n = fg_variant_name(&v, sizeof name, name);
  for (int size = 1; size < n; size++) {
    memset(cut, '!', sizeof cut);
    ck_assert_int_eq(fg_variant_name(&v, (size_t)size, cut), n);
    ck_assert(cut[size] == '!' && (int)strlen(cut) == size - 1 && !strncmp(cut, name, strlen(cut)));
  }
}

TEST(limits) {
  fg_plan plan = {{0, 16, 32, 0, 4}};
  fg_limits none = {0}, some = {.n = {[1] = 2}, .value = {[1] = {4, 16}}};
  ck_assert(fg_limits_allow(&none, &plan));
  ck_assert(fg_limits_allow(&some, &plan));
  some.value[1][1] = 8;
  ck_assert(!fg_limits_allow(&some, &plan));
  fg_limits absent = {.n = {[3] = 1}, .value = {[3] = {2}}}; /* the plan has no stages */
  ck_assert(!fg_limits_allow(&absent, &plan));
}
