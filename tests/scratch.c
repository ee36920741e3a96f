/* scratch.c - a directory of the test's own. */
#include "scratch.h"
#include "suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[4096];

void scratch_enter(void) {
  const char *base = getenv("TMPDIR");
  snprintf(directory, sizeof directory, "%s/flashgen-test-XXXXXX", base && *base ? base : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(directory));
  ck_assert_int_eq(chdir(directory), 0);
}

void scratch_leave(void) {
  DIR *d = opendir(directory);
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) ck_assert_int_eq(remove(e->d_name), 0);
  closedir(d);
  ck_assert_int_eq(chdir("/"), 0);
  ck_assert_int_eq(rmdir(directory), 0);
}

void scratch_put(const char *path, const void *bytes, size_t n) {
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
