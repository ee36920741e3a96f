/* argument.c - the table of kernel arguments: where fg_args has them, and their axes. */
#include "recipe.h"

#include "base/text.h"
#include "extent.h"

#include <string.h>

/* Names of the letters of kinds' widths, in programs and for people. */
typedef struct {
  char letter;
  const char *name, *title;
} width_row;
static const width_row widths[] = {{'d', "d", "head dim"},
                                   {'v', "dv", "v head dim"},
                                   {'w', "width", "width"},
                                   {'j', "width_in", "input width"},
                                   {'o', "width_out", "output width"},
                                   {'f', "rows_of_w", "rows of weights"},
                                   {'x', "kept_columns", "columns of keep"},
                                   {'e', "pairs", "rotary pairs"}};

#define PLACE(member) .place = offsetof(fg_args, member)
/* A number of each sequence. */
#define SEQUENCE(member, ...)                                                                      \
  { #member, #member, "b", FG_RULE_I32, .contiguous = true, PLACE(member), __VA_ARGS__ }
const fg_argument fg_arguments[FG_ARGUMENTS] = {
    {"q", "q", "bqhd", FG_RULE_SPEC, PLACE(q), .help = "queries"},
    {"k", "k", "bkgd", FG_RULE_KV, PLACE(k), .help = "keys"},
    {"v", "v", "bkgv", FG_RULE_KV, PLACE(v), .help = "values"},
    {"bias", "bias", "bhqk", FG_RULE_BIAS, PLACE(bias), .help = "added to the scores"},
    {"o", "o", "bqhv", FG_RULE_O, PLACE(o), .help = "the result"},
    {"lse", "lse", "bhq", FG_RULE_F32, .contiguous = true, PLACE(lse),
     .help = "log-sum-exp of a row"},
    {"do", "dout", "bqhv", FG_RULE_SPEC, PLACE(dout), .help = "gradient of o"},
    {"dlse", "dlse", "bhq", FG_RULE_F32, .contiguous = true, .optional = true, PLACE(dlse),
     .help = "gradient of lse; none = 0"},
    {"dq", "dq", "bqhd", FG_RULE_DQKV, PLACE(dq), .help = "gradient of q"},
    {"dk", "dk", "bkgd", FG_RULE_DQKV, PLACE(dk), .help = "gradient of k"},
    {"dv", "dv", "bkgv", FG_RULE_DQKV, PLACE(dv), .help = "gradient of v"},
    {"dbias", "dbias", "bhqk", FG_RULE_GRAD, PLACE(dbias), .help = "gradient of bias"},
    {"r", "r", "bhq", FG_RULE_F32, .contiguous = true, .normalizer = "retention", PLACE(r),
     .help = "sum of a row's weights as they were, of retention"},
    {"u", "u", "bqhv", FG_RULE_F32, .normalizer = "logsoftmax", PLACE(u),
     .help = "sum of the values that a row sees, of logsoftmax"},
    {"sink", "sink", "h", FG_RULE_F32, .contiguous = true, PLACE(sink),
     .help = "logits of heads that take weight and add nothing"},
    {"dsink", "dsink", "h", FG_RULE_F32, .contiguous = true, PLACE(dsink),
     .help = "gradient of sink"},
    {"max_logit", "max_logit", "bh", FG_RULE_F32, .contiguous = true, PLACE(max_logit),
     .help = "largest scaled product of a head"},
    {"q_descale", "q_descale", "bg", FG_RULE_DESCALE, .has_strides = true, PLACE(q_descale),
     .help = "what q of e4m3 is multiplied with; none = 1"},
    {"k_descale", "k_descale", "bg", FG_RULE_DESCALE, .has_strides = true, PLACE(k_descale),
     .help = "the same of k"},
    {"v_descale", "v_descale", "bg", FG_RULE_DESCALE, .has_strides = true, PLACE(v_descale),
     .help = "the same of v"},
    {"seed", "seed", "i", FG_RULE_WORDS, .contiguous = true, PLACE(seed),
     .help = "seed and offset of dropout, low words first"},
    {"x", "x", "rw", FG_RULE_SPEC, PLACE(x), .help = "rows"},
    {"y", "y", "rw", FG_RULE_SPEC, PLACE(y), .help = "the result, a row for each of x"},
    {"dy", "dy", "rw", FG_RULE_SPEC, PLACE(dy), .help = "gradient of y"},
    {"dx", "dx", "rw", FG_RULE_SPEC, PLACE(dx), .help = "gradient of x"},
    {"starts_q", "starts_q", "c", FG_RULE_I32, .contiguous = true, PLACE(starts_q),
     .help = "where packed sequences of queries begin, and the last one ends"},
    {"starts_k", "starts_k", "c", FG_RULE_I32, .contiguous = true, PLACE(starts_k),
     .help = "the same of keys"},
    SEQUENCE(used_q, .help = "queries of a sequence that count"),
    SEQUENCE(used_k, .help = "keys of a sequence that count"),
    SEQUENCE(first_k, .help = "rows of a cache that are skipped"),
    SEQUENCE(rows, .help = "which cache a sequence has"),
    {"table", "table", "bm", FG_RULE_I32, PLACE(table), .help = "pages of a sequence"},
    {"q_ranges", "q_ranges", "la", FG_RULE_I32, .contiguous = true, PLACE(q_ranges),
     .help = "first and end of the rows of a slice"},
    {"k_ranges", "k_ranges", "la", FG_RULE_I32, .contiguous = true, PLACE(k_ranges),
     .help = "first and end of its keys"},
    {"kinds", "kinds", "l", FG_RULE_I32, .contiguous = true, .optional = true, PLACE(kinds),
     .help = "what it shows: 0 all, 1 causal, 2 inverse, 3 both; none = 0"},
    SEQUENCE(pos_q, .optional = true, .help = "rows of a sequence before its part; none = 0"),
    SEQUENCE(pos_k, .optional = true, .help = "its keys before the part; none = 0"),
    SEQUENCE(whole_q, .optional = true,
             .help = "rows of all its parts; none = those of the launch"),
    SEQUENCE(whole_k, .optional = true,
             .help = "keys of all its parts; none = those of the launch"),
    {"o_parts", "o_parts", "pbqhv", FG_RULE_PARTS, PLACE(o_parts), .help = "parts of o"},
    {"lse_parts", "lse_parts", "pbhq", FG_RULE_F32, .has_strides = true, PLACE(lse_parts),
     .help = "log-sum-exp of each part of a row"},
    {"r_parts", "r_parts", "pbhq", FG_RULE_F32, .has_strides = true, PLACE(r_parts),
     .help = "r of each part of a row"},
    {"u_parts", "u_parts", "pbqhv", FG_RULE_F32, PLACE(u_parts), .help = "u of each part of a row"},
    {"k_new", "k_new", "bqgd", FG_RULE_SPEC, PLACE(k_new), .help = "keys to be appended"},
    {"v_new", "v_new", "bqgv", FG_RULE_SPEC, PLACE(v_new), .help = "values to be appended"},
    {"q_out", "q_out", "bqhd", FG_RULE_SPEC, PLACE(q_out), .help = "queries, turned"},
    {"rotary_cos", "rotary_cos", "ne", FG_RULE_ROTARY, PLACE(rotary_cos),
     .help = "cosines of each position's angles"},
    {"rotary_sin", "rotary_sin", "ne", FG_RULE_ROTARY, PLACE(rotary_sin), .help = "their sines"},
    {"row_positions", "row_positions", "bq", FG_RULE_I32, .contiguous = true, PLACE(row_positions),
     .help = "positions of rows; none = behind the cache"},
    {"residual", "residual", "rw", FG_RULE_SPEC, PLACE(residual), .help = "rows added to x"},
    {"bias", "bias", "w", FG_RULE_SPEC, .contiguous = true, PLACE(bias),
     .help = "a vector added to each row"},
    {"gamma", "gamma", "w", FG_RULE_SPEC, .contiguous = true, PLACE(gamma),
     .help = "factors of columns"},
    {"beta", "beta", "w", FG_RULE_SPEC, .contiguous = true, PLACE(beta),
     .help = "added behind the factors"},
    {"out", "out", "rw", FG_RULE_SPEC, PLACE(out), .help = "the rows, normalised"},
    {"mean", "mean", "r", FG_RULE_F32, .contiguous = true, PLACE(mean), .help = "mean of a row"},
    {"rstd", "rstd", "r", FG_RULE_F32, .contiguous = true, PLACE(rstd),
     .help = "inverse of a row's deviation"},
    {"z", "z", "rw", FG_RULE_SPEC, PLACE(z), .help = "what is normalised: x, bias and residual"},
    {"dout", "dout", "rw", FG_RULE_SPEC, PLACE(dout), .help = "gradient of out"},
    {"dz", "dz", "rw", FG_RULE_SPEC, PLACE(dz), .help = "gradient of z from elsewhere"},
    {"dgamma", "dgamma", "w", FG_RULE_SPEC, .contiguous = true, PLACE(dgamma),
     .help = "gradient of gamma"},
    {"dbeta", "dbeta", "w", FG_RULE_SPEC, .contiguous = true, PLACE(dbeta),
     .help = "gradient of beta"},
    {"dbias", "dbias", "w", FG_RULE_SPEC, .contiguous = true, PLACE(dbias),
     .help = "gradient of bias"},
    {"lse", "lse", "r", FG_RULE_F32, .contiguous = true, PLACE(lse),
     .help = "log-sum-exp of a row"},
    {"target", "target", "r", FG_RULE_COLUMN, .contiguous = true, PLACE(target),
     .help = "the column that a row should have; one that there is not: the row does not count"},
    {"weight", "weight", "w", FG_RULE_F32, .contiguous = true, PLACE(weight),
     .help = "weights of targets"},
    {"loss", "loss", "r", FG_RULE_F32, .contiguous = true, PLACE(loss), .help = "loss of a row"},
    {"dloss", "dloss", "r", FG_RULE_F32, .contiguous = true, PLACE(dloss),
     .help = "gradient of loss"},
    {"x", "x", "rj", FG_RULE_SPEC, PLACE(x), .help = "rows"},
    {"w", "w", "fj", FG_RULE_SPEC, PLACE(w), .help = "weights, a row for each column of x w^T"},
    {"bias", "bias", "f", FG_RULE_SPEC, .contiguous = true, PLACE(bias),
     .help = "a vector added to each row of x w^T"},
    {"residual", "residual", "ro", FG_RULE_SPEC, PLACE(residual), .help = "rows added to y"},
    {"y", "y", "ro", FG_RULE_SPEC, PLACE(y), .help = "the result, a row for each of x"},
    {"keep", "kept", "rx", FG_RULE_SAID, PLACE(kept),
     .help = "the activation's derivatives: factors, or bits"},
    {"dy", "dy", "ro", FG_RULE_SPEC, PLACE(dy), .help = "gradient of y"},
    {"dx", "dx", "rj", FG_RULE_SPEC, PLACE(dx), .help = "gradient of x"},
    {"dx_more", "dx_more", "rj", FG_RULE_SPEC, PLACE(dx_more),
     .help = "gradient of x from elsewhere"},
    {"dw", "dw", "fj", FG_RULE_SPEC, PLACE(dw), .help = "gradient of w"},
    {"dbias", "dbias", "f", FG_RULE_SPEC, .contiguous = true, PLACE(dbias),
     .help = "gradient of bias"},
    {"gamma", "gamma", "o", FG_RULE_SPEC, .contiguous = true, PLACE(gamma),
     .help = "factors of columns"},
    {"beta", "beta", "o", FG_RULE_SPEC, .contiguous = true, PLACE(beta),
     .help = "added behind the factors"},
    {"out", "out", "ro", FG_RULE_SPEC, PLACE(out), .help = "the rows, normalised"},
    {"z", "z", "ro", FG_RULE_SPEC, PLACE(z), .help = "what is normalised: x w^T, bias, residual"},
    {"dout", "dout", "ro", FG_RULE_SPEC, PLACE(dout), .help = "gradient of out"},
    {"dz", "dz", "ro", FG_RULE_SPEC, PLACE(dz), .help = "gradient of z from elsewhere"},
    {"dgamma", "dgamma", "o", FG_RULE_SPEC, .contiguous = true, PLACE(dgamma),
     .help = "gradient of gamma"},
    {"dbeta", "dbeta", "o", FG_RULE_SPEC, .contiguous = true, PLACE(dbeta),
     .help = "gradient of beta"},
    {"dresidual", "dresidual", "ro", FG_RULE_SPEC, PLACE(dresidual),
     .help = "gradient of z, which is the residual's"},
};

/* v where it is the first columns of k. */
static const fg_argument latent_v = {"v", "v", "bkgv", FG_RULE_KV, PLACE(k), .help = "values"};

/* Declared inputs have no place in fg_args itself: their slot says which of its inputs they are. */
static const fg_argument input_value = {
    "input", "input", "", FG_RULE_INPUT, .place = SIZE_MAX, .help = "a declared input"};
static const fg_argument input_grad = {"dinput",      "dinput",          "",
                                       FG_RULE_INPUT, .place = SIZE_MAX, .help = "its gradient"};

const fg_argument *fg_argument_input(bool gradient) {
  return gradient ? &input_grad : &input_value;
}

/* Arguments without a row of the table; their numbers follow its last one. */
static const fg_argument *const others[] = {&latent_v, &input_value, &input_grad};
enum { OTHERS = sizeof others / sizeof *others };

int fg_argument_number(const fg_argument *argument) {
  for (int i = 0; i < OTHERS; i++)
    if (argument == others[i]) return FG_ARGUMENTS + i;
  return (int)(argument - fg_arguments);
}

const fg_argument *fg_argument_at(int number) {
  return number < FG_ARGUMENTS ? &fg_arguments[number] : others[number - FG_ARGUMENTS];
}

/* A broadcast axis has its argument's place. */
int fg_tensor_axis(const fg_recipe_tensor *t, int i) {
  if (t->slot >= 0) return i;
  return fg_axis_index(t->argument->axes, t->axes[i] == '1' ? t->argument->axes[i] : t->axes[i]);
}

/* Extents that follow from others. */
typedef struct {
  char letter, of;
  const char *name, *title;
} derived_row;
static const derived_row derived[] = {{'c', 'b', "b+1", "batch and one"},
                                      {'m', 'k', "nk/page", "pages of a sequence"},
                                      {'i', 0, "4", "words"},
                                      {'a', 'l', "2", "first and end"}};

static const derived_row *find_derived(char letter) {
  for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
    if (derived[i].letter == letter) return &derived[i];
  return NULL;
}

static bool has_axis(const fg_kind *kind, char axis) {
  if (axis == 'i') return fg_kind_has_field(kind, FG_FIELD_DROPOUT);
  const derived_row *row = find_derived(axis);
  return fg_form_has(kind->form, row ? row->of : axis) || strchr(kind->widths, axis) ||
         strchr(kind->more_widths, axis);
}

int64_t fg_tensor_stride(const fg_recipe_tensor *t, const fg_tensor *given, int i) {
  const int place = t->stride[i];
  return place < FG_STRIDES ? given->stride[place] : 1;
}

static bool has_axes(const fg_kind *kind, const char *axes) {
  bool all = true;
  for (; *axes; axes++) all &= has_axis(kind, *axes);
  return all;
}

const fg_argument *fg_argument_find(const fg_kind *kind, const char *name) {
  for (int i = 0; i < FG_ARGUMENTS; i++)
    if (!strcmp(fg_arguments[i].name, name) && has_axes(kind, fg_arguments[i].axes))
      return &fg_arguments[i];
  return NULL;
}

const fg_argument *fg_argument_laid(const fg_kind *kind, fg_layout layout, const char *name) {
  return layout.latent && !strcmp(name, latent_v.name) ? &latent_v : fg_argument_find(kind, name);
}

const fg_kind *fg_recipe_kind(const fg_recipe *recipe) { return &fg_kinds[recipe->kernel]; }

const char *fg_recipe_letters(const fg_recipe *recipe, char letters[FG_LETTERS]) {
  char more[FG_LAYOUT_EXTENTS + 1];
  strcpy(letters, fg_recipe_kind(recipe)->form->letters);
  return strcat(letters, fg_layout_extents(recipe->layout, more));
}

/* An extent of its own; one that overflows or is negative is none that a tensor can have. */
static int64_t own_extent(const fg_recipe *recipe, char axis, const fg_shape *shape) {
  int64_t n;
  return fg_expr_eval(&recipe->extent[axis - 'A'], shape, &n) == FG_OK && n > 0 ? n : 0;
}

/* Of a launch that has pages. */
static int64_t pages_of_sequence(const fg_shape *shape) {
  return shape->page ? (shape->nk + shape->page - 1) / shape->page : 0;
}

int64_t fg_recipe_extent(const fg_recipe *recipe, char axis, const fg_shape *shape) {
  if (axis >= 'A' && axis < 'A' + FG_EXTENT_MAX) return own_extent(recipe, axis, shape);
  if (axis == 'c') return shape->b + 1;
  if (axis == 'm') return pages_of_sequence(shape);
  if (axis == 'i') return 4;
  if (axis == 'a') return 2;
  if (axis == 'y' && recipe->layout.kv == FG_CACHED && !shape->pages) return shape->b;
  const fg_extent_row *extent = fg_extent_of(axis);
  if (extent) return fg_extent_get(extent, shape);
  const fg_kind *kind = fg_recipe_kind(recipe);
  int i = 0;
  for (const char *letter = kind->widths; *letter; letter++, i++)
    if (*letter == axis) return recipe->width[i];
  for (const char *letter = kind->more_widths; *letter; letter++, i++)
    if (*letter == axis) return recipe->width[i];
  return 1;
}

bool fg_recipe_has_width(const fg_recipe *recipe, char axis) {
  char letters[FG_WIDTHS_MAX + 1];
  return strchr(fg_kind_widths(fg_recipe_kind(recipe), letters), axis) != NULL;
}

/* A digit is an axis of a declared input, whose strides are in its own order. */
int fg_axis_index(const char *axes, char a) {
  if (a >= '0' && a < '4' && !*axes) return a - '0';
  const bool square = strchr(axes, 'q') && strchr(axes, 'k');
  const int first = *axes == 'p'; /* of the others, behind the parts */
  if (a >= 'A' && a < 'A' + FG_EXTENT_MAX) return first + 2;
  switch (a) {
  case 'p':
    return 0;
  case 'b':
  case 'y':
  case 'l':
    return first;
  case 'h':
  case 'g':
    return first + 1;
  case 'q':
  case 's':
  case 'r':
  case 'n':
  case 'z':
  case 'f':
    return first + 2;
  case 'k':
  case 't':
    return square ? 3 : 2;
  default:
    return first + 3;
  }
}

char fg_axis_suffix(const char *axes, char a) {
  bool square = strchr(axes, 'q') && strchr(axes, 'k');
  return (square ? "bhqk" : *axes == 'p' ? "pbhnd" : "bhnd")[fg_axis_index(axes, a)];
}

static const width_row *find_width(char letter) {
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    if (widths[i].letter == letter) return &widths[i];
  return NULL;
}

const char *fg_axis_name(char axis) {
  const fg_extent_row *extent = fg_extent_of(axis);
  const width_row *width = find_width(axis);
  const derived_row *row = find_derived(axis);
  return extent ? extent->name : width ? width->name : row ? row->name : "1";
}

const char *fg_axis_title(char axis) {
  const fg_extent_row *extent = fg_extent_of(axis);
  const width_row *width = find_width(axis);
  const derived_row *row = find_derived(axis);
  return extent ? extent->title : width ? width->title : row ? row->title : "axis";
}

int fg_axes_print(const char *axes, size_t size, char *text) {
  int n = 0;
  for (int i = 0; axes[i]; i++)
    n = fg_append(size, text, n, "%s%s", i ? ", " : "[", fg_axis_name(axes[i]));
  return fg_append(size, text, n, "]");
}

/* The inputs of a caller lie as far apart as the first one's size says. */
const fg_input_value *fg_args_input(const fg_args *args, int slot) {
  const char *first = (const char *)args->inputs;
  return (const fg_input_value *)(const void *)(first + (size_t)slot * args->inputs->size);
}

const fg_tensor *fg_args_tensor(const fg_args *args, const fg_recipe_tensor *t) {
  if (t->slot < 0)
    return (const fg_tensor *)(const void *)((const char *)args + t->argument->place);
  const fg_input_value *input = fg_args_input(args, t->slot);
  return t->argument == fg_argument_input(true) ? &input->grad : &input->value;
}

fg_tensor *fg_args_tensor_of(fg_args *args, const fg_recipe_tensor *t) {
  return (fg_tensor *)(uintptr_t)fg_args_tensor(args, t);
}
