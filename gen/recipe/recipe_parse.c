/* recipe_parse.c - the text of a recipe (recipe_text.c) back to the recipe.
 *
 * The text comes from cache entries and manifests, so nothing in it is trusted: the reader takes
 * words apart by a lenient grammar and checks every index and range, and in the end prints what it
 * has read: a text that is not the print of its recipe is refused at the first line that differs.
 */
#include "recipe_text.h"

#include "extent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Decimal digits alone; what: the subject of the error. */
static fg_status read_number(const char *word, int least, int most, const char *what, int *n) {
  errno = 0;
  long value = word && *word && !word[strspn(word, "0123456789")] ? strtol(word, NULL, 10) : -1;
  if (errno || value < least || value > most)
    return fg_fail(FG_EIO, "%s is not a number from %d to %d", what, least, most);
  *n = (int)value;
  return FG_OK;
}

static fg_status read_elem(const char *word, fg_elem *elem) {
  for (int e = FG_ELEM_BF16; word && e <= FG_ELEM_I32; e++) {
    if (strcmp(fg_elem_name((fg_elem)e), word)) continue;
    *elem = (fg_elem)e;
    return FG_OK;
  }
  return fg_fail(FG_EIO, "\"%.40s\" is no element type", word ? word : "");
}

/* A name of C, which becomes part of a symbol and of messages. */
static fg_status read_name(const char *word, size_t size, char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  size_t n = word ? strlen(word) : 0;
  if (n == 0 || n >= size || word[strspn(word, letters)] || strchr("0123456789", *word))
    return fg_fail(FG_EIO, "\"%.60s\" is no name", word ? word : "");
  memcpy(name, word, n + 1);
  return FG_OK;
}

static fg_status read_align(char *rest, fg_recipe *r) {
  if (r->align) return fg_fail(FG_EIO, "the alignment comes a second time");
  TRY(read_number(rest, 2, 1 << 10, "the alignment", &r->align));
  return r->align & (r->align - 1) ? fg_fail(FG_EIO, "the alignment is no power of 2") : FG_OK;
}

static fg_status read_generation(char *rest, fg_recipe *r) {
  return read_number(rest, 2, 1 << 20, "the generation", &r->generation);
}

static fg_status read_kind(char *rest, fg_recipe *r) {
  const fg_kind *kind = fg_kind_find(rest);
  if (!kind) return fg_fail(FG_EIO, "\"%.40s\" is no kind of kernel", rest);
  r->kernel = (int)(kind - fg_kinds);
  return FG_OK;
}

static int layout_of(const char *word) {
  int i = 0;
  while (fg_layout_words[i] && (!word || strcmp(fg_layout_words[i], word))) i++;
  return i;
}

/* Takes the next word of the text if it is this one. */
static int take_word(char **rest, const char *word) {
  const size_t n = strlen(word);
  if (!*rest || strncmp(*rest, word, n) || ((*rest)[n] && (*rest)[n] != ' ')) return 0;
  *rest = (*rest)[n] ? *rest + n + 1 : NULL;
  return 1;
}

/* "packed paged", "dense dense slices", "packed packed shard", "dense cached latent" */
static fg_status read_layout(char *rest, fg_recipe *r) {
  r->layout.q = layout_of(strsep(&rest, " "));
  r->layout.kv = layout_of(strsep(&rest, " "));
  r->layout.slices = take_word(&rest, "slices");
  r->layout.shard = !r->layout.slices && take_word(&rest, "shard");
  r->layout.latent = take_word(&rest, "latent");
  if (r->layout.q <= FG_PACKED && r->layout.kv < FG_LAYOUTS && !rest) return FG_OK;
  return fg_fail(FG_EIO, "it names a layout that there is not");
}

/* Of the recipe's kind and layout, which stand before all expressions. */
static fg_status read_expr(const char *text, const fg_recipe *r, fg_expr *expr) {
  char letters[FG_LETTERS];
  return fg_expr_parse(text, fg_recipe_letters(r, letters), expr);
}

static fg_status read_whole(char *rest, fg_recipe *r) { return read_expr(rest, r, &r->whole); }

/* "head_dim 64 128", where the kind's word for its widths is head_dim. */
static fg_status read_widths(char *rest, fg_recipe *r) {
  if (r->width[0])
    return fg_fail(FG_EIO, "the %s comes a second time", fg_recipe_kind(r)->width_field);
  char widths[FG_WIDTHS_MAX + 1];
  fg_kind_widths(fg_recipe_kind(r), widths);
  for (size_t i = 0; widths[i]; i++)
    TRY(read_number(strsep(&rest, " "), 1, 1 << 20, fg_axis_name(widths[i]), &r->width[i]));
  return FG_OK;
}

static fg_status read_own_axes(char *rest, fg_recipe *r, fg_recipe_tensor *t);

/* "[b, hk]" or "[b, hk, nk 64 cdiv]" */
static fg_status read_descale_axes(char *rest, fg_recipe *r, fg_recipe_tensor *t) {
  TRY(read_own_axes(rest, r, t));
  const size_t n = strlen(t->argument->axes);
  if (!strncmp(t->axes, t->argument->axes, n) && strlen(t->axes) <= n + 1) return FG_OK;
  return fg_fail(FG_EIO, "%s has other axes than [b, hk] and blocks", t->name);
}

/* The shape's words against the argument's axes: each is the axis, or 1 where a bias may be. */
static fg_status read_axes(char *rest, const fg_recipe *r, fg_recipe_tensor *t) {
  bool bias = t->argument->elem == FG_RULE_BIAS || t->argument->elem == FG_RULE_GRAD;
  char axes[sizeof t->axes];
  fg_layout_axes(r->layout, t->argument->axes, axes);
  for (int i = 0; axes[i]; i++) {
    char axis[2] = {axes[i]}, expected[32];
    char *word = strsep(&rest, " ");
    fg_recipe_shape_print(r, axis, sizeof expected, expected); /* "[nq]" */
    if (word) {
      word += *word == '[';
      word[strcspn(word, ",]")] = 0;
    }
    if (word && strlen(word) == strlen(expected) - 2 && !strncmp(word, expected + 1, strlen(word)))
      t->axes[i] = *axis;
    else if (word && bias && !strcmp(word, "1"))
      t->axes[i] = '1';
    else
      return fg_fail(FG_EIO, "%s has \"%.40s\" for the axis %s", t->argument->name,
                     word ? word : "", expected);
  }
  return FG_OK;
}

/* "in|z": may be null where the tensor z, which stands before it, is given; 0: no word says so. */
static fg_status read_unless(char *way, const fg_recipe *r, int *unless) {
  char *bar = way ? strchr(way, '|') : NULL;
  *unless = 0;
  if (!bar) return FG_OK;
  *bar = 0;
  for (int i = 0; i < r->n_tensors; i++)
    if (!strcmp(r->tensor[i].name, bar + 1)) *unless = i + 1;
  return *unless ? FG_OK : fg_fail(FG_EIO, "no tensor before it is \"%.40s\"", bar + 1);
}

/* "q in bf16 [b, nq, h, 64]". The readers take what follows the first word of a line. */
static fg_status read_tensor(char *rest, fg_recipe *r) {
  fg_recipe_tensor t = {.slot = -1};
  const char *name = strsep(&rest, " ");
  char *way = strsep(&rest, " ");
  if (r->n_tensors == FG_TENSOR_MAX) return fg_fail(FG_EIO, "too many tensors");
  t.argument = name ? fg_argument_laid(fg_recipe_kind(r), r->layout, name) : NULL;
  if (!t.argument) return fg_fail(FG_EIO, "no argument is \"%.40s\"", name ? name : "");
  for (int i = 0; i < r->n_tensors; i++)
    if (r->tensor[i].argument == t.argument) return fg_fail(FG_EIO, "%s comes twice", name);
  TRY(read_unless(way, r, &t.unless));
  size_t last = way ? strlen(way) : 0;
  t.optional = last && way[last - 1] == '?'; /* "out?" */
  if (t.optional) way[last - 1] = 0;
  t.optional |= t.unless > 0;
  if (!way || (strcmp(way, "in") && strcmp(way, "out") && strcmp(way, "inout")))
    return fg_fail(FG_EIO, "%s is neither in nor out", name);
  fg_recipe_name(&t);
  t.output = strcmp(way, "in") != 0;
  t.kept = !strcmp(way, "inout");
  TRY(read_elem(strsep(&rest, " "), &t.elem));
  const bool is_f32 = t.argument->elem == FG_RULE_F32 || t.argument->elem == FG_RULE_DESCALE;
  if (is_f32 && t.elem != FG_ELEM_F32) return fg_fail(FG_EIO, "%s is not f32", name);
  if (fg_argument_has_integers(t.argument) && t.elem != FG_ELEM_I32)
    return fg_fail(FG_EIO, "%s is not i32", name);
  TRY(t.argument->elem == FG_RULE_DESCALE ? read_descale_axes(rest, r, &t)
                                          : read_axes(rest, r, &t));
  r->tensor[r->n_tensors++] = t;
  return FG_OK;
}

/* "[h, nq nk + 1 -]": lengths, 1, or postfix expressions. */
static fg_status read_own_axes(char *rest, fg_recipe *r, fg_recipe_tensor *t) {
  size_t n = rest ? strlen(rest) : 0;
  if (n < 2 || rest[0] != '[' || rest[n - 1] != ']')
    return fg_fail(FG_EIO, "%s has no shape", t->name);
  rest[n - 1] = 0;
  rest++;
  for (char *word; rest && *rest && (word = strsep(&rest, ","));) {
    size_t a = strlen(t->axes);
    word += *word == ' ';
    const fg_extent_row *extent = fg_extent_find(word);
    const bool one = !strcmp(word, "1");
    if (a == 4) return fg_fail(FG_EIO, "%s has too many axes", t->name);
    t->axes[a] = extent ? extent->letter : one ? '1' : (char)('A' + r->n_extents);
    if (extent || one) continue;
    if (r->n_extents == FG_EXTENT_MAX) return fg_fail(FG_EIO, "too many extents");
    TRY(read_expr(word, r, &r->extent[r->n_extents++]));
  }
  return FG_OK;
}

/* "0 slope in f32 [h]", or "0 dslope out f32 [h]". */
static fg_status read_input(char *rest, fg_recipe *r) {
  fg_recipe_tensor t = {0};
  char name[FG_NAME_SIZE - 4];
  TRY(read_number(strsep(&rest, " "), 0, FG_INPUT_SLOTS - 1, "an input's place", &t.slot));
  const char *word = strsep(&rest, " "), *bare = word ? fg_input_bare(word) : NULL;
  TRY(read_name(bare, sizeof name, name));
  const char *way = strsep(&rest, " ");
  if (r->n_tensors == FG_TENSOR_MAX) return fg_fail(FG_EIO, "too many tensors");
  if (!way || (strcmp(way, "in") && strcmp(way, "out")))
    return fg_fail(FG_EIO, "%s is neither in nor out", name);
  t.output = !strcmp(way, "out");
  TRY(read_elem(strsep(&rest, " "), &t.elem));
  fg_recipe_name_input(&t, t.output ? name + (*name == 'd') : name, t.output, bare != word);
  TRY(read_own_axes(rest, r, &t));
  r->tensor[r->n_tensors++] = t;
  return FG_OK;
}

/* "1 width int" */
static fg_status read_scalar(char *rest, fg_recipe *r) {
  fg_recipe_number x = {0};
  if (r->n_numbers == FG_INPUT_SLOTS) return fg_fail(FG_EIO, "too many numbers");
  TRY(read_number(strsep(&rest, " "), 0, FG_INPUT_SLOTS - 1, "an input's place", &x.slot));
  TRY(read_name(strsep(&rest, " "), sizeof x.name, x.name));
  x.real = rest && !strcmp(rest, "float");
  r->number[r->n_numbers++] = x;
  return FG_OK;
}

/* "sigmoid_bias" */
static fg_status read_takes(char *rest, fg_recipe *r) { return fg_recipe_take(r, rest); }

static int find_region(const fg_recipe *r, const char *name) {
  int i = 0;
  while (i < r->n_regions && strcmp(r->region[i].name, name)) i++;
  return i;
}

/* "delta f32: b h * nq *", or of a matrix "dp bf16 512: rows 512 *" */
static fg_status read_region(char *rest, fg_recipe *r) {
  fg_region region = {0};
  if (r->n_regions == FG_REGION_MAX) return fg_fail(FG_EIO, "too many regions");
  TRY(read_name(strsep(&rest, " "), sizeof region.name, region.name));
  if (find_region(r, region.name) < r->n_regions)
    return fg_fail(FG_EIO, "region %s comes twice", region.name);
  char *elem = strsep(&rest, ":"), *width = elem ? strchr(elem, ' ') : NULL;
  if (width) {
    *width = 0;
    TRY(read_number(width + 1, 1, 1 << 20, "a region's width", &region.width));
  }
  TRY(read_elem(elem, &region.elem));
  if (!rest || *rest != ' ') return fg_fail(FG_EIO, "region %s has no count", region.name);
  TRY(read_expr(rest + 1, r, &region.count));
  r->region[r->n_regions++] = region;
  return FG_OK;
}

/* "q_map q 64 128 2 swizzle 128"; the tensor, or the region, stands before its maps. */
static fg_status read_map(char *rest, fg_recipe *r) {
  fg_map m = {0};
  if (r->n_maps == FG_MAP_MAX) return fg_fail(FG_EIO, "too many maps");
  TRY(read_name(strsep(&rest, " "), sizeof m.name, m.name));
  const char *tensor = rest ? strsep(&rest, " ") : "";
  while (m.tensor < r->n_tensors && strcmp(r->tensor[m.tensor].name, tensor)) m.tensor++;
  if (m.tensor == r->n_tensors) {
    m.tensor = 0, m.region = find_region(r, tensor) + 1;
    if (m.region > r->n_regions) return fg_fail(FG_EIO, "map %s has no tensor", m.name);
  }
  TRY(read_number(strsep(&rest, " "), 1, 256, "columns", &m.columns));
  TRY(read_number(strsep(&rest, " "), 1, 256, "rows", &m.rows));
  if (rest && strncmp(rest, "swizzle ", 8))
    TRY(read_number(strsep(&rest, " "), 1, 256, "blocks", &m.blocks));
  if (!rest || strncmp(rest, "swizzle ", 8))
    return fg_fail(FG_EIO, "map %s has no swizzle", m.name);
  rest += 8;
  TRY(read_number(strsep(&rest, " "), 0, 128, "swizzle", &m.swizzle));
  m.ragged = rest && !strcmp(rest, "ragged");
  if (rest && !m.ragged) return fg_fail(FG_EIO, "map %s is \"%.40s\"", m.name, rest);
  const char *why = fg_map_fault(r, &m);
  if (why) return fg_fail(FG_EIO, "map %s: %s", m.name, why);
  r->map[r->n_maps++] = m;
  return FG_OK;
}

static fg_status add_step(const fg_step *step, fg_recipe *r) {
  if (r->n_steps == FG_STEP_MAX) return fg_fail(FG_EIO, "too many steps");
  r->step[r->n_steps++] = *step;
  return FG_OK;
}

/* "flags added": regions, each behind the one before. */
static fg_status read_zero(char *rest, fg_recipe *r) {
  fg_step step = {.kind = FG_STEP_ZERO};
  for (const char *name; (name = strsep(&rest, " ")); step.regions++) {
    const int region = find_region(r, name);
    if (region == r->n_regions) return fg_fail(FG_EIO, "no region is \"%.40s\"", name);
    if (step.regions == 0) step.region = region;
    if (region != step.region + step.regions)
      return fg_fail(FG_EIO, "region %s does not lie behind the one before it", name);
  }
  return add_step(&step, r);
}

/* Cuts a launch's line behind its grid at the words that follow, in order; what is after each. */
static bool cut(char *text, int n, const char *const *words, char **after) {
  for (int i = 0; i < n; i++) {
    char *at = strstr(text, words[i]);
    if (!at) return false;
    *at = 0;
    after[i] = text = at + strlen(words[i]);
  }
  return true;
}

/* "168 cluster 2 resident 1 early", behind "registers ". */
static fg_status read_attributes(char *rest, fg_step *step) {
  step->cluster = 1;
  TRY(read_number(strsep(&rest, " "), 1, 255, "registers", &step->registers));
  for (char *word; (word = strsep(&rest, " "));) {
    if (!strcmp(word, "cluster"))
      TRY(read_number(strsep(&rest, " "), 2, FG_CLUSTER_MAX, "cluster", &step->cluster));
    else if (!strcmp(word, "resident"))
      TRY(read_number(strsep(&rest, " "), 1, 32, "resident", &step->resident));
    else if (!strcmp(word, "early"))
      step->early = true;
    else
      return fg_fail(FG_EIO, "\"%.40s\" is no attribute of a launch", word);
  }
  return FG_OK;
}

/* "attn_fwd grid EXPR, EXPR, EXPR threads 128 shared 0 registers 80 work EXPR" */
static fg_status read_launch(char *rest, fg_recipe *r) {
  static const char *const words[] = {" threads ", " shared ", " registers ", " work "};
  char *after[4];
  fg_step step = {.kind = FG_STEP_LAUNCH};
  TRY(read_name(strsep(&rest, " "), sizeof step.entry, step.entry));
  if (!rest || strncmp(rest, "grid ", 5) || !cut(rest + 5, 4, words, after))
    return fg_fail(FG_EIO, "%s lacks grid, threads, shared, registers or work", step.entry);
  rest += 5;
  for (int i = 0; i < 3; i++) {
    char *expr = strsep(&rest, ",");
    if (!expr || (i && *expr != ' '))
      return fg_fail(FG_EIO, "the grid of %s is not three expressions", step.entry);
    TRY(read_expr(expr + (i > 0), r, &step.grid[i]));
  }
  TRY(read_number(after[0], 1, 1024, "threads", &step.threads));
  TRY(read_number(after[1], 0, 1 << 20, "shared", &step.shared_bytes));
  TRY(read_attributes(after[2], &step));
  TRY(read_expr(after[3], r, &step.work));
  return add_step(&step, r);
}

/* Dispatches on the first word of a line. */
static fg_status read_line(char *text, fg_recipe *r) {
  static const struct {
    const char *word;
    fg_status (*read)(char *rest, fg_recipe *r);
  } kinds[] = {{"kernel", read_kind},           {"layout", read_layout}, {"align", read_align},
               {"generation", read_generation}, {"takes", read_takes},   {"whole", read_whole},
               {"tensor", read_tensor},         {"input", read_input},   {"number", read_scalar},
               {"region", read_region},         {"map", read_map},       {"zero", read_zero},
               {"launch", read_launch}};
  char *rest = text;
  const char *word = strsep(&rest, " ");
  if (rest && !strcmp(word, fg_recipe_kind(r)->width_field)) return read_widths(rest, r);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (rest && !strcmp(word, kinds[i].word)) return kinds[i].read(rest, r);
  return fg_fail(FG_EIO, "\"%.40s\" begins no line of a recipe", word);
}

/* Zoos that were made while the constants of the cost model stood in recipes have a line of them,
 * which is not read any more. The bytes of that line where the text begins with one, else 0. */
static size_t former_line(const char *text) {
  if (strncmp(text, "cost ", 5)) return 0;
  const size_t n = strcspn(text, "\n");
  return n + (text[n] == '\n');
}

/* The text is the print of the recipe, to the last byte, but for former lines. */
static fg_status check_print(const char *text, const fg_recipe *r) {
  char printed[FG_RECIPE_TEXT];
  int line = 1;
  fg_recipe_print(r, sizeof printed, printed);
  for (const char *a = text, *b = printed; *a || *b; line++) {
    const size_t former = former_line(a), n = strcspn(a, "\n") + 1;
    if (!former && (strncmp(a, b, n) || a[n - 1] != '\n'))
      return fg_fail(FG_EIO, "recipe line %d: it is not spelled as a recipe is", line);
    a += former ? former : n;
    b += former ? 0 : n;
  }
  return FG_OK;
}

fg_status fg_recipe_parse(const char *text, fg_recipe *recipe) {
  fg_recipe r = {.generation = 1};
  char line[FG_RECIPE_LINE], params[FG_RECIPE_TEXT];
  int number = 1;
  for (const char *at = text; *at; number++) {
    size_t n = strcspn(at, "\n");
    if (n >= sizeof line) return fg_fail(FG_EIO, "recipe line %d: it is too long", number);
    memcpy(line, at, n);
    line[n] = 0;
    fg_status status = former_line(at) ? FG_OK : read_line(line, &r);
    if (status != FG_OK) return fg_fail_in(status, "recipe line %d", number);
    at += n + (at[n] == '\n');
  }
  if (!r.width[0] || !r.align || !r.n_tensors || !r.n_steps)
    return fg_fail(FG_EIO, "recipe line %d: it ends before its first step", number);
  TRY(check_print(text, &r));
  if (fg_recipe_params(&r, sizeof params, params) != FG_OK)
    return fg_fail(FG_EIO, "recipe line %d: it has more than a Params struct holds", number);
  *recipe = r;
  return FG_OK;
}
