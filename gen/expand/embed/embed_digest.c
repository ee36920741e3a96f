/* embed_digest.c - writes the C text of the digests of the built-in templates, so that no process
 * has to read them for it. Run by the build:
 *
 *   embed_digest OUT.c */
#include "expand/digest.h"

#include <stdio.h>

int main(int argc, char **argv) {
  char hex[2][40];
  FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;
  for (int i = 0; i < 2; i++)
    if (!out || fg_gen_digest_make(NULL, i, sizeof hex[i], hex[i]) != FG_OK) return 1;
  fprintf(out,
          "/* Made by embed_digest; do not edit. */\n#include \"expand/embedded.h\"\n\n"
          "const char *const fg_embedded_digest[2] = {\"%s\", \"%s\"};\n",
          hex[0], hex[1]);
  return fclose(out) ? 1 : 0;
}
