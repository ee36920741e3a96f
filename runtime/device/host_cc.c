/* host_cc.c - compiles a source with the system's C compiler, in a directory of its own. */
#define _GNU_SOURCE /* memmem */
#include "host_cc.h"

#include "base/setting.h"
#include "host_dir.h"
#include "host_unset.h"
#include "process.h"

#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 512, MAP_SIZE = PATH_MAX + 32, OUTPUT = 8192, ERRORS = 5 };

/* One compile. Its directory holds all files, the compiler's own too, and is removed with them. */
typedef struct {
  const fg_source *source;
  const char *name;
  fg_host_dir dir;
  bool refused; /* the compiler found an error in the text */
} job;

static void path_of(const job *j, const char *file, char path[PATH_SIZE]) {
  snprintf(path, PATH_SIZE, "%s/%s", j->dir.path, file);
}

/* Writes kernel.c, with unset registers made NaNs. FG_EIO, FG_EMEMORY. */
static fg_status write_source(const job *j) {
  char path[PATH_SIZE];
  path_of(j, "kernel.c", path);
  FILE *file = fopen(path, "wxe");
  char *text;
  size_t size;
  if (!file) return fg_fail(FG_EIO, "%s: %s", path, strerror(errno));
  fg_status status = fg_host_unset(j->source->text, j->source->size, &text, &size);
  size_t n = status == FG_OK ? fwrite(text, 1, size, file) : 0;
  int failed = fclose(file);
  TRY(status);
  free(text);
  if (failed || n != size)
    return fg_fail(FG_EIO, "%s: cannot be written: %s", path, strerror(errno));
  return FG_OK;
}

/* Keeps the first errors of the compiler's output, "kernel.c:31:5: error: ...", each with its place
 * in the templates; warnings, notes and excerpts of the source are left out. False: there is no
 * error, and `text` gets the whole output. */
static bool add_places(const job *j, const char *output, size_t size, char *text) {
  int errors = 0, n = 0;
  for (const char *line = output; *line;) {
    size_t length = strcspn(line, "\n");
    const char *at = memmem(line, length, "kernel.c:", 9);
    if (at && memmem(line, length, "error: ", 7) && ++errors <= ERRORS) {
      char place[128];
      fg_source_place(j->source, atoi(at + 9), sizeof place, place);
      n = fg_append(size, text, n, "\n  %.*s [%s]", (int)(line + length - at), at, place);
    }
    line += length + (line[length] == '\n');
  }
  if (errors > ERRORS) n = fg_append(size, text, n, "\n  and %d more", errors - ERRORS);
  if (!n) snprintf(text, size, "\n%.2000s", output);
  return n > 0;
}

/* Runs the compiler; FG_EENVIRONMENT, with the name of the setting, if it cannot be started. */
static fg_status run_compiler(const char *tmpdir, const char *const *argv, size_t size,
                              char *output, int *code) {
  fg_status status = fg_process_run_in(tmpdir, argv, size, output, code);
  if (status != FG_EENVIRONMENT) return status;
  return fg_fail_in(status, "the C compiler of the host device (%s)", fg_settings[FG_SET_CC].name);
}

/* -O0: most kernels run for less time than they compile, and the engine, which is compiled once
 * with -O3, takes most of a run. Contraction is off: sums round as they are written. The sanitizers
 * turn array indices out of bounds and overflow into faults, and NaNs in registers that are not set
 * show their use. A warning that NVRTC would give is an error here. */
static const char *const options[] = {
    "-std=gnu11",
    "-O0",
    "-fno-omit-frame-pointer",
    "-g1",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-ftrivial-auto-var-init=pattern",
    FG_HOST_UNSET_OPTIONS,
    "-fsanitize=bounds,shift,signed-integer-overflow,integer-divide-by-zero",
    "-fsanitize-undefined-trap-on-error",
    "-Wextra",
    "-Werror=unused-variable",
    "-Werror=unused-but-set-variable",
    "-Werror=unused-value",
    "-Werror=unused-function",
    "-Werror=div-by-zero",
    "-Werror=overflow",
    "-Wno-unknown-pragmas",
    "-Wno-psabi"};
enum { OPTIONS = sizeof options / sizeof *options };

int fg_host_cc_options(size_t size, char *text) {
  int n = 0;
  for (int i = 0; i < OPTIONS; i++) n = fg_append(size, text, n, "%s%s", i ? " " : "", options[i]);
  return n;
}

/* Debug information names the source and the current directory. Both options replace them by ".",
 * so that equal texts give equal bytes wherever they are compiled. */
static void map_paths(const job *j, char here[MAP_SIZE], char there[MAP_SIZE]) {
  char cwd[PATH_MAX];
  snprintf(here, MAP_SIZE, "-ffile-prefix-map=%s=.", getcwd(cwd, sizeof cwd) ? cwd : j->dir.path);
  snprintf(there, MAP_SIZE, "-ffile-prefix-map=%s=.", j->dir.path);
}

/* Fails if the compiler's output or exit status tells that the machine is at fault, not the text;
 * FG_OK if it is not. */
static fg_status machine_fault(const job *j, const char *compiler, int code, const char *output) {
  static const struct {
    const char *words;
    fg_status status;
  } faults[] = {{"No space left on device", FG_EIO},
                {"Disk quota exceeded", FG_EIO},
                {"Read-only file system", FG_EIO},
                {"Too many open files", FG_EIO},
                {"Cannot allocate memory", FG_EMEMORY},
                {"out of memory", FG_EMEMORY},
                {"memory exhausted", FG_EMEMORY},
                {"Killed signal terminated", FG_EMEMORY},
                {"Resource temporarily unavailable", FG_EIO}};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (strstr(output, faults[i].words))
      return fg_fail(faults[i].status, "%s: %s, working in %s (TMPDIR), says: %s", j->name,
                     compiler, fg_setting_text(FG_SET_TMPDIR, NULL), faults[i].words);
  if (code <= 128) return FG_OK;
  return fg_fail(FG_EENVIRONMENT, "%s: %s was ended by signal %d", j->name, compiler, code - 128);
}

/* Makes kernel.so of kernel.c. FG_ECOMPILER: the compiler refuses the text; any other code: it
 * could not do its work. */
static fg_status compile(job *j) {
  char source[PATH_SIZE], library[PATH_SIZE], output[OUTPUT], text[OUTPUT];
  char here[MAP_SIZE], there[MAP_SIZE];
  const char *argv[OPTIONS + 9] = {fg_setting_text(FG_SET_CC, NULL)};
  int code;
  map_paths(j, here, there);
  path_of(j, "kernel.c", source);
  path_of(j, "kernel.so", library);
  memcpy(argv + 1, options, sizeof options);
  const char *severe = j->source->unskipped ? "-w" : "-Wall"; /* as it is for NVRTC's warnings */
  const char *const files[] = {severe, here, there, "-o", library, source, "-lm", NULL};
  memcpy(argv + 1 + OPTIONS, files, sizeof files);
  TRY(run_compiler(j->dir.path, argv, sizeof output, output, &code));
  if (code == 0 && !access(library, R_OK)) return FG_OK;
  if (code == 0)
    return fg_fail(FG_EENVIRONMENT,
                   "%s (%s) ends without an error, but makes no library: it is no C compiler",
                   argv[0], fg_settings[FG_SET_CC].name);
  TRY(machine_fault(j, argv[0], code, output));
  j->refused = add_places(j, output, sizeof text, text);
  return fg_fail(FG_ECOMPILER, "%s: %s refused it (exit %d):%s", j->name, argv[0], code, text);
}

/* The bytes of kernel.so; code->data is new. FG_EIO. */
static fg_status read_library(const job *j, fg_code *code) {
  char path[PATH_SIZE];
  struct stat info;
  path_of(j, "kernel.so", path);
  FILE *file = fopen(path, "rbe");
  if (!file || fstat(fileno(file), &info)) {
    if (file) fclose(file);
    return fg_fail(FG_EIO, "%s: %s", path, strerror(errno));
  }
  code->size = (size_t)info.st_size;
  code->data = malloc(code->size + 1);
  size_t n = code->data ? fread(code->data, 1, code->size, file) : 0;
  fclose(file);
  if (n == code->size) return FG_OK;
  free(code->data);
  code->data = NULL;
  return fg_fail(FG_EIO, "%s: cannot be read", path);
}

fg_status fg_host_cc_compile(const char *name, const fg_source *source, fg_code *code) {
  job j = {.source = source, .name = name};
  fg_code made = {0};
  fg_status status = FG_OK;
  TRY(fg_host_dir_make(&j.dir));
  TRY_OUT(write_source(&j));
  TRY_OUT(compile(&j));
  TRY_OUT(read_library(&j, &made));
  *code = made;
out:
  code->refused = status == FG_ECOMPILER && j.refused;
  fg_host_dir_remove(&j.dir);
  return status;
}

fg_status fg_host_cc_version(size_t size, char *text) {
  const char *argv[] = {fg_setting_text(FG_SET_CC, NULL), "--version", NULL};
  int code;
  TRY(run_compiler(NULL, argv, size, text, &code));
  text[strcspn(text, "\n")] = 0;
  if (code) return fg_fail(FG_EENVIRONMENT, "%s --version fails (exit %d)", argv[0], code);
  return FG_OK;
}
