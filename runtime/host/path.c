/* path.c - where in a kernel a primitive is called: the return addresses of the calls around it.
 *
 * Functions of a kernel are not inlined, which would take most of the time of a compile, so that
 * one address says little: two places that call the same function have the same one. A path is kept
 * once, and equal paths are equal pointers. */
#include "block.h"

enum { PATHS = 1 << 15, SLOTS = 2 * PATHS };
static const u64 FACTOR = 0x9e3779b97f4a7c15u;

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

/* Is the path those n addresses? */
static int is(const fgh_path *path, void *const *at, int n) {
  for (int i = 0; i < n; i++)
    if (path->at[i] != at[i]) return 0;
  return n == FG_HOST_CALLS || !path->at[n];
}

static const fgh_path *keep(void *const *at, int n, u64 hash) {
  u32 i = (u32)(hash >> 32) % SLOTS;
  for (; slot[i]; i = (i + 1) % SLOTS)
    if (is(&paths[slot[i] - 1], at, n)) return &paths[slot[i] - 1];
  if (used == PATHS) return &paths[PATHS - 1]; /* it stands for all others */
  fgh_path *path = &paths[used++];
  slot[i] = used;
  *path = (fgh_path){{NULL}};
  memcpy(path->at, at, (size_t)n * sizeof *at);
  return path;
}

/* A function keeps its caller's frame at its own one, and its return address behind that: kernels
 * are compiled with frame pointers. Code that is no kernel's may have none. */
const fgh_path *fgh_path_of(void *pc, void *const *frame) {
  void *at[FG_HOST_CALLS] = {pc};
  u64 hash = (uintptr_t)pc * FACTOR;
  int n = 1;
  for (; frame && n < FG_HOST_CALLS && is_code(at[n - 1]) && is_code(frame[1]); n++) {
    at[n] = frame[1];
    hash = (hash ^ (uintptr_t)at[n]) * FACTOR;
    frame = frame[0];
  }
  return keep(at, n, hash);
}
