/* report.h - what the parts of `flashgen report` share: report.c (the command), report_data.c
 * (measurements by spec, shape and plan), report_page.c (markup), and a file for each section.
 *
 * The page goes to stdout. It is a pure function of the files: no date but theirs, no host. */
#ifndef FG_REPORT_H
#define FG_REPORT_H

#include "measure.h"

#include "wisdom/judge.h"

enum { REPORT_PLAN = 64, REPORT_SHAPE = FG_BRIEF_MAX + 32 };

/* A spec at a shape. */
typedef struct report_cell {
  fg_shape shape;
  const fg_measured *best, *next; /* the least times that count; NULL: there is none */
  double flops, bytes;            /* of a launch; 0: not known */
} report_cell;

/* One of a spec's plans. */
typedef struct report_plan {
  char name[REPORT_PLAN];
  double share; /* of the best plan's speed, geometric mean over the cells that it has a time in */
  int wins;     /* cells */
  int rank;     /* among those that win, from 0; -1: it never does */
} report_plan;

/* The measurements of one spec, arch and device. */
typedef struct report_spec {
  char name[FG_NAME_MAX];  /* "attn_fwd-bf16-d64-causal" */
  const fg_measured *like; /* one of them */
  bool known;              /* the name could be read: */
  fg_point point;
  int first, n, n_cells, n_plans, n_winners; /* first, n: in the list */
  report_cell *cell;
  report_plan *plan;         /* the fastest first */
  const fg_measured **table; /* of plan p at cell c: [p * n_cells + c]; NULL: not measured */
} report_spec;

typedef struct report_file {
  const char *path;
  fg_wisdom_report lines;
} report_file;

typedef struct report {
  const cli *c;
  report_file *file; /* none: what comes with flashgen */
  int n_files, n_specs, n_cells;
  fg_measured_list list;
  fg_gen *gen;
  fg_judge *judge;
  report_spec *spec;
} report;

/* Fills r->spec from r->list, which is sorted. FG_EMEMORY, FG_ETEMPLATE. */
fg_status report_data_new(report *r);
void report_data_free(report *r);

/* Parts of a variant's name: "wgmma-q128-k96-s2-w12", "wgmma". */
void report_plan_name(const char *variant, char plan[REPORT_PLAN]);
void report_family(const char *plan, char family[REPORT_PLAN]);
const char *report_pass(const fg_measured *m);
/* Are there as many rows as keys, of the longest sequence and of all together? */
bool report_is_square(const fg_shape *shape);
/* The best time of the cell / this one. */
double report_share(const report_cell *cell, const fg_measured *m);
/* TFLOP/s and TB/s of the best plan; 0: not known. */
double report_tflops(const report_cell *cell);
double report_tbs(const report_cell *cell);

/* Markup ------------------------------------------------------------------------------------ */

/* Text of a file, so that it means itself. */
void page_text(const char *text);
/* "b4 h32/8 4096×4096", "b4 h32/8 1×4096 pages=1024 page=16", of less than REPORT_SHAPE bytes. */
void page_shape_text(const fg_shape *shape, char text[REPORT_SHAPE]);
void page_shape(const fg_shape *shape);
void page_length(int64_t n); /* "512", "4 K", "128 K" */
void page_start(const report *r);
void page_end(void);
/* <section> with its title and what it says first. */
void page_section(const char *id, const char *title, const char *lead);
/* A sentence for each kind of kernel that the report has: how its shapes read, or what counts as
 * operations. */
void page_kinds(const report *r, bool operations);
/* A picture of so many units, and what it shows to who cannot see it. */
void page_picture(const char *label, double width, double height);
void page_picture_end(void);
/* A line's label in a picture: of `anchor` start, middle or end. */
void page_label(double x, double y, const char *anchor, const char *text);
/* How wide a name is in a picture, and at most a label. */
double page_mono_width(const char *name);
double page_width(const char *label);
/* Round values from `least` on that axes are marked at: 1, 2, 5 times powers of 10. */
double page_step(double range, int marks);

/* Sections ---------------------------------------------------------------------------------- */

void report_overview(const report *r);
void report_roofs(const report *r);
fg_status report_regret(const report *r);
void report_compiled(const report *r);
void report_failures(const report *r);
void report_specs(const report *r);
void report_winners(const report_spec *s); /* of one spec */
void report_heat(const report_spec *s);
void report_files(const report *r);

#endif
