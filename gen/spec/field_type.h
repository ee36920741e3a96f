/* field_type.h - the types of spec and plan fields: how a value is read and printed, and what it is
 * called in the name of a kernel. A new type is a row of these functions, in a file of its own or
 * in field_type.c. */
#ifndef FG_FIELD_TYPE_H
#define FG_FIELD_TYPE_H

#include "base/error.h"

#include <stdbool.h>

struct fg_field;
struct fg_point;

/* value: the field's place in a point, or of a plan's number. All print as snprintf does and return
 * the length. */
typedef struct fg_field_type {
  bool is_expression; /* its value is a text, which grids read with all of its table */
  bool is_list;       /* its values are "name=value" each: no axis of a grid */
  /* The text of choice i and its tag in names, NULL behind the last. A type without choices has no
   * such functions. */
  const char *(*choice)(const struct fg_field *field, int i);
  const char *(*choice_tag)(const struct fg_field *field, int i);
  /* Is the text one of its values? */
  bool (*read)(const struct fg_field *field, const char *text, void *value);
  int (*print)(const struct fg_field *field, const void *value, size_t size, char *text);
  /* What is allowed, for errors: "a positive integer". */
  int (*allowed)(const struct fg_field *field, size_t size, char *text);
  /* What the value adds to the name of a point; `before`: as it was while calls stood in names as
   * hashes. NULL: plan fields, which are named with their plan. */
  int (*tag)(const struct fg_field *field, const void *value, bool before, size_t size, char *name);
  /* Its inverse: the first character that it did not take, NULL where the name is none. */
  const char *(*untag)(const struct fg_field *field, const char *name, void *value);
} fg_field_type;

extern const fg_field_type fg_type_choice; /* one of `choices`: an index */
extern const fg_field_type fg_type_kind;   /* a row of fg_kinds: an index */
extern const fg_field_type fg_type_widths; /* "128" or "192/128": d and dv, two ints */
extern const fg_field_type fg_type_width;  /* "64" or "64/32", of rows in and out: two ints */
extern const fg_field_type fg_type_even;   /* an even number, 0 = the default, in names like it */
extern const fg_field_type fg_type_axes;   /* "h,q,k" or "[h,q,k]": a set of axes */
extern const fg_field_type fg_type_number; /* of a plan: a positive integer */
extern const fg_field_type fg_type_word;   /* a word of the templates, which are not known here */
/* field_formula.c */
extern const fg_field_type fg_type_formula; /* a mask, a score: an expression */
extern const fg_field_type fg_type_named;   /* inputs, definitions: "name=value" each */

#endif
