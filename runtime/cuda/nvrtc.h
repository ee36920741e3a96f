/* nvrtc.h - compiles CUDA text to a cubin with NVRTC, which is found at run time.
 *
 * Options are one table, each with the first NVRTC version that knows it, so that the same text
 * gives the same bytes with the same NVRTC. Compiles may run in several threads; each runs on a
 * thread of its own with a stack that NVRTC's front end cannot outgrow. */
#ifndef FG_NVRTC_H
#define FG_NVRTC_H

#include "base/error.h"

#include <stdbool.h>

typedef struct fg_nvrtc fg_nvrtc;

/* The figures that ptxas gives for one entry point. */
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
  bool refused;      /* the text was refused, or took too long; it would be again */
} fg_cubin;

/* Looks in FLASHGEN_NVRTC, else on the loader's path, in $CUDA_HOME and /usr/local/cuda; once a
 * process. FG_EENVIRONMENT names the places, or says what is wrong with the NVRTC found there.
 * Thread-safe. */
fg_status fg_nvrtc_load(const fg_nvrtc **nvrtc);

/* 1000 * major + 10 * minor, as NVRTC numbers itself: 13000, 12030. */
int fg_nvrtc_version(const fg_nvrtc *nvrtc);
/* The file name that it was opened by. */
const char *fg_nvrtc_path(const fg_nvrtc *nvrtc);

/* Tells for cache keys which NVRTC would compile: the build ids of its files, read without loading
 * it where possible; "none" where there is no NVRTC. */
fg_status fg_nvrtc_identity(size_t size, char *text);

/* The table of options, each with the first NVRTC that has it: part of a cache key, beside the
 * identity. Returns the length. */
int fg_nvrtc_options_key(size_t size, char *text);

/* Compiles. FG_ECOMPILER: the log, or that it ran past the time limit or is larger than 1 MB.
 * FG_EENVIRONMENT: NVRTC does not know the arch, or is not whole.
 * *cubin is the caller's, free with fg_cubin_free. */
fg_status fg_nvrtc_compile(const fg_nvrtc *nvrtc, const char *name, const char *text, size_t size,
                           const char *arch, fg_cubin *cubin);
void fg_cubin_free(fg_cubin *cubin);

/* Fills in the figures and the first warning from the compiler's log. */
void fg_cubin_read_log(fg_cubin *cubin, const char *log);

/* FG_ECOMPILER if the cubin spills registers or its compile gave a warning. */
fg_status fg_cubin_accept(const char *name, const fg_cubin *cubin);

/* FG_EENVIRONMENT, with the archs that NVRTC knows, if it does not know this one. */
fg_status fg_nvrtc_check_arch(const fg_nvrtc *nvrtc, const char *arch);

/* The archs that this NVRTC knows, as numbers: "75 80 86 ..."; "?" if it does not tell. */
int fg_nvrtc_archs(const fg_nvrtc *nvrtc, size_t size, char *text);

#endif
