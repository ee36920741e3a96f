/* process.c - runs programs by posix_spawn, with their output in a pipe. */
#define _GNU_SOURCE /* pipe2 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Reads to the end. Bytes that do not fit are thrown away, so that the program never blocks on a
 * full pipe. */
static void drain(int fd, size_t size, char *output) {
  size_t n = 0;
  char rest[4096];
  for (;;) {
    size_t room = size - 1 - n;
    ssize_t got = room ? read(fd, output + n, room) : read(fd, rest, sizeof rest);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (room) n += (size_t)got;
  }
  output[n] = 0;
}

/* The program gets the usual SIGPIPE, which flashgen ignores. */
static void set_attributes(posix_spawnattr_t *attributes) {
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_init(attributes);
  posix_spawnattr_setsigdefault(attributes, &usual);
  posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF);
}

/* Our environment with English messages, which callers read, and with `tmpdir`, "TMPDIR=x", if it
 * is not NULL. The caller frees the list, but not its strings. */
static char **environment_with(char *tmpdir) {
  static char language[] = "LC_ALL=C";
  size_t n = 0, kept = 0;
  while (environ[n]) n++;
  char **list = malloc((n + 3) * sizeof *list);
  for (size_t i = 0; list && i < n; i++) {
    int ours = !strncmp(environ[i], "LC_ALL=", 7) || !strncmp(environ[i], "LANGUAGE=", 9);
    if (tmpdir) ours |= !strncmp(environ[i], "TMPDIR=", 7);
    if (!ours) list[kept++] = environ[i];
  }
  if (!list) return NULL;
  list[kept++] = language;
  if (tmpdir) list[kept++] = tmpdir;
  list[kept] = NULL;
  return list;
}

fg_status fg_process_run(const char *const *argv, size_t size, char *output, int *exit_code) {
  return fg_process_run_in(NULL, argv, size, output, exit_code);
}

fg_status fg_process_run_in(const char *tmpdir, const char *const *argv, size_t size, char *output,
                            int *exit_code) {
  char variable[4096];
  int pipes[2], state;
  pid_t pid;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  output[0] = 0;
  snprintf(variable, sizeof variable, "TMPDIR=%s", tmpdir ? tmpdir : "");
  char **environment = environment_with(tmpdir ? variable : NULL);
  if (!environment) return fg_fail(FG_EMEMORY, "no memory to start %s", argv[0]);
  if (pipe2(pipes, O_CLOEXEC)) {
    free(environment);
    return fg_fail(FG_EIO, "pipe: %s", strerror(errno));
  }
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], 2);
  set_attributes(&attributes);
  int failed = posix_spawnp(&pid, argv[0], &actions, &attributes, (char *const *)argv, environment);
  free(environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(pipes[1]);
  if (!failed) drain(pipes[0], size, output);
  close(pipes[0]);
  if (failed)
    return fg_fail(FG_EENVIRONMENT, "%s cannot be started: %s", argv[0], strerror(failed));
  while (waitpid(pid, &state, 0) < 0)
    if (errno != EINTR) return fg_fail(FG_EIO, "waitpid: %s", strerror(errno));
  *exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return FG_OK;
}
