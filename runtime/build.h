/* build.h - one variant into a zoo: what fg_build and `flashgen build` share. */
#ifndef FG_BUILD_H
#define FG_BUILD_H

#include "compile.h"
#include "zoo_make.h"

/* simt computes everything slowly: it joins a zoo only where the restrictions name the family. */
bool fg_build_takes(const fg_limits *limits, const fg_plan *plan);

/* FG_ESPEC: nothing is left but simt that nobody named. */
fg_status fg_build_nothing(void);

typedef struct fg_build_made {
  bool kept; /* it was there already */
  uint64_t size;
  char block[FG_ZOO_BLOCK]; /* of the manifest */
} fg_build_made;

/* Expands the variant and, unless the zoo has its code already, compiles and stages it. compiler:
 * the identity for its arch. */
fg_status fg_build_variant(fg_zoo_make *make, fg_gen *gen, const fg_variant *variant,
                           const char *compiler, fg_build_made *made);

/* For qsort: variants by name, as a manifest has them. */
int fg_build_by_name(const void *left, const void *right);

/* A variant's entry for fg_zoo_finish; its block is the caller's to free. */
fg_status fg_build_record(const fg_variant *variant, const fg_build_made *made,
                          fg_zoo_record *record);

/* Is it the machine that failed, which would fail every variant alike? */
bool fg_build_ends(fg_status status);

#endif
