/* identity.c - what tells the kernels of this machine from others': templates, and the compiler, or
 * the one that made what is cached where there is none. */
#include "kernels.h"

#include "expand/digest.h"

#include <string.h>

fg_status fg_key_text(fg_key *key, const char *label, const char *text) {
  return fg_key_add(key, label, text, strlen(text));
}

fg_status fg_key_begin(const char *what, fg_key *key) {
  const int format = FG_CACHE_FORMAT;
  TRY(fg_key_add(key, "format", &format, sizeof format));
  return fg_key_text(key, "what", what);
}

static fg_status compiler_key(const fg_context *c, fg_key *key) {
  char options[FG_COMPILER_MAX];
  TRY(fg_compiler_options(c->device->arch, sizeof options, options));
  TRY(fg_key_begin("compiler", key));
  TRY(fg_key_text(key, "arch", c->device->arch));
  return fg_key_text(key, "options", options);
}

/* After every compile, so that this entry is never the least recently used one while kernels are
 * made. To lose it is to lose what a cache is worth without a compiler, nothing else. One in a
 * shared cache is found first, as its kernels are. */
void fg_context_remember(fg_context *c) {
  fg_key key = {0};
  if (strcmp(c->compiler, "none") && compiler_key(c, &key) == FG_OK)
    fg_cache_put(c->cache, &key, c->compiler, NULL, 0);
  fg_key_free(&key);
}

/* Reads the name that was remembered; an empty one where there is none. */
fg_status fg_compiler_recall(fg_context *c, size_t size, char *compiler) {
  const fg_entry *entry;
  fg_key key = {0};
  fg_status status = compiler_key(c, &key);
  *compiler = 0;
  if (status == FG_OK && fg_cache_get(c->cache, &key, &entry)) {
    if (entry->meta_n < size) strcpy(compiler, entry->meta);
    fg_entry_free(entry);
  }
  fg_key_free(&key);
  return status;
}

/* There is no compiler: from now on the one that is remembered stands for it. */
fg_status fg_context_recall(fg_context *c) {
  char compiler[sizeof c->compiler];
  TRY(fg_compiler_recall(c, sizeof compiler, compiler));
  c->recalled = true;
  if (!*compiler) return FG_OK;
  strcpy(c->compiler, compiler);
  fg_context_tell(c, FG_CACHE, "no compiler here: kernels of \"%s\" are looked for", compiler);
  return FG_OK;
}

/* Where nothing is made, nothing that is missing for it is an error: look-ups are misses. */
static fg_status identify(fg_context *c) {
  char digest[sizeof c->digest] = "none";
  const bool keeps_lines = fg_arch_is_host(c->device->arch);
  fg_status status = fg_gen_digest(c->templates, keeps_lines, sizeof digest, digest);
  if (status != FG_OK && (c->jit || status != FG_EENVIRONMENT)) return status;
  TRY(fg_compiler_identity(c->device->arch, sizeof c->compiler, c->compiler));
  if (!strcmp(c->compiler, "none")) TRY(fg_context_recall(c));
  strcpy(c->digest, digest);
  c->identified = true;
  return FG_OK;
}

fg_status fg_context_identify(fg_context *c) {
  pthread_mutex_lock(&c->gen_lock);
  fg_status status = c->identified ? FG_OK : identify(c);
  pthread_mutex_unlock(&c->gen_lock);
  return status;
}
