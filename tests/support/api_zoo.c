/* api_zoo.c - zoos of the host device, and contexts with one. */
#include "api_zoo.h"

void api_zoo_make(const char *directory, const char *words) {
  fg_context *context = api_open("cache");
  fg_order order = FG_INIT(fg_order);
  order.directory = directory;
  order.plans = -1;
  GOOD(api_build(context, order, words, NULL));
  fg_close(context);
}

fg_context *api_zoo_open(const char *directory, const char *plan, int jit) {
  const fg_zoo zoo = {.size = sizeof zoo, .directory = directory}, *const zoos = &zoo;
  fg_config config = api_config("other-cache");
  fg_context *context;
  config.zoos = &zoos, config.n_zoos = 1;
  config.plan = plan, config.jit = jit;
  config.warn = api_keep_warning;
  GOOD(fg_open(&config, &context));
  return context;
}

void api_zoo_hits(const fg_context *context, int n) {
  fg_counts counts = FG_INIT(fg_counts);
  fg_context_counts(context, &counts);
  ck_assert_int_eq((int)counts.zoo_hits, n);
}
