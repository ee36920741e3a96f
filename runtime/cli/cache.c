/* cache.c - `flashgen cache`: what the cache of compiled kernels holds, and tidying it. */
#include "cli.h"

#include "base/setting.h"
#include "base/spelling.h"
#include "cache/cache.h"

#include <inttypes.h>
#include <string.h>

typedef fg_status action(fg_cache *cache, uint64_t bytes, fg_cache_report *report);

static fg_status stat_all(fg_cache *cache, uint64_t bytes, fg_cache_report *report) {
  (void)bytes;
  return fg_cache_stat(cache, report);
}

static fg_status verify_all(fg_cache *cache, uint64_t bytes, fg_cache_report *report) {
  (void)bytes;
  return fg_cache_verify(cache, report);
}

static fg_status clear_all(fg_cache *cache, uint64_t bytes, fg_cache_report *report) {
  (void)bytes;
  return fg_cache_clear(cache, report);
}

static const struct {
  const char *name;
  action *act; /* NULL: prints the path */
} actions[] = {{"stat", stat_all},
               {"verify", verify_all},
               {"gc", fg_cache_gc},
               {"clear", clear_all},
               {"path", NULL}};
enum { ACTIONS = sizeof actions / sizeof *actions };

static void warn(void *context, const char *sentence) {
  (void)context;
  fprintf(stderr, "flashgen: %s\n", sentence);
}

static fg_status find_action(const cli *c, int *found) {
  const char *names[ACTIONS];
  if (c->n_names != 1 || c->n_files || c->n_words)
    return fg_fail(FG_EARGUMENT, "cache: expected one of stat, verify, gc, clear, path");
  for (int i = 0; i < ACTIONS; i++) {
    names[i] = actions[i].name;
    if (!strcmp(names[i], c->names[0])) return *found = i, FG_OK;
  }
  const char *near = fg_nearest(c->names[0], names, ACTIONS);
  return fg_fail(
      FG_EARGUMENT, "cache: no action \"%s\"%s%s%s; expected stat, verify, gc, clear, path",
      c->names[0], near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

static double mib(uint64_t bytes) { return (double)bytes / (1 << 20); }

static void print_report(const fg_cache *cache, const char *name, const fg_cache_report *r) {
  const int removes = strcmp(name, "stat") != 0;
  printf("path         %s\n", fg_cache_path(cache));
  printf("entries      %" PRIu64 "\n", r->entries);
  printf("size         %.1f MiB of %" PRId64 " MiB\n", mib(r->bytes),
         fg_setting_number(FG_SET_CACHE_SIZE));
  printf("temporaries  %" PRIu64 "\n", r->temporaries);
  if (!strcmp(name, "verify")) printf("damaged      %" PRIu64 "\n", r->bad);
  if (removes) printf("removed      %" PRIu64 ", %.1f MiB\n", r->removed, mib(r->removed_bytes));
}

static void print_json(const fg_cache *cache, const char *name, const fg_cache_report *r) {
  printf("{\"schema\": 1, \"action\": \"%s\", \"path\": ", name);
  cli_json_string(stdout, fg_cache_path(cache));
  printf(", \"entries\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"most_bytes\": %" PRId64
         ", \"temporaries\": %" PRIu64 ", \"damaged\": %" PRIu64 ", \"removed\": %" PRIu64
         ", \"removed_bytes\": %" PRIu64 "}\n",
         r->entries, r->bytes, fg_setting_number(FG_SET_CACHE_SIZE) << 20, r->temporaries, r->bad,
         r->removed, r->removed_bytes);
}

static int act(const cli *c, fg_cache *cache, int i) {
  fg_cache_report report = {0};
  uint64_t bytes = c->size > 0 ? (uint64_t)c->size << 20 : 0;
  if (!fg_cache_path(cache)) return CLI_MACHINE; /* the warning has said why */
  if (actions[i].act) {
    fg_status status = actions[i].act(cache, bytes, &report);
    if (status != FG_OK) return cli_fail(status);
  }
  if (c->json)
    print_json(cache, actions[i].name, &report);
  else if (actions[i].act)
    print_report(cache, actions[i].name, &report);
  else
    printf("%s\n", fg_cache_path(cache));
  return report.bad ? CLI_KERNEL : CLI_OK;
}

static int run(cli *c) {
  fg_cache *cache;
  int i = 0;
  fg_status status = find_action(c, &i);
  if (status == FG_OK && c->size >= 0 && strcmp(actions[i].name, "gc"))
    status = fg_fail(FG_EARGUMENT, "--size is for gc");
  if (status == FG_OK) status = fg_cache_open(NULL, warn, NULL, &cache);
  if (status != FG_OK) return cli_fail(status);
  int code = act(c, cache, i);
  fg_cache_close(cache);
  return code;
}

const cli_command cli_cache = {
    .name = "cache",
    .line = "the compiled kernels kept on disk",
    .usage = "stat|verify|gc|clear|path",
    .options = " help json size ",
    .examples =
        "  flashgen cache stat            how many entries and bytes\n"
        "  flashgen cache verify          reads every entry and removes those that are damaged\n"
        "  flashgen cache gc --size 500   removes the least recently used beyond 500 MiB\n"
        "  flashgen cache clear           removes all\n"
        "  FLASHGEN_CACHE=/data/kernels flashgen cache path\n",
    .run = run};
