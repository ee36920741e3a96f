/* report.c - what a context says: warnings, and the lines that FLASHGEN_VERBOSE asks for. */
#include "context.h"

#include "base/setting.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const topics[FG_TOPICS] = {FG_SETTING_TOPIC_NAMES};

unsigned fg_context_topics(void) {
  unsigned asked = 0;
  for (const char *at = fg_setting_text(FG_SET_VERBOSE, NULL); *at;) {
    const size_t n = strcspn(at, ",");
    for (int i = 0; i < FG_TOPICS; i++)
      if (strlen(topics[i]) == n && !strncmp(topics[i], at, n)) asked |= 1u << i;
    at += n + (at[n] == ',');
  }
  return asked;
}

bool fg_context_tells(const fg_context *c, fg_topic topic) { return c->topics >> topic & 1; }

void fg_context_tell(const fg_context *c, fg_topic topic, const char *format, ...) {
  char line[1024];
  va_list args;
  if (!fg_context_tells(c, topic)) return;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  fprintf(stderr, "flashgen: %s: %s\n", topics[topic], line); /* one call: lines stay whole */
}

void fg_context_warn(const fg_context *c, const char *format, ...) {
  char sentence[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(sentence, sizeof sentence, format, args);
  va_end(args);
  if (c->warn)
    c->warn(c->warn_context, sentence);
  else
    fprintf(stderr, "flashgen: %s\n", sentence);
}
