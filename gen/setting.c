/* setting.c - the table of environment variables. */
#include "setting.h"

#include <stdlib.h>

/* So that callers may scale a number, by 2^20 say, without overflow. */
enum { NUMBER_MAX = 1000000000 };

const fg_setting_row fg_settings[FG_SETTINGS] = {
    [FG_SET_TEMPLATES] = {"FLASHGEN_TEMPLATES", "",
                          "directory used instead of the built-in templates"},
    [FG_SET_CC] = {"FLASHGEN_CC", "cc", "C compiler of the host device"},
    [FG_SET_MAX_POINTS] = {"FLASHGEN_MAX_POINTS", "100000", "most combinations a grid may have"},
    [FG_SET_SPEC_STEPS] = {"FLASHGEN_SPEC_STEPS", "200",
                           "million steps a spec file may run; one takes 8 ns at most"},
    [FG_SET_SPEC_MEMORY] = {"FLASHGEN_SPEC_MEMORY", "64", "MiB of memory a spec file may use"},
    [FG_SET_TMPDIR] = {"TMPDIR", "/tmp", "where the host device compiles"},
    [FG_SET_NO_COLOR] = {"NO_COLOR", "", "any value: no colour"},
};

const char *fg_setting_text(fg_setting setting, int *from_environment) {
  const char *value = getenv(fg_settings[setting].name);
  int given = value && *value;
  if (from_environment) *from_environment = given;
  return given ? value : fg_settings[setting].fallback;
}

int64_t fg_setting_number(fg_setting setting) {
  char *end;
  int64_t value = strtoll(fg_setting_text(setting, NULL), &end, 10);
  if (*end || value <= 0) value = strtoll(fg_settings[setting].fallback, NULL, 10);
  return value < NUMBER_MAX ? value : NUMBER_MAX;
}
