/* zoo_embed.c - a zoo as a part of a program: a C file that includes its bytes, and a header.
 *
 * The assembler's .incbin reads the manifest and, in its order, each code file, each aligned to
 * 64 bytes. They are mapped from the program's file: a page is read when it is used. The C file
 * holds a digest of them all, so that it changes, and build systems notice, when the zoo does. */
#include "zoo_make.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_C = 64 };

/* The words of C11 and of C++17: compilers of both read the header. */
static const char keywords[] =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t class compl const const_cast constexpr continue decltype default delete do "
    "double dynamic_cast else enum explicit export extern false float for friend goto if "
    "inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq "
    "private protected public register reinterpret_cast restrict return short signed "
    "sizeof static static_assert static_cast struct switch template this thread_local "
    "throw true try typedef typeid typename union unsigned using virtual void volatile "
    "wchar_t while xor xor_eq _Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary "
    "_Noreturn _Static_assert _Thread_local ";

static bool is_keyword(const char *name) {
  char word[NAME_MAX_C + 3];
  snprintf(word, sizeof word, " %s ", name);
  return strstr(keywords, word) != NULL;
}

fg_status fg_zoo_embed_check(const char *dir, const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  size_t n = strlen(name);
  if (!n || n > NAME_MAX_C || name[strspn(name, letters)] || isdigit((unsigned char)*name))
    return fg_fail(FG_EARGUMENT, "embed: \"%.80s\" is not a name of C of at most %d letters", name,
                   NAME_MAX_C);
  if (is_keyword(name))
    return fg_fail(FG_EARGUMENT, "embed: %s is a word of C or C++, no name for a variable", name);
  if (!strcmp(name, "flashgen"))
    return fg_fail(FG_EARGUMENT, "embed: flashgen.h is the library's own header");
  for (const char *at = dir; *at; at++)
    if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
      return fg_fail(FG_EARGUMENT, "embed: the path %s has a letter that no text of C may hold",
                     dir);
  return FG_OK;
}

static void print_header(FILE *f, const char *name, int n) {
  fprintf(f,
          "/* %s.h - %d kernels, made by flashgen build; config.zoos takes &%s. */\n"
          "#ifndef FG_ZOO_%s_H\n#define FG_ZOO_%s_H\n\n#include <flashgen.h>\n\n"
          "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
          "extern const fg_zoo %s;\n\n"
          "#ifdef __cplusplus\n}\n#endif\n#endif\n",
          name, n, name, name, name, name);
}

static const char *const labels[] = {"manifest", "code", "end"};

static void print_label(FILE *f, const char *name, int i) {
  fprintf(f, "        \".balign 64\\n.globl %s_%s\\n.hidden %s_%s\\n%s_%s:\\n\"\n", name, labels[i],
          name, labels[i], name, labels[i]);
}

static void print_file(FILE *f, const char *dir, const char *file) {
  fprintf(f, "        \".balign 64\\n.incbin \\\"%s/%s\\\"\\n\"\n", dir, file);
}

/* The C file. One asm statement holds everything, because the compiler may separate or reorder
 * two. */
static void print_code(FILE *f, const char *dir, const char *name, int n,
                       const fg_zoo_record *records, const char *digest) {
  fprintf(f,
          "/* %s.c - the zoo of %s.h: %s. Made by flashgen build. */\n#include \"%s.h\"\n\n"
          "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
          "__asm__(\".pushsection .rodata.%s, \\\"a\\\", %%progbits\\n\"\n",
          name, name, digest, name, name);
  print_label(f, name, 0);
  print_file(f, dir, FG_ZOO_MANIFEST);
  print_label(f, name, 1);
  for (int i = 0; i < n; i++) {
    char file[FG_ZOO_NAME];
    fg_zoo_file(records[i].name, file);
    print_file(f, dir, file);
  }
  print_label(f, name, 2);
  fprintf(f, "        \".popsection\\n\");\n");
  for (int i = 0; i < 3; i++)
    fprintf(f, "extern const char %s_%s[] __attribute__((visibility(\"hidden\")));\n", name,
            labels[i]);
  fprintf(f,
          "\nconst fg_zoo %s = {.size = sizeof(fg_zoo),\n    .name = \"%s\",\n"
          "    .manifest = %s_manifest,\n    .code = %s_code,\n    .end = %s_end};\n",
          name, name, name, name, name);
}

/* The digest of all blocks. A block holds the digest of its code file, so the code counts too. */
static fg_status digest_of(int n, const fg_zoo_record *records, char digest[FG_DIGEST_HEX]) {
  size_t size = 0, at = 0;
  for (int i = 0; i < n; i++) size += strlen(records[i].block);
  char *all = malloc(size + 1);
  if (!all) return fg_fail(FG_EMEMORY, "no memory to embed a zoo");
  for (int i = 0; i < n; i++) at += (size_t)(stpcpy(all + at, records[i].block) - (all + at));
  fg_zoo_digest(all, size, digest);
  free(all);
  return FG_OK;
}

fg_status fg_zoo_embed(const fg_zoo_make *make, const char *dir, const char *name, int n,
                       const fg_zoo_record *records, bool *changed) {
  char file[NAME_MAX_C + 4], digest[FG_DIGEST_HEX];
  TRY(fg_zoo_embed_check(dir, name));
  TRY(digest_of(n, records, digest));
  *changed = false;
  for (int header = 0; header < 2; header++) {
    char *text = NULL;
    size_t size;
    bool anew = false;
    FILE *f = open_memstream(&text, &size);
    if (f && header) print_header(f, name, n);
    if (f && !header) print_code(f, dir, name, n, records, digest);
    const bool whole = f && !ferror(f);
    if (!f || fclose(f) || !whole) {
      free(text);
      return fg_fail(FG_EMEMORY, "no memory to embed a zoo");
    }
    snprintf(file, sizeof file, "%s.%c", name, header ? 'h' : 'c');
    fg_status status = fg_zoo_place(make, file, text, size, &anew);
    free(text);
    if (status != FG_OK) return status;
    *changed |= anew;
  }
  return FG_OK;
}
