/* produce.c - from an op to its candidates, and from a candidate to a loaded kernel: through the
 * cache, so that a warm start runs no Lua and no compiler. */
#include "context.h"

#include "compile.h"
#include "host_cc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sections of an entry's meta text. */
static const char recipe_mark[] = "--- recipe\n", lines_mark[] = "--- lines\n";
static const char end_mark[] = "--- end\n"; /* of a plan in a list of candidates */

static fg_status add_text(fg_key *key, const char *label, const char *text) {
  return fg_key_add(key, label, text, strlen(text));
}

/* What every key holds; `what` parts kernels from lists of candidates. */
static fg_status start_key(const fg_context *c, const char *what, const char *name, fg_key *key) {
  const int format = FG_CACHE_FORMAT;
  TRY(fg_key_add(key, "format", &format, sizeof format));
  TRY(add_text(key, "what", what));
  TRY(add_text(key, "name", name));
  TRY(add_text(key, "arch", c->device->arch));
  return add_text(key, "templates", c->digest);
}

fg_status fg_kernel_key(const fg_context *c, const char *name, fg_key *key) {
  TRY(start_key(c, "kernel", name, key));
  TRY(add_text(key, "options", c->device->options));
  return add_text(key, "compiler", c->compiler);
}

fg_status fg_context_gen(fg_context *c) {
  return c->gen ? FG_OK : fg_gen_new(c->templates, &c->gen);
}

/* Candidates -------------------------------------------------------------------------------- */

typedef struct {
  fg_op *op;
  char *text;
  size_t n;
} listing;

static fg_status list_plan(listing *l, const fg_plan *plan) {
  fg_variant variant = {.point = l->op->point, .plan = *plan};
  char name[FG_NAME_MAX], recipe[8192];
  fg_source *source;
  strcpy(variant.arch, l->op->context->device->arch);
  TRY(fg_gen_expand(l->op->context->gen, &variant, &source));
  fg_variant_name(&variant, sizeof name, name);
  fg_recipe_print(&source->recipe, sizeof recipe, recipe);
  fg_source_free(source);
  size_t more = strlen(name) + strlen(recipe) + 16;
  char *text = realloc(l->text, l->n + more);
  if (!text) return fg_fail(FG_EMEMORY, "no memory for a list of plans");
  l->text = text;
  l->n += (size_t)snprintf(text + l->n, more, "plan %s\n%s--- end\n", name, recipe);
  return FG_OK;
}

/* A producer: every plan within the op's restrictions, and its recipe. */
static fg_status list_plans(void *context, fg_product *product) {
  listing l = {.op = context};
  fg_context *c = l.op->context;
  fg_plan *plans = NULL;
  int n = 0;
  pthread_mutex_lock(&c->gen_lock);
  fg_status status = fg_context_gen(c);
  if (status == FG_OK)
    status = fg_gen_plans(c->gen, &l.op->point, c->device->arch, &l.op->limits, &plans, &n);
  for (int i = 0; i < n && status == FG_OK; i++) status = list_plan(&l, &plans[i]);
  pthread_mutex_unlock(&c->gen_lock);
  free(plans);
  if (status != FG_OK) {
    free(l.text);
    return status;
  }
  product->meta = l.text;
  return FG_OK;
}

static fg_status read_candidate(const char *text, size_t length, fg_candidate *candidate) {
  char name[FG_NAME_MAX + 8], recipe[8192];
  fg_variant variant;
  size_t line = strcspn(text, "\n");
  if (line < 6 || line - 5 >= sizeof name || length - line - 1 >= sizeof recipe)
    return fg_fail(FG_EIO, "a cached list of plans is damaged");
  snprintf(name, sizeof name, "%.*s", (int)(line - 5), text + 5);
  snprintf(recipe, sizeof recipe, "%.*s", (int)(length - line - 1), text + line + 1);
  TRY(fg_variant_parse(name, &variant));
  candidate->plan = variant.plan;
  return fg_recipe_parse(recipe, &candidate->recipe);
}

static fg_status read_candidates(fg_op *op, const char *meta) {
  int room = 0, n = 0;
  for (const char *at = meta; (at = strstr(at, end_mark)); at += strlen(end_mark)) room++;
  fg_candidate *list = calloc((size_t)room + 1, sizeof *list);
  if (!list) return fg_fail(FG_EMEMORY, "no memory for %d plans", room);
  fg_status status = FG_OK;
  for (const char *at = meta, *end; status == FG_OK && (end = strstr(at, end_mark));
       at = end + strlen(end_mark))
    status = read_candidate(at, (size_t)(end - at), &list[n++]);
  if (status == FG_OK && !n) status = fg_fail(FG_EIO, "a cached list of plans is empty");
  if (status != FG_OK) {
    free(list);
    return status;
  }
  op->candidate = list;
  op->n_candidates = n;
  return FG_OK;
}

fg_status fg_plans_key(const fg_op *op, fg_key *key) {
  char name[FG_NAME_MAX];
  fg_point_name(&op->point, sizeof name, name);
  TRY(start_key(op->context, "plans", name, key));
  return fg_key_add(key, "limits", &op->limits, sizeof op->limits);
}

/* In place of an entry that a good checksum protects and that still does not read. */
static fg_status relist(fg_op *op, const fg_key *key) {
  fg_product product = {0};
  TRY(list_plans(op, &product));
  fg_cache_put(op->context->cache, key, product.meta, NULL, 0);
  fg_status status = read_candidates(op, product.meta);
  free(product.meta);
  return status;
}

fg_status fg_op_candidates(fg_op *op) {
  const fg_entry *entry;
  fg_key key = {0};
  fg_status status = FG_OK;
  if (op->n_candidates) return FG_OK;
  TRY_OUT(fg_plans_key(op, &key));
  TRY_OUT(fg_cache_produce(op->context->cache, &key, list_plans, op, &entry));
  status = read_candidates(op, entry->meta);
  fg_entry_free(entry);
  if (status != FG_OK && status != FG_EMEMORY) status = relist(op, &key);
out:
  fg_key_free(&key);
  return status;
}

/* Kernels ----------------------------------------------------------------------------------- */

typedef struct {
  fg_op *op;
  const fg_variant *variant;
  const char *name;
  bool produced;
} order;

/* The host device's messages name template lines: its entries keep the map. */
static size_t print_lines(const fg_source *s, size_t size, char *text) {
  size_t n = (size_t)snprintf(text, size, "%s%d %d\n", lines_mark, s->n_files, s->n_lines);
  for (int i = 0; i < s->n_files && n < size; i++)
    n += (size_t)snprintf(text + n, size - n, "%s\n", s->file[i]);
  for (int i = 0; i < s->n_lines && n < size; i++)
    n += (size_t)snprintf(text + n, size - n, "%d %d\n", s->line_file[i], s->line[i]);
  return n;
}

static fg_status print_meta(const fg_source *s, const fg_code *code, int with_lines, char **meta) {
  char recipe[8192];
  size_t size = 16384 + (with_lines ? (size_t)s->n_lines * 24 : 0);
  fg_recipe_print(&s->recipe, sizeof recipe, recipe);
  char *text = malloc(size);
  if (!text) return fg_fail(FG_EMEMORY, "no memory for an entry");
  size_t n = (size_t)snprintf(text, size, "%s%s%s", code->figures, recipe_mark, recipe);
  if (with_lines) print_lines(s, size - n, text + n);
  *meta = text;
  return FG_OK;
}

/* The key names the host's compiler as it was when the context was opened: a kernel that another
 * one made must not go by it. NVRTC is loaded once a process. */
static fg_status check_compiler(const fg_context *c) {
  char now[sizeof c->compiler];
  if (strcmp(c->device->arch, "host")) return FG_OK;
  TRY(fg_host_cc_version(sizeof now, now));
  if (!strcmp(now, c->compiler)) return FG_OK;
  return fg_fail(FG_EENVIRONMENT,
                 "the host's C compiler was %s when the context was opened and is %s now: open "
                 "another context",
                 c->compiler, now);
}

/* A producer: expands and compiles. */
static fg_status make_kernel(void *context, fg_product *product) {
  order *o = context;
  fg_context *c = o->op->context;
  fg_source *source = NULL;
  fg_code code = {0};
  fg_status status = FG_OK;
  pthread_mutex_lock(&c->gen_lock);
  status = fg_context_gen(c);
  if (status == FG_OK) status = fg_gen_expand(c->gen, o->variant, &source);
  pthread_mutex_unlock(&c->gen_lock);
  if (status != FG_OK) return status;
  TRY_OUT(check_compiler(c));
  TRY_OUT(fg_compile(c->device->arch, o->name, source, &code));
  TRY_OUT(print_meta(source, &code, !strcmp(c->device->arch, "host"), &product->meta));
  product->code = code.data;
  product->code_n = code.size;
  code.data = NULL;
  o->produced = true;
  c->compiles++;
out:
  free(code.data);
  fg_source_free(source);
  return status;
}

static fg_status damaged(const char *name) {
  return fg_fail(FG_EIO, "%s: its cache entry does not read back", name);
}

static fg_status read_lines(const char *text, fg_source *s) {
  int used = 0, files, lines;
  if (sscanf(text, "%d %d\n%n", &files, &lines, &used) != 2 || files < 0 || lines < 0 ||
      files > 1000 || lines > 1 << 20)
    return damaged("a kernel");
  s->file = calloc((size_t)files + 1, sizeof *s->file);
  s->line_file = calloc((size_t)lines + 1, sizeof *s->line_file);
  s->line = calloc((size_t)lines + 1, sizeof *s->line);
  if (!s->file || !s->line_file || !s->line) return fg_fail(FG_EMEMORY, "no memory for lines");
  text += used;
  for (; s->n_files < files; s->n_files++) {
    size_t n = strcspn(text, "\n");
    if (!(s->file[s->n_files] = strndup(text, n)))
      return fg_fail(FG_EMEMORY, "no memory for lines");
    text += n + (text[n] == '\n');
  }
  for (; s->n_lines < lines; s->n_lines++) {
    char *end;
    s->line_file[s->n_lines] = (int)strtol(text, &end, 10);
    s->line[s->n_lines] = (int)strtol(end, &end, 10);
    if (s->line_file[s->n_lines] >= files || end == text) return damaged("a kernel");
    text = end;
  }
  return FG_OK;
}

/* The source that an entry stands for: all but its text. */
static fg_status read_meta(const char *meta, fg_kernel *k) {
  const char *recipe = strstr(meta, recipe_mark), *lines = strstr(meta, lines_mark);
  char text[8192];
  if (!recipe) return damaged(k->name);
  snprintf(k->figures, sizeof k->figures, "%.*s", (int)(recipe - meta), meta);
  recipe += strlen(recipe_mark);
  size_t n = lines ? (size_t)(lines - recipe) : strlen(recipe);
  if (n >= sizeof text) return damaged(k->name);
  if (!(k->source = calloc(1, sizeof *k->source)))
    return fg_fail(FG_EMEMORY, "no memory for %s", k->name);
  snprintf(text, sizeof text, "%.*s", (int)n, recipe);
  TRY(fg_recipe_parse(text, &k->source->recipe));
  return lines ? read_lines(lines + strlen(lines_mark), k->source) : FG_OK;
}

static fg_status load_kernel(fg_kernel *k, const fg_entry *entry) {
  fg_context *c = k->op->context;
  const fg_code code = {.data = (void *)entry->code, .size = entry->code_n};
  TRY(read_meta(entry->meta, k));
  TRY(c->device->class->load(c->device, k->name, k->source, &code, &k->module));
  c->loads++;
  return FG_OK;
}

/* An entry that a good checksum protects and that still does not load is made anew, once. */
static fg_status produce_kernel(fg_kernel *k, const fg_key *key) {
  order o = {k->op, &k->variant, k->name, false};
  fg_context *c = k->op->context;
  const fg_entry *entry;
  TRY(fg_cache_produce(c->cache, key, make_kernel, &o, &entry));
  fg_status status = load_kernel(k, entry);
  fg_entry_free(entry);
  k->from_cache = !o.produced;
  if (status == FG_OK || status == FG_EMEMORY || o.produced) return status;
  fg_product product = {0};
  TRY(make_kernel(&o, &product));
  fg_cache_put(c->cache, key, product.meta, product.code, product.code_n);
  const fg_entry made = {product.meta, product.code, strlen(product.meta), product.code_n};
  fg_source_free(k->source);
  k->source = NULL;
  status = load_kernel(k, &made);
  k->from_cache = 0;
  free(product.meta);
  free(product.code);
  return status;
}

fg_status fg_kernel_produce(fg_op *op, const fg_plan *plan, fg_kernel **kernel) {
  fg_key key = {0};
  fg_status status = FG_OK;
  fg_kernel *k = calloc(1, sizeof *k);
  if (!k) return fg_fail(FG_EMEMORY, "no memory for a kernel");
  k->op = op;
  k->variant = (fg_variant){.point = op->point, .plan = *plan};
  strcpy(k->variant.arch, op->context->device->arch);
  fg_variant_name(&k->variant, sizeof k->name, k->name);
  TRY_OUT(fg_kernel_key(op->context, k->name, &key));
  TRY_OUT(produce_kernel(k, &key));
  *kernel = k;
  k = NULL;
out:
  fg_key_free(&key);
  fg_kernel_free(k);
  return status;
}

void fg_kernel_free(fg_kernel *k) {
  if (!k) return;
  fg_module_free(k->module);
  fg_source_free(k->source);
  free(k);
}
