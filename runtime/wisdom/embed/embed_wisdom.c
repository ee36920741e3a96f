/* embed_wisdom.c - writes the C text of the wisdom that comes with flashgen: the files one after
 * the other, and their index. Run by the build:
 *
 *   embed_wisdom OUT.c FILE ... */
#include "wisdom/wisdom_index.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
  char *data;
  size_t n;
} text;

/* Appends the file, or ends the build. */
static void add_file(const char *path, text *t) {
  FILE *file = fopen(path, "rb");
  for (size_t got = 1; file && got;) {
    enum { STEP = 1 << 16 };
    char *grown = realloc(t->data, t->n + STEP);
    if (!grown) exit(1);
    t->data = grown;
    got = fread(grown + t->n, 1, STEP, file);
    t->n += got;
  }
  if (!file || ferror(file)) {
    perror(path);
    exit(1);
  }
  fclose(file);
}

static void print(FILE *out, const text *t, const fg_wisdom_index *index) {
  fprintf(out, "/* Made by embed_wisdom; do not edit. */\n#include \"wisdom/shipped.h\"\n\n"
               "const char fg_shipped_wisdom[] = {");
  for (size_t i = 0; i < t->n; i++)
    fprintf(out, "%s%d,", i % 32 ? "" : "\n", (unsigned char)t->data[i]);
  fprintf(out, "0};\nconst size_t fg_shipped_wisdom_size = sizeof fg_shipped_wisdom - 1;\n"
               "static const fg_indexed_line lines[] = {\n");
  for (int i = 0; i < index->n; i++)
    fprintf(out, "{%lluu, %u, %u},\n", (unsigned long long)index->line[i].hash, index->line[i].at,
            index->line[i].n);
  fprintf(out,
          "{0, 0, 0}};\nconst fg_wisdom_index fg_shipped_index = {fg_shipped_wisdom, lines, %d};\n",
          index->n);
}

int main(int argc, char **argv) {
  text t = {0};
  fg_wisdom_index index;
  for (int i = 2; i < argc; i++) add_file(argv[i], &t);
  FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;
  if (!out || fg_wisdom_index_new(t.data, t.n, &index) != FG_OK) return 1;
  print(out, &t, &index);
  fg_wisdom_index_free(&index);
  free(t.data);
  return fclose(out) ? 1 : 0;
}
