/* wisdom.h - measurements in a text file, one line for each variant, shape and device.
 *
 *   w1 <TAB> 16 hex digits <TAB> key=value <TAB> key=value ... <LF>
 *
 * `w1` is the format, the digits are the XXH3-64 of the text behind their tab. Keys, in this order:
 * variant device multiprocessors shape (fg_shape_print) generation status ms error verified
 * registers spill compile when expression reason; keys that a reader does not know are kept. Lines
 * that begin with `#` are comments.
 *
 * A line needs no other line: files are joined by cat. Readers skip and count the lines that are
 * not good (torn by a full disk, damaged, of a newer format); nothing deletes them. Winners are
 * computed on reading, never stored. Files only grow, by one whole line a write, under a lock;
 * compaction and merging put a new file in the place of the old one. */
#ifndef FG_WISDOM_H
#define FG_WISDOM_H

#include "spec/variant.h"
#include "wisdom_index.h"

#include <stdint.h>

enum { FG_WISDOM_FORMAT = 1, FG_WISDOM_LINE = 16384, FG_REASON_MAX = 256, FG_MODEL_MAX = 64 };

/* The result of a measurement. Only FG_MEASURED_OK and FG_MEASURED_SLOW have a time. */
typedef enum fg_measured_status {
  FG_MEASURED_OK,      /* measured by the whole protocol */
  FG_MEASURED_SLOW,    /* clearly slower than another plan; its time is of few launches */
  FG_MEASURED_WRONG,   /* its numbers break the accuracy rule */
  FG_MEASURED_REFUSED, /* it does not compile, spills, or cannot be launched at the shape */
  FG_MEASURED_FAULT,   /* its launch breaks */
  FG_MEASURED_KINDS
} fg_measured_status;
extern const char *const fg_measured_words[FG_MEASURED_KINDS];

/* One measurement. A member that is not known is 0. */
typedef struct fg_measured {
  char name[FG_NAME_MAX];    /* of the variant */
  char device[FG_MODEL_MAX]; /* its model: "NVIDIA H200", "host" */
  int multiprocessors;
  fg_shape shape; /* align = 16 at least */
  int generation; /* of the plan's family, from 1 */
  fg_measured_status status;
  double ms;                  /* median */
  double error;               /* the worst of all outputs, as a share of the error allowed */
  bool verified;              /* the error was within the allowed one */
  int registers;              /* of a thread; the most of all entry points */
  int spill;                  /* bytes */
  double compile;             /* seconds; 0: the kernel was in the cache */
  int64_t when;               /* seconds since 1970; the later of two lines of one thing counts */
  char expression[4096];      /* the texts that the name holds as hashes; point_formula.h */
  char reason[FG_REASON_MAX]; /* a sentence, for a failure */
  bool outdated;              /* in a sorted list: a line of a newer generation is there too */
} fg_measured;

/* Prints the line with its end, and returns its length. Tabs and line ends in texts become
 * spaces. */
int fg_measured_print(const fg_measured *measured, char line[FG_WISDOM_LINE]);

/* The kinds of lines. */
typedef enum fg_line_kind {
  FG_LINE_GOOD,
  FG_LINE_COMMENT, /* or empty */
  FG_LINE_NEWER,   /* of a newer format */
  FG_LINE_BAD
} fg_line_kind;
/* Parses a line of n bytes, without its end. Fills in *measured for a good line only; *why (may be
 * NULL) says what is wrong with a bad one. */
fg_line_kind fg_measured_parse(const char *line, size_t n, fg_measured *measured, const char **why);

/* failed: the status is a failure. has_time: it has a possible time, 0 < ms < 10^7. counts: it has
 * a time that may win, because its numbers were verified. */
bool fg_measured_failed(const fg_measured *measured);
bool fg_measured_has_time(const fg_measured *measured);
bool fg_measured_counts(const fg_measured *measured);

/* A sentence about a value that no measurement can have, although it is of its field's kind; NULL:
 * there is none. Such a line is kept, and `flashgen wisdom verify` reports it. */
const char *fg_measured_nonsense(const fg_measured *measured);

/* Whether both are of the same variant, shape, device and generation. */
bool fg_measured_same(const fg_measured *a, const fg_measured *b);

/* A file that was read; a file that is not there has no text. */
typedef struct fg_wisdom {
  char *path, *text;
  size_t n;
} fg_wisdom;

/* FG_EIO: it cannot be read, or is no regular file. A file that is not there is an empty one if
 * `optional`. */
fg_status fg_wisdom_read(const char *path, bool optional, fg_wisdom *wisdom);
void fg_wisdom_free(fg_wisdom *wisdom);

/* Appends a line; makes the file if it is not there. FG_EIO: the file is as it was. */
fg_status fg_wisdom_append(const char *path, const fg_measured *measured);
/* FG_EIO: lines cannot be appended. Makes the file if it is not there. */
fg_status fg_wisdom_check(const char *path);

typedef struct fg_wisdom_report {
  int good, comments, newer, bad; /* lines */
  int kept, dropped;              /* of the good ones, by compaction and merging */
  int first_bad;                  /* number of the first bad line, from 1 */
  char why[128];                  /* that line is bad */
  int nonsense, first_nonsense;   /* of the good ones (fg_wisdom_count only); the first, from 1 */
  char what[128];                 /* is wrong in that line */
} fg_wisdom_report;

/* Counts and checks the lines. */
void fg_wisdom_count(const fg_wisdom *wisdom, fg_wisdom_report *report);

/* Drops lines that a later measurement of the same thing replaces. Bad lines go to PATH.bad, lines
 * of newer formats and comments stay. Lines that others append meanwhile are not lost. FG_EIO. */
fg_status fg_wisdom_compact(const char *path, fg_wisdom_report *report);

/* Adds the lines of n files to `path`, which is made, and compacts it: all or nothing. FG_EIO names
 * file and line where one is bad. */
fg_status fg_wisdom_merge(const char *path, int n, const char *const *files,
                          fg_wisdom_report *report);

/* The measurements of files; after fg_measured_sort only the latest of each thing. */
typedef struct fg_measured_list {
  fg_measured **item;
  int n;
} fg_measured_list;

/* Adds the good lines of a text to the list, which fg_measured_sort sorts after the last text.
 * FG_EMEMORY. */
fg_status fg_measured_add(const char *text, size_t n, fg_measured_list *list);
/* Drops lines that a later measurement of the same thing replaces, and sorts by spec, arch, device,
 * expression, shape. Within one shape times that count come first, the least first; outdated lines
 * come last. Generations of different families are not compared. */
void fg_measured_sort(fg_measured_list *list);
void fg_measured_free(fg_measured_list *list);

/* Whether both are of one spec, arch, device and expression. */
bool fg_measured_kin(const fg_measured *a, const fg_measured *b);
/* ... and of one shape. */
bool fg_measured_peers(const fg_measured *a, const fg_measured *b);
/* The measurement of the same thing as `like` (fg_measured_same); NULL: none. */
const fg_measured *fg_measured_find(const fg_measured_list *list, const fg_measured *like);

/* For tables: returns the key of field i, from 0, or NULL behind the last one. `text` gets its
 * value as a line has it, "" if it is not known. */
typedef enum fg_measured_value { FG_VALUE_TEXT, FG_VALUE_NUMBER, FG_VALUE_SHAPE } fg_measured_value;
const char *fg_measured_field(const fg_measured *measured, int i, size_t size, char *text,
                              fg_measured_value *value);

#endif
