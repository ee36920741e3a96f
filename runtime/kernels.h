/* kernels.h - the kernels of a context: what they are kept under, and from where they come: a zoo,
 * the cache, the compiler. */
#ifndef FG_KERNELS_H
#define FG_KERNELS_H

#include "context.h"
#include "tools.h"

struct fg_kernel {
  fg_op *op;
  fg_variant variant;
  fg_source *source; /* recipe and line map; its text only if it was compiled here */
  fg_module *module;
  char name[FG_NAME_MAX];
  char figures[1024];
  int from_cache;
  bool adopted;    /* its source and module are those of a kernel of op->maskless */
  fg_kernel *next; /* of op->adopted */
};

/* identity.c ------------------------------------------------------------------------------- */

/* Looks up what tells this machine's kernels from others', once. */
fg_status fg_context_identify(fg_context *context);

/* The compiler that made a kernel is remembered in the cache; where there is none now, the one that
 * made the last kernel for the arch and options stands for it in keys: what is cached is found. */
void fg_context_remember(fg_context *context);
fg_status fg_context_recall(fg_context *context);
/* Its name alone, "" where none is remembered. */
fg_status fg_compiler_recall(fg_context *context, size_t size, char *compiler);

/* The start of a key: the format and `what`; a text of it. */
fg_status fg_key_begin(const char *what, fg_key *key);
fg_status fg_key_text(fg_key *key, const char *label, const char *text);

/* keys.c ----------------------------------------------------------------------------------- */

/* What every key holds; `what` parts kernels from lists of candidates. The keys of a variant's
 * kernel. Freed with fg_key_free, also after a failure. */
fg_status fg_key_start(fg_context *context, const char *what, const char *name, fg_key *key);
fg_status fg_kernel_key(fg_context *context, const char *name, fg_key *key);

/* The kernel that the compiler made that is remembered, for when the one here cannot be used. */
bool fg_context_earlier(fg_context *context, const char *name, const fg_entry **entry);

/* A variant's code in the context's zoos; NULL: none has it. */
const fg_zoo_item *fg_context_zoo(const fg_context *context, const fg_variant *variant,
                                  const fg_zoo_reader **zoo);

/* The entry of a key: from the cache, else, if compiling is allowed, from the producer. `what`
 * names it in a line of FLASHGEN_VERBOSE; *entry = NULL: there is none and it may not be produced.
 */
fg_status fg_context_entry(fg_context *context, const char *what, const fg_key *key,
                           fg_producer *producer, void *producer_context, const fg_entry **entry);

/* Fails for what would have to be made and may not be: "the plans of attn_fwd-...", and the name in
 * it that others may be near. */
fg_status fg_op_missing(fg_op *op, const char *what, const char *name);

/* produce.c -------------------------------------------------------------------------------- */

/* Makes a plan's kernel, whether dispatch would choose it or not: from a zoo, from the cache, else
 * expanded and compiled; loads it. Not under op->lock; several threads may end up with one each,
 * which is theirs to free. */
fg_status fg_kernel_produce(fg_op *op, const fg_plan *plan, fg_kernel **kernel);

#endif
