/* t_emit.c - the emitted text over a grid of specs: one style, nothing unused, and lines that
 * know where they come from. */
#include "expand/embedded.h"
#include "expand/expand.h"
#include "scratch.h"
#include "suite.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TENTHS = 10 };
static const char *const archs[] = {"host", "sm_90a"};
static fg_gen *gen;
static fg_grid *grid;

static void enter(void) {
  scratch_enter();
  ck_assert_int_eq(fg_gen_new(NULL, &gen), FG_OK);
}

static void leave(void) {
  fg_gen_free(gen);
  fg_grid_free(grid);
  gen = NULL, grid = NULL;
  scratch_leave();
}

static void read_grid(int n, const char *const *words) {
  fg_grid_free(grid);
  grid = NULL;
  ck_assert_msg(fg_grid_read(0, NULL, n, words, &grid) == FG_OK, "%s", fg_error());
}

/* Every mask, bias and dtype, in both passes; then every set of bias dims. */
static const char *const wide[] = {"pass=forward,backward",
                                   "dtype=bf16,f16",
                                   "mask=full,causal",
                                   "bias=false,true,grad",
                                   "head_dim=8,40,64,72,128,256,192/128,64/128",
                                   "deterministic=false,true"};
static const char *const deep[] = {"pass=forward,backward",
                                   "head_dim=64,192/128",
                                   "mask=full,causal",
                                   "bias=true,grad",
                                   "bias_dims=[],[b],[h],[q],[k],[b,h],[b,q],[b,k],[h,q],[h,k],[q,"
                                   "k],[b,h,q],[b,h,k],[b,q,k],[h,q,k],"
                                   "[b,h,q,k]",
                                   "bias_dtype=spec,f32",
                                   "grad_dtype=spec,f16"};

typedef void check(const char *name, const fg_source *source);

/* Every plan of simt, and one plan of another family, chosen by the number: they differ in little
 * but numbers. */
static void each_plan(int number, const fg_point *point, const char *arch, check *look) {
  fg_plan *plans = NULL;
  int n = 0, others = 0;
  ck_assert_msg(fg_gen_plans(gen, point, arch, NULL, &plans, &n) == FG_OK, "%s", fg_error());
  while (others < n && strcmp(fg_plan_family(&plans[others]), "simt")) others++;
  ck_assert_int_lt(others, n);
  for (int i = 0; i < n; i++) {
    if (i < others && i != number % others) continue;
    fg_variant variant = {*point, plans[i], ""};
    fg_source *source = NULL;
    char name[FG_NAME_MAX];
    strcpy(variant.arch, arch);
    fg_variant_name(&variant, sizeof name, name);
    if (fg_gen_expand(gen, &variant, &source) != FG_OK) ck_abort_msg("%s", fg_error());
    look(name, source);
    fg_source_free(source);
  }
  free(plans);
}

/* A line without its strings and comment. */
static void code_of(const char *line, size_t n, char *code) {
  bool string = false;
  size_t length = 0;
  for (size_t i = 0; i < n; i++) {
    if (line[i] == '"')
      string = !string;
    else if (!string && line[i] == '/' && i + 1 < n && line[i + 1] == '/')
      break;
    else if (!string)
      code[length++] = line[i];
  }
  code[length] = 0;
}

static int count(const char *text, char c) {
  int n = 0;
  for (; *text; text++) n += *text == c;
  return n;
}

#define EXPECT(condition, what)                                                                    \
  do {                                                                                             \
    if (!(condition)) ck_abort_msg("%s: line %d: %s: %.*s", name, number, what, (int)n, at);       \
  } while (0)

static void look_at_lines(const char *name, const fg_source *source) {
  int number = 0, braces = 0, parens = 0, blank = 1, macro = 0; /* macro: 2 in one */
  bool host = strstr(name, ".host") != NULL;
  char code[512];
  for (const char *at = source->text, *end; *at; at = end + 1) {
    end = strchr(at, '\n');
    size_t n = (size_t)(end - at), lead = strspn(at, " ");
    number++;
    EXPECT(n < 100, "100 columns");
    EXPECT(!memchr(at, '\t', n) && !memchr(at, '\r', n) && !memchr(at, '$', n), "strange text");
    EXPECT(n == 0 || at[n - 1] != ' ', "blank at the end");
    EXPECT(n || !blank, "two blank lines");
    EXPECT(lead % 2 == 0, "odd indentation");
    blank = n == 0;
    code_of(at, n, code);
    EXPECT(!strstr(code, "#include") && !strstr(code, "#line"), "directive");
    EXPECT(!host || !strstr(code, "asm"), "asm on the host");
    bool head = !strncmp(code + lead, "for (", 5) || !strncmp(code + lead, "if (", 4) ||
                !strncmp(code + lead, "while (", 7);
    bool whole = count(code, '(') == count(code, ')');
    EXPECT(!head || !whole || strchr(code, '{'), "no braces");
    int close = code[lead] == '}';
    if (n && !parens && code[lead] && code[lead] != '#' && code[lead] != ':')
      EXPECT((int)lead == 2 * (braces - close) + macro ||
                 (int)lead == 2 * (braces - close) + macro + 4,
             "indentation");
    macro = n && at[n - 1] == '\\' ? 2 : 0;
    braces += count(code, '{') - count(code, '}');
    parens += count(code, '(') - count(code, ')');
    EXPECT(braces >= 0 && parens >= 0, "unbalanced");
  }
  if (braces || parens || number != source->n_lines)
    ck_abort_msg("%s: %d braces, %d parentheses open; %d lines of %d", name, braces, parens, number,
                 source->n_lines);
}

/* What is emitted is used: each helper, constant and member occurs twice or more. */
static int occurrences(const char *text, const char *word, size_t n) {
  int found = 0;
  for (const char *at = text; (at = strstr(at, word)); at++) {
    bool starts = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
    found += starts && !(isalnum((unsigned char)at[n]) || at[n] == '_');
  }
  return found;
}

static void look_at_functions(const char *name, const fg_source *source) {
  for (const char *at = source->text; (at = strstr(at, "\nDEV "));) {
    const char *open = strchr(++at, '('), *start = open;
    while (isalnum((unsigned char)start[-1]) || start[-1] == '_') start--;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)(open - start), start);
    if (occurrences(source->text, word, strlen(word)) < 2)
      ck_abort_msg("%s: %s is not used", name, word);
  }
  char first[FG_NAME_MAX + 8];
  snprintf(first, sizeof first, "// %s\n", name);
  if (strncmp(source->text, first, strlen(first))) ck_abort_msg("%s: no header", name);
  const char *again = strstr(source->text, "// again:  flashgen emit");
  if (!again || !strstr(again, name)) ck_abort_msg("%s: no command", name);
}

/* Each line that has a place has it in a template that exists and is that long. */
static void look_at_places(const char *name, const fg_source *source) {
  int with = 0;
  for (int line = 1; line <= source->n_lines; line++) {
    char place[128];
    if (!fg_source_place(source, line, sizeof place, place)) continue;
    with++;
    char *colon = strchr(place, ':');
    *colon = 0;
    const fg_embedded *file = fg_embedded_find(fg_embedded_templates, place);
    if (!file || atoi(colon + 1) < 1 || atoi(colon + 1) > count(file->text, '\n'))
      ck_abort_msg("%s: line %d is %s line %s", name, line, place, colon + 1);
  }
  if (3 * with < source->n_lines) ck_abort_msg("%s: only %d lines have a place", name, with);
}

static void look(const char *name, const fg_source *source) {
  look_at_lines(name, source);
  look_at_functions(name, source);
  look_at_places(name, source);
}

/* A tenth of the points of one of four pairs of grid and arch. */
TEST_TENTH(whole_grid, 4 * TENTHS) {
  const int pair = _i / TENTHS, w = pair / 2, arch = pair % 2;
  read_grid(w ? 7 : 6, w ? deep : wide);
  ck_assert_int_gt(grid->n, 100);
  for (int i = _i % TENTHS; i < grid->n; i += TENTHS)
    each_plan(i / TENTHS + _i, &grid->point[i], archs[arch], look);
}

static void has_place(const fg_source *source, const char *text, const char *file,
                      const char *there) {
  const char *at = strstr(source->text, text);
  const fg_embedded *template = fg_embedded_find(fg_embedded_templates, file);
  ck_assert_msg(at && template && strstr(template->text, there), "%s", text);
  int line = 1, origin = 1;
  for (const char *c = source->text; c < at; c++) line += *c == '\n';
  for (const char *c = template->text; c < strstr(template->text, there); c++) origin += *c == '\n';
  char place[128], expected[128];
  fg_source_place(source, line, sizeof place, place);
  snprintf(expected, sizeof expected, "%s:%d", file, origin);
  ck_assert_str_eq(place, expected);
}

TEST(places_are_right) {
  fg_variant variant;
  fg_source *source = NULL;
  char place[64] = "x";
  ck_assert_int_eq(fg_variant_parse("attn_fwd-bf16-d64.simt-q16-k32-w4.host", &variant), FG_OK);
  ck_assert_int_eq(fg_gen_expand(gen, &variant, &source), FG_OK);
  has_place(source, "// O += P V", "attention/simt/forward.cut", "// O += P V");
  has_place(source, "DEV void add_rows(", "tile/rows.cut", "DEV void add_rows(");
  has_place(source, "DEV float to_f32(", "tile/rows.cut", "DEV float to_f32(");
  has_place(source, "fgh->shared_load(address, v, 16);", "host/base.cut",
            "fgh->shared_load(address, v, 16);");
  has_place(source, "#define ALL_LANES", "prelude.cut", "#define ALL_LANES");
  has_place(source, "typedef struct fgh_api", "host/api.cut", "typedef struct fgh_api");
  static const int none[] = {0, -1, 1, 1 << 30};
  for (int i = 0; i < 4; i++) {
    ck_assert_int_eq(fg_source_place(source, none[i], sizeof place, place), 0);
    ck_assert_str_eq(place, "");
  }
  ck_assert_int_eq(fg_source_place(source, source->n_lines + 1, sizeof place, place), 0);
  fg_source_free(source);
}

/* Every choice of a field has its hook: all expand, each to a text of its own. */
TEST(every_kind_has_its_texts) {
  for (int i = 0; i < FG_KINDS; i++) {
    char kind[64], width[64];
    const char *words[5] = {kind, width};
    int n = 2;
    snprintf(kind, sizeof kind, "kernel=%s", fg_kinds[i].name);
    snprintf(width, sizeof width, "%s=64", fg_kinds[i].width_field);
    if (fg_kind_has_field(&fg_kinds[i], FG_FIELD_PASS)) words[n++] = "pass=forward,backward";
    if (fg_kind_has_field(&fg_kinds[i], FG_FIELD_ROTARY))
      words[n++] = "rotary=none,halves,interleaved", words[n++] = "kv_layout=cached,paged";
    read_grid(n, words);
    for (int p = 0; p < grid->n; p++)
      for (int a = 0; a < 2; a++) each_plan(p + a, &grid->point[p], archs[a], look_at_lines);
  }
}

/* One field of attention. */
TEST_TENTH(every_choice_has_its_hook, FG_SPEC_FIELDS - FG_FIELD_KERNEL - 1) {
  const fg_field *field = &fg_fields[FG_FIELD_KERNEL + 1 + _i];
  if (fg_kind_has_spec_field(fg_kinds, field))
    for (int c = 0; field->type->choice && field->type->choice(field, c); c++) {
      char word[64];
      const bool is_cache = !strcmp(field->name, "kv_layout") && c > FG_PACKED;
      const bool is_e4m3 = !strcmp(field->type->choice(field, c), "e4m3");
      const char *passes = is_cache || is_e4m3 ? "pass=forward" : "pass=forward,backward";
      const char *words[] = {word, "head_dim=64", passes, "bias=grad"};
      if (!strcmp(field->name, "dtype") && c == FG_ELEM_F32)
        continue; /* no tensor of attention's */
      if (!strcmp(field->name, "o_dtype") && strstr(field->type->choice(field, c), "f16"))
        continue; /* of e4m3 */
      int n = !strcmp(field->name, "pass") || !strcmp(field->name, "bias") ? 2 : 4;
      snprintf(word, sizeof word, "%s=%s", field->name, field->type->choice(field, c));
      read_grid(n, words);
      for (int p = 0; p < grid->n; p++)
        for (int a = 0; a < 2; a++) each_plan(p + a, &grid->point[p], archs[a], look_at_lines);
    }
}

TEST_FIXTURE(enter, leave)
