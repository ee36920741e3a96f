/* wisdom.c - `flashgen wisdom`: files of measurements, shown, checked, joined. */
#include "cli.h"

#include "base/spelling.h"
#include "wisdom/shipped.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Tables of measurements, for tune and report too ------------------------------------------- */

void cli_measured_json(const fg_measured *m, int first) {
  char text[FG_WISDOM_LINE];
  const char *key, *separator = "";
  fg_measured_value value;
  printf("%s\n  {", first ? "" : ",");
  for (int i = 0; (key = fg_measured_field(m, i, sizeof text, text, &value)); i++) {
    if (!*text) continue;
    printf("%s\"%s\": ", separator, key);
    separator = ", ";
    if (value == FG_VALUE_TEXT)
      cli_json_string(stdout, text);
    else if (value == FG_VALUE_SHAPE)
      cli_json_shape(stdout, fg_shape_form_of(&m->shape), &m->shape);
    else
      printf("%s", strpbrk(text, "in") ? "null" : text); /* inf, nan */
  }
  printf("}");
}

void cli_measured_csv(const fg_measured *m) {
  static const fg_measured none;
  char text[FG_WISDOM_LINE];
  const char *key;
  fg_measured_value value;
  for (int i = 0; (key = fg_measured_field(m ? m : &none, i, sizeof text, text, &value)); i++) {
    if (i) putchar(',');
    if (!m) {
      printf("%s", key);
      continue;
    }
    bool quoted = strpbrk(text, ",\"") != NULL;
    if (quoted) putchar('"');
    for (const char *c = text; *c; c++) printf(*c == '"' ? "\"\"" : "%c", *c);
    if (quoted) putchar('"');
  }
  putchar('\n');
}

void cli_measured_row(const fg_measured *m) {
  char shape[FG_BRIEF_MAX], time[32] = "";
  fg_shape_brief(&m->shape, sizeof shape, shape);
  if (m->ms > 0) snprintf(time, sizeof time, "%.4f ms", m->ms);
  printf("%-24s %-56s %12s  %s", shape, m->name, time, fg_measured_words[m->status]);
}

void cli_wisdom_warn(const char *path, const fg_wisdom_report *l) {
  if (l->bad)
    fprintf(stderr, "flashgen: %s: %d bad line%s passed over; line %d: %s\n", path, l->bad,
            l->bad == 1 ? " is" : "s are", l->first_bad, l->why);
  if (l->newer)
    fprintf(stderr,
            "flashgen: %s: %d line%s of a newer flashgen %s passed over; this one reads format "
            "%d\n",
            path, l->newer, cli_s(l->newer), l->newer == 1 ? "is" : "are", FG_WISDOM_FORMAT);
}

/* Actions ----------------------------------------------------------------------------------- */

static fg_status read_all(const cli *c, fg_measured_list *list) {
  if (c->n_names == 1) TRY(fg_measured_add(fg_shipped_wisdom, fg_shipped_wisdom_size, list));
  for (int i = 1; i < c->n_names; i++) {
    fg_wisdom w;
    fg_wisdom_report lines;
    TRY(fg_wisdom_read(c->names[i], false, &w));
    fg_wisdom_count(&w, &lines);
    cli_wisdom_warn(c->names[i], &lines);
    fg_status status = fg_measured_add(w.text, w.n, list);
    fg_wisdom_free(&w);
    TRY(status);
  }
  fg_measured_sort(list);
  return FG_OK;
}

/* The fastest of those of one spec, shape and device; with --all every one. */
static bool is_shown(const cli *c, const fg_measured_list *list, int i) {
  if (c->filter && fnmatch(c->filter, list->item[i]->name, 0)) return false;
  if (c->all) return true;
  return fg_measured_counts(list->item[i]) &&
         (i == 0 || !fg_measured_peers(list->item[i - 1], list->item[i]));
}

/* What the next best takes of the winner's time. */
static void show_row(const fg_measured_list *list, int i, const char **device) {
  const fg_measured *m = list->item[i], *next = i + 1 < list->n ? list->item[i + 1] : NULL;
  if (!*device || strcmp(*device, m->device)) printf("%s\n", m->device);
  *device = m->device;
  cli_measured_row(m);
  if (*m->reason) printf(": %s", m->reason);
  bool first = i == 0 || !fg_measured_peers(list->item[i - 1], m);
  if (first && next && fg_measured_peers(m, next) && fg_measured_counts(next) &&
      fg_measured_counts(m) && !next->outdated && next->status == m->status)
    printf(", the next is %.3f times", next->ms / m->ms);
  printf("\n");
}

static int show(cli *c) {
  fg_measured_list list = {0};
  const char *device = NULL;
  int shown = 0;
  fg_status status = read_all(c, &list);
  if (status == FG_OK && c->json) printf("{\"schema\": 2, \"measured\": [");
  if (status == FG_OK && c->csv) cli_measured_csv(NULL);
  for (int i = 0; i < list.n && status == FG_OK; i++) {
    if (!is_shown(c, &list, i)) continue;
    if (c->json)
      cli_measured_json(list.item[i], shown == 0);
    else if (c->csv)
      cli_measured_csv(list.item[i]);
    else
      show_row(&list, i, &device);
    shown++;
  }
  if (status == FG_OK && c->json) printf("\n]}\n");
  if (status == FG_OK && !c->json && !c->csv)
    printf("%d of %d measurement%s\n", shown, list.n, cli_s(list.n));
  fg_measured_free(&list);
  return status == FG_OK ? CLI_OK : cli_fail(status);
}

static void print_report(const char *file, const fg_wisdom_report *r) {
  const int measured = r->good - r->nonsense;
  printf("%s: %d measurement%s", file, measured, cli_s(measured));
  if (r->dropped) printf(", %d of them replaced by later ones", r->dropped);
  if (r->newer) printf(", %d line%s of a newer flashgen", r->newer, cli_s(r->newer));
  if (r->nonsense) printf(", %d line%s that can be of none", r->nonsense, cli_s(r->nonsense));
  if (r->bad) printf(", %d bad line%s", r->bad, cli_s(r->bad));
  printf("\n");
}

static int verify(cli *c) {
  int code = CLI_OK;
  for (int i = 1; i < c->n_names; i++) {
    fg_wisdom w;
    fg_wisdom_report r;
    if (fg_wisdom_read(c->names[i], false, &w) != FG_OK) return cli_fail(FG_EIO);
    fg_wisdom_count(&w, &r);
    fg_wisdom_free(&w);
    print_report(c->names[i], &r);
    if (r.bad) fprintf(stderr, "flashgen: %s line %d: %s\n", c->names[i], r.first_bad, r.why);
    if (r.nonsense)
      fprintf(stderr, "flashgen: %s line %d: %s\n", c->names[i], r.first_nonsense, r.what);
    if (r.bad || r.nonsense) code = CLI_KERNEL;
  }
  return code;
}

static int compact(cli *c) {
  for (int i = 1; i < c->n_names; i++) {
    fg_wisdom_report r;
    fg_status status = fg_wisdom_compact(c->names[i], &r);
    if (status != FG_OK) return cli_fail(status);
    print_report(c->names[i], &r);
    if (r.bad) printf("the bad lines are in %s.bad\n", c->names[i]);
  }
  return CLI_OK;
}

static int merge(cli *c) {
  fg_wisdom_report r;
  fg_status status = fg_wisdom_merge(c->names[1], c->n_names - 2, c->names + 2, &r);
  if (status != FG_OK) return cli_fail(status);
  print_report(c->names[1], &r);
  return CLI_OK;
}

static const struct {
  const char *name;
  int (*act)(cli *c);
  int least; /* files */
} actions[] = {
    {"show", show, 0}, {"verify", verify, 1}, {"compact", compact, 1}, {"merge", merge, 2}};
enum { ACTIONS = sizeof actions / sizeof *actions };

static int run(cli *c) {
  const char *names[ACTIONS], *given = c->n_names ? c->names[0] : "";
  for (int i = 0; i < ACTIONS; i++) {
    names[i] = actions[i].name;
    if (strcmp(names[i], given)) continue;
    if (c->n_names - 1 >= actions[i].least && !c->n_files && !c->n_words) return actions[i].act(c);
    return cli_fail(
        fg_fail(FG_EARGUMENT, "wisdom %s: expected %s", given,
                actions[i].least == 2 ? "the file to merge into, and others" : "files of wisdom"));
  }
  const char *near = fg_nearest(given, names, ACTIONS);
  return cli_fail(
      fg_fail(FG_EARGUMENT, "wisdom: no action \"%s\"%s%s%s; expected show, verify, compact, merge",
              given, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : ""));
}

const cli_command cli_wisdom = {
    .name = "wisdom",
    .line = "what tune has measured: show, verify, compact, merge",
    .usage = "show [FILE ...] | verify FILE ... | compact FILE ... | merge INTO FILE ...",
    .options = " help json csv all filter ",
    .examples =
        "  flashgen wisdom show                   the fastest plans of what comes with flashgen\n"
        "  flashgen wisdom show h200.txt --all --filter 'attn_bwd*'\n"
        "  flashgen wisdom verify h200.txt        is every line whole? exit 1 if one is not\n"
        "  flashgen wisdom compact h200.txt       drops what was measured again since\n"
        "  flashgen wisdom merge h200.txt part1.txt part2.txt    all of them, or nothing\n",
    .run = run};
