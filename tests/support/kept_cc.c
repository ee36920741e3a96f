/* kept_cc.c - the program `cc` that tests find first in PATH: compiles a kernel once, whichever
 * suite asks first.
 *
 * A command that makes kernel.so of kernel.c, as the host device's do, is looked up by a hash of
 * the text, the options and the compiler in the folder FLASHGEN_TEST_KERNELS. If the folder has the
 * library it is copied; if not, the real compiler makes it and a copy is kept. Any other command,
 * and each one where the variable is not set, goes to the real compiler: the next `cc` in PATH.
 * Compiles that fail are not kept. */
#define _GNU_SOURCE /* st_mtim */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
  perror(what);
  exit(127);
}

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The first `cc` in PATH that is not this program. */
static void find_compiler(char compiler[PATH_MAX], struct stat *info) {
  struct stat own;
  const char *at = getenv("PATH");
  if (stat("/proc/self/exe", &own)) fail("/proc/self/exe");
  for (size_t n; at && *at; at += n + (at[n] == ':')) {
    n = strcspn(at, ":");
    snprintf(compiler, PATH_MAX, "%.*s/cc", (int)n, at);
    if (!access(compiler, X_OK) && !stat(compiler, info) && !same_file(&own, info)) return;
  }
  fputs("cc: PATH has no other cc\n", stderr);
  exit(127);
}

static bool ends_with(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && !strcmp(text + n - m, end);
}

/* Adds the file's bytes to the hash. */
static bool hash_file(XXH3_state_t *hash, const char *path) {
  char bytes[1 << 16];
  FILE *file = fopen(path, "rbe");
  if (!file) return false;
  for (size_t n; (n = fread(bytes, 1, sizeof bytes, file)) > 0;)
    XXH3_128bits_update(hash, bytes, n);
  fclose(file);
  return true;
}

/* Where the command's library is kept; *to: where the command wants it. False: it makes no kernel.
 * Names of folders do not count: equal texts give equal bytes wherever they are compiled. */
static bool find_kept(char **argv, const char *compiler, const struct stat *info, const char **to,
                      char kept[PATH_MAX]) {
  const char *folder = getenv("FLASHGEN_TEST_KERNELS"), *source = NULL;
  XXH3_state_t *hash = XXH3_createState();
  XXH3_128bits_reset(hash);
  XXH3_128bits_update(hash, compiler, strlen(compiler) + 1);
  XXH3_128bits_update(hash, &info->st_mtim, sizeof info->st_mtim);
  for (char **arg = argv + 1; *arg; arg++) {
    if (ends_with(*arg, "/kernel.c"))
      source = *arg;
    else if (!strcmp(*arg, "-o") && arg[1] && ends_with(arg[1], "/kernel.so"))
      *to = *++arg;
    else if (strncmp(*arg, "-ffile-prefix-map=", 18))
      XXH3_128bits_update(hash, *arg, strlen(*arg) + 1);
  }
  const bool found = folder && *folder && source && *to && hash_file(hash, source);
  const XXH128_hash_t sum = XXH3_128bits_digest(hash);
  XXH3_freeState(hash);
  snprintf(kept, PATH_MAX, "%s/%016llx%016llx.so", folder ? folder : "",
           (unsigned long long)sum.high64, (unsigned long long)sum.low64);
  return found;
}

static bool copy(const char *from, const char *to) {
  struct stat info;
  const int in = open(from, O_RDONLY | O_CLOEXEC);
  if (in < 0) return false;
  const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0777);
  bool good = out >= 0 && !fstat(in, &info);
  for (off_t left = good ? info.st_size : 0; left > 0;) {
    char bytes[1 << 16];
    const ssize_t n = read(in, bytes, sizeof bytes);
    good = n > 0 && write(out, bytes, (size_t)n) == n;
    if (!good) break;
    left -= n;
  }
  close(in);
  if (out >= 0) good &= !close(out);
  return good;
}

/* Keeps a copy of the library under a name of its own until it is whole. */
static void keep(const char *library, const char *kept) {
  char part[PATH_MAX + 16];
  snprintf(part, sizeof part, "%s.%d", kept, (int)getpid());
  if (!copy(library, part) || rename(part, kept)) unlink(part);
}

static int run(const char *compiler, char **argv) {
  int status;
  const pid_t child = fork();
  if (!child) {
    execv(compiler, argv);
    fail(compiler);
  }
  if (child < 0 || waitpid(child, &status, 0) < 0) fail("fork");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
  char compiler[PATH_MAX], kept[PATH_MAX];
  const char *library = NULL;
  struct stat info;
  (void)argc;
  find_compiler(compiler, &info);
  argv[0] = compiler; /* it finds its own parts from there */
  if (!find_kept(argv, compiler, &info, &library, kept)) {
    execv(compiler, argv);
    fail(compiler);
  }
  if (copy(kept, library)) return 0;
  const int code = run(compiler, argv);
  if (code == 0) keep(library, kept);
  return code;
}
