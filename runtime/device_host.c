/* device_host.c - modules of the host device. */
#define _GNU_SOURCE /* dladdr, memmem */
#include "device_host.h"

#include "host/engine.h"
#include "process.h"
#include "setting.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 512, OUTPUT = 8192, ERRORS = 5 };

struct fg_host_module {
  const fg_source *source;
  char name[FG_NAME_MAX];
  char dir[PATH_SIZE -
           16]; /* all that is made, the compiler's files too, until the library is loaded */
  void *library;
  int file; /* kernel.so, open for addr2line: nothing is left behind however the process ends */
};

static void path_of(const fg_host_module *m, const char *file, char path[PATH_SIZE]) {
  snprintf(path, PATH_SIZE, "%s/%s", m->dir, file);
}

static fg_status write_source(const fg_host_module *m) {
  char path[PATH_SIZE];
  path_of(m, "kernel.c", path);
  FILE *file = fopen(path, "wxe");
  if (!file) return fg_fail(FG_EIO, "%s: %s", path, strerror(errno));
  size_t n = fwrite(m->source->text, 1, m->source->size, file);
  if (fclose(file) || n != m->source->size)
    return fg_fail(FG_EIO, "%s: cannot be written: %s", path, strerror(errno));
  return FG_OK;
}

/* "kernel.c:31:5: error: ..." with the template's place behind it, of the first errors; warnings,
 * notes and source excerpts go. */
static void add_places(const fg_host_module *m, const char *output, size_t size, char *text) {
  size_t n = 0;
  int errors = 0;
  for (const char *line = output; *line && n < size;) {
    size_t length = strcspn(line, "\n");
    const char *at = memmem(line, length, "kernel.c:", 9);
    if (at && memmem(line, length, "error: ", 7) && ++errors <= ERRORS) {
      char place[128];
      fg_source_place(m->source, atoi(at + 9), sizeof place, place);
      n += (size_t)snprintf(text + n, size - n, "\n  %.*s [%s]", (int)(line + length - at), at,
                            place);
    }
    line += length + (line[length] == '\n');
  }
  if (errors > ERRORS && n < size)
    n += (size_t)snprintf(text + n, size - n, "\n  and %d more", errors - ERRORS);
  if (!n) snprintf(text, size, "\n%.2000s", output);
}

static fg_status run_compiler(const char *tmpdir, const char *const *argv, size_t size,
                              char *output, int *code) {
  fg_status status = fg_process_run_in(tmpdir, argv, size, output, code);
  if (status != FG_EENVIRONMENT) return status;
  return fg_fail_in(status, "the C compiler of the host device (%s)", fg_settings[FG_SET_CC].name);
}

/* -O1: the engine has the time, not the kernel; contraction off: sums round as they are written;
 * the rest turns uninitialised registers, array indices out of bounds and overflow into faults. */
static fg_status compile(const fg_host_module *m) {
  char source[PATH_SIZE], library[PATH_SIZE], output[OUTPUT], text[OUTPUT];
  int code;
  path_of(m, "kernel.c", source);
  path_of(m, "kernel.so", library);
  const char *argv[] = {fg_setting_text(FG_SET_CC, NULL),
                        "-std=gnu11",
                        "-O1",
                        "-g1",
                        "-fPIC",
                        "-shared",
                        "-ffp-contract=off",
                        "-ftrivial-auto-var-init=pattern",
                        "-fsanitize=bounds,shift,signed-integer-overflow,integer-divide-by-zero",
                        "-fsanitize-undefined-trap-on-error",
                        "-Wall",
                        "-Wextra",
                        "-Wno-unknown-pragmas",
                        "-Wno-psabi",
                        "-o",
                        library,
                        source,
                        "-lm",
                        NULL};
  TRY(run_compiler(m->dir, argv, sizeof output, output, &code));
  if (code == 0) return FG_OK;
  add_places(m, output, sizeof text, text);
  return fg_fail(FG_ECOMPILER, "%s: %s refused it (exit %d):%s", m->name, argv[0], code, text);
}

static fg_status load(fg_host_module *m) {
  char path[PATH_SIZE];
  path_of(m, "kernel.so", path);
  m->file = open(path, O_RDONLY | O_CLOEXEC);
  m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!m->library) return fg_fail(FG_ECOMPILER, "%s: cannot be loaded: %s", m->name, dlerror());
  void (*bind)(fgh_api *);
  *(void **)&bind = dlsym(m->library, "fgh_bind");
  if (!bind) return fg_fail(FG_ETEMPLATE, "%s: has no fgh_bind", m->name);
  bind(fg_host_api());
  return FG_OK;
}

/* Our files, and what a compiler that was interrupted left. */
static void remove_files(fg_host_module *m) {
  if (!m->dir[0]) return;
  DIR *dir = opendir(m->dir);
  for (struct dirent *e; dir && (e = readdir(dir));) unlinkat(dirfd(dir), e->d_name, 0);
  if (dir) closedir(dir);
  rmdir(m->dir);
  m->dir[0] = 0;
}

fg_status fg_host_module_new(const fg_source *source, const char *name, fg_host_module **module) {
  fg_status status = FG_OK;
  fg_host_module *m = calloc(1, sizeof *m);
  if (!m) return fg_fail(FG_EMEMORY, "no memory for a module");
  m->source = source;
  m->file = -1;
  snprintf(m->name, sizeof m->name, "%s", name);
  snprintf(m->dir, sizeof m->dir, "%s/flashgen-XXXXXX", fg_setting_text(FG_SET_TMPDIR, NULL));
  if (!mkdtemp(m->dir)) {
    status = fg_fail(FG_EIO, "%s: no temporary directory there: %s",
                     fg_setting_text(FG_SET_TMPDIR, NULL), strerror(errno));
    m->dir[0] = 0;
    goto out;
  }
  TRY_OUT(write_source(m));
  TRY_OUT(compile(m));
  TRY_OUT(load(m));
  remove_files(m);
  *module = m;
  m = NULL;
out:
  fg_host_module_free(m);
  return status;
}

void fg_host_module_free(fg_host_module *m) {
  if (!m) return;
  if (m->library) dlclose(m->library);
  if (m->file >= 0) close(m->file);
  remove_files(m);
  free(m);
}

/* The template places of an address in the module, innermost first, calls joined by " < ". Places
 * in the primitives' own bodies say nothing and are left out. */
static void places_of(const fg_host_module *m, void *pc, size_t size, char *text) {
  char library[64], address[32], output[OUTPUT];
  Dl_info info;
  int code;
  size_t n = 0;
  text[0] = 0;
  if (!pc || !dladdr(pc, &info)) return;
  snprintf(library, sizeof library, "/proc/%ld/fd/%d", (long)getpid(), m->file);
  /* one byte back: a return address may belong to the next line */
  snprintf(address, sizeof address, "%#lx",
           (unsigned long)((char *)pc - (char *)info.dli_fbase - 1));
  const char *argv[] = {"addr2line", "-i", "-e", library, address, NULL};
  if (fg_process_run(argv, sizeof output, output, &code) != FG_OK || code) return;
  for (const char *at = output; (at = strstr(at, "kernel.c:")) != NULL; at += 9) {
    char place[128];
    fg_source_place(m->source, atoi(at + 9), sizeof place, place);
    if (!*place || !strncmp(place, "host/", 5)) continue;
    n += (size_t)snprintf(text + n, size - n, "%s%s", n ? " < " : "", place);
    if (n >= size) break;
  }
}

static fg_status fault(const fg_host_module *m, const char *entry, const fg_host_fault *f) {
  char places[512];
  places_of(m, f->pc, sizeof places, places);
  return fg_fail(FG_ETEMPLATE, "%s: %s: %s%s%s", m->name, entry, f->text, *places ? "\n  at " : "",
                 places);
}

/* What the engine may let the kernels touch: the tensors that are there, and the regions. */
static fg_status describe_memory(const fg_recipe *r, const fg_shape *shape, const fg_args *args,
                                 void *workspace, fg_host_tensor *list, int *count) {
  int n = 0;
  for (int i = 0; i < r->n_tensors; i++) {
    const fg_recipe_tensor *t = &r->tensor[i];
    const fg_tensor *tensor = fg_args_tensor(args, t->argument);
    if (!tensor->data || fg_tensor_count(r, t, shape) == 0) continue;
    fg_host_tensor *h = &list[n++];
    *h = (fg_host_tensor){.name = t->argument->name,
                          .base = tensor->data,
                          .elem = (int)fg_elem_size(t->elem),
                          .writable = t->output,
                          .initialised = !t->output,
                          .rank = (int)strlen(t->axes)};
    int64_t packed = 1;
    for (int a = h->rank - 1; a >= 0; a--) {
      int64_t extent = fg_recipe_extent(r, t->axes[a], shape);
      h->extent[a] = extent;
      h->stride[a] = t->argument->packed
                         ? packed
                         : tensor->stride[fg_axis_index(t->argument->axes, t->argument->axes[a])];
      packed *= extent;
    }
  }
  for (int i = 0; i < r->n_regions; i++) {
    int64_t offset, bytes;
    TRY(fg_workspace_region(r, shape, i, &offset, &bytes));
    int elem = (int)fg_elem_size(r->region[i].elem);
    if (bytes)
      list[n++] = (fg_host_tensor){.name = r->region[i].name,
                                   .base = (char *)workspace + offset,
                                   .elem = elem,
                                   .writable = 1,
                                   .rank = 1,
                                   .extent = {bytes / elem},
                                   .stride = {1}};
  }
  *count = n;
  return FG_OK;
}

static fg_status run_step(const fg_host_module *m, const fg_step *step, const fg_shape *shape,
                          const void *params, fg_host_memory *memory, uint64_t seed) {
  fg_host_launch launch = {.params = params,
                           .block = (uint32_t)step->threads,
                           .shared_bytes = (uint32_t)step->shared_bytes,
                           .seed = seed,
                           .memory = memory};
  char symbol[64];
  bool empty;
  static fg_host_fault f; /* large, and one launch at a time a process */
  TRY(fg_step_grid(step, shape, launch.grid, &empty));
  if (empty) return FG_OK;
  snprintf(symbol, sizeof symbol, "%s_entry", step->entry);
  *(void **)&launch.entry = dlsym(m->library, symbol);
  if (!launch.entry) return fg_fail(FG_ETEMPLATE, "%s: has no entry %s", m->name, step->entry);
  fg_status status = fg_host_run(&launch, &f);
  return status == FG_ETEMPLATE ? fault(m, step->entry, &f) : status;
}

fg_status fg_host_module_run(fg_host_module *m, const fg_shape *shape, const fg_args *args,
                             void *workspace, uint64_t seed) {
  const fg_recipe *r = &m->source->recipe;
  fg_host_tensor tensors[FG_TENSOR_MAX + FG_REGION_MAX];
  _Alignas(16) char params[FG_PARAMS_MAX];
  fg_host_memory *memory = NULL;
  int n;
  fg_status status = FG_OK;
  TRY(fg_launch_check(r, shape, args));
  TRY(fg_params_fill(r, shape, args, workspace, params));
  TRY(describe_memory(r, shape, args, workspace, tensors, &n));
  TRY(fg_host_memory_new(tensors, n, &memory));
  for (int i = 0; i < r->n_steps; i++) {
    const fg_step *step = &r->step[i];
    if (step->kind == FG_STEP_LAUNCH) {
      TRY_OUT(run_step(m, step, shape, params, memory, seed + (uint64_t)i));
      continue;
    }
    int64_t offset, bytes;
    TRY_OUT(fg_workspace_region(r, shape, step->region, &offset, &bytes));
    memset((char *)workspace + offset, 0, (size_t)bytes);
    fg_host_memory_written(memory, (char *)workspace + offset);
  }
out:
  fg_host_memory_free(memory);
  return status;
}

fg_status fg_host_compiler(size_t size, char *text) {
  const char *argv[] = {fg_setting_text(FG_SET_CC, NULL), "--version", NULL};
  int code;
  TRY(run_compiler(NULL, argv, size, text, &code));
  text[strcspn(text, "\n")] = 0;
  if (code) return fg_fail(FG_EENVIRONMENT, "%s --version fails (exit %d)", argv[0], code);
  return FG_OK;
}
