/* build.h - variants into a zoo: what fg_build and `flashgen build` share. */
#ifndef FG_BUILD_H
#define FG_BUILD_H

#include "device/compile.h"
#include "zoo/zoo_make.h"

/* The fallback, simt, computes everything slowly: it joins a zoo only where the restrictions name
 * the family. */
bool fg_build_takes(const fg_point *point, const fg_limits *limits, const fg_plan *plan);

/* FG_ESPEC: nothing is left but simt that nobody named. */
fg_status fg_build_nothing(void);

typedef struct fg_build_made {
  bool kept; /* it was there already */
  uint64_t size;
  char block[FG_ZOO_BLOCK]; /* of the manifest */
  fg_plan plan;             /* that of the variant, or the next best */
  char refused[512];        /* "", or why it is another */
} fg_build_made;

/* The archs of a zoo's variants, and who compiles for each. */
enum { FG_BUILD_ARCHS = 16 };
typedef struct fg_build_compilers {
  struct {
    char arch[FG_ARCH_MAX], identity[FG_COMPILER_MAX];
  } of[FG_BUILD_ARCHS];
  int n;
} fg_build_compilers;

/* FG_EENVIRONMENT: one of them is not there. */
fg_status fg_build_find_compilers(int n, const fg_variant *variants, fg_build_compilers *compilers);

/* Expands the variant and, unless the zoo has its code already, compiles and stages it. In several
 * threads at once, if each has a gen of its own. */
fg_status fg_build_variant(fg_zoo_make *make, fg_gen *gen, const fg_variant *variant,
                           const fg_build_compilers *compilers, fg_build_made *made);

/* The same, where the variant has the best plan of a point of the grid, for the best plan that
 * there is: one that this compiler refuses (another version may spill) gives way to the next within
 * the point's limits, unless *stop. If none is left the first one's failure stands. grid = NULL:
 * this plan and no other. */
fg_status fg_build_best(fg_zoo_make *make, fg_gen *gen, const fg_grid *grid,
                        const fg_variant *variant, const fg_build_compilers *compilers,
                        const volatile int *stop, fg_build_made *made);

/* By name, as a manifest has them, each once; how many are left. */
int fg_build_sort(int n, fg_variant *variants);
int fg_build_sort_records(int n, fg_zoo_record *records); /* frees the others' blocks */

/* A variant's entry for fg_zoo_finish; its block is the caller's to free. */
fg_status fg_build_record(const fg_variant *variant, const fg_build_made *made,
                          fg_zoo_record *record);

/* Is it the machine that failed, which would fail every variant alike? */
bool fg_build_ends(fg_status status);

#endif
