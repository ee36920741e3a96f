/* produce.c - from a plan to a loaded kernel: from a zoo, else through the cache, so that a warm
 * start runs no Lua and no compiler. */
#define _GNU_SOURCE /* asprintf */
#include "kernels.h"
#include "ops.h"

#include "base/setting.h"
#include "spec/point_formula.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sections of an entry's meta text. */
static const char recipe_mark[] = "--- recipe\n", lines_mark[] = "--- lines\n";

/* For an entry that holds a refusal instead: the seconds that the compile could have taken, 0 if it
 * was no question of time, and the sentence. */
static const char refused_mark[] = "--- refused ";

typedef struct {
  fg_op *op;
  const fg_variant *variant;
  const char *name;
  fg_source
      *source; /* that this request expanded for its kernel; NULL: the kernel was made before */
} order;

/* The host device's messages name template lines: its entries keep the map. */
static void print_lines(const fg_source *s, size_t size, char *text) {
  int n = snprintf(text, size, "%s%d %d\n", lines_mark, s->n_files, s->n_lines);
  for (int i = 0; i < s->n_files; i++) n = fg_append(size, text, n, "%s\n", s->file[i]);
  for (int i = 0; i < s->n_lines; i++)
    n = fg_append(size, text, n, "%d %d\n", s->line_file[i], s->line[i]);
}

static fg_status print_meta(const fg_source *s, const fg_code *code, int with_lines, char **meta) {
  char recipe[FG_RECIPE_TEXT];
  size_t size = 2 * FG_RECIPE_TEXT + (with_lines ? (size_t)s->n_lines * 24 : 0);
  fg_recipe_print(&s->recipe, sizeof recipe, recipe);
  char *text = malloc(size);
  if (!text) return fg_fail(FG_EMEMORY, "no memory for an entry");
  size_t n = (size_t)snprintf(text, size, "%s%s%s", code->figures, recipe_mark, recipe);
  if (with_lines) print_lines(s, size - n, text + n);
  *meta = text;
  return FG_OK;
}

/* The key names the host's compiler as it was when the context looked: a kernel that another one
 * made must not go by it. One that is gone fails by itself; NVRTC is loaded once a process. */
static fg_status check_compiler(const fg_context *c) {
  char now[sizeof c->compiler];
  if (!fg_arch_is_host(c->device->arch)) return FG_OK;
  TRY(fg_compiler_identity(c->device->arch, sizeof now, now));
  if (!strcmp(now, c->compiler) || !strcmp(now, "none")) return FG_OK;
  return fg_fail(FG_EENVIRONMENT,
                 "the context goes by the compiler \"%s\" and the one here is \"%s\" now: open "
                 "another context",
                 c->compiler, now);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void set_late(fg_op *op, const fg_plan *plan, bool late) {
  for (int i = 0; i < op->n_candidates; i++)
    if (!memcmp(&op->candidate[i].plan, plan, sizeof *plan))
      atomic_store(&op->candidate[i].late, late);
}

/* What the compiler refused is kept in the kernel's place: each process that comes to it again
 * would pay as much to hear the same. Late is what took as long as it may, whatever was said of it.
 */
static fg_status keep_refusal(double taken, fg_product *product) {
  const int64_t limit = fg_setting_number(FG_SET_COMPILE_SECONDS);
  const int n = asprintf(&product->meta, "%s%" PRId64 "\n%s", refused_mark,
                         taken >= (double)limit ? limit : 0, fg_error());
  if (n >= 0) return FG_OK;
  product->meta = NULL;
  return fg_fail(FG_EMEMORY, "no memory for a refusal");
}

static int64_t limit_of(const fg_entry *entry) {
  return strtoll(entry->meta + strlen(refused_mark), NULL, 10);
}

/* The sentence of a refusal that an entry holds; NULL: it holds a kernel, or a refusal for the lack
 * of time that there is now. */
static const char *refusal_of(const fg_entry *entry) {
  const size_t n = strlen(refused_mark);
  if (strncmp(entry->meta, refused_mark, n)) return NULL;
  const char *sentence = strchr(entry->meta + n, '\n');
  bool in_time = limit_of(entry) && fg_setting_number(FG_SET_COMPILE_SECONDS) > limit_of(entry);
  return sentence && !in_time ? sentence + 1 : NULL;
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
  double start = seconds();
  status = fg_compile(c->device->arch, o->name, source, &code);
  const double taken = seconds() - start;
  set_late(o->op, &o->variant->plan,
           status != FG_OK && taken >= (double)fg_setting_number(FG_SET_COMPILE_SECONDS));
  if (status == FG_ECOMPILER && code.refused) {
    status = keep_refusal(taken, product);
    goto out;
  }
  TRY_OUT(status);
  fg_context_tell(c, FG_COMPILE, "%s: %.3f s, %zu bytes", o->name, seconds() - start, code.size);
  fg_context_remember(c);
  TRY_OUT(print_meta(source, &code, fg_arch_is_host(c->device->arch), &product->meta));
  product->code = code.data;
  product->code_n = code.size;
  code.data = NULL;
  fg_source_free(o->source);
  o->source = source;
  source = NULL;
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

static fg_status new_source(fg_kernel *k) {
  k->source = calloc(1, sizeof *k->source);
  return k->source ? FG_OK : fg_fail(FG_EMEMORY, "no memory for %s", k->name);
}

/* Figures, and the source that an entry stands for, all but its text; that of the request, where
 * the entry was made by it. */
static fg_status read_meta(const char *meta, order *o, fg_kernel *k) {
  const char *recipe = strstr(meta, recipe_mark), *lines = strstr(meta, lines_mark);
  char text[FG_RECIPE_TEXT];
  if (!recipe) return damaged(k->name);
  snprintf(k->figures, sizeof k->figures, "%.*s", (int)(recipe - meta), meta);
  k->source = o->source;
  o->source = NULL;
  if (k->source) return FG_OK;
  recipe += strlen(recipe_mark);
  size_t n = lines ? (size_t)(lines - recipe) : strlen(recipe);
  if (n >= sizeof text) return damaged(k->name);
  snprintf(text, sizeof text, "%.*s", (int)n, recipe);
  TRY(new_source(k));
  TRY(fg_recipe_parse(text, &k->source->recipe));
  return lines ? read_lines(lines + strlen(lines_mark), k->source) : FG_OK;
}

static fg_status load_code(fg_kernel *k, const fg_code *code) {
  fg_context *c = k->op->context;
  TRY(c->device->class->load(c->device, k->name, k->source, code, &k->module));
  c->loads++;
  return FG_OK;
}

static fg_status load_entry(fg_kernel *k, order *o, const fg_entry *entry) {
  const char *why = refusal_of(entry);
  if (why) {
    set_late(k->op, &k->variant.plan, limit_of(entry) > 0);
    return fg_fail(FG_ECOMPILER, "%s", why);
  }
  const fg_code code = {.data = (void *)entry->code, .size = entry->code_n};
  TRY(read_meta(entry->meta, o, k));
  return load_code(k, &code);
}

static void forget_source(fg_kernel *k) {
  fg_source_free(k->source);
  k->source = NULL;
}

/* An entry that a good checksum protects and that still does not load is made anew, once. */
static fg_status make_again(fg_kernel *k, order *o, const fg_key *key) {
  fg_product product = {0};
  TRY(make_kernel(o, &product));
  fg_cache_put(k->op->context->cache, key, product.meta, product.code, product.code_n);
  const fg_entry made = {product.meta, product.code, strlen(product.meta), product.code_n};
  forget_source(k);
  fg_status status = load_entry(k, o, &made);
  k->from_cache = 0;
  free(product.meta);
  free(product.code);
  return status;
}

static fg_status from_cache(fg_kernel *k) {
  order o = {k->op, &k->variant, k->name, NULL};
  fg_context *c = k->op->context;
  const fg_entry *entry;
  fg_key key = {0};
  fg_status status = FG_OK;
  TRY_OUT(fg_kernel_key(c, k->name, &key));
  status = fg_context_entry(c, k->name, &key, make_kernel, &o, &entry);
  if (status == FG_EENVIRONMENT) {
    char why[1024];
    snprintf(why, sizeof why, "%s", fg_error());
    status = fg_context_earlier(c, k->name, &entry) ? FG_OK : fg_fail(status, "%s", why);
  }
  if (status != FG_OK) goto out;
  if (!entry) {
    status = fg_op_missing(k->op, k->name, k->name);
    goto out;
  }
  const bool refused = refusal_of(entry), produced = o.source != NULL;
  status = load_entry(k, &o, entry); /* which fails for a refusal that no longer counts */
  fg_entry_free(entry);
  k->from_cache = !produced;
  const bool spoilt = status != FG_OK && status != FG_EMEMORY && status != FG_ECUDA;
  if (spoilt && !refused && !produced && c->jit) status = make_again(k, &o, &key);
out:
  fg_source_free(o.source);
  fg_key_free(&key);
  return status;
}

/* Zoos ---------------------------------------------------------------------------------------- */

/* By its name, or by that which it had before. */
static const fg_zoo_item *find_item(const fg_zoo_reader *zoo, const fg_variant *variant) {
  char name[FG_NAME_MAX];
  fg_variant_name(variant, sizeof name, name);
  const fg_zoo_item *item = fg_zoo_find(zoo, name);
  if (item && fg_expression_of(name, item->expression)) return item;
  fg_variant_name_before(variant, sizeof name, name);
  item = fg_zoo_find(zoo, name);
  return item && fg_expression_of(name, item->expression) ? item : NULL;
}

const fg_zoo_item *fg_context_zoo(const fg_context *c, const fg_variant *variant,
                                  const fg_zoo_reader **zoo) {
  for (int i = 0; i < c->n_zoos; i++) {
    const fg_zoo_item *item = find_item(c->zoo[i], variant);
    *zoo = c->zoo[i];
    if (item) return item;
  }
  return NULL;
}

static fg_status load_item(fg_kernel *k, const fg_zoo_reader *zoo, const fg_zoo_item *item) {
  fg_code code = {0};
  TRY(new_source(k));
  TRY(fg_zoo_recipe(zoo, item, &k->source->recipe));
  TRY(fg_zoo_read(zoo, item, &code));
  snprintf(k->figures, sizeof k->figures, "%s", code.figures);
  fg_status status = load_code(k, &code);
  free(code.data);
  return status;
}

/* A kernel that is damaged there is looked for elsewhere; why: what is wrong with it. */
static fg_status from_zoo(fg_kernel *k, bool *found, size_t size, char *why) {
  fg_context *c = k->op->context;
  const fg_zoo_reader *zoo;
  const fg_zoo_item *item = fg_context_zoo(c, &k->variant, &zoo);
  *found = false;
  if (!item) return FG_OK;
  fg_status status = load_item(k, zoo, item);
  if (status == FG_OK) {
    *found = true;
    k->from_cache = 1;
    c->zoo_hits++;
    fg_context_tell(c, FG_CACHE, "zoo %s", k->name);
    return FG_OK;
  }
  if (status == FG_EMEMORY || status == FG_ECUDA) return status;
  snprintf(why, size, "%s", fg_error());
  fg_context_warn(c, "a kernel of a zoo cannot be used: %s", why);
  forget_source(k);
  return FG_OK;
}

fg_status fg_kernel_produce(fg_op *op, const fg_plan *plan, fg_kernel **kernel) {
  char why[1024] = "";
  bool found;
  fg_kernel *k = calloc(1, sizeof *k);
  if (!k) return fg_fail(FG_EMEMORY, "no memory for a kernel");
  k->op = op;
  k->variant = (fg_variant){.point = op->point, .plan = *plan};
  strcpy(k->variant.arch, op->context->device->arch);
  fg_variant_name(&k->variant, sizeof k->name, k->name);
  fg_status status = from_zoo(k, &found, sizeof why, why);
  if (status == FG_OK && !found) {
    status = from_cache(k);
    if (status != FG_OK && *why)
      status = fg_fail_in(status, "a kernel of a zoo cannot be used (%s), and elsewhere", why);
  }
  if (status == FG_OK)
    *kernel = k;
  else
    fg_kernel_free(k);
  return status;
}

void fg_kernel_free(fg_kernel *k) {
  if (!k) return;
  fg_module_free(k->module);
  fg_source_free(k->source);
  free(k);
}
