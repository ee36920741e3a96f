/* shipped.h - the wisdom that comes with flashgen: specs/wisdom/, as it was when it was built. */
#ifndef FG_SHIPPED_H
#define FG_SHIPPED_H

#include <stddef.h>

extern const char fg_shipped_wisdom[];
extern const size_t fg_shipped_wisdom_size;

#endif
