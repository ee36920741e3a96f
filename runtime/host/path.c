/* path.c - where in a kernel a primitive is called: the return addresses of the calls around it.
 *
 * Functions of a kernel are not inlined, which would take most of the time of a compile, so that
 * one address says little: two places that call the same function have the same one. A path is kept
 * once, and equal paths are equal pointers. */
#include "block.h"

enum { PATHS = 1 << 15, SLOTS = 2 * PATHS };

static fgh_path paths[PATHS];
static u32 slot[SLOTS], used; /* slot: 1 + index of a path, 0: free */
static const u8 *code_begin, *code_end;

/* Paths of a launch may be forgotten when another one begins. */
void fgh_path_launch(const void *begin, const void *end) {
  code_begin = begin, code_end = end;
  if (used < PATHS / 2) return;
  memset(slot, 0, sizeof slot);
  used = 0;
}

static int is_code(const void *at) {
  return (const u8 *)at > code_begin && (const u8 *)at <= code_end;
}

static const fgh_path *keep(const fgh_path *path) {
  u64 hash = 0;
  for (int i = 0; i < FG_HOST_CALLS; i++)
    hash = (hash ^ (u64)(uintptr_t)path->at[i]) * 0x9e3779b97f4a7c15u;
  u32 i = (u32)(hash >> 32) % SLOTS;
  for (; slot[i]; i = (i + 1) % SLOTS)
    if (!memcmp(&paths[slot[i] - 1], path, sizeof *path)) return &paths[slot[i] - 1];
  if (used == PATHS) used--; /* the last one stands for all others */
  slot[i] = ++used;
  paths[used - 1] = *path;
  return &paths[used - 1];
}

/* A function keeps its caller's frame at its own one, and its return address behind that: kernels
 * are compiled with frame pointers. Code that is no kernel's may have none. */
const fgh_path *fgh_path_of(void *pc, void *const *frame) {
  fgh_path path = {{pc}};
  for (int n = 1; n < FG_HOST_CALLS && is_code(path.at[n - 1]); n++) {
    if (!is_code(frame[1])) break;
    path.at[n] = frame[1];
    frame = frame[0];
  }
  return keep(&path);
}
