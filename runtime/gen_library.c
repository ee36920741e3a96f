/* gen_library.c - gen's functions in libflashgen.so: each opens libflashgen-gen.so if that has not
 * happened yet, and passes the call on. A program that links gen itself does not link this file. */
#define _GNU_SOURCE /* dladdr, RTLD_DEEPBIND */
#include "base/intern.h"
#include "expand/digest.h"
#include "expand/entry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const fg_gen_entry *entry;
static char reason[1024];

/* Beside the library that this code is in, else where the loader looks. */
static void *open_library(void) {
  static const char name[] = "libflashgen-gen.so." FG_SONAME;
  char path[1024];
  Dl_info here;
  const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
  if (dladdr(&once, &here) && here.dli_fname && strrchr(here.dli_fname, '/')) {
    size_t n = (size_t)(strrchr(here.dli_fname, '/') - here.dli_fname) + 1;
    snprintf(path, sizeof path, "%.*s%s", (int)n, here.dli_fname, name);
    void *library = dlopen(path, flags);
    if (library) return library;
  }
  return dlopen(name, flags);
}

static void open_once(void) {
  const fg_gen_entry *(*get)(void) = NULL;
  void *library = open_library();
  if (library) *(void **)&get = dlsym(library, "fg_gen_entry_0");
  if (!get) {
    snprintf(reason, sizeof reason, "libflashgen-gen.so is not to be found: %s", dlerror());
  } else if (strcmp(get()->version, FG_VERSION)) {
    snprintf(reason, sizeof reason, "libflashgen-gen.so is version %s, libflashgen.so %s",
             get()->version, FG_VERSION);
  } else {
    entry = get();
  }
}

static fg_status need(void) {
  pthread_once(&once, open_once);
  return entry ? FG_OK : fg_fail(FG_EENVIRONMENT, "%s", reason);
}

/* The sentence is the other library's. */
static fg_status passed(fg_status status) {
  return status == FG_OK ? FG_OK : fg_fail(status, "%s", entry->error());
}

fg_status fg_gen_new(const char *templates, fg_gen **gen) {
  TRY(need());
  return passed(entry->gen_new(templates, gen));
}

void fg_gen_free(fg_gen *gen) {
  if (gen) entry->gen_free(gen);
}

fg_status fg_gen_plans(fg_gen *gen, const fg_point *point, const char *arch,
                       const fg_limits *limits, fg_plan **plans, int *n) {
  return passed(entry->plans(gen, point, arch, limits, plans, n));
}

/* Rows of tables that each library has become this one's. */
static void adopt_recipe(fg_recipe *r) {
  for (int i = 0; i < r->n_tensors; i++)
    r->tensor[i].argument = fg_argument_at(entry->argument_number(r->tensor[i].argument));
  r->form = fg_form_rule_of(fg_recipe_kind(r)->form);
}

fg_status fg_gen_candidates(fg_gen *gen, const fg_point *point, const char *arch,
                            const fg_limits *limits, fg_planned **list, int *n) {
  TRY(passed(entry->candidates(gen, point, arch, limits, list, n)));
  for (int i = 0; i < *n; i++) adopt_recipe(&(*list)[i].recipe);
  return FG_OK;
}

fg_status fg_gen_expand(fg_gen *gen, const fg_variant *variant, fg_source **source) {
  TRY(passed(entry->expand(gen, variant, source)));
  adopt_recipe(&(*source)->recipe);
  return FG_OK;
}

fg_status fg_gen_recipe(fg_gen *gen, const fg_variant *variant, fg_recipe *recipe) {
  TRY(passed(entry->recipe(gen, variant, recipe)));
  adopt_recipe(recipe);
  return FG_OK;
}

fg_status fg_gen_digest(const char *templates, bool with_lines, size_t size, char *hex) {
  TRY(need());
  return passed(entry->digest(templates, with_lines, size, hex));
}

/* A point's texts are interned by each library for itself. */
static fg_status adopt(fg_point *point) {
  const char **texts[] = {&point->mask, &point->score, &point->inputs};
  for (int i = 0; i < 3; i++)
    if (*texts[i]) TRY(fg_intern(*texts[i], texts[i]));
  return FG_OK;
}

fg_status fg_grid_read(int n_files, const char *const *files, int n_words, const char *const *words,
                       fg_grid **grid) {
  TRY(need());
  TRY(passed(entry->grid_read(n_files, files, n_words, words, grid)));
  for (int i = 0; i < (*grid)->n; i++) TRY(adopt(&(*grid)->point[i]));
  return FG_OK;
}
