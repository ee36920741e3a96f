/* device_host.c - the host device: shared objects on the engine (runtime/host/). A process runs one
 * launch at a time; a launch is over when its call returns. */
#define _GNU_SOURCE /* dladdr, memfd_create */
#include "device.h"
#include "process.h"
#include "tensor_map.h"

#include "host/engine.h"

#include "base/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUT = 8192, MULTIPROCESSORS = 6 };

typedef struct {
  fg_module base;
  void *library;
  void *entry[FG_STEP_MAX]; /* by step; NULL for a step that is no launch */
  const char *code_begin, *code_end;
  int file; /* the library's bytes in memory, open for addr2line: no file is left behind */
} kernel;

/* Finds NAME_entry of each launch step; FG_ETEMPLATE if one is missing. */
static fg_status find_entries(kernel *k) {
  const fg_recipe *r = &k->base.source->recipe;
  char symbol[64];
  for (int i = 0; i < r->n_steps; i++) {
    if (r->step[i].kind != FG_STEP_LAUNCH) continue;
    snprintf(symbol, sizeof symbol, "%s_entry", r->step[i].entry);
    if (!(k->entry[i] = dlsym(k->library, symbol)))
      return fg_fail(FG_ETEMPLATE, "%s: has no entry %s", k->base.name, r->step[i].entry);
  }
  return FG_OK;
}

/* Writes the code to the memory file; FG_EIO if that fails. */
static fg_status write_all(int fd, const fg_code *code, const char *name) {
  for (size_t n = 0; n < code->size;) {
    ssize_t put = write(fd, (const char *)code->data + n, code->size - n);
    if (put < 0 && errno != EINTR)
      return fg_fail(FG_EIO, "%s: no memory file for it: %s", name, strerror(errno));
    n += put > 0 ? (size_t)put : 0;
  }
  return FG_OK;
}

/* Loads the code from a memory file and binds it to the engine. After a failure unload frees the
 * kernel. */
typedef struct {
  uintptr_t base;
  const char *begin, *end;
} code_place;

/* The executable part of the module that is loaded at the base. */
static int find_code(struct dl_phdr_info *module, size_t size, void *to) {
  code_place *place = to;
  (void)size;
  if (module->dlpi_addr != place->base) return 0;
  for (int i = 0; i < module->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &module->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    place->begin = (const char *)place->base + p->p_vaddr;
    place->end = place->begin + p->p_memsz;
  }
  return 1;
}

static fg_status open_library(kernel *k, const fg_code *code) {
  char path[64];
  k->file = memfd_create("flashgen-kernel", MFD_CLOEXEC);
  if (k->file < 0)
    return fg_fail(FG_EIO, "%s: no memory file for it: %s", k->base.name, strerror(errno));
  TRY(write_all(k->file, code, k->base.name));
  snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)getpid(), k->file);
  k->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!k->library)
    return fg_fail(FG_ECOMPILER, "%s: cannot be loaded: %s", k->base.name, dlerror());
  void (*bind)(fgh_api *);
  *(void **)&bind = dlsym(k->library, "fgh_bind");
  if (!bind) return fg_fail(FG_ETEMPLATE, "%s: has no fgh_bind", k->base.name);
  bind(fg_host_api());
  Dl_info info;
  code_place code_at = {0};
  if (dladdr(*(void **)&bind, &info)) code_at.base = (uintptr_t)info.dli_fbase;
  dl_iterate_phdr(find_code, &code_at);
  k->code_begin = code_at.begin, k->code_end = code_at.end;
  return find_entries(k);
}

static void unload(fg_module *module) {
  kernel *k = (kernel *)module;
  if (k->library) dlclose(k->library);
  if (k->file >= 0) close(k->file);
  free(k);
}

static fg_status load(fg_device *device, const char *name, const fg_source *source,
                      const fg_code *code, fg_module **module) {
  kernel *k = calloc(1, sizeof *k);
  if (!k) return fg_fail(FG_EMEMORY, "no memory for a module");
  k->base.device = device;
  k->base.source = source;
  k->file = -1;
  snprintf(k->base.name, sizeof k->base.name, "%s", name);
  fg_status status = open_library(k, code);
  if (status == FG_OK)
    *module = &k->base;
  else
    unload(&k->base);
  return status;
}

/* The template places of addresses in the module, innermost first, joined by " < "; "" if they are
 * not known. Places in the bodies of primitives are left out: they say nothing about the kernel. */
static void places_of(const kernel *k, void *const calls[FG_HOST_CALLS], size_t size, char *text) {
  char library[64], address[FG_HOST_CALLS][32], output[OUTPUT];
  const char *argv[FG_HOST_CALLS + 5] = {"addr2line", "-i", "-e", library};
  Dl_info info;
  int code, n = 0;
  text[0] = 0;
  if (!calls[0] || !dladdr(calls[0], &info)) return;
  snprintf(library, sizeof library, "/proc/%ld/fd/%d", (long)getpid(), k->file);
  for (int i = 0; i < FG_HOST_CALLS && calls[i]; i++) {
    /* one byte back: a return address may belong to the next line */
    snprintf(address[i], sizeof address[i], "%#lx",
             (unsigned long)((char *)calls[i] - (char *)info.dli_fbase - 1));
    argv[4 + i] = address[i];
  }
  if (fg_process_run(argv, sizeof output, output, &code) != FG_OK || code) return;
  for (const char *at = output; (at = strstr(at, "kernel.c:")) != NULL; at += 9) {
    char place[128];
    fg_source_place(k->base.source, atoi(at + 9), sizeof place, place);
    if (!*place || !strncmp(place, "host/", 5)) continue;
    n = fg_append(size, text, n, "%s%s", n ? " < " : "", place);
  }
}

/* FG_ETEMPLATE with the engine's sentence and the template places of the access. */
static fg_status fault(const kernel *k, const char *entry, const fg_host_fault *f) {
  char places[512];
  places_of(k, f->at, sizeof places, places);
  return fg_fail(FG_ETEMPLATE, "%s: %s: %s%s%s", k->base.name, entry, f->text,
                 *places ? "\n  at " : "", places);
}

/* Lists all that the kernels may touch: the tensors that are there, and the regions of the
 * workspace. An output and a region count as not initialised. */
static fg_status describe_memory(const fg_recipe *r, const fg_shape *shape, const fg_args *args,
                                 void *workspace, fg_host_tensor *list, int *count) {
  int n = 0;
  for (int i = 0; i < r->n_tensors; i++) {
    const fg_recipe_tensor *t = &r->tensor[i];
    const fg_tensor *tensor = fg_args_tensor(args, t);
    if (!tensor->data || fg_tensor_count(r, t, shape) == 0) continue;
    fg_host_tensor *h = &list[n++];
    *h = (fg_host_tensor){.name = t->name,
                          .base = tensor->data,
                          .elem = (int)fg_elem_size(t->elem),
                          .writable = t->output,
                          .initialised = !t->output || t->kept,
                          .rank = (int)strlen(t->axes)};
    int64_t packed = 1;
    for (int a = h->rank - 1; a >= 0; a--) {
      int64_t extent = fg_recipe_extent(r, t->axes[a], shape);
      h->extent[a] = extent;
      h->stride[a] = t->argument->contiguous ? packed : fg_tensor_stride(t, tensor, a);
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

/* Fills in the tensor maps at the beginning of Params, in the form of the host primitives. */
static fg_status encode_maps(const fg_recipe *r, const fg_shape *shape, const fg_args *args,
                             void *workspace, void *params) {
  for (int i = 0; i < r->n_maps; i++) {
    fg_map_view v;
    if (!fg_map_possible(r, &r->map[i], shape, args)) continue;
    TRY(fg_map_view_of(r, &r->map[i], shape, args, workspace, &v));
    tensor_map *m = (tensor_map *)params + i;
    *m = (tensor_map){.base = v.base,
                      .elem = (u8)fg_elem_size(v.elem),
                      .rank = (u8)v.rank,
                      .swizzle = (u8)v.swizzle,
                      .encoded = 1};
    for (int a = 0; a < v.rank; a++) {
      m->extent[a] = (u32)v.extent[a];
      m->box[a] = (u16)v.box[a];
      if (a) m->stride[a - 1] = (i64)v.stride[a];
    }
  }
  return FG_OK;
}

/* Runs a launch step on the engine; the step's number varies the seed. The blocks of a persistent
 * grid that share the work are as many as the seed says, from one to the multiprocessors.
 * FG_ETEMPLATE: the engine found a fault. */
static fg_status run_step(const kernel *k, int i, const fg_shape *shape, int multiprocessors,
                          const void *params, fg_host_memory *memory) {
  const fg_step *step = &k->base.source->recipe.step[i];
  fg_host_launch launch = {.params = params,
                           .block = (uint32_t)step->threads,
                           .shared_bytes = (uint32_t)step->shared_bytes,
                           .code_begin = k->code_begin,
                           .code_end = k->code_end,
                           .seed = k->base.device->seed + (uint64_t)i,
                           .cluster = (uint32_t)step->cluster,
                           .early = step->early,
                           .memory = memory};
  bool empty;
  static fg_host_fault f; /* large, and one launch at a time a process */
  TRY(fg_step_grid(step, shape, launch.grid, &empty));
  if (empty) return FG_OK;
  fg_step_limit(step, 1 + (int)(launch.seed % (uint64_t)multiprocessors), 0, launch.grid);
  /* the seed also chooses how many blocks of any grid are resident: no kernel may count on more
   * than one */
  uint32_t most = FG_HOST_BLOCKS_MAX / (step->cluster > 1 ? (uint32_t)step->cluster : 1);
  launch.resident = 1 + (uint32_t)((launch.seed + launch.seed / 3) % 3);
  if (launch.resident > most) launch.resident = most;
  *(void **)&launch.entry = k->entry[i];
  fg_status status = fg_host_run(&launch, &f);
  return status == FG_ETEMPLATE ? fault(k, step->entry, &f) : status;
}

/* Fills the step's regions with zero bytes, which kernels may read from then on. */
static fg_status fill(const fg_recipe *r, const fg_shape *shape, const fg_step *step,
                      void *workspace, fg_host_memory *memory) {
  int64_t offset, bytes;
  TRY(fg_workspace_fill(r, shape, step, &offset, &bytes));
  memset((char *)workspace + offset, 0, (size_t)bytes);
  for (int i = 0; i < step->regions; i++) {
    TRY(fg_workspace_region(r, shape, step->region + i, &offset, &bytes));
    if (bytes) fg_host_memory_written(memory, (char *)workspace + offset);
  }
  return FG_OK;
}

/* Runs all steps over one description of the memory, so that a step may read what an earlier one
 * wrote. */
static fg_status run_steps(fg_module *module, const fg_shape *shape, const fg_args *args,
                           void *workspace) {
  const kernel *k = (const kernel *)module;
  const fg_recipe *r = &module->source->recipe;
  fg_host_tensor tensors[FG_TENSOR_MAX + FG_REGION_MAX];
  _Alignas(64) char params[FG_PARAMS_MAX];
  fg_host_memory *memory = NULL;
  int n;
  fg_status status = FG_OK;
  TRY(fg_params_fill(r, shape, args, workspace, params));
  TRY(encode_maps(r, shape, args, workspace, params));
  TRY(describe_memory(r, shape, args, workspace, tensors, &n));
  TRY(fg_host_memory_new(tensors, n, &memory));
  for (int i = 0; i < r->n_steps; i++) {
    const fg_step *step = &r->step[i];
    if (step->kind == FG_STEP_LAUNCH)
      TRY_OUT(run_step(k, i, shape, MULTIPROCESSORS - (int)args->sm_margin, params, memory));
    else
      TRY_OUT(fill(r, shape, step, workspace, memory));
  }
out:
  fg_host_memory_free(memory);
  return status;
}

/* Guards the engine, whose state is global to the process. */
static pthread_mutex_t engine = PTHREAD_MUTEX_INITIALIZER;

static fg_status launch(fg_module *module, const fg_shape *shape, const fg_args *args,
                        void *workspace, void *stream) {
  (void)stream;
  pthread_mutex_lock(&engine);
  fg_status status = run_steps(module, shape, args, workspace);
  pthread_mutex_unlock(&engine);
  return status;
}

/* Wall-clock time, which includes the checking of the engine. */
static fg_status time_launches(fg_module *module, const fg_shape *shape, const fg_timing *t,
                               double *ms) {
  for (int i = 0; i < t->launches; i++) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    TRY(launch(module, shape, &t->args[i % t->n_args], t->workspace, NULL));
    clock_gettime(CLOCK_MONOTONIC, &to);
    ms[i] = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) * 1e-6;
  }
  return FG_OK;
}

static bool capturing(fg_device *device, void *stream) {
  (void)device;
  (void)stream;
  return false;
}

static fg_status synchronize(fg_device *device) {
  (void)device;
  return FG_OK;
}

/* Allocates between guard pages. Each allocation has another seed, so that both of its ends get to
 * lie at a guard page. */
static fg_status allocate(fg_device *device, size_t bytes, void **p) {
  return fg_host_guarded_new(bytes, device->seed++, p);
}

static void release(fg_device *device, void *p, size_t bytes) {
  (void)device;
  if (p) fg_host_guarded_free(p, bytes);
}

static fg_status copy(fg_device *device, void *to, const void *from, size_t bytes) {
  (void)device;
  memcpy(to, from, bytes);
  return FG_OK;
}

static void close_host(fg_device *device) { free(device); }

fg_status fg_device_host_open(fg_device **device) {
  static const fg_device_class class = {.load = load,
                                        .unload = unload,
                                        .launch = launch,
                                        .capturing = capturing,
                                        .time = time_launches,
                                        .synchronize = synchronize,
                                        .allocate = allocate,
                                        .release = release,
                                        .upload = copy,
                                        .download = copy,
                                        .close = close_host};
  fg_device *d = calloc(1, sizeof *d);
  if (!d) return fg_fail(FG_EMEMORY, "no memory for a device");
  *d = (fg_device){.class = &class,
                   .name = "host",
                   .arch = "host",
                   .model = "host",
                   .multiprocessors = MULTIPROCESSORS};
  *device = d;
  return FG_OK;
}
