/* report.c - `flashgen report`: files of wisdom as a page to look at. */
#include "report.h"

#include "base/setting.h"
#include "wisdom/shipped.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static fg_status nothing(const report_file *f) {
  const fg_wisdom_report *l = &f->lines;
  if (l->bad)
    return fg_fail(FG_EARGUMENT, "%s has no measurement: line %d: %s", f->path, l->first_bad,
                   l->why);
  if (l->newer)
    return fg_fail(FG_EARGUMENT,
                   "%s has no measurement that can be read: its %d lines are of a newer flashgen, "
                   "this one reads format %d",
                   f->path, l->newer, FG_WISDOM_FORMAT);
  return fg_fail(FG_EARGUMENT, "%s has no measurement", f->path);
}

static fg_status read_file(report *r, const char *path) {
  report_file *f = &r->file[r->n_files];
  fg_wisdom w;
  TRY(fg_wisdom_read(path, false, &w));
  f->path = path;
  r->n_files++;
  fg_wisdom_count(&w, &f->lines);
  fg_status status = f->lines.good ? fg_measured_add(w.text, w.n, &r->list) : nothing(f);
  fg_wisdom_free(&w);
  if (status == FG_OK) cli_wisdom_warn(path, &f->lines); /* on the page, too */
  return status;
}

/* Those that --filter leaves. */
static fg_status filter(report *r) {
  int n = 0;
  for (int i = 0; i < r->list.n; i++) {
    fg_measured *m = r->list.item[i];
    if (r->c->filter && fnmatch(r->c->filter, m->name, 0))
      free(m);
    else
      r->list.item[n++] = m;
  }
  r->list.n = n;
  return n ? FG_OK : fg_fail(FG_EARGUMENT, "no variant matches --filter %s", r->c->filter);
}

static fg_status read_all(report *r) {
  const cli *c = r->c;
  if (c->n_files || c->n_words)
    return fg_fail(FG_EARGUMENT, "%s: report takes files of wisdom",
                   c->n_files ? c->files[0] : c->words[0]);
  if (!(r->file = calloc((size_t)c->n_names + 1, sizeof *r->file)))
    return fg_fail(FG_EMEMORY, "no memory for %d files", c->n_names);
  if (!c->n_names) TRY(fg_measured_add(fg_shipped_wisdom, fg_shipped_wisdom_size, &r->list));
  for (int i = 0; i < c->n_names; i++) TRY(read_file(r, c->names[i]));
  TRY(filter(r));
  fg_measured_sort(&r->list);
  TRY(fg_gen_new(fg_setting_text(FG_SET_TEMPLATES, NULL), &r->gen));
  TRY(fg_judge_new(r->gen, &r->list, &r->judge));
  return report_data_new(r);
}

static fg_status print(const report *r) {
  page_start(r);
  report_overview(r);
  report_roofs(r);
  TRY(report_regret(r));
  report_compiled(r);
  report_failures(r);
  report_specs(r);
  report_files(r);
  page_end();
  return FG_OK;
}

static int run(cli *c) {
  report r = {.c = c};
  fg_status status = read_all(&r);
  if (status == FG_OK) status = print(&r);
  report_data_free(&r);
  fg_judge_free(r.judge);
  fg_gen_free(r.gen);
  fg_measured_free(&r.list);
  free(r.file);
  return status == FG_OK ? CLI_OK : cli_fail(status);
}

const cli_command cli_report = {
    .name = "report",
    .line = "a page of what tune has measured: maps, roofline, regret, failures",
    .usage = "[WISDOM ...] [-o FILE.html]",
    .options = " help result filter ",
    .examples =
        "  flashgen report h200.txt -o h200.html    one file that any browser shows, or prints\n"
        "  flashgen report -o shipped.html          of the wisdom that comes with flashgen\n"
        "  flashgen report part1.txt part2.txt --filter 'attn_bwd*' > backward.html\n",
    .run = run};
