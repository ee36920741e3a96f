/* nvrtc_identity.c - tells which NVRTC would compile, from its files: a warm start loads no
 * NVRTC. */
#include "nvrtc.h"

#include "base/setting.h"
#include "base/text.h"

#include <elf.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The GNU build id of an ELF file as hex digits; false if it has none. */
static bool build_id(const char *path, size_t size, char *hex) {
  Elf64_Ehdr head;
  Elf64_Phdr program;
  char note[4096];
  bool found = false;
  FILE *file = fopen(path, "rbe");
  if (!file) return false;
  if (fread(&head, sizeof head, 1, file) != 1 || memcmp(head.e_ident, ELFMAG, SELFMAG)) goto out;
  for (int i = 0; i < head.e_phnum && !found; i++) {
    if (fseek(file, (long)head.e_phoff + i * head.e_phentsize, SEEK_SET) ||
        fread(&program, sizeof program, 1, file) != 1)
      break;
    if (program.p_type != PT_NOTE || program.p_filesz > sizeof note) continue;
    if (fseek(file, (long)program.p_offset, SEEK_SET) ||
        fread(note, 1, program.p_filesz, file) != program.p_filesz)
      break;
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= program.p_filesz;) {
      Elf64_Nhdr n;
      memcpy(&n, note + at, sizeof n);
      size_t name = at + sizeof n, text = name + (n.n_namesz + 3u) / 4 * 4;
      if (text + n.n_descsz > program.p_filesz) break;
      if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(note + name, "GNU", 4)) {
        for (size_t b = 0; b < n.n_descsz && 2 * b + 3 < size; b++)
          snprintf(hex + 2 * b, 3, "%02x", (unsigned char)note[text + b]);
        found = true;
        break;
      }
      at = text + (n.n_descsz + 3u) / 4 * 4;
    }
  }
out:
  fclose(file);
  return found;
}

/* Adds ":dir/sub" to the list, as far as there is room. */
static void add_dir(size_t size, char *list, const char *dir, const char *sub) {
  const int n = (int)strlen(list);
  fg_append(size, list, n, "%s%s%s", n ? ":" : "", dir, sub);
}

/* The resolved path of the file that the loader would probably open; false: it is in none of the
 * usual places. */
static bool find_file(char path[PATH_MAX]) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  static const char *const usual[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                      "/usr/lib64", "/usr/lib", NULL};
  const char *forced = fg_setting_text(FG_SET_NVRTC, NULL), *home = getenv("CUDA_HOME");
  char dirs[4096] = "", place[PATH_MAX];
  if (*forced) return realpath(forced, path) != NULL;
  const char *loader = getenv("LD_LIBRARY_PATH");
  if (loader) add_dir(sizeof dirs, dirs, loader, "");
  for (int i = 0; usual[i]; i++) add_dir(sizeof dirs, dirs, usual[i], "");
  if (home) add_dir(sizeof dirs, dirs, home, "/lib64");
  add_dir(sizeof dirs, dirs, "/usr/local/cuda", "/lib64");
  char *rest, *dir = strtok_r(dirs, ":", &rest);
  for (; dir; dir = strtok_r(NULL, ":", &rest)) {
    for (int i = 0; i < 3; i++) {
      snprintf(place, sizeof place, "%.4000s/%s", dir, names[i]);
      if (realpath(place, path)) return true;
    }
  }
  return false;
}

/* Appends the ids of libnvrtc-builtins, which lies beside NVRTC and holds part of the compiler.
 * Changes `nvrtc`, a path. */
static void add_builtins(char *nvrtc, size_t size, char *text) {
  char pattern[PATH_MAX], id[96];
  glob_t found;
  int n = (int)strlen(text);
  snprintf(pattern, sizeof pattern, "%.4000s/libnvrtc-builtins.so.*", dirname(nvrtc));
  if (glob(pattern, 0, NULL, &found) != 0) return;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    if (!build_id(found.gl_pathv[i], sizeof id, id) || strstr(text, id)) continue;
    n = fg_append(size, text, n, " builtins %s", id);
  }
  globfree(&found);
}

fg_status fg_nvrtc_identity(size_t size, char *text) {
  char path[PATH_MAX], id[96];
  if (find_file(path) && build_id(path, sizeof id, id)) {
    snprintf(text, size, "nvrtc %s", id);
    add_builtins(path, size, text);
    return FG_OK;
  }
  const fg_nvrtc *nvrtc; /* only the loader finds it: its version has to do */
  if (fg_nvrtc_load(&nvrtc) == FG_OK)
    snprintf(text, size, "nvrtc %d", fg_nvrtc_version(nvrtc));
  else
    snprintf(text, size, "none"); /* kernels in a cache or zoo can still run */
  return FG_OK;
}
