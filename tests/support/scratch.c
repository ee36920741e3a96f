/* scratch.c - a directory of the test's own. */
#define _XOPEN_SOURCE 700 /* nftw */
#include "scratch.h"
#include "suite.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char run[4096], directory[4160];

/* Under ctest all suites share a folder, and PATH has kept_cc already (tests/begin.cmake). */
static void keep_kernels(void) {
  char kernels[4160], path[1 << 15];
  const char *rest = getenv("PATH");
  if (scratch_kernels()) return;
  snprintf(kernels, sizeof kernels, "%s/kernels", run);
  mkdir(kernels, 0777);
  setenv("FLASHGEN_TEST_KERNELS", kernels, 1);
  snprintf(path, sizeof path, "%s:%s", KEPT_CC, rest ? rest : "/usr/bin:/bin");
  setenv("PATH", path, 1);
}

void scratch_begin(void) {
  const char *base = getenv("TMPDIR");
  snprintf(run, sizeof run, "%s/flashgen-test-XXXXXX", base && *base ? base : "/tmp");
  /* others may pass: some tests become another user */
  if (mkdtemp(run) && chmod(run, 0711) == 0) {
    setenv("TMPDIR", run, 1);
    keep_kernels();
  } else
    *run = 0; /* tests that need a directory will say so */
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
  (void)info, (void)kind, (void)place;
  return remove(path);
}

static int remove_all(const char *path) { return nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

void scratch_end(void) {
  if (*run && chdir("/") == 0) remove_all(run);
}

const char *scratch_kernels(void) {
  const char *folder = getenv("FLASHGEN_TEST_KERNELS");
  return folder && *folder ? folder : NULL;
}

void scratch_enter(void) {
  ck_assert_msg(*run, "no directory can be made in TMPDIR");
  snprintf(directory, sizeof directory, "%s/XXXXXX", run);
  ck_assert_ptr_nonnull(mkdtemp(directory));
  ck_assert_int_eq(chdir(directory), 0);
}

void scratch_leave(void) {
  ck_assert_int_eq(chdir("/"), 0);
  ck_assert_int_eq(remove_all(directory), 0);
}

static void make_folders(const char *path) {
  char folder[1024];
  for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    mkdir(folder, 0777); /* it may be there */
  }
}

void scratch_put(const char *path, const void *bytes, size_t n) {
  make_folders(path);
  FILE *f = fopen(path, "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
  ck_assert_int_eq(fclose(f), 0);
}

int scratch_files(void) {
  int n = 0;
  DIR *d = opendir(".");
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));) n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
  closedir(d);
  return n;
}
