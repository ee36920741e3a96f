/* keys.c - what a context's entries are kept under, and the look-up: hit, miss, or missing where
 * nothing may be made. */
#include "kernels.h"
#include "ops.h"

#include "base/setting.h"
#include "base/text.h"
#include "spec/point_formula.h"
#include "zoo/zoo_text.h"

#include <stdio.h>
#include <string.h>

/* All that a text depends on, but for the plan, which the name of a kernel has. */
fg_status fg_key_start(fg_context *c, const char *what, const char *name, fg_key *key) {
  TRY(fg_context_identify(c));
  char expression[FG_FORMULA_TEXT];
  fg_point point;
  TRY(fg_key_begin(what, key));
  TRY(fg_key_text(key, "name", name));
  if (fg_point_parse(name, &point)) { /* the full text behind the name's hashes */
    fg_point_expression(&point, sizeof expression, expression);
    if (*expression) TRY(fg_key_text(key, "expression", expression));
  }
  TRY(fg_key_text(key, "arch", c->device->arch));
  if (*fg_switches_forced()) TRY(fg_key_text(key, "switches", fg_switches_forced()));
  return fg_key_text(key, "templates", c->digest);
}

static fg_status kernel_key(fg_context *c, const char *name, const char *compiler, fg_key *key) {
  TRY(fg_key_start(c, "kernel", name, key));
  return fg_key_text(key, "compiler", compiler);
}

fg_status fg_kernel_key(fg_context *c, const char *name, fg_key *key) {
  return kernel_key(c, name, c->compiler, key);
}

/* Looks the kernel up under the compiler that is remembered, unless that is the one here. */
bool fg_context_earlier(fg_context *c, const char *name, const fg_entry **entry) {
  char compiler[sizeof c->compiler];
  fg_key key = {0};
  bool found = !c->recalled && fg_compiler_recall(c, sizeof compiler, compiler) == FG_OK &&
               *compiler && strcmp(compiler, c->compiler) &&
               kernel_key(c, name, compiler, &key) == FG_OK && fg_cache_get(c->cache, &key, entry);
  if (found)
    fg_context_tell(c, FG_CACHE, "hit %s, which \"%s\" made: the compiler here cannot be used",
                    name, compiler);
  fg_key_free(&key);
  return found;
}

/* A producer that says that it runs. */
typedef struct {
  fg_context *context;
  const char *what;
  const fg_key *key;
  fg_producer *producer;
  void *producer_context;
  bool ran;
} noted;

/* The digest is the name of the entry's file. */
static void tell_entry(const noted *n, const char *word) {
  if (!fg_context_tells(n->context, FG_CACHE)) return;
  char digest[FG_DIGEST_HEX];
  fg_zoo_digest(n->key->text, n->key->n, digest);
  fg_context_tell(n->context, FG_CACHE, "%s %s, key %s", word, n->what, digest);
}

static fg_status produce_noted(void *context, fg_product *product) {
  noted *n = context;
  n->ran = true;
  tell_entry(n, "miss");
  return n->producer(n->producer_context, product);
}

/* Says hit or miss, by whether the producer ran. */
fg_status fg_context_entry(fg_context *c, const char *what, const fg_key *key,
                           fg_producer *producer, void *producer_context, const fg_entry **entry) {
  noted n = {c, what, key, producer, producer_context, false};
  if (c->zoos_alone) {
    *entry = NULL;
    return FG_OK;
  }
  if (c->jit) {
    TRY(fg_cache_produce(c->cache, key, produce_noted, &n, entry));
  } else if (!fg_cache_get(c->cache, key, entry)) {
    n.ran = true;
    tell_entry(&n, "miss");
    *entry = NULL;
  }
  if (!n.ran) tell_entry(&n, "hit");
  return FG_OK;
}

/* What is missing ----------------------------------------------------------------------------- */

enum { NEAREST = 3 };
typedef struct {
  const char *name[NEAREST];
  size_t common[NEAREST]; /* bytes that its name begins with as the one that is missing does */
  int n;
} nearest;

/* Keeps the names that begin most like the missing one, the nearest first. */
static void consider(nearest *list, const char *missing, const char *name) {
  size_t common = 0;
  while (name[common] && name[common] == missing[common]) common++;
  int at = list->n;
  while (at > 0 && list->common[at - 1] < common) at--;
  if (at == NEAREST) return;
  if (list->n < NEAREST) list->n++;
  for (int i = list->n - 1; i > at; i--) {
    list->name[i] = list->name[i - 1];
    list->common[i] = list->common[i - 1];
  }
  list->name[at] = name, list->common[at] = common;
}

static void consider_zoos(const fg_context *c, nearest *list, const char *missing) {
  for (int z = 0; z < c->n_zoos; z++)
    for (int i = 0; i < fg_zoo_count(c->zoo[z]); i++)
      consider(list, missing, fg_zoo_at(c->zoo[z], i)->name);
}

/* Is there a kernel of that name in the cache, and not a refusal? */
static bool is_cached(fg_context *c, const char *name) {
  const fg_entry *entry;
  fg_key key = {0};
  bool found = fg_kernel_key(c, name, &key) == FG_OK && fg_cache_get(c->cache, &key, &entry);
  if (found) found = entry->code_n > 0, fg_entry_free(entry); /* none: it was refused */
  fg_key_free(&key);
  return found;
}

/* In the cache an entry is found by its key alone: those of the op's other plans are tried. */
static int add_cached(fg_op *op, size_t size, char *text) {
  fg_variant v = {.point = op->point};
  int n = 0;
  strcpy(v.arch, op->context->device->arch);
  for (int i = 0; i < op->n_candidates; i++) {
    char name[FG_NAME_MAX];
    v.plan = op->candidate[i].plan;
    fg_variant_name(&v, sizeof name, name);
    if (is_cached(op->context, name)) n = fg_append(size, text, n, "%s%s", n ? ", " : "", name);
  }
  return n;
}

/* The sentence names what was looked for, and the nearest kernels there are. */
fg_status fg_op_missing(fg_op *op, const char *what, const char *name) {
  char text[1024] = "";
  nearest list = {.n = 0};
  const bool alone = op->context->zoos_alone;
  int n = alone ? 0 : add_cached(op, sizeof text, text);
  consider_zoos(op->context, &list, name);
  for (int i = 0; i < list.n; i++)
    n = fg_append(sizeof text, text, n, "%s%s", n ? ", " : "", list.name[i]);
  return fg_fail(FG_EENVIRONMENT, "%s: %s; %s%s", what,
                 alone ? "no zoo has it, and jit of the context is -1: zoos alone"
                       : "no zoo and no cache has it, and compiling is switched off "
                         "(FLASHGEN_JIT=0)",
                 *text ? "the nearest there are: " : "nor is there another like it", text);
}
