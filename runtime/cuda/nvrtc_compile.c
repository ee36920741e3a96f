/* nvrtc_compile.c - compiles with NVRTC: its options, a thread for each compile, and its log. */
#include "base/setting.h"
#include "nvrtc_library.h"
#include "plain.h"

#include "base/text.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT_MAX = 1 << 20, STACK = 64 << 20 }; /* bytes */
enum {
  NVRTC_MEMORY = 1,
  NVRTC_COMPILATION = 6,
  NVRTC_BUILTINS = 7,
  NVRTC_CANCELLED = 16
}; /* results of NVRTC */

/* Options in order, and the first NVRTC that takes each. -v makes ptxas print its figures. There is
 * no fast-math option: templates name the approximate instructions that they use. */
#define FIGURES "-Xptxas=-v"
static const struct {
  const char *text;
  int since;
} options[] = {
    {"-std=c++17", 0},
    {"--minimal", 12040},
    {"--no-source-include", 12040},
    {"--modify-stack-limit=false", 0},
    {"--no-cache", 12090},
    {FIGURES, 0},
};
enum { OPTIONS = sizeof options / sizeof *options };

int fg_nvrtc_options_key(size_t size, char *text) {
  int n = 0;
  for (int i = 0; i < OPTIONS; i++)
    n = fg_append(size, text, n, "%s%s@%d", i ? " " : "", options[i].text, options[i].since);
  return n;
}

/* The options that this NVRTC takes, joined by spaces; `figures`: with the one for ptxas's
 * figures. */
static int print_options(const fg_nvrtc *nvrtc, const char *arch, bool figures, size_t size,
                         char *text) {
  int n = snprintf(text, size, "-arch=%s", arch);
  for (int i = 0; i < OPTIONS; i++)
    if (nvrtc->number >= options[i].since && (figures || strcmp(options[i].text, FIGURES)))
      n = fg_append(size, text, n, " %s", options[i].text);
  return n;
}

/* One compile, on its own thread. */
typedef struct {
  const fg_nvrtc *nvrtc;
  const char *name, *text, *arch;
  fg_cubin *cubin;
  double deadline; /* seconds, as now() */
  bool late;       /* the deadline has passed, and NVRTC was told to stop */
  fg_status status;
  char error[4096];
} job;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* NVRTC calls it now and then: 1 = stop compiling. */
static int stop_when_late(void *payload, void *reserved) {
  job *j = payload;
  (void)reserved;
  j->late = j->late || now() > j->deadline;
  return j->late;
}

/* Copies the cubin and reads the figures from the log. */
static fg_status take_cubin(job *j, fg_nvrtc_program p, const char *log) {
  if (j->nvrtc->cubin_size(p, &j->cubin->size))
    return fg_fail(FG_ECOMPILER, "%s: NVRTC gave no cubin", j->name);
  if (!(j->cubin->data = malloc(j->cubin->size)))
    return fg_fail(FG_EMEMORY, "%s: no memory for its cubin", j->name);
  if (j->nvrtc->cubin(p, j->cubin->data))
    return fg_fail(FG_ECOMPILER, "%s: NVRTC gave no cubin", j->name);
  fg_cubin_read_log(j->cubin, log);
  return FG_OK;
}

/* NVRTC's text for a result. After a cancel, NVRTC 13.0 also calls failures of ptxas in the same
 * thread cancelled; j->late alone tells a real cancel, so here that result reads as a failed
 * compilation. */
static const char *error_name(const fg_nvrtc *nvrtc, int result) {
  return nvrtc->error(result == NVRTC_CANCELLED ? NVRTC_COMPILATION : result);
}

/* Compiles once: *result is NVRTC's. The caller destroys *p and frees *log, also after a
 * failure. */
static fg_status attempt(job *j, bool figures, fg_nvrtc_program *p, int *result, char **log) {
  char all[512];
  const char *list[OPTIONS + 1];
  int n = 0;
  size_t log_size = 0;
  if (j->nvrtc->create(p, j->text, "kernel.cu", 0, NULL, NULL))
    return fg_fail(FG_ECOMPILER, "%s: NVRTC takes no program", j->name);
  print_options(j->nvrtc, j->arch, figures, sizeof all, all);
  for (char *word = all, *next; word; word = next) {
    if ((next = strchr(word, ' '))) *next++ = 0;
    list[n++] = word;
  }
  if (j->nvrtc->set_flow) j->nvrtc->set_flow(*p, stop_when_late, j);
  *result = j->nvrtc->compile(*p, n, list);
  j->nvrtc->log_size(*p, &log_size);
  if (!(*log = calloc(1, log_size + 1)))
    return fg_fail(FG_EMEMORY, "%s: no memory for the log", j->name);
  j->nvrtc->log(*p, *log);
  return FG_OK;
}

/* Where ptxas fails, the log of NVRTC 13.0 has the figures but not the error. One more attempt
 * without the figures gets the error, and its log takes the place of *log. */
static void find_error(job *j, char **log) {
  fg_nvrtc_program p = NULL;
  char *other = NULL;
  int result = 0;
  if (attempt(j, false, &p, &result, &other) == FG_OK && result && strstr(other, "error")) {
    char *first = *log;
    *log = other;
    other = first;
  }
  free(other);
  if (p) j->nvrtc->destroy(&p);
}

/* The whole compile. j->cubin->refused tells whether the text is to blame, or the time it took. */
static fg_status compile_program(job *j, fg_nvrtc_program *p, char **log) {
  int result;
  TRY(attempt(j, true, p, &result, log));
  if ((result == NVRTC_COMPILATION || result == NVRTC_CANCELLED) && !j->late &&
      !strstr(*log, "error"))
    find_error(j, log);
  j->cubin->refused = j->late;
  if (j->late)
    return fg_fail(FG_ECOMPILER, "%s: its compile took longer than %lld s (%s raises the limit)",
                   j->name, (long long)fg_setting_number(FG_SET_COMPILE_SECONDS),
                   fg_settings[FG_SET_COMPILE_SECONDS].name);
  if (result == NVRTC_BUILTINS)
    return fg_fail(FG_EENVIRONMENT, "%s lacks its builtins library, which lies beside it: %.*s",
                   j->nvrtc->path, (int)strcspn(*log, "\n"), *log);
  if (result == NVRTC_MEMORY) return fg_fail(FG_EMEMORY, "%s: NVRTC ran out of memory", j->name);
  j->cubin->refused = result == NVRTC_COMPILATION || result == NVRTC_CANCELLED;
  if (result)
    return fg_fail(FG_ECOMPILER, "%s: %s\n%.3000s", j->name, error_name(j->nvrtc, result), *log);
  return take_cubin(j, *p, *log);
}

static void *compile_thread(void *argument) {
  job *j = argument;
  fg_nvrtc_program p = NULL;
  char *log = NULL;
  fg_plain_begin(); /* until the thread ends */
  j->status = compile_program(j, &p, &log);
  if (j->status != FG_OK) snprintf(j->error, sizeof j->error, "%s", fg_error());
  free(log);
  if (p) j->nvrtc->destroy(&p);
  return NULL;
}

fg_status fg_nvrtc_compile(const fg_nvrtc *nvrtc, const char *name, const char *text, size_t size,
                           const char *arch, fg_cubin *cubin) {
  fg_cubin result = {0};
  job j = {.nvrtc = nvrtc,
           .name = name,
           .text = text,
           .arch = arch,
           .cubin = &result,
           .deadline = now() + (double)fg_setting_number(FG_SET_COMPILE_SECONDS)};
  pthread_attr_t attributes;
  pthread_t thread;
  if (size > TEXT_MAX)
    return fg_fail(FG_ECOMPILER, "%s: its text has %zu bytes; at most %d", name, size, TEXT_MAX);
  TRY(fg_nvrtc_check_arch(nvrtc, arch));
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  int failed = pthread_create(&thread, &attributes, compile_thread, &j);
  pthread_attr_destroy(&attributes);
  if (failed) return fg_fail(FG_EMEMORY, "%s: no thread to compile it: %s", name, strerror(failed));
  pthread_join(thread, NULL);
  if (j.status != FG_OK) {
    cubin->refused = result.refused;
    fg_cubin_free(&result);
    return fg_fail(j.status, "%s", j.error);
  }
  *cubin = result;
  return FG_OK;
}
