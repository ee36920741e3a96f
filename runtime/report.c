/* report.c - what a context says: warnings, and the lines that FLASHGEN_VERBOSE asks for. */
#include "context.h"

#include "setting.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const topics[FG_TOPICS] = {"dispatch", "cache", "compile"};

fg_status fg_context_topics(fg_context *c) {
  for (const char *at = fg_setting_text(FG_SET_VERBOSE, NULL); *at;) {
    size_t n = strcspn(at, ",");
    int topic = 0;
    while (topic < FG_TOPICS && (strlen(topics[topic]) != n || strncmp(topics[topic], at, n)))
      topic++;
    if (topic == FG_TOPICS)
      return fg_fail(FG_EARGUMENT,
                     "%s: \"%.*s\" is not allowed; expected words of dispatch,cache,compile",
                     fg_settings[FG_SET_VERBOSE].name, (int)n, at);
    c->topics |= 1u << topic;
    at += n + (at[n] == ',');
  }
  return FG_OK;
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
