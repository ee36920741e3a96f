/* t_design.c - the files of the designs cover what they claim: each pair of levels is in a row or
 * has a rule, each rule's refusal is the library's, and each of the library's plans is a level. */
#include "design_rules.h"
#include "status.h"
#include "suite.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4000 };

typedef struct table {
  design *d;
  int n, n_core, n_known;
  design_row row[ROWS];
  char *line[ROWS];
  design_known known[DESIGN_KNOWN];
} table;

static unsigned char met[DESIGN_AXES][DESIGN_LEVELS][DESIGN_AXES][DESIGN_LEVELS];
static unsigned char unmet[DESIGN_AXES][DESIGN_LEVELS][DESIGN_AXES][DESIGN_LEVELS];
static bool is_absent[DESIGN_AXES][DESIGN_LEVELS]; /* a level that no row has */

static FILE *open_file(const char *name, const char *suffix) {
  char path[128];
  snprintf(path, sizeof path, "tests/design/%s%s", name, suffix);
  FILE *f = fopen(path, "r");
  ck_assert_msg(f != NULL, "%s cannot be read", path);
  return f;
}

static table *table_new(const char *name) {
  char text[DESIGN_TEXT];
  table *t = calloc(1, sizeof *t);
  ck_assert_ptr_nonnull(t);
  t->d = design_new(name);
  ck_assert_ptr_nonnull(t->d);
  t->n_known = design_known_read("tests/design/known.txt", t->known);
  ck_assert_int_ge(t->n_known, 0);
  FILE *f = open_file(name, ".txt");
  while (fgets(text, sizeof text, f)) {
    text[strcspn(text, "\n")] = 0;
    if (!strcmp(text, "# the other pairs")) t->n_core = t->n;
    if (!*text || *text == '#') continue;
    ck_assert_int_lt(t->n, ROWS);
    ck_assert_msg(design_read_line(t->d, text, &t->row[t->n]), "no levels: %s", text);
    ck_assert_ptr_nonnull(t->line[t->n++] = strdup(text));
  }
  fclose(f);
  return t;
}

static void table_free(table *t) {
  for (int i = 0; i < t->n; i++) free(t->line[i]);
  free(t->d);
  free(t);
}

static const char *label(const design *d, int a, int x, size_t size, char *text) {
  const char *words = d->axis[a].level[x];
  if (words && *words)
    snprintf(text, size, "%s", words);
  else
    snprintf(text, size, "(%s %d)", d->axis[a].name, x);
  return text;
}

/* The axis and level with that label. */
static void find_level(const design *d, const char *wanted, int *axis, int *level) {
  char text[DESIGN_TEXT];
  for (*axis = 0; *axis < d->n; (*axis)++)
    for (*level = 0; *level < d->axis[*axis].n; (*level)++)
      if (!strcmp(label(d, *axis, *level, sizeof text, text), wanted)) return;
  ck_abort_msg("%s: no level is %s", d->name, wanted);
}

/* A line is the rule, a level, and the levels that do not meet it; without these the level has no
 * row. */
static void read_unmet(const design *d) {
  char text[8 * DESIGN_TEXT];
  FILE *f = open_file(d->name, ".unmet.txt");
  while (fgets(text, sizeof text, f)) {
    char *rest = text, *word;
    int a, x, b, y, n = 0;
    text[strcspn(text, "\n")] = 0;
    const char *rule = strsep(&rest, "\t");
    ck_assert_msg(design_rule_find(rule) >= 0, "%s: no rule is %s", d->name, rule);
    find_level(d, strsep(&rest, "\t"), &a, &x);
    while ((word = strsep(&rest, "\t")) != NULL) {
      find_level(d, word, &b, &y);
      unmet[a][x][b][y] = 1, n++;
    }
    if (!n) is_absent[a][x] = true;
  }
  fclose(f);
}

/* Does a row of a known fault count for the pair? It does where the pair has the fault by itself.
 */
static bool has_own_fault(const table *t, int row, int a, int b) {
  char own[DESIGN_TEXT];
  const signed char *level = t->row[row].level;
  for (int i = 0; i < t->n_known; i++) {
    if (!design_has_words(t->line[row], t->known[i].words)) continue;
    const char *x = t->d->axis[a].level[level[a]], *y = t->d->axis[b].level[level[b]];
    snprintf(own, sizeof own, "%s %s %s", t->d->words, x ? x : "", y ? y : "");
    if (!design_has_words(own, t->known[i].words)) return false;
  }
  return true;
}

static void count_pairs(const table *t) {
  for (int i = 0; i < t->n; i++)
    for (int a = 0; a < t->d->n; a++)
      for (int b = a + 1; b < t->d->n; b++) {
        const int x = t->row[i].level[a], y = t->row[i].level[b];
        if (x >= 0 && y >= 0 && !met[a][x][b][y] && design_wanted(t->d, a, b) &&
            design_shows(t->d, &t->row[i], a, b) && has_own_fault(t, i, a, b))
          met[a][x][b][y] = 1;
      }
}

/* Can axis `child` have a meaning beside level x of axis a? */
static bool has_meaning(const design *d, int child, int a, int x) {
  const char *needs = d->axis[child].needs;
  if (!needs || d->axis[a].part != DESIGN_SPEC) return true;
  for (int c = 0; c < d->n; c++)
    for (int z = 0; z < d->axis[c].n && d->axis[c].part == DESIGN_SPEC; z++)
      if (c != child && (c != a || z == x) && strstr(d->axis[c].level[z], needs)) return true;
  return false;
}

START_TEST(pairs_are_covered) {
  table *t = table_new(design_names[_i]);
  const design *d = t->d;
  char one[DESIGN_TEXT], other[DESIGN_TEXT];
  int pairs = 0, without = 0;
  read_unmet(d);
  count_pairs(t);
  for (int a = 0; a < d->n; a++)
    for (int b = a + 1; b < d->n; b++)
      for (int x = 0; x < d->axis[a].n && design_wanted(d, a, b); x++)
        for (int y = 0; y < d->axis[b].n; y++) {
          label(d, a, x, sizeof one, one), label(d, b, y, sizeof other, other);
          const bool has_rule = unmet[a][x][b][y] || is_absent[a][x] || is_absent[b][y];
          ck_assert_msg(!met[a][x][b][y] || !has_rule, "%s: a row has %s and %s, which have a rule",
                        d->name, one, other);
          if (!has_meaning(d, b, a, x) || !has_meaning(d, a, b, y)) continue;
          ck_assert_msg(met[a][x][b][y] || has_rule, "%s: no row has %s and %s", d->name, one,
                        other);
          pairs += met[a][x][b][y], without += has_rule;
        }
  printf("%s: %d pairs of levels meet, %d have a rule\n", d->name, pairs, without);
  table_free(t);
}
END_TEST

START_TEST(first_rows_have_every_level) {
  bool seen[DESIGN_AXES][DESIGN_LEVELS] = {{false}};
  table *t = table_new(design_names[_i]);
  for (int i = 0; i < t->n; i++)
    for (int a = 0; a < t->d->n; a++) {
      const int x = t->row[i].level[a];
      if (x < 0) continue;
      ck_assert_msg(i < t->n_core || seen[a][x], "%s: the first rows lack a level of %s: %s",
                    t->d->name, t->d->axis[a].name, t->line[i]);
      seen[a][x] = true;
    }
  table_free(t);
}
END_TEST

/* The plans of each spec are levels, and its own is one of them. */
static void ask_specs(int number, bool core) {
  table *t = table_new(design_names[number]);
  const int known_plans = t->d->axis[t->d->plan].n;
  fg_gen *gen;
  GOOD(fg_gen_new(NULL, &gen));
  for (int i = core ? 0 : t->n_core; i < (core ? t->n_core : t->n); i++) {
    design_answer answer;
    if (i && design_same_kernel(t->d, &t->row[i], &t->row[i - 1])) continue;
    GOOD(design_ask(gen, t->d, &t->row[i], &answer));
    ck_assert_msg(answer.accepted, "%s: %s", t->line[i], fg_error());
    ck_assert_msg(answer.plans >> t->row[i].level[t->d->plan] & 1, "no such plan: %s", t->line[i]);
    ck_assert_msg(t->d->axis[t->d->plan].n == known_plans, "a plan has no row: %s: %s", t->line[i],
                  t->d->axis[t->d->plan].level[known_plans]);
  }
  fg_gen_free(gen);
  table_free(t);
}

START_TEST(plans_are_levels) { ask_specs(_i, true); }
END_TEST
START_TEST(plans_of_all_rows_are_levels) { ask_specs(_i, false); }
END_TEST

START_TEST(refusals_follow_rules) {
  const design_rule *rule = &design_rules[_i];
  char family[16] = "mma";
  const char *at = strstr(rule->words, "family=");
  fg_gen *gen;
  fg_variant *list = NULL;
  int n;
  if (at) sscanf(at, "family=%15s", family);
  GOOD(fg_gen_new(NULL, &gen));
  ck_assert_int_eq(words_variants(gen, rule->words, "host", 0, &list, &n), FG_ESPEC);
  ck_assert_msg(design_rule_of(family, fg_error()) == _i, "%s: %s: %s", rule->name, rule->words,
                fg_error());
  free(list);
  fg_gen_free(gen);
}
END_TEST

/* A fault that no row has cannot be seen to be mended. */
START_TEST(faults_have_rows) {
  design_known known[DESIGN_KNOWN];
  bool has_row[DESIGN_KNOWN] = {false};
  const int n = design_known_read("tests/design/known.txt", known);
  for (int i = 0; design_names[i]; i++) {
    table *t = table_new(design_names[i]);
    for (int row = 0; row < t->n; row++)
      for (int k = 0; k < n; k++) has_row[k] |= design_has_words(t->line[row], known[k].words);
    table_free(t);
  }
  for (int k = 0; k < n; k++)
    ck_assert_msg(has_row[k], "fault %s has no row: %s", known[k].fault, known[k].words);
}
END_TEST

int main(void) {
  int designs = 0, rules = 0;
  while (design_names[designs]) designs++;
  while (design_rules[rules].name) rules++;
  Suite *suite = suite_create("design");
  TCase *cases = tcase_create("design");
  suite_loop(cases, pairs_are_covered, designs);
  suite_loop(cases, first_rows_have_every_level, designs);
  suite_loop(cases, plans_are_levels, designs);
  suite_tenth(cases, plans_of_all_rows_are_levels, designs);
  suite_loop(cases, refusals_follow_rules, rules);
  suite_add(cases, faults_have_rows);
  suite_add_tcase(suite, cases);
  return suite_run(suite);
}
