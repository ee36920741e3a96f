/* compile.c - chooses NVRTC or the host compiler by the arch. */
#include "compile.h"

#include "base/text.h"
#include "cuda/nvrtc.h"
#include "host_cc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fg_status fg_compiler_options(const char *arch, size_t size, char *text) {
  TRY(fg_arch_check(arch));
  if (fg_arch_is_host(arch))
    fg_host_cc_options(size, text);
  else
    fg_nvrtc_options_key(size, text);
  return FG_OK;
}

fg_status fg_compiler_identity(const char *arch, size_t size, char *text) {
  char identity[8192] = "none", options[1024];
  TRY(fg_compiler_options(arch, sizeof options, options));
  if (fg_arch_is_host(arch)) {
    fg_status status = fg_host_cc_version(sizeof identity, identity);
    if (status != FG_OK && status != FG_EENVIRONMENT) return status;
    if (status != FG_OK) strcpy(identity, "none");
  } else {
    TRY(fg_nvrtc_identity(sizeof identity, identity));
  }
  if (strcmp(identity, "none"))
    snprintf(text, size, "%s %s", identity, options);
  else
    snprintf(text, size, "none");
  return FG_OK;
}

fg_status fg_compiler_check(const char *arch) {
  char version[8192];
  const fg_nvrtc *nvrtc;
  TRY(fg_arch_check(arch));
  if (fg_arch_is_host(arch)) return fg_host_cc_version(sizeof version, version);
  TRY(fg_nvrtc_load(&nvrtc));
  return fg_nvrtc_check_arch(nvrtc, arch);
}

/* Fails as before, with the template's place behind each line of NVRTC's messages that names a line
 * of the text: "kernel.cu(31): error: ...". */
static fg_status add_places(const fg_source *source) {
  char log[4096], text[8192];
  int n = 0;
  snprintf(log, sizeof log, "%s", fg_error());
  for (char *line = log, *next; line; line = next) {
    char place[128] = "";
    const char *at = strstr(line, "kernel.cu(");
    if ((next = strchr(line, '\n'))) *next++ = 0;
    if (at && (!next || at < next)) fg_source_place(source, atoi(at + 10), sizeof place, place);
    n = fg_append(sizeof text, text, n, "%s%s%s%s%s", n ? "\n" : "", line, *place ? " [" : "",
                  place, *place ? "]" : "");
  }
  return fg_fail(FG_ECOMPILER, "%s", text);
}

fg_status fg_compile(const char *arch, const char *name, const fg_source *source, fg_code *code) {
  const fg_nvrtc *nvrtc;
  fg_cubin cubin = {0};
  *code = (fg_code){0};
  if (fg_arch_is_host(arch)) return fg_host_cc_compile(name, source, code);
  TRY(fg_nvrtc_load(&nvrtc));
  fg_status status = fg_nvrtc_compile(nvrtc, name, source->text, source->size, arch, &cubin);
  code->refused = cubin.refused;
  if (status == FG_ECOMPILER) return add_places(source);
  TRY(status);
  if (!source->unskipped) status = fg_cubin_accept(name, &cubin);
  if (status != FG_OK) {
    code->refused = true;
    fg_cubin_free(&cubin);
    return status;
  }
  *code = (fg_code){.data = cubin.data, .size = cubin.size};
  int n = 0;
  for (int i = 0; i < cubin.n_entries; i++) {
    const fg_figures *f = &cubin.entry[i];
    n = fg_append(sizeof code->figures, code->figures, n, "%s registers %d spill %d stack %d\n",
                  f->entry, f->registers, f->spill_bytes, f->stack_bytes);
  }
  return FG_OK;
}
