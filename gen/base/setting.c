/* setting.c - the table of environment variables. */
#include "setting.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* So that callers may scale a number, by 2^20 say, without overflow. */
enum { NUMBER_MAX = 1000000000 };

const fg_setting_row fg_settings[FG_SETTINGS] = {
    [FG_SET_DEVICE] = {"FLASHGEN_DEVICE", "",
                       "host or cuda:N where none is named; else cuda:0, else host with a warning"},
    [FG_SET_TEMPLATES] = {"FLASHGEN_TEMPLATES", "",
                          "directory whose files replace the built-in templates of their names",
                          FG_SETTING_DIRECTORY},
    [FG_SET_CC] = {"FLASHGEN_CC", "cc", "C compiler of the host device: gcc 12, clang 15, or newer",
                   FG_SETTING_PROGRAM},
    [FG_SET_NVRTC] = {"FLASHGEN_NVRTC", "", "file of the NVRTC library", FG_SETTING_FILE},
    [FG_SET_COMPILE_SECONDS] = {"FLASHGEN_COMPILE_SECONDS", "60",
                                "most seconds that NVRTC may take for a kernel", FG_SETTING_NUMBER},
    [FG_SET_TUNE_SECONDS] = {"FLASHGEN_TUNE_SECONDS", "20",
                             "seconds in which a plan's launches have to end in tune, on a GPU",
                             FG_SETTING_NUMBER},
    [FG_SET_PLAN] = {"FLASHGEN_PLAN", "",
                     "globs over plan names: the plans to take where they fit"},
    [FG_SET_SWITCH] = {"FLASHGEN_SWITCH", "",
                       "name=0,other=1: decisions of the templates to take otherwise, to measure "
                       "them; not for build and tune",
                       FG_SETTING_SWITCHES},
    [FG_SET_WISDOM] = {"FLASHGEN_WISDOM", "",
                       "files of measurements to choose plans by, file:file; none: not even those "
                       "that come with flashgen",
                       FG_SETTING_FILES},
    [FG_SET_JIT] = {"FLASHGEN_JIT", "1", "0: what no zoo or cache has is an error, not compiled",
                    FG_SETTING_SWITCH},
    [FG_SET_VERBOSE] = {"FLASHGEN_VERBOSE", "",
                        "dispatch, cache, compile: what the library says of it on stderr",
                        FG_SETTING_TOPICS},
    [FG_SET_MAX_POINTS] = {"FLASHGEN_MAX_POINTS", "100000", "most combinations a grid may have",
                           FG_SETTING_NUMBER},
    [FG_SET_SPEC_STEPS] = {"FLASHGEN_SPEC_STEPS", "200",
                           "million steps a spec file may run; one takes 5 ns at most",
                           FG_SETTING_NUMBER},
    [FG_SET_SPEC_MEMORY] = {"FLASHGEN_SPEC_MEMORY", "64", "MiB of memory a spec file may use",
                            FG_SETTING_NUMBER},
    [FG_SET_CACHE] = {"FLASHGEN_CACHE", "",
                      "directory of compiled kernels; ~/.cache/flashgen if none is set"},
    [FG_SET_CACHE_RO] = {"FLASHGEN_CACHE_RO", "", "more of them, dir:dir, searched first",
                         FG_SETTING_DIRECTORIES},
    [FG_SET_CACHE_SIZE] = {"FLASHGEN_CACHE_SIZE", "2048", "MiB of compiled kernels kept",
                           FG_SETTING_NUMBER},
    [FG_SET_LOCK_SECONDS] = {"FLASHGEN_LOCK_SECONDS", "120",
                             "most seconds to wait for another process's compile",
                             FG_SETTING_NUMBER},
    [FG_SET_XDG_CACHE_HOME] = {"XDG_CACHE_HOME", "", "its flashgen/ is the default cache"},
    [FG_SET_HOME] = {"HOME", "", "its .cache/flashgen/ is the default without XDG_CACHE_HOME"},
    [FG_SET_TMPDIR] = {"TMPDIR", "/tmp", "where the host device compiles"},
};

const char *fg_setting_text(fg_setting setting, int *from_environment) {
  const char *value = getenv(fg_settings[setting].name);
  int given = value && *value;
  if (from_environment) *from_environment = given;
  return given ? value : fg_settings[setting].fallback;
}

static bool is_topic(const char *word, size_t n) {
  static const char *const topics[] = {FG_SETTING_TOPIC_NAMES};
  for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
    if (strlen(topics[i]) == n && !strncmp(topics[i], word, n)) return true;
  return false;
}

static bool are_topics(const char *at) {
  while (*at) {
    size_t n = strcspn(at, ",");
    if (!is_topic(at, n)) return false;
    at += n + (at[n] == ',');
  }
  return true;
}

/* name=0,name=1 */
static bool are_switches(const char *at) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
  while (*at) {
    const size_t n = strspn(at, letters);
    if (!n || at[n] != '=' || !strchr("01", at[n + 1]) || !at[n + 1]) return false;
    at += n + 2;
    if (*at == ',' && at[1])
      at++;
    else if (*at)
      return false;
  }
  return true;
}

const char *fg_setting_fault(fg_setting setting) {
  const fg_setting_row *row = &fg_settings[setting];
  const char *text = fg_setting_text(setting, NULL);
  char *end;
  if (row->kind == FG_SETTING_TEXT || row->kind >= FG_SETTING_FILE) return NULL;
  if (row->kind == FG_SETTING_TOPICS)
    return are_topics(text) ? NULL : "words of dispatch,cache,compile";
  if (row->kind == FG_SETTING_SWITCHES)
    return are_switches(text) ? NULL : "name=0 or name=1, separated by commas";
  if (row->kind == FG_SETTING_SWITCH)
    return strcmp(text, "0") && strcmp(text, "1") ? "0 or 1" : NULL;
  return strtoll(text, &end, 10) > 0 && !*end ? NULL : "a number above 0";
}

/* Why the file or directory cannot be used; 0: it can. */
static int trouble(const char *path, bool directory, int how) {
  struct stat info;
  if (stat(path, &info)) return errno;
  if (directory != S_ISDIR(info.st_mode)) return directory ? ENOTDIR : EISDIR;
  return access(path, how) ? errno : 0;
}

/* A program: by its path, or in one of PATH's directories. */
static int trouble_of_program(const char *name) {
  char path[2 * PATH_MAX];
  const char *at = getenv("PATH");
  if (strchr(name, '/') || !at) return trouble(name, false, X_OK);
  for (size_t n; *at; at += n + (at[n] == ':')) {
    n = strcspn(at, ":");
    snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name);
    if (!trouble(path, false, X_OK)) return 0;
  }
  return ENOENT;
}

static int trouble_of(fg_setting_kind kind, const char *name) {
  switch (kind) {
  case FG_SETTING_FILE:
    return strchr(name, '/') ? trouble(name, false, R_OK) : 0;
  case FG_SETTING_FILES:
    return trouble(name, false, R_OK);
  case FG_SETTING_DIRECTORY:
  case FG_SETTING_DIRECTORIES:
    return trouble(name, true, R_OK | X_OK);
  case FG_SETTING_PROGRAM:
    return trouble_of_program(name);
  default:
    return 0;
  }
}

bool fg_setting_absent(fg_setting setting, size_t size, char *why) {
  const fg_setting_kind kind = fg_settings[setting].kind;
  const bool list = kind == FG_SETTING_FILES || kind == FG_SETTING_DIRECTORIES;
  int given;
  const char *at = fg_setting_text(setting, &given);
  if (!given || (kind == FG_SETTING_FILES && !strcmp(at, "none"))) return false;
  for (size_t n; *at; at += n + (at[n] == ':')) {
    char name[PATH_MAX];
    n = list ? strcspn(at, ":") : strlen(at);
    snprintf(name, sizeof name, "%.*s", (int)n, at);
    const int error = n ? trouble_of(kind, name) : 0;
    if (!error) continue;
    snprintf(why, size, "%.400s cannot be used: %s", name, strerror(error));
    return true;
  }
  return false;
}

void fg_settings_warn(fg_setting skip, void (*warn)(void *context, const char *sentence),
                      void *context) {
  static atomic_bool said[FG_SETTINGS];
  char why[512], sentence[640];
  for (int i = 0; i < FG_SETTINGS; i++) {
    const bool skipped = (fg_setting)i == skip;
    if (!skipped && !fg_setting_absent((fg_setting)i, sizeof why, why)) continue;
    if (atomic_exchange(&said[i], true) || skipped) continue;
    snprintf(sentence, sizeof sentence, "%s: %s", fg_settings[i].name, why);
    if (warn)
      warn(context, sentence);
    else
      fprintf(stderr, "flashgen: %s\n", sentence);
  }
}

const char *fg_switches_forced(void) {
  return fg_setting_fault(FG_SET_SWITCH) ? "" : fg_setting_text(FG_SET_SWITCH, NULL);
}

fg_status fg_switches_refuse(const char *what) {
  if (!*fg_switches_forced()) return FG_OK;
  return fg_fail(FG_EARGUMENT,
                 "%s refuses kernels that are made under %s: their names do not show it; unset it",
                 what, fg_settings[FG_SET_SWITCH].name);
}

fg_status fg_settings_check(void) {
  for (int i = 0; i < FG_SETTINGS; i++) {
    const char *fault = fg_setting_fault((fg_setting)i);
    if (fault)
      return fg_fail(FG_EARGUMENT, "%s: \"%s\" is not allowed; expected %s", fg_settings[i].name,
                     fg_setting_text((fg_setting)i, NULL), fault);
  }
  return FG_OK;
}

int64_t fg_setting_number(fg_setting setting) {
  const char *text =
      fg_setting_fault(setting) ? fg_settings[setting].fallback : fg_setting_text(setting, NULL);
  int64_t value = strtoll(text, NULL, 10);
  return value < NUMBER_MAX ? value : NUMBER_MAX;
}
