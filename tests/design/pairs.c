/* pairs.c - pairs of levels: the library's answers, and counts of rows. */
#include "pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 30, ACCEPTED = 1 << 16 };

static unsigned char can[DESIGN_AXES][DESIGN_LEVELS][DESIGN_AXES][DESIGN_LEVELS];
static signed char why[DESIGN_AXES][DESIGN_LEVELS][DESIGN_AXES][DESIGN_LEVELS];
static int witness[DESIGN_AXES][DESIGN_LEVELS][DESIGN_AXES][DESIGN_LEVELS];
static unsigned short count[DESIGN_AXES][DESIGN_LEVELS][DESIGN_AXES][DESIGN_LEVELS];
static int level_witness[DESIGN_AXES][DESIGN_LEVELS]; /* number of an accepted row + 1 */
static signed char level_why[DESIGN_AXES][DESIGN_LEVELS];
static design_row accepted[ACCEPTED];
static int n_accepted;

int pairs_below(pairs *s, int n) {
  s->random = s->random * 6364136223846793005u + 1442695040888963407u;
  return (int)((s->random >> 33) % (uint64_t)n);
}

static bool is_compiled(const pairs *s, int a) { return s->d->axis[a].part <= DESIGN_PLANS; }
static bool is_spec(const pairs *s, int a) { return s->d->axis[a].part == DESIGN_SPEC; }

design_row pairs_default(const pairs *s) {
  design_row row = {.seed = 0};
  design_settle(s->d, &row);
  return row;
}

/* ---- the library's answers ---- */

static void remember(pairs *s, design_row row, uint64_t plans) {
  if (n_accepted == ACCEPTED) return;
  for (int plan = 0; plan < s->d->axis[s->d->plan].n; plan++) {
    if (!(plans >> plan & 1) || n_accepted == ACCEPTED) continue;
    row.level[s->d->plan] = (signed char)plan;
    bool is_new = false;
    for (int a = 0; a < s->d->n; a++) {
      const int x = row.level[a];
      if (!is_compiled(s, a) || x < 0) continue;
      if (!level_witness[a][x]) level_witness[a][x] = n_accepted + 1, is_new = true;
      for (int b = a + 1; b < s->d->n; b++) {
        const int y = row.level[b];
        if (!is_compiled(s, b) || y < 0 || can[a][x][b][y] == PAIR_CAN) continue;
        can[a][x][b][y] = PAIR_CAN, witness[a][x][b][y] = n_accepted, is_new = true;
      }
    }
    if (is_new) accepted[n_accepted++] = row;
  }
}

design_answer pairs_ask(pairs *s, const design_row *row) {
  design_answer answer;
  char line[DESIGN_TEXT];
  const fg_status status = design_ask(s->gen, s->d, row, &answer);
  if (status != FG_OK || (!answer.accepted && answer.rule == -1)) {
    design_spec_words(s->d, row, sizeof line, line);
    fprintf(stderr, "no rule explains it: %s\n  %s\n", line, fg_error());
    exit(EXIT_FAILURE);
  }
  if (answer.accepted) remember(s, *row, answer.plans);
  return answer;
}

/* Gives an axis that needs words a meaning by a level of an axis that is not in the pair. `turn`
 * chooses among these. False: there is none. */
static bool give_meaning(const pairs *s, design_row *row, int axis, int level, pair p, int turn) {
  const design *d = s->d;
  int found = 0;
  row->level[axis] = (signed char)level;
  if (!d->axis[axis].needs) return true;
  design_settle(d, row);
  if (row->level[axis] >= 0) return row->level[axis] = (signed char)level, true;
  for (int pass = 0; pass < 2; pass++) {
    int number = 0;
    for (int a = 0; a < d->n; a++)
      for (int x = 0; x < d->axis[a].n && is_spec(s, a) && a != p.a && a != p.b; x++) {
        if (!strstr(d->axis[a].level[x], d->axis[axis].needs)) continue;
        if (pass && number++ == turn % found) row->level[a] = (signed char)x;
        found += !pass;
      }
    if (!found) return false;
  }
  design_settle(d, row);
  row->level[axis] = (signed char)level;
  return true;
}

/* The row with both levels of the pair. False: one leaves the other without a meaning. */
static bool with_pair(const pairs *s, design_row *row, pair p, int turn) {
  if (p.b >= 0) row->level[p.b] = (signed char)p.y;
  row->level[p.a] = (signed char)p.x;
  bool good = give_meaning(s, row, p.a, p.x, p, turn);
  if (good && p.b >= 0) good = give_meaning(s, row, p.b, p.y, p, turn);
  design_settle(s->d, row);
  return good && row->level[p.a] == p.x && (p.b < 0 || row->level[p.b] == p.y);
}

static design_row random_row(pairs *s) {
  design_row row = pairs_default(s);
  for (int a = 0; a < s->d->n; a++)
    if (is_spec(s, a) && pairs_below(s, 3) == 0)
      row.level[a] = (signed char)pairs_below(s, s->d->axis[a].n);
  design_settle(s->d, &row);
  return row;
}

static design_row level_row(const pairs *s, int a, int x) {
  return level_witness[a][x] ? accepted[level_witness[a][x] - 1] : pairs_default(s);
}

/* Asks of rows with the pair until one is accepted: the simplest ones first. */
static void find_pair(pairs *s, pair p) {
  signed char *rule = p.b < 0 ? &level_why[p.a][p.x] : &why[p.a][p.x][p.b][p.y];
  *rule = -1;
  for (int i = 0; i < TRIES; i++) {
    design_row row = i == 0   ? level_row(s, p.a, p.x)
                     : i == 1 ? (p.b < 0 ? pairs_default(s) : level_row(s, p.b, p.y))
                              : random_row(s);
    if (!with_pair(s, &row, p, i)) {
      if (i < 2 && p.b >= 0) continue;
      if (p.b >= 0 && *rule < 0 && i == 2) can[p.a][p.x][p.b][p.y] = PAIR_EMPTY;
      if (p.b >= 0 && *rule < 0) return;
      continue;
    }
    const design_answer answer = pairs_ask(s, &row);
    if (answer.accepted) return;
    if (*rule < 0) *rule = (signed char)answer.rule;
  }
}

void pairs_find(pairs *s) {
  const design *d = s->d;
  const design_row usual = pairs_default(s);
  pairs_ask(s, &usual);
  for (int a = 0; a < d->n; a++)
    for (int x = 0; x < d->axis[a].n; x++)
      if (is_spec(s, a) && !level_witness[a][x]) find_pair(s, (pair){a, x, -1, 0});
  for (int a = 0; a < d->n; a++)
    for (int x = 0; x < d->axis[a].n; x++)
      for (int b = a + 1; b < d->n && is_spec(s, a) && level_witness[a][x]; b++)
        for (int y = 0; y < d->axis[b].n && is_spec(s, b); y++)
          if (level_witness[b][y] && !can[a][x][b][y]) find_pair(s, (pair){a, x, b, y});
}

bool pairs_has_level(const pairs *s, int a, int x) {
  return !is_compiled(s, a) || level_witness[a][x] != 0;
}

int pairs_state(const pairs *s, pair p) {
  if (!pairs_has_level(s, p.a, p.x) || !pairs_has_level(s, p.b, p.y)) return PAIR_EMPTY;
  if (!is_compiled(s, p.a) || !is_compiled(s, p.b)) return PAIR_CAN;
  return can[p.a][p.x][p.b][p.y];
}

int pairs_rule(const pairs *s, pair p) {
  if (p.b < 0) return level_why[p.a][p.x];
  return p.a == s->d->plan || p.b == s->d->plan ? design_rule_find("plan")
                                                : why[p.a][p.x][p.b][p.y];
}

design_row pairs_witness(const pairs *s, pair p) {
  if (is_compiled(s, p.a) && is_compiled(s, p.b)) return accepted[witness[p.a][p.x][p.b][p.y]];
  return is_compiled(s, p.a)   ? level_row(s, p.a, p.x)
         : is_compiled(s, p.b) ? level_row(s, p.b, p.y)
                               : accepted[0];
}

/* ---- counts ---- */

bool pairs_counts(const pairs *s, const design_row *row, const char *line, int a, int b) {
  char own[DESIGN_TEXT];
  if (!design_wanted(s->d, a, b) || !design_shows(s->d, row, a, b)) return false;
  for (int i = 0; i < s->n_known; i++) {
    if (!design_has_words(line, s->known[i].words)) continue;
    const char *x = s->d->axis[a].level[row->level[a]], *y = s->d->axis[b].level[row->level[b]];
    snprintf(own, sizeof own, "%s %s %s", s->d->words, x ? x : "", y ? y : "");
    if (!design_has_words(own, s->known[i].words)) return false;
  }
  return true;
}

/* Calls `each` for every pair that the row counts for, until it returns false. */
static void for_each(pairs *s, const design_row *row, bool (*each)(pair, void *), void *context) {
  char line[DESIGN_TEXT];
  design_line(s->d, row, sizeof line, line);
  for (int a = 0; a < s->d->n; a++)
    for (int b = a + 1; b < s->d->n; b++) {
      if (row->level[a] < 0 || row->level[b] < 0 || !pairs_counts(s, row, line, a, b)) continue;
      if (!each((pair){a, row->level[a], b, row->level[b]}, context)) return;
    }
}

static bool add_gain(pair p, void *n) {
  *(int *)n += !count[p.a][p.x][p.b][p.y];
  return true;
}

int pairs_gain(pairs *s, const design_row *row) {
  int n = 0;
  for_each(s, row, add_gain, &n);
  return n;
}

static bool add_count(pair p, void *times) {
  count[p.a][p.x][p.b][p.y] = (unsigned short)(count[p.a][p.x][p.b][p.y] + *(int *)times);
  return true;
}

void pairs_add(pairs *s, const design_row *row, int times) { for_each(s, row, add_count, &times); }

int pairs_count(const pairs *s, pair p) { return (void)s, count[p.a][p.x][p.b][p.y]; }

static bool exceeds(pair p, void *most) {
  if (count[p.a][p.x][p.b][p.y] > *(int *)most) return true;
  *(int *)most = -1;
  return false;
}

bool pairs_is_spare(pairs *s, const design_row *row, int most) {
  for_each(s, row, exceeds, &most);
  return most >= 0;
}
