/* setting.h - every environment variable that flashgen reads, one row each. */
#ifndef FG_SETTING_H
#define FG_SETTING_H

#include <stdint.h>

typedef enum fg_setting {
  FG_SET_TEMPLATES,
  FG_SET_CC,
  FG_SET_NVRTC,
  FG_SET_COMPILE_SECONDS,
  FG_SET_PLAN,
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

typedef struct fg_setting_row {
  const char *name, *fallback, *help;
} fg_setting_row;
extern const fg_setting_row fg_settings[FG_SETTINGS];

/* The variable's value, else its default; *from_environment (may be NULL) says which. An empty
 * value counts as not set. */
const char *fg_setting_text(fg_setting setting, int *from_environment);

/* Whether a value that must be a positive number is one. */
int fg_setting_good(fg_setting setting);

/* The same as a number from 1 to 10^9; a larger one reads as 10^9, one that is none as the default.
 */
int64_t fg_setting_number(fg_setting setting);

#endif
