/* process.c - posix_spawn with the output in a pipe. */
#define _GNU_SOURCE /* pipe2 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Reads all; what does not fit is thrown away, so that the program never blocks on a full pipe. */
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

fg_status fg_process_run(const char *const *argv, size_t size, char *output, int *exit_code) {
  int pipes[2], state;
  pid_t pid;
  posix_spawn_file_actions_t actions;
  output[0] = 0;
  if (pipe2(pipes, O_CLOEXEC)) return fg_fail(FG_EIO, "pipe: %s", strerror(errno));
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], 2);
  int failed = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
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
