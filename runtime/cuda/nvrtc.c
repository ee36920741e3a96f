/* nvrtc.c - finds NVRTC and tells its version and archs. */
#include "nvrtc_library.h"

#include "base/setting.h"
#include "base/text.h"
#include "recipe/arch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 12030 }; /* CUDA 12.3 */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static fg_nvrtc table;
static fg_status loaded;
static char reason[2048];

/* Name of the symbol, its place in the table, whether an old NVRTC may lack it. */
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

/* Fills the table; FG_EENVIRONMENT if the library is no NVRTC or too old. */
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

/* Opens the library at one place, or adds the place to `tried`, with the reason unless no file is
 * there. */
static void *try_place(const char *place, char *tried, size_t size) {
  void *library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
  const char *why = library ? "" : dlerror();
  const int n = (int)strlen(tried);
  if (library) {
    snprintf(table.path, sizeof table.path, "%s", place);
    return library;
  }
  int missing = strstr(why, "No such file") && !strncmp(why, place, strlen(place));
  fg_append(size, tried, n, "%s%s%s%s%s", n ? ", " : "", place, missing ? "" : " (",
            missing ? "" : why, missing ? "" : ")");
  return NULL;
}

/* Takes the first NVRTC found, the newest name first in each place; a forced one alone if a setting
 * names it. */
static fg_status load(void) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  const char *forced = fg_setting_text(FG_SET_NVRTC, NULL);
  const char *dirs[] = {"", getenv("CUDA_HOME"), "/usr/local/cuda"};
  char tried[1024] = "";
  void *library = *forced ? try_place(forced, tried, sizeof tried) : NULL;
  for (int d = 0; d < 3 && !library && !*forced; d++) {
    for (int i = 0; i < 3 && !library && dirs[d]; i++) {
      char place[FG_NVRTC_PATH];
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

int fg_nvrtc_archs(const fg_nvrtc *nvrtc, size_t size, char *text) {
  int count = 0, archs[64], n = 0;
  if (nvrtc->arch_count(&count) || count > 64 || nvrtc->archs(archs))
    return snprintf(text, size, "?");
  for (int i = 0; i < count; i++) n = fg_append(size, text, n, "%s%d", i ? " " : "", archs[i]);
  return n;
}

fg_status fg_nvrtc_check_arch(const fg_nvrtc *nvrtc, const char *arch) {
  char known[256], padded[264], number[16];
  fg_nvrtc_archs(nvrtc, sizeof known, known);
  snprintf(padded, sizeof padded, " %s ", known);
  const fg_arch *row = fg_arch_find(arch);
  const bool is_gpu = row && !fg_arch_has(row, FG_HAS_ENGINE);
  snprintf(number, sizeof number, " %d ", is_gpu ? row->number : 0);
  if (strstr(padded, number)) return FG_OK;
  return fg_fail(FG_EENVIRONMENT, "NVRTC %d.%d cannot compile for %s; it knows %s",
                 nvrtc->number / 1000, nvrtc->number % 1000 / 10, arch, known);
}
