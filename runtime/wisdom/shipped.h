/* shipped.h - the wisdom that comes with flashgen: specs/wisdom/, as it was when it was built, and
 * its index, which embed_wisdom makes. */
#ifndef FG_SHIPPED_H
#define FG_SHIPPED_H

#include "wisdom_index.h"

extern const char fg_shipped_wisdom[];
extern const size_t fg_shipped_wisdom_size;
extern const fg_wisdom_index fg_shipped_index;

#endif
