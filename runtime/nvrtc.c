/* nvrtc.c - finds NVRTC and compiles with it. */
#include "nvrtc.h"

#include "setting.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TEXT_MAX = 1 << 20, STACK = 64 << 20, PLACE = 512, OLDEST = 12030 };
enum { NVRTC_COMPILATION = 6, NVRTC_BUILTINS = 7, NVRTC_CANCELLED = 16 }; /* of its results */

typedef struct nvrtc_program *program;
typedef int flow(void *payload, void *reserved);
struct fg_nvrtc {
  int (*version)(int *major, int *minor);
  int (*create)(program *, const char *text, const char *name, int n, const char *const *headers,
                const char *const *names);
  int (*compile)(program, int n, const char *const *options);
  int (*destroy)(program *);
  int (*log_size)(program, size_t *);
  int (*log)(program, char *);
  int (*cubin_size)(program, size_t *);
  int (*cubin)(program, char *);
  int (*arch_count)(int *);
  int (*archs)(int *);
  const char *(*error)(int);
  int (*set_flow)(program, flow *, void *payload); /* NULL before 12.8 */
  int number;
  char path[PLACE];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static fg_nvrtc table;
static fg_status loaded;
static char reason[2048];

/* Name of the symbol, where it goes, whether an old NVRTC may lack it. */
static const struct {
  const char *name;
  size_t place;
  bool optional;
} symbols[] = {
    {"nvrtcVersion", offsetof(fg_nvrtc, version), false},
    {"nvrtcCreateProgram", offsetof(fg_nvrtc, create), false},
    {"nvrtcCompileProgram", offsetof(fg_nvrtc, compile), false},
    {"nvrtcDestroyProgram", offsetof(fg_nvrtc, destroy), false},
    {"nvrtcGetProgramLogSize", offsetof(fg_nvrtc, log_size), false},
    {"nvrtcGetProgramLog", offsetof(fg_nvrtc, log), false},
    {"nvrtcGetCUBINSize", offsetof(fg_nvrtc, cubin_size), false},
    {"nvrtcGetCUBIN", offsetof(fg_nvrtc, cubin), false},
    {"nvrtcGetNumSupportedArchs", offsetof(fg_nvrtc, arch_count), false},
    {"nvrtcGetSupportedArchs", offsetof(fg_nvrtc, archs), false},
    {"nvrtcGetErrorString", offsetof(fg_nvrtc, error), false},
    {"nvrtcSetFlowCallback", offsetof(fg_nvrtc, set_flow), true},
};

/* Options in order, and the first NVRTC that takes each. ptxas's figures come with -v; no
 * fast-math: templates name the approximate instructions that they want. */
static const struct {
  const char *text;
  int since;
} options[] = {
    {"-std=c++17", 0},
    {"--minimal", 12040},
    {"--no-source-include", 12040},
    {"--modify-stack-limit=false", 0},
    {"--no-cache", 12090},
    {"-Xptxas=-v", 0},
};
enum { OPTIONS = sizeof options / sizeof *options };

static fg_status take_symbols(void *library) {
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *symbol = dlsym(library, symbols[i].name);
    if (!symbol && !symbols[i].optional)
      return fg_fail(FG_EENVIRONMENT, "%s is no NVRTC of CUDA 12.3 or newer: it has no %s",
                     table.path, symbols[i].name);
    *(void **)(void *)((char *)&table + symbols[i].place) = symbol;
  }
  int major = 0, minor = 0;
  table.version(&major, &minor);
  table.number = 1000 * major + 10 * minor;
  if (table.number >= OLDEST) return FG_OK;
  return fg_fail(FG_EENVIRONMENT, "%s is the NVRTC of CUDA %d.%d; 12.3 or newer is needed",
                 table.path, major, minor);
}

/* Opens one place; remembers it among those that were tried, with the reason where something is
 * there. */
static void *try_place(const char *place, char *tried, size_t size) {
  void *library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
  const char *why = library ? "" : dlerror();
  size_t n = strlen(tried);
  if (library) {
    snprintf(table.path, sizeof table.path, "%s", place);
    return library;
  }
  int missing = strstr(why, "No such file") && !strncmp(why, place, strlen(place));
  snprintf(tried + n, size - n, "%s%s%s%s%s", n ? ", " : "", place, missing ? "" : " (",
           missing ? "" : why, missing ? "" : ")");
  return NULL;
}

static fg_status load(void) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  const char *forced = fg_setting_text(FG_SET_NVRTC, NULL);
  const char *dirs[] = {"", getenv("CUDA_HOME"), "/usr/local/cuda"};
  char tried[1024] = "";
  void *library = *forced ? try_place(forced, tried, sizeof tried) : NULL;
  for (int d = 0; d < 3 && !library && !*forced; d++) {
    for (int i = 0; i < 3 && !library && dirs[d]; i++) {
      char place[PLACE];
      snprintf(place, sizeof place, "%s%s%s", dirs[d], *dirs[d] ? "/lib64/" : "", names[i]);
      library = try_place(place, tried, sizeof tried);
    }
  }
  if (!library)
    return fg_fail(FG_EENVIRONMENT, "NVRTC is not to be found: tried %s; %s names its file", tried,
                   fg_settings[FG_SET_NVRTC].name);
  return take_symbols(library);
}

static void load_once(void) {
  loaded = load();
  if (loaded != FG_OK) snprintf(reason, sizeof reason, "%s", fg_error());
}

fg_status fg_nvrtc_load(const fg_nvrtc **nvrtc) {
  pthread_once(&once, load_once);
  if (loaded != FG_OK) return fg_fail(loaded, "%s", reason);
  *nvrtc = &table;
  return FG_OK;
}

int fg_nvrtc_version(const fg_nvrtc *nvrtc) { return nvrtc->number; }
const char *fg_nvrtc_path(const fg_nvrtc *nvrtc) { return nvrtc->path; }

int fg_nvrtc_options_key(size_t size, char *text) {
  int n = 0;
  for (int i = 0; i < OPTIONS; i++)
    n += snprintf(text + n, size - (size_t)n, "%s%s@%d", i ? " " : "", options[i].text,
                  options[i].since);
  return n;
}

static int print_options(const fg_nvrtc *nvrtc, const char *arch, size_t size, char *text) {
  int n = snprintf(text, size, "-arch=%s", arch);
  for (int i = 0; i < OPTIONS; i++)
    if (nvrtc->number >= options[i].since)
      n += snprintf(text + n, size - (size_t)n, " %s", options[i].text);
  return n;
}

int fg_nvrtc_archs(const fg_nvrtc *nvrtc, size_t size, char *text) {
  int count = 0, archs[64], n = 0;
  if (nvrtc->arch_count(&count) || count > 64 || nvrtc->archs(archs))
    return snprintf(text, size, "?");
  for (int i = 0; i < count; i++)
    n += snprintf(text + n, size - (size_t)n, "%s%d", i ? " " : "", archs[i]);
  return n;
}

fg_status fg_nvrtc_check_arch(const fg_nvrtc *nvrtc, const char *arch) {
  char known[256], padded[264], number[16];
  fg_nvrtc_archs(nvrtc, sizeof known, known);
  snprintf(padded, sizeof padded, " %s ", known);
  snprintf(number, sizeof number, " %d ", strncmp(arch, "sm_", 3) ? 0 : atoi(arch + 3));
  if (strstr(padded, number)) return FG_OK;
  return fg_fail(FG_EENVIRONMENT, "NVRTC %d.%d cannot compile for %s; it knows %s",
                 nvrtc->number / 1000, nvrtc->number % 1000 / 10, arch, known);
}

/* One compile, on its own thread. */
typedef struct {
  const fg_nvrtc *nvrtc;
  const char *name, *text, *arch;
  fg_cubin *cubin;
  double deadline;
  bool late; /* our own flag */
  fg_status status;
  char error[4096];
} job;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* NVRTC asks every now and then whether to go on. */
static int stop_when_late(void *payload, void *reserved) {
  job *j = payload;
  (void)reserved;
  j->late = j->late || now() > j->deadline;
  return j->late;
}

static fg_status take_cubin(job *j, program p, const char *log) {
  if (j->nvrtc->cubin_size(p, &j->cubin->size) || !(j->cubin->data = malloc(j->cubin->size)) ||
      j->nvrtc->cubin(p, j->cubin->data))
    return fg_fail(FG_ECOMPILER, "%s: NVRTC gave no cubin", j->name);
  fg_cubin_read_log(j->cubin, log);
  return FG_OK;
}

/* We cancel by our own flag alone: behind a cancel, NVRTC 13.0 calls failures of ptxas in the same
 * thread cancelled too. */
static const char *error_name(const fg_nvrtc *nvrtc, int result) {
  return nvrtc->error(result == NVRTC_CANCELLED ? NVRTC_COMPILATION : result);
}

static fg_status compile_program(job *j, program p) {
  char all[512];
  const char *list[OPTIONS + 1];
  int n = 0;
  size_t log_size = 0;
  print_options(j->nvrtc, j->arch, sizeof all, all);
  for (char *word = all, *next; word; word = next) {
    if ((next = strchr(word, ' '))) *next++ = 0;
    list[n++] = word;
  }
  if (j->nvrtc->set_flow) j->nvrtc->set_flow(p, stop_when_late, j);
  int result = j->nvrtc->compile(p, n, list);
  j->nvrtc->log_size(p, &log_size);
  char *log = calloc(1, log_size + 1);
  if (!log) return fg_fail(FG_EMEMORY, "%s: no memory for the log", j->name);
  j->nvrtc->log(p, log);
  fg_status status;
  if (j->late)
    status = fg_fail(FG_ECOMPILER, "%s: its compile took longer than %lld s (%s raises the limit)",
                     j->name, (long long)fg_setting_number(FG_SET_COMPILE_SECONDS),
                     fg_settings[FG_SET_COMPILE_SECONDS].name);
  else if (result == NVRTC_BUILTINS)
    status = fg_fail(FG_EENVIRONMENT, "%s lacks its builtins library, which lies beside it: %.*s",
                     j->nvrtc->path, (int)strcspn(log, "\n"), log);
  else if (result)
    status = fg_fail(FG_ECOMPILER, "%s: %s\n%.3000s", j->name, error_name(j->nvrtc, result), log);
  else
    status = take_cubin(j, p, log);
  free(log);
  return status;
}

static void *compile_thread(void *argument) {
  job *j = argument;
  program p = NULL;
  int failed = j->nvrtc->create(&p, j->text, "kernel.cu", 0, NULL, NULL);
  j->status =
      failed ? fg_fail(FG_ECOMPILER, "%s: NVRTC takes no program", j->name) : compile_program(j, p);
  if (j->status != FG_OK) snprintf(j->error, sizeof j->error, "%s", fg_error());
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
    fg_cubin_free(&result);
    return fg_fail(j.status, "%s", j.error);
  }
  *cubin = result;
  return FG_OK;
}
