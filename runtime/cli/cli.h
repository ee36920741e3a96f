/* cli.h - what the subcommands of `flashgen` share: the parsed command line, and how results and
 * failures leave the program.
 *
 * Results go to stdout, all else to stderr. Exit codes: 0 ok, 1 some kernel failed or could
 * not be judged, 2 usage or bad spec, 3 the machine lacks something, 4 wrong numbers, 130
 * interrupted. */
#ifndef FG_CLI_H
#define FG_CLI_H

#include "recipe/extent.h"
#include "reference/problem.h"
#include "tools.h"
#include "wisdom/wisdom.h"

#include <stdio.h>

enum {
  CLI_OK = 0,
  CLI_KERNEL = 1,
  CLI_USAGE = 2,
  CLI_MACHINE = 3,
  CLI_NUMBERS = 4,
  CLI_STOPPED = 130
};
enum { CLI_LIST_MAX = 256 };

/* "q=q.npy" of --in and --out. */
typedef struct cli_pair {
  char name[64];
  const char *path;
} cli_pair;

/* Run-time arguments: words that are never compiled in. */
typedef struct cli_arguments {
  fg_shape shape; /* an extent is -1: not given */
  double scale;
  int has_scale; /* it is given */
  fg_launch_values launch;
  int64_t words[4]; /* of dropout: seed and offset, low words first, each an int32 */
  int has_seed;
  int64_t sm_margin;
} cli_arguments;

/* A number that all launches have, beside fg_launch_numbers, and how the value of its word is read.
 */
typedef struct cli_launch_number {
  const char *name;
  fg_status (*read)(const char *value, cli_arguments *arguments);
} cli_launch_number;
enum { CLI_LAUNCH_NUMBERS = 4 };
extern const cli_launch_number cli_launch_numbers[CLI_LAUNCH_NUMBERS];

/* A word that sets a number that a spec declares as an input. */
typedef struct cli_number {
  char name[64];
  double value;
} cli_number;

typedef struct cli_command cli_command;
typedef struct cli {
  const cli_command *command;
  const cli_command *const *commands; /* all that the program has; ends with NULL */
  int help, json, csv, quiet, verbose, recipe, all, markdown, support;
  const char *device, *arch, *filter, *plan, *plans, *directory, *embed, *stamp, *shapes, *wisdom,
      *shard, *without, *result;    /* result: the file that results go to; NULL: stdout */
  int64_t jobs, seed, size, budget; /* -1: not given */
  int n_files, n_words, n_either, n_names, n_in, n_out;
  const char *files[CLI_LIST_MAX], *words[CLI_LIST_MAX], *names[CLI_LIST_MAX];
  /* Words "width=30" that are a field of an unusual kind of kernel, or a number of the launch:
   * among `number` too. */
  const char *either[CLI_LIST_MAX];
  cli_pair in[16], out[16];
  cli_arguments arguments;
  int n_numbers;
  cli_number number[16];
} cli;

struct cli_command {
  const char *name, *line; /* line: what it does, in one */
  const char *usage;       /* what follows the name */
  const char *options;     /* the names of the options that it takes, each between spaces */
  const char *examples;    /* a line each */
  int takes_arguments;     /* words may set run-time arguments */
  int makes_zoo;           /* simt only where it is named */
  int takes_names;         /* what has no "=" is a name, though a field may have it */
  int (*run)(cli *c);
};
extern const cli_command cli_list, cli_emit, cli_build, cli_run, cli_check, cli_bench, cli_tune,
    cli_wisdom, cli_report, cli_cache, cli_doctor, cli_draw, cli_help;

/* Fills *c from the words behind the subcommand. FG_EARGUMENT with what is wrong. */
fg_status cli_parse(int argc, char **argv, cli *c);

int cli_exit_code(fg_status status);

/* Exit codes, and the codes of the library, for people. */
typedef struct cli_exit {
  int code;
  const char *help;
} cli_exit;
typedef struct cli_status {
  fg_status status;
  const char *name, *help;
} cli_status;
enum { CLI_EXITS = 6, CLI_STATUSES = FG_EBUG + 1 };
extern const cli_exit cli_exits[CLI_EXITS];
extern const cli_status cli_statuses[CLI_STATUSES];

/* Prints the failure to stderr, and gives the exit code of its status. */
int cli_fail(fg_status status);

/* Do the words give an extent of the shape? */
bool cli_shape_is_given(const fg_shape *words);
/* The grid of the command line's files and words, and of n words more. FG_ESPEC for a word that
 * sets a number which no spec declares, or that a command without launches does not take. */
fg_status cli_grid_read(const cli *c, int n, const char *const *more, fg_grid **grid);
/* FG_ESPEC for a word that sets a number which none of the points declares. */
fg_status cli_numbers_check(const cli *c, int n, const fg_point *point);

/* NULL: no word sets it. */
const cli_number *cli_number_find(const cli *c, const char *name);

/* For what measures: says on stderr which numbers of the points count as 1, since no word sets
 * them. */
void cli_numbers_say(const cli *c, int n, const fg_point *point);

/* Numbers of a point's inputs, to a launch: from the words, 1 where they do not say. */
void cli_numbers_set(const cli *c, fg_problem *problem);

/* The variants that the command line asks for: of each point the first plan, `N` plans or all
 * (--plans) for each arch of "sm_80,sm_90a", within restrictions, --plan and --filter. */
typedef struct cli_variants {
  fg_gen *gen;
  fg_grid *grid; /* NULL when variants were given by name */
  fg_variant *variant;
  int n;
  int left_out; /* specs of which a zoo takes no plan */
} cli_variants;
fg_status cli_variants_read(const cli *c, const char *archs, cli_variants *variants);
void cli_variants_free(cli_variants *variants);

/* What fg_kernel_info says of the kernel. */
fg_info cli_info(const fg_kernel *kernel);

/* Opens the device that --device names, else the best there is; says so where that is host because
 * there is no GPU. */
fg_status cli_device_open(const cli *c, fg_device **device);
/* For commands that measure: as --device or FLASHGEN_DEVICE says, else "cuda:0". */
const char *cli_measuring_device(const cli *c);
/* How its opening ended: where nobody named it, the failure says how host is. */
fg_status cli_measuring_opened(const cli *c, fg_status status);

/* A context on the device with all else as the environment says. */
fg_status cli_context(const char *device, fg_context **context);

/* Sends what was printed on its way; 0 when stdout cannot be written, which main() will say. */
int cli_flush(void);

/* Ends the output of a command that gives `code`: the exit code, another where it did not arrive.
 */
int cli_output_close(int code);

/* Results that go to a file: from now on stdout is it. FG_EIO. */
fg_status cli_result_open(const char *path);
/* FG_EARGUMENT if the results would take the place of that file, which the command reads or writes.
 */
fg_status cli_result_spares(const char *path);
/* The file, as it was given; NULL: stdout is what it was. */
const char *cli_result_name(void);
/* All is flushed: the results become the file, if there are any and they are `good`. FG_EIO. */
fg_status cli_result_keep(bool good);
/* The file stays as it was; for signal handlers. */
void cli_result_drop(void);

/* For build systems: touches --stamp's file, after it wrote FILE.d, the file's dependencies as make
 * reads them: the specs, this program, and the templates if they are files. FG_EIO. */
fg_status cli_stamp(const cli *c);

/* "s", or "" of one: "%d variant%s". */
static inline const char *cli_s(int64_t n) { return n == 1 ? "" : "s"; }

/* A JSON string, quoted and escaped. */
void cli_json_string(FILE *to, const char *text);
/* A shape as an object, the same in all results (fg_shape_json). */
void cli_json_shape(FILE *to, const fg_shape_form *form, const fg_shape *shape);

/* A measurement, as an object of a list (`first` of it), a row of a table (NULL: its head), or in
 * words, without the line's end. */
void cli_measured_json(const fg_measured *measured, int first);
void cli_measured_csv(const fg_measured *measured);
void cli_measured_row(const fg_measured *measured);

/* Says of a file what is passed over in it, if something is. */
void cli_wisdom_warn(const char *path, const fg_wisdom_report *lines);

/* Set by SIGINT: finish what is under way and stop. A second one ends the program at once. */
extern volatile int cli_interrupted;

/* One line of progress on stderr: in place on a terminal, else a line per 10 %. */
typedef struct cli_progress {
  int total, done, failed, quiet;
  int shown; /* characters of the line that stands on the terminal */
  double start;
} cli_progress;
void cli_progress_start(cli_progress *p, const cli *c, int total);
void cli_progress_step(cli_progress *p, int failed, const char *name);
void cli_progress_end(cli_progress *p);

#endif
