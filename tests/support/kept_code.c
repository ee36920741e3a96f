/* kept_code.c - cubins, in a cache in the folder of kernels that tests have compiled. */
#include "kept_code.h"

#include "cache/cache.h"
#include "device/compile.h"
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const char *arch, *name;
  const fg_source *source;
} order;

static fg_status produce(void *context, fg_product *product) {
  const order *o = context;
  fg_code code = {0};
  TRY(fg_compile(o->arch, o->name, o->source, &code));
  *product = (fg_product){.meta = strdup(code.figures), .code = code.data, .code_n = code.size};
  return FG_OK;
}

/* The process's own: none may be used on both sides of a fork. */
static fg_cache *cache_of_process(void) {
  static fg_cache *cache;
  static pid_t owner;
  char directory[4200];
  snprintf(directory, sizeof directory, "%s/cubins", scratch_kernels() ? scratch_kernels() : "");
  if (scratch_kernels() && owner != getpid() && !fg_cache_open(directory, NULL, NULL, &cache))
    owner = getpid();
  return owner == getpid() ? cache : NULL;
}

/* Where the compiler's identity is not known nothing is kept. */
static fg_status make_key(const order *o, fg_key *key) {
  char identity[8192];
  TRY(fg_compiler_identity(o->arch, sizeof identity, identity));
  TRY(fg_key_add(key, "compiler", identity, strlen(identity)));
  TRY(fg_key_add(key, "arch", o->arch, strlen(o->arch)));
  TRY(fg_key_add(key, "unskipped", &o->source->unskipped, sizeof o->source->unskipped));
  return fg_key_add(key, "text", o->source->text, o->source->size);
}

fg_status kept_module(fg_device *device, const fg_source *source, const char *name,
                      fg_module **module) {
  order o = {device->arch, name, source};
  fg_cache *cache = cache_of_process();
  const fg_entry *entry = NULL;
  fg_key key = {0};
  fg_status status = FG_OK;
  if (!cache || fg_arch_is_host(device->arch)) return fg_module_new(device, source, name, module);
  TRY_OUT(make_key(&o, &key));
  TRY_OUT(fg_cache_produce(cache, &key, produce, &o, &entry));
  fg_code code = {.data = (void *)(uintptr_t)entry->code, .size = entry->code_n};
  strncpy(code.figures, entry->meta, sizeof code.figures - 1);
  status = device->class->load(device, name, source, &code, module);
out:
  if (entry) fg_entry_free(entry);
  fg_key_free(&key);
  return status;
}
