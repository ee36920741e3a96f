/* make_design.c - writes tests/design/NAME.txt and NAME.unmet.txt: the rows of a design, and the
 * pairs of levels that no row has, each with its rule.
 *
 *   make_design FOLDER NAME
 *
 * Rows of the old file stay where they still serve. Then each pair that no row has gets the best of
 * some random rows. Equal files in, equal files out. */
#include "pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4000, TOGETHER = 3, ATTEMPTS = 4, SHAPES = 400, SHAPES_MUST = 6000, REPAIRS = 12 };

static design_row rows[ROWS];
static int n_rows, next_seed;

static bool is_compiled(const pairs *s, int a) { return s->d->axis[a].part <= DESIGN_PLANS; }

/* ---- a row for a pair ---- */

static bool in_pair(int a, pair p) { return a == p.a || a == p.b; }

/* Known faults of the row that the pair does not have by itself. */
static bool is_faulty(const pairs *s, const design_row *row, pair p) {
  char line[DESIGN_TEXT], own[DESIGN_TEXT];
  const char *x = s->d->axis[p.a].level[p.x], *y = s->d->axis[p.b].level[p.y];
  design_line(s->d, row, sizeof line, line);
  snprintf(own, sizeof own, "%s %s %s", s->d->words, x ? x : "", y ? y : "");
  for (int i = 0; i < s->n_known; i++)
    if (design_has_words(line, s->known[i].words) && !design_has_words(own, s->known[i].words))
      return true;
  return false;
}

/* Is there a spec of the row with one of its plans, and the plan of the pair? Chooses the plan. */
static bool choose_plan(pairs *s, design_row *row, pair p) {
  const int plan = s->d->plan;
  const design_answer answer = pairs_ask(s, row);
  const int wanted = p.a == plan ? p.x : p.b == plan ? p.y : -1;
  int best = -1, most = -1;
  for (int x = 0; answer.accepted && x < s->d->axis[plan].n; x++) {
    if (!(answer.plans >> x & 1) || (wanted >= 0 && x != wanted)) continue;
    int gains = 0;
    for (int a = 0; a < s->d->n; a++)
      if (a != plan && is_compiled(s, a) && row->level[a] >= 0)
        gains += !pairs_count(s, a < plan ? (pair){a, row->level[a], plan, x}
                                          : (pair){plan, x, a, row->level[a]});
    if (gains > most) best = x, most = gains;
  }
  row->level[plan] = (signed char)best;
  return best >= 0 && !is_faulty(s, row, p);
}

/* Gives each axis of the spec in a random order the level that meets most of the levels before it
 * for the first time, of those that can meet all of them. */
static design_row fill(pairs *s, pair p) {
  const design *d = s->d;
  design_row row = pairs_witness(s, p);
  bool done[DESIGN_AXES] = {false};
  int order[DESIGN_AXES];
  for (int a = 0; a < d->n; a++) {
    const int place = pairs_below(s, a + 1);
    done[a] = in_pair(a, p) && is_compiled(s, a);
    order[a] = order[place], order[place] = a;
  }
  for (int i = 0; i < d->n; i++) {
    const int a = order[i];
    int best = -1, most = -1, same = 0;
    if (done[a] || d->axis[a].part != DESIGN_SPEC) continue;
    for (int x = 0; x < d->axis[a].n; x++) {
      int gains = 0;
      bool good = pairs_has_level(s, a, x);
      for (int b = 0; b < d->n && good; b++) {
        if (!done[b] || row.level[b] < 0) continue;
        const pair q = a < b ? (pair){a, x, b, row.level[b]} : (pair){b, row.level[b], a, x};
        good = pairs_state(s, q) != PAIR_UNMET;
        gains += pairs_state(s, q) == PAIR_CAN && !pairs_count(s, q);
      }
      if (!good || gains < most) continue;
      same = gains > most ? 1 : same + 1;
      if (pairs_below(s, same) == 0) best = x;
      most = gains;
    }
    if (best >= 0) row.level[a] = (signed char)best;
    done[a] = true;
  }
  design_settle(d, &row);
  return row;
}

static bool has_pair(const pairs *s, const design_row *row, pair p) {
  return (!is_compiled(s, p.a) || p.a == s->d->plan || row->level[p.a] == p.x) &&
         (!is_compiled(s, p.b) || p.b == s->d->plan || row->level[p.b] == p.y);
}

/* A row with the pair and, of a random one, as much as the library accepts. */
static design_row repaired(pairs *s, pair p) {
  const design *d = s->d;
  const design_row full = fill(s, p);
  design_row row = full;
  if (has_pair(s, &row, p) && choose_plan(s, &row, p)) return row;
  const design_row sure = pairs_witness(s, p);
  bool found = false;
  for (int i = 0; i < REPAIRS && !found; i++) {
    row = full;
    for (int a = 0; a < d->n; a++)
      if (is_compiled(s, a) && pairs_below(s, REPAIRS) <= i) row.level[a] = sure.level[a];
    design_settle(d, &row);
    found = has_pair(s, &row, p) && choose_plan(s, &row, p);
  }
  if (!found) row = sure, choose_plan(s, &row, p);
  for (int a = 0; a < d->n; a++) {
    design_row more = row;
    if (d->axis[a].part != DESIGN_SPEC || row.level[a] == full.level[a] || in_pair(a, p)) continue;
    more.level[a] = full.level[a];
    design_settle(d, &more);
    if (has_pair(s, &more, p) && choose_plan(s, &more, p)) row = more;
  }
  return row;
}

static void random_shape(pairs *s, design_row *row, pair p) {
  const design *d = s->d;
  for (int a = 0; a < d->n; a++)
    if (d->axis[a].part == DESIGN_SHAPE || d->axis[a].part == DESIGN_SEED)
      row->level[a] = (signed char)(a == p.a ? p.x : a == p.b ? p.y : pairs_below(s, d->axis[a].n));
  design_settle(d, row);
}

/* Work of the row, in that of the longest one; what a launch takes whatever its lengths counts too.
 */
static double work(const design *d, const design_row *row) {
  return 0.02 + (double)design_cost(d, row) / (double)d->most;
}

/* Adds the row with the best of some random launches. must: one that counts for the pair. */
static bool add_shape(pairs *s, design_row row, pair p, bool must) {
  design_row best = row;
  double most = 0;
  const pair free_pair = {-1, 0, -1, 0};
  for (int i = 0; i < SHAPES || (must && most == 0 && i < SHAPES_MUST); i++) {
    char line[DESIGN_TEXT];
    random_shape(s, &row, must ? p : free_pair);
    if (design_cost(s->d, &row) > s->d->most) continue;
    design_line(s->d, &row, sizeof line, line);
    if (must &&
        (row.level[p.a] != p.x || row.level[p.b] != p.y || !pairs_counts(s, &row, line, p.a, p.b)))
      continue;
    const double worth = pairs_gain(s, &row) / work(s->d, &row);
    if (worth > most) best = row, most = worth;
  }
  if (most == 0 || n_rows == ROWS) return false;
  best.seed = 2 * next_seed++ + best.level[s->d->seed];
  pairs_add(s, &best, 1);
  rows[n_rows++] = best;
  return true;
}

/* The best of some rows with the pair; others where no launch of it is cheap enough. */
static void add_kernel(pairs *s, pair p) {
  enum { MOST = 400 };
  for (int tried = 0; tried < MOST; tried += ATTEMPTS) {
    design_row best = repaired(s, p);
    int most = pairs_gain(s, &best);
    for (int i = 1; i < ATTEMPTS; i++) {
      const design_row row = repaired(s, p);
      const int gains = pairs_gain(s, &row);
      if (gains > most) best = row, most = gains;
    }
    if (!add_shape(s, best, p, true)) continue;
    for (int i = 1; i < TOGETHER; i++) add_shape(s, best, p, false);
    return;
  }
  fprintf(stderr, "%s: no launch shows the pair %s %d, %s %d\n", s->d->name, s->d->axis[p.a].name,
          p.x, s->d->axis[p.b].name, p.y);
  exit(EXIT_FAILURE);
}

/* ---- all rows ---- */

/* Adds rows for all pairs that can meet; returns how many kernels. */
static int add_rows(pairs *s) {
  const design *d = s->d;
  pair list[1 << 15];
  int n = 0, added = 0;
  for (int a = 0; a < d->n; a++)
    for (int b = a + 1; b < d->n; b++)
      for (int x = 0; x < d->axis[a].n && design_wanted(d, a, b); x++)
        for (int y = 0; y < d->axis[b].n && n < 1 << 15; y++)
          if (pairs_state(s, (pair){a, x, b, y}) == PAIR_CAN) list[n++] = (pair){a, x, b, y};
  for (int i = n - 1; i > 0; i--) {
    const int j = pairs_below(s, i + 1);
    const pair other = list[i];
    list[i] = list[j], list[j] = other;
  }
  for (int i = 0; i < n; i++)
    if (!pairs_count(s, list[i])) add_kernel(s, list[i]), added++;
  return added;
}

/* Has one of the rows a known fault that no other row has? */
static bool is_last_of_fault(const pairs *s, int from, int to, int kept) {
  char line[DESIGN_TEXT];
  for (int k = 0; k < s->n_known; k++) {
    bool own = false, others = false;
    for (int i = 0; i < n_rows; i++) {
      if (i >= kept && i < from) continue; /* it is out */
      design_line(s->d, &rows[i], sizeof line, line);
      if (!design_has_words(line, s->known[k].words)) continue;
      own |= i >= from && i < to, others |= i < from || i >= to;
    }
    if (own && !others) return true;
  }
  return false;
}

/* Takes rows out whose pairs other rows have; first whole kernels. */
static void drop_spare_rows(pairs *s) {
  int kept = 0;
  for (int from = 0, to; from < n_rows; from = to) {
    for (to = from + 1; to < n_rows && design_same_kernel(s->d, &rows[to], &rows[from]);) to++;
    bool spare = true;
    for (int i = from; i < to; i++) pairs_add(s, &rows[i], -1);
    for (int i = from; i < to && spare; i++) spare = pairs_is_spare(s, &rows[i], 0);
    if (spare) spare = !is_last_of_fault(s, from, to, kept);
    for (int i = from; i < to && !spare; i++) pairs_add(s, &rows[i], 1);
    for (int i = from; i < to && !spare; i++) {
      if (pairs_is_spare(s, &rows[i], 1) && !is_last_of_fault(s, i, i + 1, kept))
        pairs_add(s, &rows[i], -1);
      else
        rows[kept++] = rows[i];
    }
  }
  n_rows = kept;
}

static void read_rows(pairs *s, const char *path) {
  char line[DESIGN_TEXT];
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f)) {
    design_row row;
    line[strcspn(line, "\n")] = 0;
    if (!*line || *line == '#' || !design_read_line(s->d, line, &row)) continue;
    if (row.seed / 2 >= next_seed) next_seed = row.seed / 2 + 1;
    const design_answer answer = pairs_ask(s, &row);
    const bool serves = answer.accepted && answer.plans >> row.level[s->d->plan] & 1;
    if (!serves || design_cost(s->d, &row) > s->d->most || n_rows == ROWS) continue;
    pairs_add(s, &row, 1);
    rows[n_rows++] = row;
  }
  if (f) fclose(f);
}

/* ---- files ---- */

static void print_level(FILE *f, const design *d, int a, int x) {
  const char *words = d->axis[a].level[x];
  if (words && *words)
    fprintf(f, "\t%s", words);
  else
    fprintf(f, "\t(%s %d)", d->axis[a].name, x);
}

/* Rules of the pairs and levels that no row has; -1: the same of levels that have no row at all. */
static void print_unmet(FILE *f, const pairs *s, int rule) {
  const design *d = s->d;
  for (int a = 0; a < d->n; a++)
    for (int x = 0; x < d->axis[a].n; x++) {
      if (!pairs_has_level(s, a, x) && pairs_rule(s, (pair){a, x, -1, 0}) == rule) {
        fprintf(f, "%s", design_rules[rule].name);
        print_level(f, d, a, x);
        fprintf(f, "\n");
      }
      int n = 0;
      for (int b = a + 1; b < d->n; b++)
        for (int y = 0; y < d->axis[b].n; y++) {
          const pair p = {a, x, b, y};
          if (!design_wanted(d, a, b) || pairs_state(s, p) != PAIR_UNMET ||
              pairs_rule(s, p) != rule)
            continue;
          if (!n++) fprintf(f, "%s", design_rules[rule].name), print_level(f, d, a, x);
          print_level(f, d, b, y);
        }
      if (n) fprintf(f, "\n");
    }
}

/* The kernels that together have every level, one after the other the one with most new ones. */
static int choose_core(const design *d, int first[], int n_kernels, bool core[]) {
  static bool seen[DESIGN_AXES][DESIGN_LEVELS];
  int n = 0;
  memset(seen, 0, sizeof seen);
  for (;;) {
    int best = -1, most = 0;
    for (int k = 0; k < n_kernels; k++) {
      bool own[DESIGN_AXES][DESIGN_LEVELS] = {{false}};
      int news = 0;
      for (int i = first[k]; i < first[k + 1]; i++)
        for (int a = 0; a < d->n; a++)
          if (rows[i].level[a] >= 0 && !seen[a][rows[i].level[a]] && !own[a][rows[i].level[a]])
            own[a][rows[i].level[a]] = true, news++;
      if (news > most) best = k, most = news;
    }
    if (best < 0) return n;
    core[best] = true, n++;
    for (int i = first[best]; i < first[best + 1]; i++)
      for (int a = 0; a < d->n; a++)
        if (rows[i].level[a] >= 0) seen[a][rows[i].level[a]] = true;
  }
}

static int write_rows(const pairs *s, const char *path) {
  static int first[ROWS + 1];
  static bool core[ROWS];
  int n_kernels = 0;
  for (int i = 0; i < n_rows; i++)
    if (!i || !design_same_kernel(s->d, &rows[i], &rows[i - 1])) first[n_kernels++] = i;
  first[n_kernels] = n_rows;
  memset(core, 0, sizeof core);
  const int n_core = choose_core(s->d, first, n_kernels, core);
  double all = 0;
  for (int i = 0; i < n_rows; i++) all += work(s->d, &rows[i]);
  FILE *f = fopen(path, "w");
  if (!f) return -1;
  for (int pass = 0; pass < 2; pass++) {
    fprintf(f, pass ? "# the other pairs\n" : "# every level\n");
    for (int k = 0; k < n_kernels; k++)
      for (int i = first[k]; i < first[k + 1] && core[k] == !pass; i++) {
        char line[DESIGN_TEXT];
        design_line(s->d, &rows[i], sizeof line, line);
        fprintf(f, "%s\n", line);
      }
  }
  printf("%s: %d rows, %d kernels, %d of them have every level; work %.0f\n", s->d->name, n_rows,
         n_kernels, n_core, all);
  return fclose(f);
}

static int make(const char *folder, const char *name) {
  char path[512];
  static pairs s;
  s.d = design_new(name), s.random = 1;
  if (!s.d) return fprintf(stderr, "there is no design %s\n", name), -1;
  snprintf(path, sizeof path, "%s/known.txt", folder);
  s.n_known = design_known_read(path, s.known);
  if (s.n_known < 0 || fg_gen_new(NULL, &s.gen) != FG_OK) return -1;
  pairs_find(&s);
  next_seed = 500;
  snprintf(path, sizeof path, "%s/%s.txt", folder, name);
  read_rows(&s, path);
  while (add_rows(&s) > 0) continue; /* asking for a row may find plans that are new */
  drop_spare_rows(&s);
  int status = write_rows(&s, path);
  snprintf(path, sizeof path, "%s/%s.unmet.txt", folder, name);
  FILE *f = fopen(path, "w");
  for (int rule = 0; f && design_rules[rule].name; rule++) print_unmet(f, &s, rule);
  if (!f || fclose(f)) status = -1;
  fg_gen_free(s.gen);
  free(s.d);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "make_design FOLDER NAME\n"), EXIT_FAILURE;
  if (!make(argv[1], argv[2])) return EXIT_SUCCESS;
  fprintf(stderr, "no design: %s\n", fg_error());
  return EXIT_FAILURE;
}
