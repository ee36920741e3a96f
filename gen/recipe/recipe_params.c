/* recipe_params.c - the Params struct that follows from a recipe, and what is wrong with its maps.
 */
#include "recipe_text.h"

#include "extent.h"

#include <string.h>

/* Is it a tensor of rows and keys, these last, for each b and h or for some? */
static bool is_matrix(const fg_recipe_tensor *t) {
  int n = (int)strlen(t->axes);
  if (t->argument->contiguous || fg_elem_size(t->elem) != 2 || n < 2) return false;
  for (int i = 0; i < n - 2; i++)
    if (!strchr("bh1", t->axes[i])) return false;
  return !strcmp(t->axes + n - 2, "qk");
}

/* What is wrong with a map of scratch, which is a matrix of whole rows. */
static const char *fault_of_region(const fg_region *region, const fg_map *m) {
  if (fg_elem_size(region->elem) != 2 || region->width < 1 || region->width % 8)
    return "its region is no 16-bit matrix whose rows are multiples of 8";
  return m->blocks || m->ragged ? "a region has neither blocks nor pages" : NULL;
}

/* Refuses maps that cuTensorMapEncodeTiled would refuse, and those that no kernel has a use for. */
const char *fg_map_fault(const fg_recipe *r, const fg_map *m) {
  const fg_recipe_tensor *t = &r->tensor[m->tensor];
  enum { BOX = 256, UNIT = 16 };
  const char *fault = m->region ? fault_of_region(&r->region[m->region - 1], m) : NULL;
  if (fault) return fault;
  int row = m->columns * (int)fg_elem_size(m->region ? r->region[m->region - 1].elem : t->elem);
  if (!m->region && !fg_tensor_aligned(t) && !is_matrix(t))
    return "its tensor is no 16-bit one of [.., q, k]";
  if (r->align < UNIT) return "the recipe's alignment is less than 16";
  if (m->swizzle && m->swizzle != 32 && m->swizzle != 64 && m->swizzle != 128)
    return "there are swizzles of 32, 64 and 128 bytes";
  if (m->columns < 1 || m->columns > BOX || m->rows < 1 || m->rows > BOX || m->blocks > BOX)
    return "a box has 1 to 256 elements along an axis";
  if (row % UNIT || (m->swizzle && row != m->swizzle))
    return "a row is not as wide as the swizzle, or no multiple of 16 bytes";
  if (m->blocks && !fg_tensor_aligned(t)) return "an input's columns are one axis";
  if (m->ragged && (m->blocks || !fg_tensor_aligned(t))) return "a ragged map has no blocks";
  if (m->blocks && fg_recipe_extent(r, t->axes[3], NULL) % m->columns)
    return "the head dim is no multiple of its columns";
  return NULL;
}

bool fg_map_has_pages(const fg_recipe *r, const fg_map *m) {
  return m->ragged && r->layout.kv == FG_PAGED && r->tensor[m->tensor].axes[0] == 'y';
}

/* Appends to the struct's text and to the parameter table at once. */
typedef struct {
  fg_recipe *recipe;
  fg_lines text;
  bool full; /* the table has no room left */
} writer;

/* Gives a member the next offset that its size divides, and a row of the table. */
static void member(writer *w, fg_parameter p, int bytes) {
  fg_recipe *r = w->recipe;
  if (r->n_parameters == FG_PARAMETER_MAX) {
    w->full = true;
    return;
  }
  p.offset = r->params_bytes = (r->params_bytes + bytes - 1) / bytes * bytes;
  r->params_bytes += bytes;
  r->parameter[r->n_parameters++] = p;
}

/* They come first, because they are aligned to 64 bytes. */
static void maps(writer *w) {
  for (int i = 0; i < w->recipe->n_maps; i++) {
    const fg_map *m = &w->recipe->map[i];
    const char *most = fg_map_has_pages(w->recipe, m) ? "at most " : "";
    fg_lines_add(&w->text, "tensor_map %s; // of %s: boxes of %s%d rows of %d", m->name,
                 m->region ? fg_map_of(w->recipe, m) : w->recipe->tensor[m->tensor].ident, most,
                 m->rows, m->columns);
    if (m->blocks) fg_lines_add(&w->text, ", %d such blocks", m->blocks);
    fg_lines_add(&w->text, "\n");
    member(w, (fg_parameter){.from = FG_FROM_MAP, .index = i}, FG_MAP_BYTES);
  }
}

static const char *c_type(fg_elem elem) {
  static const char *const types[] = {[FG_ELEM_BF16] = "u16",
                                      [FG_ELEM_F16] = "u16",
                                      [FG_ELEM_F32] = "float",
                                      [FG_ELEM_E4M3] = "u8",
                                      [FG_ELEM_I32] = "int"};
  return types[elem];
}

/* "i64 q_b, q_n, q_h;": the strides of every axis but the unit one, unless the argument has that
 * of all, and broadcast ones. */
static void strides(writer *w, int index) {
  const fg_recipe_tensor *t = &w->recipe->tensor[index];
  const char *separator = "i64 ";
  const bool has_last = t->argument->has_strides;
  for (const char *a = t->axes; a[0] && (a[1] || has_last) && !t->argument->contiguous; a++) {
    const int axis = (int)(a - t->axes);
    const char letter = t->slot >= 0 ? (char)('0' + axis) : *a;
    if (*a == '1') continue;
    fg_lines_add(&w->text, "%s%s_%c", separator, t->ident,
                 t->slot >= 0 ? letter : fg_axis_suffix(t->argument->axes, *a));
    separator = ", ";
    member(w,
           (fg_parameter){
               .from = FG_FROM_STRIDE, .index = index, .axis = letter, .stride = t->stride[axis]},
           8);
  }
  if (*separator == ',') fg_lines_add(&w->text, ";\n");
}

/* Is a row of the tensor found by the number of its cache, or of its page? */
static bool has_cache_rows(const fg_recipe *r, int tensor) {
  if (r->tensor[tensor].axes[0] != 'y') return false;
  bool is_ragged = false;
  for (int i = 0; i < r->n_maps; i++) is_ragged |= r->map[i].tensor == tensor && r->map[i].ragged;
  return is_ragged || r->layout.kv == FG_CACHED;
}

/* Arguments that say where sequences are, and descales: a launch may not give the kernel one that
 * it does not have. */
static void find_absent(fg_recipe *r) {
  r->n_absent = 0;
  for (int i = 0; i < FG_ARGUMENTS; i++) {
    const fg_elem_rule rule = fg_arguments[i].elem;
    bool has = rule != FG_RULE_I32 && rule != FG_RULE_DESCALE;
    for (int t = 0; t < r->n_tensors; t++) has |= r->tensor[t].argument == &fg_arguments[i];
    if (!has) r->absent[r->n_absent++] = (unsigned char)i;
  }
}

/* Looks up what launches need, so that no launch reads the letters of axes. */
static void find_places(fg_recipe *r) {
  r->form = fg_form_rule_of(fg_recipe_kind(r)->form);
  for (int i = 0; i < r->n_tensors; i++)
    for (int a = 0; r->tensor[i].axes[a]; a++)
      r->tensor[i].stride[a] = fg_tensor_axis(&r->tensor[i], a);
  find_absent(r);
}

/* The order of the members is part of what kernels are compiled with. */
fg_status fg_recipe_params(fg_recipe *r, size_t size, char *text) {
  writer w = {r, {text, size, 0, false}, false};
  char shape[64], names[96], letters[FG_LETTERS];
  r->n_parameters = r->params_bytes = 0;
  find_places(r);
  maps(&w);
  for (int i = 0; i < r->n_tensors; i++) {
    const fg_recipe_tensor *t = &r->tensor[i];
    fg_recipe_shape_print(r, t->axes, sizeof shape, shape);
    fg_lines_add(&w.text, "%s%s *%s; // %s %s%s\n", t->output ? "" : "const ", c_type(t->elem),
                 t->ident, shape, fg_elem_name(t->elem), t->optional ? ", or null" : "");
    member(&w, (fg_parameter){.from = FG_FROM_TENSOR, .index = i}, 8);
    strides(&w, i);
  }
  for (int i = 0; i < r->n_regions; i++) {
    fg_lines_add(&w.text, "%s *%s; // scratch\n", c_type(r->region[i].elem), r->region[i].name);
    member(&w, (fg_parameter){.from = FG_FROM_REGION, .index = i}, 8);
  }
  fg_recipe_letters(r, letters);
  fg_extent_names(letters, ", ", sizeof names, names);
  fg_lines_add(&w.text, "int %s;\n", names);
  for (const char *letter = letters; *letter; letter++)
    member(&w, (fg_parameter){.from = FG_FROM_EXTENT, .axis = *letter}, 4);
  if (fg_recipe_kind(r)->has_scale) {
    fg_lines_add(&w.text, "float scale;\n");
    member(&w, (fg_parameter){.from = FG_FROM_SCALE}, 4);
  }
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++) {
    if (!(r->takes >> i & 1)) continue;
    fg_lines_add(&w.text, "float %s; // NaN: not given\n", fg_launch_numbers[i].name);
    member(&w, (fg_parameter){.from = FG_FROM_LAUNCH, .index = i}, 4);
  }
  for (int i = 0; i < r->n_tensors; i++) {
    if (!has_cache_rows(r, i)) continue;
    fg_lines_add(&w.text, "int %s_cache; // rows from a %s to the next\n", r->tensor[i].ident,
                 r->layout.kv == FG_PAGED ? "page" : "cache");
    member(&w, (fg_parameter){.from = FG_FROM_CACHE, .index = i}, 4);
  }
  for (int i = 0; i < r->n_maps; i++) {
    if (fg_map_is_aligned(r, &r->map[i])) continue;
    fg_lines_add(&w.text, "int %s_made;\n", r->map[i].name);
    member(&w, (fg_parameter){.from = FG_FROM_MADE, .index = i}, 4);
  }
  for (int i = 0; i < r->n_numbers; i++) {
    fg_lines_add(&w.text, "%s in_%s;\n", r->number[i].real ? "float" : "int", r->number[i].name);
    member(&w, (fg_parameter){.from = FG_FROM_NUMBER, .index = i}, 4);
  }
  int unit = r->n_maps ? 64 : 8;
  r->params_bytes = (r->params_bytes + unit - 1) / unit * unit;
  return w.full || w.text.full ? fg_fail(FG_EBUG, "the Params struct is too large for its tables")
                               : FG_OK;
}
