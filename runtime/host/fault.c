/* fault.c - the ground of the engine: the running thread, the table that kernels call through, and
 * faults, which abandon the block. */
#include "block.h"

#include <stdarg.h>
#include <stdio.h>

fgh_thread *fgh_self;
static fgh_thread threads[FGH_MAX_SEATS][FGH_MAX_THREADS];
static u32 alive[FGH_MAX_SEATS][FGH_MAX_CLUSTER];
fgh_thread *fgh_threads = threads[0];
fgh_api fgh_table;
fgh_context fgh_launcher;
u32 fgh_cluster_blocks, *fgh_alive = alive[0];

static fg_host_fault found; /* text: empty while all is well */

void fgh_threads_seat(u32 seat) {
  fgh_threads = threads[seat];
  fgh_alive = alive[seat];
}

const fg_host_fault *fgh_found(void) { return found.text[0] ? &found : NULL; }

void fgh_found_clear(void) {
  found.text[0] = 0;
  memset(found.at, 0, sizeof found.at);
}

static void add(const char *format, va_list args) {
  size_t used = strlen(found.text);
  vsnprintf(found.text + used, sizeof found.text - used, format, args);
}

void fgh_report(const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(format, args);
  va_end(args);
}

void fgh_found_at(const fgh_path *path) {
  if (path) memcpy(found.at, path->at, sizeof found.at);
}

void fgh_raise(const fgh_path *path) {
  fgh_context abandoned;
  fgh_found_at(path);
  fgh_context_switch(&abandoned, fgh_launcher);
  __builtin_unreachable();
}

/* The sentence, the place of the running thread, and the end of the block. */
void fgh_fault(const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(format, args);
  va_end(args);
  fgh_dim3 at = fgh_table.block_index;
  fgh_report(" [block %u,%u,%u thread %u]", fgh_self->block, at.y, at.z, fgh_self->local);
  fgh_raise(fgh_place(fgh_self));
}
