/* recipe_read.c - reads the description that a family gives of its launch. */
#include "recipe_read.h"

#include "recipe/extent.h"

#include <stdio.h>
#include <string.h>

/* The element type that the rule gives in this point; that of a declared input is read with it. */
static fg_elem elem_of(const fg_point *point, fg_elem_rule rule) {
  switch (rule) {
  case FG_RULE_SPEC:
    return fg_point_elem(point);
  case FG_RULE_KV:
    return fg_point_kv_elem(point);
  case FG_RULE_O:
    return fg_point_o_elem(point);
  case FG_RULE_DQKV:
    return fg_point_dqkv_elem(point);
  case FG_RULE_BIAS:
    return fg_point_bias_elem(point);
  case FG_RULE_GRAD:
    return fg_point_grad_elem(point);
  case FG_RULE_ROTARY:
    return fg_point_rotary_elem(point);
  case FG_RULE_I32:
  case FG_RULE_WORDS:
  case FG_RULE_COLUMN:
    return FG_ELEM_I32;
  case FG_RULE_PARTS:
    return fg_point_parts_elem(point);
  case FG_RULE_F32:
  case FG_RULE_DESCALE:
  case FG_RULE_SAID:
  case FG_RULE_INPUT:
    break;
  }
  return FG_ELEM_F32;
}

/* The axes of a bias that the spec does not name are broadcast. */
static void set_axes(fg_recipe_tensor *t, const fg_point *point) {
  fg_layout_axes(fg_point_layout(point), t->argument->axes, t->axes);
  if (t->argument->elem != FG_RULE_BIAS && t->argument->elem != FG_RULE_GRAD) return;
  for (int i = 0; i < 4; i++)
    if (!(point->bias_dims >> i & 1)) t->axes[i] = '1';
}

/* The string at key of the table on top; NULL when it is none. Valid while the table holds it. */
static const char *text_at(lua_State *L, const char *key) {
  const char *text = lua_getfield(L, -1, key) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
  lua_pop(L, 1);
  return text;
}

/* The integer at a key of the table on top, at most 2^30. */
static fg_status number_at(lua_State *L, const char *key, int *value) {
  int good;
  lua_getfield(L, -1, key);
  lua_Integer n = lua_tointegerx(L, -1, &good);
  lua_pop(L, 1);
  if (!good || n < 0 || n > 1 << 30)
    return fg_fail(FG_ETEMPLATE, "description: %s must be an integer, not negative", key);
  *value = (int)n;
  return FG_OK;
}

static fg_status copy_name(const char *name, size_t size, char *copy) {
  if (!name || strlen(name) >= size)
    return fg_fail(FG_ETEMPLATE, "description: a name is missing or longer than %d", (int)size - 1);
  strcpy(copy, name);
  return FG_OK;
}

/* An expression over the extents of the recipe's kind and layout. */
static fg_status compile(const char *text, const fg_recipe *r, fg_expr *expr) {
  char letters[FG_LETTERS];
  return fg_expr_compile(text, fg_recipe_letters(r, letters), expr);
}

/* The letter of a length as an axis: packed sequences have all their tokens along it. */
static char axis_of_length(const fg_recipe *r, char letter) {
  if (letter == 'q' && r->layout.q == FG_PACKED) return 's';
  return letter == 'k' && r->layout.kv == FG_PACKED ? 't' : letter;
}

/* Adds an axis whose extent is an expression. */
static fg_status add_own_axis(const char *extent, fg_recipe *r, fg_recipe_tensor *t) {
  if (r->n_extents == FG_EXTENT_MAX)
    return fg_fail(FG_ESPEC, "inputs: more than %d extents that are expressions", FG_EXTENT_MAX);
  t->axes[strlen(t->axes)] = (char)('A' + r->n_extents);
  return compile(extent, r, &r->extent[r->n_extents++]);
}

/* Descales of blocks of tokens have an axis of these, of the longest sequence. */
static fg_status add_blocks(const fg_point *point, fg_recipe *r, fg_recipe_tensor *t) {
  char extent[32];
  if (t->argument->elem != FG_RULE_DESCALE || !point->descale_block) return FG_OK;
  snprintf(extent, sizeof extent, "cdiv(n%c, %d)", *t->name == 'q' ? 'q' : 'k',
           point->descale_block);
  return add_own_axis(extent, r, t);
}

/* A declared input's axes: letters of lengths, or extents of its own. */
static fg_status set_own_axes(const fg_input *x, fg_recipe *r, fg_recipe_tensor *t) {
  for (int i = 0; i < x->rank; i++) {
    const fg_extent_row *axis = fg_extent_of_axis(x->extent[i], strlen(x->extent[i]));
    const bool one = !strcmp(x->extent[i], "1");
    if (axis || one)
      t->axes[i] = axis ? axis_of_length(r, axis->letter) : '1';
    else
      TRY(add_own_axis(x->extent[i], r, t));
  }
  return FG_OK;
}

/* "in_slope" or "din_slope": the input of that name, -1 if the formula has none. */
static int find_input(const fg_formula *f, const char *name, bool output) {
  const char *prefix = output ? "din_" : "in_";
  size_t n = strlen(prefix);
  if (strncmp(name, prefix, n)) return -1;
  for (int i = 0; i < f->n_inputs; i++)
    if (f->input[i].tensor && !strcmp(f->input[i].name, name + n)) return i;
  return -1;
}

static fg_status add_input(const fg_formula *f, int slot, bool output, const fg_point *point,
                           fg_recipe *r) {
  const char *name = f->input[slot].name;
  char own[FG_NAME_SIZE];
  snprintf(own, sizeof own, "%s%s", output ? "d" : "", name);
  const fg_argument *other = fg_argument_find(fg_point_kind(point), own);
  fg_recipe_tensor *t = &r->tensor[r->n_tensors++];
  t->slot = slot, t->output = output, t->elem = f->input[slot].elem;
  fg_recipe_name_input(t, name, output,
                       other && fg_argument_belongs(other, fg_point_layout(point), point->dropout,
                                                    point->normalizer));
  return set_own_axes(&f->input[slot], r, t);
}

/* Numbers need no word of the family. */
static void add_numbers(const fg_formula *f, fg_recipe *r) {
  for (int i = 0; i < f->n_inputs; i++) {
    if (f->input[i].tensor) continue;
    fg_recipe_number *x = &r->number[r->n_numbers++];
    x->slot = i, x->real = f->input[i].type == FG_TYPE_FLOAT;
    strcpy(x->name, f->input[i].name);
  }
}

/* The numbers at "widths", by name: those of the kind's widths that no field of a spec is. */
static fg_status read_widths(lua_State *L, fg_recipe *r) {
  const fg_kind *kind = fg_recipe_kind(r);
  int *width = r->width + strlen(kind->widths);
  if (!*kind->more_widths) return FG_OK;
  if (lua_getfield(L, -1, "widths") != LUA_TTABLE)
    return fg_fail(FG_ETEMPLATE, "description: widths are missing");
  for (const char *letter = kind->more_widths; *letter; letter++, width++)
    TRY(number_at(L, fg_axis_name(*letter), width));
  lua_pop(L, 1);
  return FG_OK;
}

/* The names at "numbers": numbers of the launch that the kernel reads. */
static fg_status read_launch_numbers(lua_State *L, fg_recipe *r) {
  fg_status status = FG_OK;
  const int n = lua_getfield(L, -1, "numbers") == LUA_TTABLE ? (int)lua_rawlen(L, -1) : 0;
  for (int i = 1; i <= n && status == FG_OK; i++) {
    lua_rawgeti(L, -1, i);
    status = fg_recipe_take(r, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return status == FG_OK ? FG_OK : fg_fail(FG_ETEMPLATE, "description: numbers: %s", fg_error());
}

/* 1 + the index of the tensor of that name, 0 if the recipe has none so far. */
static int find_tensor(const fg_recipe *r, const char *name) {
  for (int i = 0; i < r->n_tensors; i++)
    if (!strcmp(r->tensor[i].name, name)) return i + 1;
  return 0;
}

/* "x|z": the text up to the bar is left, and z is a tensor before it. */
static fg_status split_unless(char *text, const fg_recipe *r, int *unless) {
  char *bar = strchr(text, '|');
  *unless = bar ? find_tensor(r, bar + 1) : 0;
  if (bar && !*unless)
    return fg_fail(FG_ETEMPLATE, "description: %s: no tensor before it is \"%s\"", text, bar + 1);
  if (bar) *bar = 0;
  return FG_OK;
}

/* The element type of that name. */
static fg_status find_elem(const char *name, fg_elem *elem) {
  for (int e = FG_ELEM_BF16; e <= FG_ELEM_I32; e++) {
    if (strcmp(fg_elem_name((fg_elem)e), name)) continue;
    *elem = (fg_elem)e;
    return FG_OK;
  }
  return fg_fail(FG_ETEMPLATE, "description: \"%.40s\" is no element type", name);
}

/* The element type of a tensor by its rule, or as "elems" of the description at that index says. */
static fg_status set_elem(lua_State *L, int description, const fg_point *point,
                          fg_recipe_tensor *t) {
  t->elem = elem_of(point, t->argument->elem);
  if (t->argument->elem != FG_RULE_SAID) return FG_OK;
  const bool said = lua_getfield(L, description, "elems") == LUA_TTABLE &&
                    lua_getfield(L, -1, t->name) == LUA_TSTRING;
  if (!said) return fg_fail(FG_ETEMPLATE, "description: elems has no %s", t->name);
  TRY(find_elem(lua_tostring(L, -1), &t->elem));
  lua_pop(L, 2);
  return FG_OK;
}

/* A name of a list: "lse", "lse?" where the kernel takes NULL, "k+" of an output that is kept. */
static void split_name(const char *text, char name[FG_NAME_SIZE], bool *optional, bool *kept) {
  const size_t n = strlen(text);
  *optional = n && text[n - 1] == '?';
  *kept = n && text[n - 1] == '+';
  snprintf(name, FG_NAME_SIZE, "%.*s", (int)(n - *optional - *kept), text);
}

/* The names at the key, inputs or outputs: arguments of the kind, declared inputs and their
 * gradients. */
static fg_status read_tensors(lua_State *L, const char *key, bool output, const fg_formula *formula,
                              const fg_point *point, fg_recipe *r) {
  const int description = lua_gettop(L);
  if (lua_getfield(L, -1, key) != LUA_TTABLE)
    return fg_fail(FG_ETEMPLATE, "description: %s is missing", key);
  int n = (int)lua_rawlen(L, -1);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, i);
    char name[FG_NAME_SIZE] = "";
    bool optional = false, kept = false;
    int unless = 0;
    if (lua_tostring(L, -1)) split_name(lua_tostring(L, -1), name, &optional, &kept);
    TRY(split_unless(name, r, &unless));
    const fg_argument *argument =
        fg_argument_laid(fg_point_kind(point), fg_point_layout(point), name);
    int slot = *name && !argument ? find_input(formula, name, output) : -1;
    if (slot >= 0 && r->n_tensors < FG_TENSOR_MAX) {
      TRY(add_input(formula, slot, output, point, r));
      lua_pop(L, 1);
      continue;
    }
    if (!argument || r->n_tensors == FG_TENSOR_MAX)
      return fg_fail(FG_ETEMPLATE, "description: %s: no argument \"%s\"", key, *name ? name : "?");
    fg_recipe_tensor *t = &r->tensor[r->n_tensors++];
    t->argument = argument;
    t->optional = optional || unless, t->kept = kept, t->unless = unless;
    fg_recipe_name(t);
    TRY(set_elem(L, description, point, t));
    t->output = output;
    set_axes(t, point);
    TRY(add_blocks(point, r, t));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return FG_OK;
}

/* The number at a key that may be missing: then `otherwise`. */
static fg_status optional_at(lua_State *L, const char *key, int otherwise, int *value) {
  bool missing = lua_getfield(L, -1, key) == LUA_TNIL;
  lua_pop(L, 1);
  *value = otherwise;
  return missing ? FG_OK : number_at(L, key, value);
}

/* These readers take the table on top of the stack to the next free row of the recipe. */
static fg_status read_region(lua_State *L, fg_recipe *r) {
  fg_region *region = &r->region[r->n_regions];
  const char *elem = text_at(L, "elem");
  TRY(copy_name(text_at(L, "name"), sizeof region->name, region->name));
  const char *count = text_at(L, "count");
  if (!count) return fg_fail(FG_ETEMPLATE, "description: region %s has no count", region->name);
  TRY(find_elem(elem ? elem : "f32", &region->elem));
  TRY(optional_at(L, "width", 0, &region->width));
  return compile(count, r, &region->count);
}

/* Its tensor is an input or output that was read before, or a region. */
static fg_status read_map(lua_State *L, fg_recipe *r) {
  fg_map *m = &r->map[r->n_maps];
  const char *tensor = text_at(L, "tensor");
  TRY(copy_name(text_at(L, "name"), sizeof m->name, m->name));
  while (m->tensor < r->n_tensors && (!tensor || strcmp(r->tensor[m->tensor].name, tensor)))
    m->tensor++;
  if (m->tensor == r->n_tensors) {
    m->tensor = 0;
    while (m->region < r->n_regions && (!tensor || strcmp(r->region[m->region].name, tensor)))
      m->region++;
    if (m->region++ == r->n_regions)
      return fg_fail(FG_ETEMPLATE, "description: map %s: no tensor \"%s\"", m->name,
                     tensor ? tensor : "?");
  }
  TRY(number_at(L, "columns", &m->columns));
  TRY(number_at(L, "rows", &m->rows));
  TRY(optional_at(L, "blocks", 0, &m->blocks));
  TRY(number_at(L, "swizzle", &m->swizzle));
  lua_getfield(L, -1, "ragged");
  m->ragged = lua_toboolean(L, -1);
  lua_pop(L, 1);
  const char *why = fg_map_fault(r, m);
  return why ? fg_fail(FG_ETEMPLATE, "description: map %s: %s", m->name, why) : FG_OK;
}

static fg_status read_zero(const char *name, fg_recipe *r, fg_step *step) {
  step->kind = FG_STEP_ZERO;
  step->regions = 1;
  for (step->region = 0; step->region < r->n_regions; step->region++)
    if (!strcmp(r->region[step->region].name, name)) return FG_OK;
  return fg_fail(FG_ETEMPLATE, "description: zero: no region \"%s\"", name);
}

/* What a launch may have besides its grid and threads. */
static fg_status read_attributes(lua_State *L, fg_step *step) {
  TRY(optional_at(L, "cluster", 1, &step->cluster));
  TRY(optional_at(L, "resident", 0, &step->resident));
  if (step->cluster < 1 || step->cluster > FG_CLUSTER_MAX || step->resident > 32)
    return fg_fail(FG_ETEMPLATE,
                   "description: step %s: a cluster has 1 to %d blocks, a "
                   "multiprocessor 32 at most",
                   step->entry, FG_CLUSTER_MAX);
  lua_getfield(L, -1, "early");
  step->early = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return FG_OK;
}

static fg_status read_step(lua_State *L, fg_recipe *r) {
  fg_step *step = &r->step[r->n_steps];
  const char *zero = text_at(L, "zero");
  if (zero) return read_zero(zero, r, step);
  TRY(copy_name(text_at(L, "entry"), sizeof step->entry, step->entry));
  TRY(number_at(L, "threads", &step->threads));
  TRY(number_at(L, "registers", &step->registers));
  TRY(read_attributes(L, step));
  const char *work = text_at(L, "work");
  if (!work) return fg_fail(FG_ETEMPLATE, "description: step %s has no work", step->entry);
  TRY(compile(work, r, &step->work));
  TRY(number_at(L, "shared", &step->shared_bytes));
  if (lua_getfield(L, -1, "grid") != LUA_TTABLE)
    return fg_fail(FG_ETEMPLATE, "description: step %s has no grid", step->entry);
  for (int i = 0; i < 3; i++) {
    lua_rawgeti(L, -1, i + 1);
    const char *text = lua_tostring(L, -1);
    TRY(compile(text ? text : "1", r, &step->grid[i]));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return FG_OK;
}

typedef fg_status (*reader)(lua_State *L, fg_recipe *r);

/* A list of tables, each taken by `read`; only maps may be missing. */
static fg_status read_list(lua_State *L, const char *key, int most, int *count, reader read,
                           fg_recipe *r) {
  int kind = lua_getfield(L, -1, key);
  if (kind == LUA_TNIL && read == read_map) {
    lua_pop(L, 1);
    return FG_OK;
  }
  if (kind != LUA_TTABLE) return fg_fail(FG_ETEMPLATE, "description: %s is missing", key);
  int n = (int)lua_rawlen(L, -1);
  if (n > most) return fg_fail(FG_ETEMPLATE, "description: more than %d %s", most, key);
  for (int i = 1; i <= n; i++, ++*count) {
    if (lua_rawgeti(L, -1, i) != LUA_TTABLE)
      return fg_fail(FG_ETEMPLATE, "description: an item of %s is no table", key);
    TRY(read(L, r));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return FG_OK;
}

/* Fills that follow each other, of regions that do too, become one: each takes time in a launch. */
static void join_fills(fg_recipe *r) {
  int n = 0;
  for (int i = 0; i < r->n_steps; i++) {
    const fg_step *step = &r->step[i];
    fg_step *last = n > 0 ? &r->step[n - 1] : NULL;
    const bool fills = last && last->kind == FG_STEP_ZERO && step->kind == FG_STEP_ZERO;
    const bool is_before = fills && step->region + step->regions == last->region;
    if (is_before || (fills && last->region + last->regions == step->region)) {
      if (is_before) last->region = step->region;
      last->regions += step->regions;
    } else {
      r->step[n++] = *step;
    }
  }
  memset(r->step + n, 0, sizeof *r->step * (size_t)(r->n_steps - n));
  r->n_steps = n;
}

fg_status fg_recipe_read(lua_State *L, const fg_formula *formula, const fg_point *point,
                         fg_recipe *recipe) {
  fg_recipe r = {.kernel = point->kernel, .layout = fg_point_layout(point)};
  int top = lua_gettop(L);
  fg_status status = FG_OK;
  fg_point_widths(point, r.width);
  TRY_OUT(read_widths(L, &r));
  TRY_OUT(number_at(L, "align", &r.align));
  if (r.align < 2 || r.align & (r.align - 1))
    TRY_OUT(fg_fail(FG_ETEMPLATE, "description: align must be a power of 2, 2 or more"));
  TRY_OUT(optional_at(L, "generation", 1, &r.generation));
  if (r.generation < 1) TRY_OUT(fg_fail(FG_ETEMPLATE, "description: generation must be 1 or more"));
  if (text_at(L, "whole")) TRY_OUT(compile(text_at(L, "whole"), &r, &r.whole));
  TRY_OUT(read_tensors(L, "inputs", false, formula, point, &r));
  TRY_OUT(read_tensors(L, "outputs", true, formula, point, &r));
  add_numbers(formula, &r);
  TRY_OUT(read_launch_numbers(L, &r));
  TRY_OUT(read_list(L, "regions", FG_REGION_MAX, &r.n_regions, read_region, &r));
  TRY_OUT(read_list(L, "maps", FG_MAP_MAX, &r.n_maps, read_map, &r));
  TRY_OUT(read_list(L, "steps", FG_STEP_MAX, &r.n_steps, read_step, &r));
  join_fills(&r);
  *recipe = r;
out:
  lua_settop(L, top);
  return status;
}
