/* zoo_make.h - makes a zoo in a directory, so that it may end at any moment and go on later.
 *
 * New code files are staged as FILE.new, and each is entered in the journal once it is whole; the
 * old manifest stays true meanwhile. Only when all is done do the files get their names; then the
 * manifest is replaced, and the journal and the files that are not in the manifest are removed.
 * Nothing that the journal or an old manifest says is believed before the file's checksum agrees.
 *
 * fg_zoo_recall and fg_zoo_stage may be called in several threads, and in processes forked after
 * fg_zoo_make_open, each for variants of its own. */
#ifndef FG_ZOO_MAKE_H
#define FG_ZOO_MAKE_H

#include "zoo_text.h"

typedef struct fg_zoo_make fg_zoo_make;

/* Makes the directory if it is not there, and waits while another process makes a zoo in it, until
 * *stop is set. A damaged manifest is forgotten: `note` gets the sentence, else "". FG_EIO: the
 * directory cannot be used, or its manifest is of a newer format or another program's. */
fg_status fg_zoo_make_open(const char *dir, const volatile int *stop, size_t size, char *note,
                           fg_zoo_make **make);
void fg_zoo_make_close(fg_zoo_make *make);

/* Whether the code for the item's name, expression, source and compiler is there already; then the
 * rest of the item is filled in, except its recipe. Its texts live as long as `make`. */
bool fg_zoo_recall(const fg_zoo_make *make, fg_zoo_item *item);

/* Writes the item's code file, and its block into the journal. Fills in digest and size. FG_EIO. */
fg_status fg_zoo_stage(fg_zoo_make *make, const fg_code *code, fg_zoo_item *item);

/* Makes `file` of the zoo's directory hold these bytes, at once or not at all; *changed: it did
 * not hold them before. FG_EIO. */
fg_status fg_zoo_place(const fg_zoo_make *make, const char *file, const char *text, size_t size,
                       bool *changed);

/* A finished variant: its name and block, as fg_zoo_print wrote it. */
typedef struct fg_zoo_record {
  char name[FG_NAME_MAX], *block;
} fg_zoo_record;

/* From now on the zoo is these n records, sorted by name. *removed: how many code files were
 * removed; *changed: the manifest is not what it was, else it was not written. FG_EIO. */
fg_status fg_zoo_finish(fg_zoo_make *make, int n, const fg_zoo_record *records, int *removed,
                        bool *changed);

/* Makes the finished zoo a part of a program: NAME.h declares `const fg_zoo NAME`, NAME.c
 * defines it and includes the manifest and the code files, by the path `dir` as it is given. Both
 * are written beside the manifest unless they are there already; *changed as in fg_zoo_place.
 * FG_EARGUMENT: the name is no identifier of C and C++, or dir cannot stand in a string of C.
 * FG_EIO. */
fg_status fg_zoo_embed_check(const char *dir, const char *name);
fg_status fg_zoo_embed(const fg_zoo_make *make, const char *dir, const char *name, int n,
                       const fg_zoo_record *records, bool *changed);

#endif
