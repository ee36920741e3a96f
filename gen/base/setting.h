/* setting.h - every environment variable that flashgen reads, one row each. */
#ifndef FG_SETTING_H
#define FG_SETTING_H

#include "error.h"

#include <stdbool.h>

typedef enum fg_setting {
  FG_SET_DEVICE,
  FG_SET_TEMPLATES,
  FG_SET_CC,
  FG_SET_NVRTC,
  FG_SET_COMPILE_SECONDS,
  FG_SET_TUNE_SECONDS,
  FG_SET_PLAN,
  FG_SET_SWITCH,
  FG_SET_WISDOM,
  FG_SET_JIT,
  FG_SET_VERBOSE,
  FG_SET_MAX_POINTS,
  FG_SET_SPEC_STEPS,
  FG_SET_SPEC_MEMORY,
  FG_SET_CACHE,
  FG_SET_CACHE_RO,
  FG_SET_CACHE_SIZE,
  FG_SET_LOCK_SECONDS,
  FG_SET_XDG_CACHE_HOME,
  FG_SET_HOME,
  FG_SET_TMPDIR,
  FG_SETTINGS
} fg_setting;

typedef enum fg_setting_kind {
  FG_SETTING_TEXT,
  FG_SETTING_NUMBER,
  FG_SETTING_SWITCH,
  FG_SETTING_SWITCHES, /* name=0,name=1 */
  FG_SETTING_TOPICS,   /* words of FG_SETTING_TOPIC_NAMES, separated by commas */
  FG_SETTING_FILE,     /* a name without a slash is the loader's to find */
  FG_SETTING_FILES,    /* file:file, or "none" */
  FG_SETTING_DIRECTORY,
  FG_SETTING_DIRECTORIES, /* dir:dir */
  FG_SETTING_PROGRAM      /* a name without a slash is looked for in PATH */
} fg_setting_kind;
#define FG_SETTING_TOPIC_NAMES "dispatch", "cache", "compile"

typedef struct fg_setting_row {
  const char *name, *fallback, *help;
  fg_setting_kind kind;
} fg_setting_row;
extern const fg_setting_row fg_settings[FG_SETTINGS];

/* The variable's value, else its default; *from_environment (may be NULL) says which. An empty
 * value counts as not set. */
const char *fg_setting_text(fg_setting setting, int *from_environment);

/* What the variable's value should be and is not, "a number above 0"; NULL where it is good. */
const char *fg_setting_fault(fg_setting setting);

/* Is the variable set to a name of something that does not exist? why: a sentence about the first
 * such name, "mine.txt cannot be used: No such file or directory". */
bool fg_setting_absent(fg_setting setting, size_t size, char *why);

/* Warns once in a process of each variable that names something that does not exist,
 * "FLASHGEN_WISDOM: mine.txt cannot be used: ..."; warn = NULL: on stderr. skip: a variable that
 * has been warned of elsewhere, or FG_SETTINGS. */
void fg_settings_warn(fg_setting skip, void (*warn)(void *context, const char *sentence),
                      void *context);

/* The value of FLASHGEN_SWITCH, "" where it is not set or not valid. Kernels made under it have the
 * names of other kernels, so that code which keeps kernels or measurements by name must refuse. */
const char *fg_switches_forced(void);

/* FG_EARGUMENT naming what is refused while FLASHGEN_SWITCH is set: "build". */
fg_status fg_switches_refuse(const char *what);

/* FG_EARGUMENT naming the first variable whose value is not good. */
fg_status fg_settings_check(void);

/* The value as a number, from 1 to 10^9 (a larger one reads as 10^9), of a switch 0 or 1. A value
 * that is not valid counts as the default. */
int64_t fg_setting_number(fg_setting setting);

#endif
