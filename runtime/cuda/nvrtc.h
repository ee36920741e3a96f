/* nvrtc.h - CUDA text to a cubin through NVRTC, found at run time.
 *
 * Options are one table, each with the first NVRTC version that knows it, so that the same text
 * gives the same bytes with the same NVRTC. Compiles may run in several threads; each runs on a
 * thread of its own with a stack that NVRTC's front end cannot outgrow. */
#ifndef FG_NVRTC_H
#define FG_NVRTC_H

#include "base/error.h"

#include <stdbool.h>

typedef struct fg_nvrtc fg_nvrtc;

/* What ptxas said of one entry point. */
enum { FG_FIGURES_MAX = 8 };
typedef struct fg_figures {
  char entry[48];
  int registers, spill_bytes, stack_bytes;
} fg_figures;

typedef struct fg_cubin {
  void *data;
  size_t size;
  int n_entries;
  fg_figures entry[FG_FIGURES_MAX];
  char warning[512]; /* the first warning of the compiler, "" = none */
  bool refused;      /* it failed for the text or for the time that it took */
} fg_cubin;

/* Looks in FLASHGEN_NVRTC, on the loader's path, in $CUDA_HOME and /usr/local/cuda, once a process.
 * FG_EENVIRONMENT names the places, or what is wrong with the NVRTC there. Thread-safe. */
fg_status fg_nvrtc_load(const fg_nvrtc **nvrtc);

/* 1000 * major + 10 * minor, as NVRTC numbers itself: 13000, 12030. */
int fg_nvrtc_version(const fg_nvrtc *nvrtc);
/* Where it was found. */
const char *fg_nvrtc_path(const fg_nvrtc *nvrtc);

/* Which NVRTC would compile, for cache keys: the build ids of its files, found without loading it
 * where possible; "none" where there is none. */
fg_status fg_nvrtc_identity(size_t size, char *text);

/* The table of options with the NVRTC that each needs: part of a cache key, with the identity. */
int fg_nvrtc_options_key(size_t size, char *text);

/* Compiles. FG_ECOMPILER: the log, or that it ran past the time limit or is larger than 1 MB.
 * FG_EENVIRONMENT: NVRTC does not know the arch, or is not whole.
 * *cubin is the caller's, free with fg_cubin_free. */
fg_status fg_nvrtc_compile(const fg_nvrtc *nvrtc, const char *name, const char *text, size_t size,
                           const char *arch, fg_cubin *cubin);
void fg_cubin_free(fg_cubin *cubin);

/* Fills in the figures and the first warning from the compiler's log. */
void fg_cubin_read_log(fg_cubin *cubin, const char *log);

/* FG_ECOMPILER when the cubin spills or drew a warning that its plan does not allow. */
fg_status fg_cubin_accept(const char *name, const fg_cubin *cubin);

/* FG_EENVIRONMENT, with the archs that it knows, when the arch is none of them. */
fg_status fg_nvrtc_check_arch(const fg_nvrtc *nvrtc, const char *arch);

/* The archs that this NVRTC knows, as numbers: "75 80 86 ...". */
int fg_nvrtc_archs(const fg_nvrtc *nvrtc, size_t size, char *text);

#endif
