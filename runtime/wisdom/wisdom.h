/* wisdom.h - what was measured: a text file, one line for each variant, shape and device.
 *
 *   w1 <TAB> 16 hex digits <TAB> key=value <TAB> key=value ... <LF>
 *
 * `w1` is the format, the digits are the XXH3-64 of what follows their tab. Keys, in this order:
 * variant device multiprocessors shape (b,h,hk,nq,nk,align) generation status ms error verified
 * registers spill compile when expression reason; keys that a reader does not know are kept. Lines
 * that begin with `#` are comments.
 *
 * A line stands for itself: files are joined by cat, and whatever is no good line (torn by a full
 * disk, damaged, of a newer format) is passed over by readers, counted, and kept. Winners are
 * computed on reading, never stored. Files only grow, a whole line a write under a lock, but for
 * compaction and merging, which put a new file in the old one's place. */
#ifndef FG_WISDOM_H
#define FG_WISDOM_H

#include "spec/variant.h"

#include <stdint.h>

enum { FG_WISDOM_FORMAT = 1, FG_WISDOM_LINE = 16384, FG_REASON_MAX = 256, FG_MODEL_MAX = 64 };

/* What came of a measurement. Times of FG_MEASURED_OK and FG_MEASURED_SLOW are times. */
typedef enum fg_measured_status {
  FG_MEASURED_OK,      /* by the whole protocol */
  FG_MEASURED_SLOW,    /* clearly slower than another plan: a time of few launches */
  FG_MEASURED_WRONG,   /* its numbers break the accuracy rule */
  FG_MEASURED_REFUSED, /* it does not compile, spills, or cannot be launched at the shape */
  FG_MEASURED_FAULT,   /* it breaks at launch */
  FG_MEASURED_KINDS
} fg_measured_status;
extern const char *const fg_measured_words[FG_MEASURED_KINDS];

/* One measurement. Zero: not known. */
typedef struct fg_measured {
  char name[FG_NAME_MAX];    /* of the variant */
  char device[FG_MODEL_MAX]; /* its model: "NVIDIA H200", "host" */
  int multiprocessors;
  fg_shape shape; /* align = 16 at least */
  int generation; /* of the plan's family, from 1 */
  fg_measured_status status;
  double ms;                  /* median */
  double error;               /* worst of all outputs, as a share of what counts as right */
  bool verified;              /* the error was within it */
  int registers;              /* of a thread, the most of its entry points */
  int spill;                  /* bytes */
  double compile;             /* seconds; 0: it was found in the cache */
  int64_t when;               /* seconds since 1970: of two lines for one thing the later counts */
  char expression[4096];      /* where the name holds hashes: what they are of; point_formula.h */
  char reason[FG_REASON_MAX]; /* of a failure: a sentence */
  bool outdated;              /* in a sorted list: it has a newer generation of the same */
} fg_measured;

/* The line, with its end; returns the length. Tabs and line ends in texts become spaces. */
int fg_measured_print(const fg_measured *measured, char line[FG_WISDOM_LINE]);

/* What a line of n bytes, without its end, is. */
typedef enum fg_line_kind {
  FG_LINE_GOOD,
  FG_LINE_COMMENT, /* or empty */
  FG_LINE_NEWER,   /* of a newer format */
  FG_LINE_BAD
} fg_line_kind;
/* Fills *measured in for a good line only; *why (may be NULL): what is wrong with a bad one. */
fg_line_kind fg_measured_parse(const char *line, size_t n, fg_measured *measured, const char **why);

/* Is it a failure? Has it a time that can be one, 0 < ms < 10^7? May that win: was it verified? */
bool fg_measured_failed(const fg_measured *measured);
bool fg_measured_has_time(const fg_measured *measured);
bool fg_measured_counts(const fg_measured *measured);

/* What no measurement can have said, though each field has a value of its kind, a sentence; NULL:
 * nothing. Such a line is kept, never counts, and is told by `flashgen wisdom verify`. */
const char *fg_measured_nonsense(const fg_measured *measured);

/* Are both of the same variant, shape, device and generation? */
bool fg_measured_same(const fg_measured *a, const fg_measured *b);

/* A file as it was read. */
typedef struct fg_wisdom {
  char *path, *text;
  size_t n;
} fg_wisdom;

/* FG_EIO: it cannot be read, or is no regular file. A file that is not there is an empty one if
 * `optional`. */
fg_status fg_wisdom_read(const char *path, bool optional, fg_wisdom *wisdom);
void fg_wisdom_free(fg_wisdom *wisdom);

/* Goes over the lines: *at starts as 0; false at the end. *whole: the line has its end. */
bool fg_wisdom_next(const char *text, size_t size, size_t *at, const char **line, size_t *n,
                    bool *whole);

/* Appends a line; makes the file. After a failure it is as it was: FG_EIO, with its name. */
fg_status fg_wisdom_append(const char *path, const fg_measured *measured);
/* Can lines be appended? Makes the file. */
fg_status fg_wisdom_check(const char *path);

typedef struct fg_wisdom_report {
  int good, comments, newer, bad; /* lines */
  int kept, dropped;              /* of the good ones, by compaction and merging */
  int first_bad;                  /* number of that line, from 1 */
  char why[128];                  /* it is bad */
  int nonsense, first_nonsense;   /* of the good ones, by fg_wisdom_count; and its number */
  char what[128];                 /* it says */
} fg_wisdom_report;

/* Counts and checks the lines. */
void fg_wisdom_count(const fg_wisdom *wisdom, fg_wisdom_report *report);

/* Drops lines that a later measurement of the same thing replaces. Bad lines go to PATH.bad, lines
 * of newer formats and comments stay. Nothing that others append meanwhile is lost. */
fg_status fg_wisdom_compact(const char *path, fg_wisdom_report *report);

/* Adds the lines of n files to `path`, which is made, and compacts it: all or nothing. FG_EIO names
 * file and line where one is bad. */
fg_status fg_wisdom_merge(const char *path, int n, const char *const *files,
                          fg_wisdom_report *report);

/* The measurements of files, of each thing the latest one. */
typedef struct fg_measured_list {
  fg_measured **item;
  int n;
} fg_measured_list;

/* Adds the good lines of a text to the list; then fg_measured_sort, once. */
fg_status fg_measured_add(const char *text, size_t n, fg_measured_list *list);
/* Drops what a later measurement replaces, and sorts by spec, arch, device, expression, shape;
 * there times that count come first, the least first, and last what a newer generation outdates.
 * Generations of different families say nothing of each other. */
void fg_measured_sort(fg_measured_list *list);
void fg_measured_free(fg_measured_list *list);

/* Are both of one spec, arch and device? */
bool fg_measured_kin(const fg_measured *a, const fg_measured *b);
/* ... and of one shape? */
bool fg_measured_peers(const fg_measured *a, const fg_measured *b);
/* The one of that name, shape, device and generation; NULL: none. */
const fg_measured *fg_measured_find(const fg_measured_list *list, const fg_measured *like);

/* Field i as text; its key; whether it is a number or a list of them, "" for one that is not known.
 * NULL: there are no more. For tables of them. */
const char *fg_measured_field(const fg_measured *measured, int i, size_t size, char *text,
                              bool *number);

#endif
