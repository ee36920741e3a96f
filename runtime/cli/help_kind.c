/* help_kind.c - the kinds of kernels: what a launch of each takes, a page a kind. */
#include "help.h"

#include "base/setting.h"
#include "base/text.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

/* What a recipe says of an argument: bit 0 forward, bit 1 backward. */
typedef struct {
  unsigned reads, writes;
  const char *with; /* the first word under which a launch has it; NULL: none yet */
  bool optional;
} use;

/* Under which case the recipes of a kind have each argument; takes: the numbers of their launches.
 */
static fg_status look(fg_gen *gen, const cli_case *list, int n, const fg_kind *kind, use *uses,
                      unsigned *takes) {
  bool is_plain = true;
  for (int i = 0; i < n; i++) {
    if (list[i].kind != kind) continue;
    for (int p = 0; p < CLI_PASSES; p++) {
      fg_planned *planned;
      int n_planned;
      if (!list[i].has[p]) continue;
      fg_status status =
          fg_gen_candidates(gen, &list[i].at[p], FG_ARCH_USUAL, NULL, &planned, &n_planned);
      if (status == FG_ESPEC) continue; /* nothing computes it on the usual arch */
      TRY(status);
      for (int t = 0; t < planned[0].recipe.n_tensors; t++) {
        const fg_recipe_tensor *tensor = &planned[0].recipe.tensor[t];
        if (tensor->slot >= 0) continue;
        const fg_argument *known = fg_argument_find(kind, tensor->argument->name);
        use *u = &uses[known - fg_arguments];
        if (!u->with) u->with = is_plain ? "" : list[i].label;
        *(tensor->output ? &u->writes : &u->reads) |= 1u << p;
        u->optional |= tensor->optional;
      }
      *takes |= planned[0].recipe.takes;
      free(planned);
    }
    is_plain = false;
  }
  return FG_OK;
}

static void list_uses(const use *u, size_t size, char *text) {
  static const char *const passes[] = {"forward", "backward"};
  int n = 0;
  *text = 0;
  for (int p = 0; p < CLI_PASSES; p++) {
    const bool reads = u->reads >> p & 1, writes = u->writes >> p & 1;
    if (reads || writes)
      n = fg_append(size, text, n, "%s%s: %s", n ? ", " : "", passes[p],
                    reads && writes ? "in, out"
                    : reads         ? "in"
                                    : "out");
  }
}

static const char *rule_name(fg_elem_rule rule) {
  static const char *const names[] = {
      [FG_RULE_SPEC] = "dtype",          [FG_RULE_KV] = "kv_dtype",
      [FG_RULE_O] = "o_dtype",           [FG_RULE_DQKV] = "dqkv_dtype",
      [FG_RULE_BIAS] = "bias_dtype",     [FG_RULE_GRAD] = "grad_dtype",
      [FG_RULE_WORDS] = "i32",           [FG_RULE_PARTS] = "parts_dtype",
      [FG_RULE_ROTARY] = "rotary_dtype", [FG_RULE_F32] = "f32",
      [FG_RULE_DESCALE] = "f32",         [FG_RULE_I32] = "i32",
      [FG_RULE_COLUMN] = "i32",          [FG_RULE_SAID] = "dtype, or u32 of bits",
      [FG_RULE_INPUT] = "as declared"};
  return names[rule];
}

static void print_tensors(cli_page *page, const fg_kind *kind, const use *uses) {
  cli_page_title(page, 2, "Tensors");
  cli_page_text(page, "Axes are those of dense sequences, the slowest first. A tensor is a member "
                      "of fg_args, by its name unless the page says otherwise.");
  cli_page_table(page, 6,
                 (const cli_column[]){{"`tensor", 14},
                                      {"`axes", 26},
                                      {"type", 12},
                                      {"passes", 26},
                                      {"`with", 22},
                                      {"meaning", 0}});
  for (int i = 0; i < FG_ARGUMENTS; i++) {
    const fg_argument *a = &fg_arguments[i];
    char axes[128], passes[64], help[256];
    if (!uses[i].with || fg_argument_find(kind, a->name) != a) continue;
    fg_axes_print(a->axes, sizeof axes, axes);
    list_uses(&uses[i], sizeof passes, passes);
    snprintf(help, sizeof help, "%s%s%s%s%s", a->help, uses[i].optional ? "; may be NULL" : "",
             strcmp(a->name, a->ident) ? "; fg_args." : "",
             strcmp(a->name, a->ident) ? a->ident : "", a->contiguous ? "; contiguous" : "");
    cli_page_row(page,
                 (const char *[]){a->name, axes, rule_name(a->elem), passes, uses[i].with, help});
  }
  cli_page_end(page);
}

/* The tensors whose axes a layout changes, among those that rows or keys have. */
static void print_layouts(cli_page *page, const fg_kind *kind, const use *uses) {
  static const struct {
    const char *words;
    fg_layout layout;
    unsigned passes; /* that have it: bit 0 forward, bit 1 backward */
  } layouts[] = {{"q_layout=packed kv_layout=packed", {.q = FG_PACKED, .kv = FG_PACKED}, 3},
                 {"kv_layout=cached", {.kv = FG_CACHED}, 1},
                 {"kv_layout=paged", {.kv = FG_PAGED}, 1}};
  if (!fg_kind_has_field(kind, FG_FIELD_KV_LAYOUT)) return;
  cli_page_title(page, 2, "Axes in other layouts");
  cli_page_text(page, "Packed sequences have one axis of tokens in place of batch and length; "
                      "starts_q and starts_k say where each sequence begins. A bias of packed "
                      "sequences runs over all tokens, and its batch is 1 (bias_dims without b).");
  cli_page_table(page, 3, (const cli_column[]){{"`layout", 33}, {"`tensor", 10}, {"`axes", 0}});
  for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
    for (int i = 0; i < FG_ARGUMENTS; i++) {
      const fg_argument *a = &fg_arguments[i];
      char laid[FG_AXES_MAX + 1], axes[128];
      const bool has_pass = ((uses[i].reads | uses[i].writes) & layouts[l].passes) != 0;
      if (!has_pass || a->elem == FG_RULE_I32 || fg_argument_find(kind, a->name) != a) continue;
      fg_layout_axes(layouts[l].layout, a->axes, laid);
      if (!strcmp(laid, a->axes)) continue;
      if (*laid == 'b' && layouts[l].layout.q == FG_PACKED) *laid = '1'; /* broadcast */
      fg_axes_print(laid, sizeof axes, axes);
      cli_page_row(page, (const char *[]){layouts[l].words, a->name, axes});
    }
  cli_page_end(page);
}

static void print_extents(cli_page *page, const fg_kind *kind) {
  cli_page_title(page, 2, "Extents of a launch");
  cli_page_text(page, "Members of fg_shape; run, check and bench take them as words.");
  cli_page_table(page, 3, (const cli_column[]){{"`extent", 10}, {"meaning", 18}, {"when", 0}});
  for (int i = 0; i < FG_EXTENTS; i++) {
    const fg_extent_row *e = &fg_extents[i];
    if (!fg_form_has(kind->form, e->letter)) continue;
    cli_page_row(page, (const char *[]){e->name, e->title,
                                        strchr(kind->form->layout, e->letter)
                                            ? "layouts that have it; else 0"
                                            : "always"});
  }
  cli_page_end(page);
}

static void print_fields(cli_page *page, const fg_kind *kind) {
  cli_page_title(page, 2, "Fields of its specs");
  const char *between = "";
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    const char *name = fg_fields[i].name;
    if (!fg_kind_has_field(kind, i)) continue;
    fputs(between, page->to);
    between = ", ";
    if (page->markdown)
      fprintf(page->to, "[`%s`](../fields/%s.md#%s)", name, cli_help_field_page(&fg_fields[i]),
              name);
    else
      fputs(name, page->to);
  }
  fputs(page->markdown ? ".\n\n" : ".\n", page->to);
}

/* Numbers that only some specs have are told by what such a spec says. */
static void print_numbers(cli_page *page, const fg_kind *kind, unsigned takes) {
  if (!kind->has_scale && !takes) return;
  cli_page_title(page, 2, "Numbers of a launch");
  cli_page_text(page, "Members of fg_args that are given at launch and never compiled in; "
                      "fg_args.given says which are set.");
  cli_page_table(page, 2, (const cli_column[]){{"`number", 14}, {"of specs with", 0}});
  if (kind->has_scale)
    cli_page_row(page, (const char *[]){"scale", "every spec; 1 / sqrt(d) if not given"});
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++)
    if (takes >> i & 1)
      cli_page_row(page, (const char *[]){fg_launch_numbers[i].name, fg_launch_numbers[i].belongs});
  cli_page_end(page);
}

static const char *kind_name(const cli *c, int i) {
  (void)c;
  return i < FG_KINDS ? fg_kinds[i].name : NULL;
}

static fg_status print_kind(cli_page *page, const cli *c, int i) {
  (void)c;
  const fg_kind *kind = &fg_kinds[i];
  use uses[FG_ARGUMENTS] = {{0}};
  cli_case *cases = NULL;
  fg_gen *gen = NULL;
  unsigned takes = 0;
  int n;
  fg_status status = FG_OK;
  TRY_OUT(fg_gen_new(fg_setting_text(FG_SET_TEMPLATES, NULL), &gen));
  TRY_OUT(cli_cases_make(&cases, &n));
  TRY_OUT(look(gen, cases, n, kind, uses, &takes));
  cli_page_title(page, 1, "kernel=%s", kind->name);
  print_fields(page, kind);
  print_extents(page, kind);
  print_tensors(page, kind, uses);
  print_layouts(page, kind, uses);
  print_numbers(page, kind, takes);
out:
  fg_gen_free(gen);
  free(cases);
  return status;
}

const cli_topic cli_topic_kinds = {.name = "kinds",
                                   .line = "what a launch of each kind of kernel takes",
                                   .page = kind_name,
                                   .print = print_kind};
