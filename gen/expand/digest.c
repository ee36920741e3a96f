/* digest.c - the digest of the built-in templates, which the build made, or one that is made anew.
 */
#include "digest.h"
#include "embedded.h"

#include <stdio.h>

fg_status fg_gen_digest(const char *templates, bool with_lines, size_t size, char *hex) {
  if (templates && *templates) return fg_gen_digest_make(templates, with_lines, size, hex);
  snprintf(hex, size, "%s", fg_embedded_digest[with_lines]);
  return FG_OK;
}
