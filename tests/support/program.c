/* program.c - spawns the program with its output in memory files. */
#define _GNU_SOURCE /* memfd_create, pipe2 */
#include "program.h"

#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { WORDS = 64, VARIABLES = 512, LINE = 4096 };

typedef struct {
  pid_t pid;
  int out, err, terminal; /* memory files; the terminal's other end, -1 if there is none */
  int adopting;           /* wait for the processes that it leaves, too */
} process;

static char kept_out[1 << 20], kept_err[1 << 18];

/* ---- environment ---- */

static int same_name(const char *variable, const char *other) {
  size_t n = strcspn(other, "=");
  return !strncmp(variable, other, n) && (variable[n] == '=' || !variable[n]);
}

static void make_environment(const program_setup *s, char *tmpdir, const char **to) {
  static char cache[256]; /* beside the temporary directory, not the user's */
  int n = 0;
  snprintf(cache, sizeof cache, "XDG_CACHE_HOME=%.*s/cache",
           (int)(strrchr(tmpdir, '/') - strchr(tmpdir, '=') - 1), strchr(tmpdir, '=') + 1);
  for (char **e = environ; *e && n < VARIABLES - PROGRAM_ENV - 5; e++) {
    int out = (!strncmp(*e, "FLASHGEN_", 9) && strncmp(*e, "FLASHGEN_TEST_", 14)) ||
              same_name(*e, "TMPDIR") || same_name(*e, "CUDA_VISIBLE_DEVICES") ||
              same_name(*e, "XDG_CACHE_HOME");
    for (int i = 0; i < PROGRAM_ENV && s->env[i]; i++) out |= same_name(*e, s->env[i]);
    if (!out) to[n++] = *e;
  }
  /* the default device is host on every machine */
  const char *const ours[] = {cache, "CUDA_VISIBLE_DEVICES=", tmpdir, "FLASHGEN_DEVICE=host"};
  for (int i = 0; i < 4; i++) {
    int out = 0; /* the test takes it away or sets it itself */
    for (int j = 0; j < PROGRAM_ENV && s->env[j]; j++) out |= same_name(ours[i], s->env[j]);
    if (!out) to[n++] = ours[i];
  }
  for (int i = 0; i < PROGRAM_ENV && s->env[i]; i++)
    if (strchr(s->env[i], '=')) to[n++] = s->env[i];
  to[n] = NULL;
}

/* ---- streams ---- */

static int open_terminal(int columns, posix_spawn_file_actions_t *actions) {
  struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = 24};
  int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ck_assert_int_ge(master, 0);
  ck_assert_int_eq(grantpt(master) | unlockpt(master) | ioctl(master, TIOCSWINSZ, &size), 0);
  posix_spawn_file_actions_addopen(actions, 2, ptsname(master), O_RDWR | O_NOCTTY, 0);
  return master;
}

static void set_stdout(const program_setup *s, int kept, posix_spawn_file_actions_t *actions) {
  int ends[2];
  switch (s->out) {
  case PROGRAM_KEPT:
    posix_spawn_file_actions_adddup2(actions, kept, 1);
    break;
  case PROGRAM_CLOSED:
    posix_spawn_file_actions_addclose(actions, 1);
    break;
  case PROGRAM_FULL:
    posix_spawn_file_actions_addopen(actions, 1, "/dev/full", O_WRONLY, 0);
    break;
  case PROGRAM_LEFT:
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    posix_spawn_file_actions_adddup2(actions, ends[1], 1); /* leaks here until the test ends */
    break;
  }
}

static void read_kept(int fd, size_t size, char *text) {
  size_t n = 0;
  for (ssize_t got; n < size - 1 && (got = pread(fd, text + n, size - 1 - n, (off_t)n)) > 0;)
    n += (size_t)got;
  ck_assert_msg(n < size - 1, "more output than a test keeps");
  text[n] = 0;
}

/* What the program's side wrote; once it is closed a read fails. */
static void read_terminal(int fd, size_t size, char *text) {
  size_t n = 0;
  for (ssize_t got; n < size - 1 && (got = read(fd, text + n, size - 1 - n)) > 0;) n += (size_t)got;
  text[n] = 0;
  close(fd);
}

/* ---- the process ---- */

/* What signals do in the program: as usual, also where Check or the shell changed them. */
static void set_signals(const program_setup *s, posix_spawnattr_t *attributes) {
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  if (!s->interrupts_ignored) sigaddset(&usual, SIGINT);
  posix_spawnattr_init(attributes);
  posix_spawnattr_setsigdefault(attributes, &usual);
  posix_spawnattr_setpgroup(attributes, 0);
  posix_spawnattr_setflags(attributes,
                           (short)(POSIX_SPAWN_SETSIGDEF | (s->group ? POSIX_SPAWN_SETPGROUP : 0)));
}

static void split(const char *words, const char *argv[WORDS]) {
  static char line[LINE];
  char *next = line;
  int n = 1;
  snprintf(line, sizeof line, "%s", words);
  argv[0] = FLASHGEN_PROGRAM;
  for (char *word; n < WORDS - 1 && (word = strsep(&next, " "));)
    if (*word) argv[n++] = word;
  argv[n] = NULL;
}

static process spawn(const program_setup *s, const char *words) {
  static char tmpdir[LINE];
  const char *argv[WORDS], *env[VARIABLES];
  process p = {.terminal = -1,
               .out = memfd_create("out", MFD_CLOEXEC),
               .err = memfd_create("err", MFD_CLOEXEC)};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  /* processes share it, and only so do their lines not overwrite each other */
  ck_assert_int_eq(fcntl(p.err, F_SETFL, O_APPEND), 0);
  split(words, argv);
  memcpy(tmpdir, "TMPDIR=", 7);
  ck_assert_ptr_nonnull(getcwd(tmpdir + 7, sizeof tmpdir - 16));
  strcat(tmpdir, "/tmp");
  mkdir(tmpdir + 7, 0777); /* it may be there */
  make_environment(s, tmpdir, env);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (s->closed_stdin) posix_spawn_file_actions_addclose(&actions, 0);
  posix_spawn_file_actions_adddup2(&actions, p.err, 2);
  if (s->terminal) p.terminal = open_terminal(s->terminal, &actions);
  set_stdout(s, p.out, &actions);
  set_signals(s, &attributes);
  if (s->interrupts_ignored) signal(SIGINT, SIG_IGN);
  int failed = posix_spawn(&p.pid, argv[0], &actions, &attributes, (char **)argv, (char **)env);
  if (s->interrupts_ignored) signal(SIGINT, SIG_DFL);
  ck_assert_msg(!failed, "%s: %s", argv[0], strerror(failed));
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return p;
}

static const struct timespec tick = {.tv_nsec = 2000000};

static int files_in(const char *directory) {
  int n = 0;
  DIR *d = opendir(directory);
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));) n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
  closedir(d);
  return n;
}

/* Those that a program ended at once has left, workers and compilers, are ours: they still write.
 */
static void wait_for_orphans(void) {
  while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
  }
  ck_assert_int_eq(errno, ECHILD);
}

static program_result finish(process *p, const char *words) {
  int state;
  if (p->terminal >= 0) read_terminal(p->terminal, sizeof kept_err, kept_err);
  while (waitpid(p->pid, &state, 0) < 0) ck_assert_int_eq(errno, EINTR);
  if (p->adopting) wait_for_orphans();
  read_kept(p->out, sizeof kept_out, kept_out);
  if (p->terminal < 0) read_kept(p->err, sizeof kept_err, kept_err);
  close(p->out), close(p->err);
  ck_assert_msg(files_in("tmp") == 0, "%s: leaves files in TMPDIR", words);
  return (program_result){.code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state),
                          .out = kept_out,
                          .err = kept_err};
}

/* ---- what tests call ---- */

#define WORDS_OF(format, words)                                                                    \
  char words[LINE];                                                                                \
  do {                                                                                             \
    va_list args;                                                                                  \
    va_start(args, format);                                                                        \
    vsnprintf(words, sizeof words, format, args);                                                  \
    va_end(args);                                                                                  \
  } while (0)

static const program_setup usual;

program_result program_run(const program_setup *setup, const char *format, ...) {
  WORDS_OF(format, words);
  process p = spawn(setup ? setup : &usual, words);
  return finish(&p, words);
}

/* The C compiler has made a file of its own in the directory that kernel.c is in. */
static int compiling(void) {
  char path[300] = "";
  DIR *d = opendir("tmp");
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));)
    if (*e->d_name != '.') snprintf(path, sizeof path, "tmp/%s", e->d_name);
  closedir(d);
  if (!*path || !(d = opendir(path))) return 0; /* it may just have gone */
  int n = 0;
  for (struct dirent *e; (e = readdir(d));) n += !strncmp(e->d_name, "cc", 2);
  closedir(d);
  return n > 0;
}

program_result program_interrupted(const program_setup *setup, const char *text, int signal,
                                   int times, const char *words) {
  program_setup slow = setup ? *setup : usual; /* each compile takes its time: none is kept */
  int n = 0;
  while (n < PROGRAM_ENV && slow.env[n]) n++;
  ck_assert_int_lt(n, PROGRAM_ENV);
  slow.env[n] = "FLASHGEN_TEST_KERNELS";
  ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  process p = spawn(&slow, words);
  p.adopting = 1;
  for (int i = 0;; i++) {
    read_kept(p.out, sizeof kept_out, kept_out);
    if (text ? strstr(kept_out, text) != NULL : compiling()) break;
    ck_assert_msg(i < 10000 && waitpid(p.pid, NULL, WNOHANG) == 0, "%s: ended before \"%s\": %s",
                  words, text ? text : "", kept_out);
    nanosleep(&tick, NULL);
  }
  for (int i = 0; i < times; i++) {
    kill(setup && setup->group ? -p.pid : p.pid, signal);
    nanosleep(&tick, NULL); /* two that wait at once are one */
  }
  return finish(&p, words);
}

program_result program_gives(int code, const char *format, ...) {
  WORDS_OF(format, words);
  program_result r = program_run(NULL, "%s", words);
  ck_assert_msg(r.code == code, "flashgen %s: exit %d, expected %d\n%s%s", words, r.code, code,
                r.out, r.err);
  return r;
}

void program_refuses(int code, const char *sentence, const char *format, ...) {
  WORDS_OF(format, words);
  program_result r = program_gives(code, "%s", words);
  char expected[LINE];
  int n = snprintf(expected, sizeof expected, "flashgen: %s\n", sentence);
  ck_assert_msg(!strncmp(r.err, expected, (size_t)n), "flashgen %s:\n%sexpected\n%s", words, r.err,
                expected);
  ck_assert_msg(!r.err[n] || !strncmp(r.err + n, "flashgen ", 9), "flashgen %s: says more: %s",
                words, r.err);
  ck_assert_str_eq(r.out, "");
}

const char *program_compiler(const char *lines) {
  static char variable[LINE + 32];
  char here[LINE], text[LINE];
  const int n = snprintf(text, sizeof text, "#!/bin/sh\n%s\nexec cc \"$@\"\n", lines);
  ck_assert_int_lt(n, LINE);
  scratch_put("cc.sh", text, (size_t)n);
  ck_assert_int_eq(chmod("cc.sh", 0755), 0);
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  snprintf(variable, sizeof variable, "FLASHGEN_CC=%s/cc.sh", here);
  return variable;
}

void program_says(const char *text, const char *part) {
  ck_assert_msg(strstr(text, part) != NULL, "expected \"%s\" in\n%s", part, text);
}

int program_count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) n++;
  return n;
}

char *program_text(const char *path) {
  static char text[1 << 22];
  FILE *f = fopen(path, "r");
  ck_assert_msg(f != NULL, "%s", path);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return text;
}

void program_page_says(const char *page, const char *part) {
  ck_assert_msg(strstr(page, part) != NULL, "the page has no \"%s\"", part);
}
