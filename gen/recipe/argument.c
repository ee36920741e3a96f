/* argument.c - the table of kernel arguments: where fg_args has them, and their axes. */
#include "recipe.h"

#include "extent.h"

#include <stdio.h>
#include <string.h>

/* Names of the letters of kinds' widths, in programs and for people. */
typedef struct {
  char letter;
  const char *name, *title;
} width_row;
static const width_row widths[] = {
    {'d', "d", "head dim"}, {'v', "dv", "v head dim"}, {'w', "width", "width"}};

#define PLACE(member) .place = offsetof(fg_args, member)
const fg_argument fg_arguments[FG_ARGUMENTS] = {
    {"q", "q", "bqhd", FG_RULE_SPEC, PLACE(q), .help = "queries"},
    {"k", "k", "bkgd", FG_RULE_SPEC, PLACE(k), .help = "keys"},
    {"v", "v", "bkgv", FG_RULE_SPEC, PLACE(v), .help = "values"},
    {"bias", "bias", "bhqk", FG_RULE_BIAS, PLACE(bias), .help = "added to the scores"},
    {"o", "o", "bqhv", FG_RULE_SPEC, PLACE(o), .help = "the result"},
    {"lse", "lse", "bhq", FG_RULE_F32, .packed = true, PLACE(lse), .help = "log-sum-exp of a row"},
    {"do", "dout", "bqhv", FG_RULE_SPEC, PLACE(dout), .help = "gradient of o"},
    {"dlse", "dlse", "bhq", FG_RULE_F32, .packed = true, .optional = true, PLACE(dlse),
     .help = "gradient of lse; none = 0"},
    {"dq", "dq", "bqhd", FG_RULE_SPEC, PLACE(dq), .help = "gradient of q"},
    {"dk", "dk", "bkgd", FG_RULE_SPEC, PLACE(dk), .help = "gradient of k"},
    {"dv", "dv", "bkgv", FG_RULE_SPEC, PLACE(dv), .help = "gradient of v"},
    {"dbias", "dbias", "bhqk", FG_RULE_GRAD, PLACE(dbias), .help = "gradient of bias"},
    {"x", "x", "rw", FG_RULE_SPEC, PLACE(x), .help = "rows"},
    {"y", "y", "rw", FG_RULE_SPEC, PLACE(y), .help = "the result, a row for each of x"},
    {"dy", "dy", "rw", FG_RULE_SPEC, PLACE(dy), .help = "gradient of y"},
    {"dx", "dx", "rw", FG_RULE_SPEC, PLACE(dx), .help = "gradient of x"},
};

/* Declared inputs have no place in fg_args itself: their slot says which of its inputs they are. */
static const fg_argument input_value = {
    "input", "input", "", FG_RULE_INPUT, .place = SIZE_MAX, .help = "a declared input"};
static const fg_argument input_grad = {"dinput",      "dinput",          "",
                                       FG_RULE_INPUT, .place = SIZE_MAX, .help = "its gradient"};

const fg_argument *fg_argument_input(bool gradient) {
  return gradient ? &input_grad : &input_value;
}

void fg_recipe_name(fg_recipe_tensor *t) {
  t->slot = -1;
  t->optional |= t->argument->optional;
  snprintf(t->name, sizeof t->name, "%s", t->argument->name);
  snprintf(t->ident, sizeof t->ident, "%s", t->argument->ident);
}

void fg_recipe_name_input(fg_recipe_tensor *t, const char *input, bool gradient) {
  const char *d = gradient ? "d" : "";
  t->argument = fg_argument_input(gradient);
  snprintf(t->name, sizeof t->name, "%s%.*s", d, FG_NAME_SIZE - 5, input);
  snprintf(t->ident, sizeof t->ident, "%sin_%.*s", d, FG_NAME_SIZE - 5, input);
}

int fg_tensor_axis(const fg_recipe_tensor *t, int i) {
  return t->slot >= 0 ? i : fg_axis_index(t->argument->axes, t->argument->axes[i]);
}

static bool has_axes(const fg_kind *kind, const char *axes) {
  bool all = true;
  for (; *axes; axes++) all &= fg_form_has(kind->form, *axes) || strchr(kind->widths, *axes);
  return all;
}

const fg_argument *fg_argument_find(const fg_kind *kind, const char *name) {
  for (int i = 0; i < FG_ARGUMENTS; i++)
    if (!strcmp(fg_arguments[i].name, name) && has_axes(kind, fg_arguments[i].axes))
      return &fg_arguments[i];
  return NULL;
}

const fg_kind *fg_recipe_kind(const fg_recipe *recipe) { return &fg_kinds[recipe->kernel]; }

/* An extent of its own; one that overflows or is negative is none that a tensor can have. */
static int64_t own_extent(const fg_recipe *recipe, char axis, const fg_shape *shape) {
  int64_t n;
  return fg_expr_eval(&recipe->extent[axis - 'A'], shape, &n) == FG_OK && n > 0 ? n : 0;
}

int64_t fg_recipe_extent(const fg_recipe *recipe, char axis, const fg_shape *shape) {
  if (axis >= 'A' && axis < 'A' + FG_EXTENT_MAX) return own_extent(recipe, axis, shape);
  const fg_extent_row *extent = fg_extent_of(axis);
  if (extent) return fg_extent_get(extent, shape);
  const char *letters = fg_recipe_kind(recipe)->widths;
  const char *width = axis ? strchr(letters, axis) : NULL;
  return width ? recipe->width[width - letters] : 1;
}

/* A digit is an axis of a declared input, whose strides are in its own order. */
int fg_axis_index(const char *axes, char a) {
  if (a >= '0' && a < '4' && !*axes) return a - '0';
  bool square = strchr(axes, 'q') && strchr(axes, 'k');
  switch (a) {
  case 'b':
    return 0;
  case 'h':
  case 'g':
    return 1;
  case 'q':
  case 'r':
    return 2;
  case 'k':
    return square ? 3 : 2;
  default:
    return 3;
  }
}

char fg_axis_suffix(const char *axes, char a) {
  bool square = strchr(axes, 'q') && strchr(axes, 'k');
  return (square ? "bhqk" : "bhnd")[fg_axis_index(axes, a)];
}

static const width_row *find_width(char letter) {
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    if (widths[i].letter == letter) return &widths[i];
  return NULL;
}

const char *fg_axis_name(char axis) {
  const fg_extent_row *extent = fg_extent_of(axis);
  const width_row *width = find_width(axis);
  return extent ? extent->name : width ? width->name : "1";
}

const char *fg_axis_title(char axis) {
  const fg_extent_row *extent = fg_extent_of(axis);
  const width_row *width = find_width(axis);
  return extent ? extent->title : width ? width->title : "axis";
}

int fg_axes_print(const char *axes, size_t size, char *text) {
  int n = 0;
  for (int i = 0; axes[i]; i++)
    n += snprintf(text + n, size - (size_t)n, "%s%s", i ? ", " : "[", fg_axis_name(axes[i]));
  return n + snprintf(text + n, size - (size_t)n, "]");
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
