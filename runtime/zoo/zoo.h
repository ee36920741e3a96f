/* zoo.h - compiled kernels that `flashgen build` makes and applications ship: a directory, or the
 * same bytes as a part of the program.
 *
 * A zoo has a code file for each variant, NAME.cubin or NAME.so, and manifest.txt, which alone says
 * what is there. Neither holds a date, a host or a path: equal inputs give equal bytes.
 *
 *   flashgen zoo 1                                           the format
 *   variant attn_fwd-bf16-d64.simt-q16-k32-w4.sm_90a         a block for each, sorted by name
 *   expression                                               of mask and score; here empty
 *   compiler nvrtc 65be... builtins 08d1... -arch=sm_90a ... who compiled it, and with what
 *   source 2c26...                                           XXH3-128 of the kernel's text
 *   code fcde... 21344                                       XXH3-128 and bytes of the code file
 *   figures
 *   attn_fwd registers 80 spill 0 stack 0                    one for each entry point; none on host
 *   recipe
 *   head_dim 64 64                                           as fg_recipe_print writes it
 *   end
 *   checksum 486e...                                         XXH3-128 of all lines above
 *
 * In a program the manifest and, in its order, the code files follow each other, each at a multiple
 * of FG_ZOO_ALIGN bytes, zeros between them.
 *
 * A zoo that is open is read-only and may be used by many threads at once. */
#ifndef FG_ZOO_H
#define FG_ZOO_H

#include "device/device.h"

enum { FG_ZOO_FORMAT = 1, FG_DIGEST_HEX = 33, FG_ZOO_ALIGN = 64 };

/* A block of the manifest. The texts live as long as the zoo. */
typedef struct fg_zoo_item {
  const char *name, *expression, *compiler, *figures, *recipe;
  char source[FG_DIGEST_HEX], digest[FG_DIGEST_HEX]; /* of the kernel's text, of the code file */
  uint64_t size, offset; /* bytes of the code; its place behind fg_zoo.code, 0 in a directory */
} fg_zoo_item;

typedef struct fg_zoo_reader fg_zoo_reader;

/* Reads the manifest and splits it; no code file is opened and no recipe read, so that a zoo of
 * 1000 variants is open in a few ms. FG_EIO: the directory has no manifest, or one that is damaged
 * or of a newer format. */
fg_status fg_zoo_open(const char *dir, fg_zoo_reader **zoo);
/* The same for a zoo that an application gives; code in memory is used where it lies. FG_EARGUMENT:
 * it names neither a directory nor a place in memory. */
fg_status fg_zoo_open_given(const fg_zoo *given, fg_zoo_reader **zoo);
void fg_zoo_free(fg_zoo_reader *zoo);

int fg_zoo_count(const fg_zoo_reader *zoo);
const fg_zoo_item *fg_zoo_at(const fg_zoo_reader *zoo, int i);

/* NULL: the zoo has no such variant. */
const fg_zoo_item *fg_zoo_find(const fg_zoo_reader *zoo, const char *name);

/* The recipe of an item. FG_EIO: the text in the manifest is no recipe. */
fg_status fg_zoo_recipe(const fg_zoo_reader *zoo, const fg_zoo_item *item, fg_recipe *recipe);

/* The code of an item, with its figures; code->data is the caller's to free. FG_EIO: the file is
 * not there or not the one that the manifest describes. */
fg_status fg_zoo_read(const fg_zoo_reader *zoo, const fg_zoo_item *item, fg_code *code);

#endif
