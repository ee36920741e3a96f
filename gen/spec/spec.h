/* spec.h - what a kernel computes: the table of fields, checked points, and grids of them.
 *
 * Every value has one text form, read by one parser whether it comes from a spec file, from a word
 * on a command line or from fg_spec. A spec is a table of lists of such texts; a grid is every
 * combination of them, checked, filtered by `when`, and with equal points merged. */
#ifndef FG_SPEC_H
#define FG_SPEC_H

#include "base/elem.h"
#include "field_type.h"
#include "recipe/kind.h"
#include "recipe/layout.h"

enum { FG_BIAS_OFF, FG_BIAS_ON, FG_BIAS_GRAD };
enum { FG_SINK_OFF, FG_SINK_ON, FG_SINK_GRAD };
enum { FG_PASS_FORWARD, FG_PASS_BACKWARD };
enum { FG_NORM_LAYER, FG_NORM_RMS };
/* The most of a head dim: of q and k, and of v. */
enum {
  FG_HEAD_DIM_STEP = 8,
  FG_HEAD_DIM_MAX = 576,
  FG_HEAD_DIM_V_MAX = 512,
  FG_WIDTH_MAX = 1 << 18
};

/* One point of a grid: every field a checked number, so that points compare field by field.
 * Choices are indices into their field's list; `bias_dims` is a set: bit 0 = b, 1 = h, 2 = q, 3 =
 * k. Fields that a point does not use hold their default. */
typedef struct fg_point {
  int kernel, pass, dtype, d, dv, bias, bias_dims, bias_dtype, grad_dtype, deterministic;
  int o_dtype, dqkv_dtype, kv_dtype, descale_block;
  int width, width_out;    /* columns of a row; of linear of one that comes out, else the same */
  int q_layout, kv_layout; /* as in fg_layout */
  int parts_dtype, rotary, rotary_dim, rotary_dtype; /* rotary_dim: 0 = d */
  int batch_invariant, sink, dropout, max_logit;
  int residual, norm, target;
  int slices, shard;
  int latent; /* the numbers are even in number: points are compared as bytes, without a hole */
  /* Canonical texts, interned; NULL: full, s, no inputs. point_formula.h has what they say. */
  const char *mask, *score, *inputs;
  const char *normalizer; /* a word, interned; NULL: softmax */
  const char *epilogue;   /* the same; NULL: none */
} fg_point;

/* One row of the table of fields. A spec field's list is an axis of the grid; a plan field's list
 * is a set that restricts the candidates. */
typedef struct fg_field {
  const char *name;
  const fg_field_type *type;
  bool plan;
  size_t text;                /* offset of its text in fg_spec */
  size_t value;               /* offset of its first int in fg_point; plan fields: unused */
  const char *fallback;       /* the default's text; NULL = must be given */
  const char *const *choices; /* NULL-terminated */
  const char *const *tags;    /* what each choice adds to a variant's name */
  size_t
      with; /* offset in fg_point of a choice: where that is its first, this field does not count */
  const char *const *families; /* of a plan field: who has it, NULL-terminated; NULL: all */
  const char *former;          /* the name of a row of its own behind the fields; NULL: none */
  const char *help;
  const char *example; /* words that use it; a list of values of its own is worth showing */
} fg_field;

/* Behind the fields stand rows of the names that fields had before. What is given by one is that of
 * the field whose `former` it is, and whose family stands beside it where there are several. */
enum { FG_PLAN_FIELDS = 7, FG_FIELDS = FG_SPEC_FIELDS + FG_PLAN_FIELDS, FG_FIELD_ROWS };
extern const fg_field fg_fields[FG_FIELD_ROWS];

/* The row of a name, a former one too; NULL if there is none. */
const fg_field *fg_field_find(const char *name);

/* The known field nearest to `name` in spelling, NULL when none is near. */
const char *fg_field_nearest(const char *name);

/* Has a plan of the family this plan field? */
bool fg_field_is_of(const fg_field *field, const char *family);

/* Reads one text into the field's place in *point (spec fields) or *plan_value. FG_ESPEC with the
 * text and what is allowed. An expression may use no input here. */
fg_status fg_field_read(const fg_field *field, const char *text, fg_point *point, int *plan_value);

/* Its place in a point. */
void *fg_field_place(const fg_field *field, fg_point *point);

/* Prints the field's value in its canonical text form; returns the length. */
int fg_field_print(const fg_field *field, const fg_point *point, size_t size, char *text);

/* The text of a field that is an expression: as long as the process lives. */
const char *fg_field_text(const fg_field *field, const fg_point *point);

/* The name of the point's spec, "attn_fwd-bf16-d128-causal": appended to text; its inverse returns
 * the first character that it did not take, NULL when the text is no such name. */
int fg_point_name(const fg_point *point, size_t size, char *text);
/* The same as it was while calls, window(128, 0), stood in names as hashes: files have such names.
 */
int fg_point_name_before(const fg_point *point, size_t size, char *text);
const char *fg_point_parse(const char *name, fg_point *point);

/* The point's kind of kernel, and whether a field counts for it. */
const fg_kind *fg_point_kind(const fg_point *point);
bool fg_field_belongs(const fg_field *field, const fg_point *point);
/* Does the row, of a spec field or not, count for the kind? */
bool fg_kind_has_spec_field(const fg_kind *kind, const fg_field *field);
/* The widths that the point's width field gives, in the order of its kind's letters. */
void fg_point_widths(const fg_point *point, int width[FG_WIDTHS_MAX]);

/* Gives fields that the point does not use their default, so that equal kernels are equal points.
 */
void fg_point_settle(fg_point *point);

fg_layout fg_point_layout(const fg_point *point);
/* FG_ESPEC where its pass or mask does not go with how its sequences lie. */
fg_status fg_point_check_layout(const fg_point *point);

/* The element types of q and dout, of k and v, of bias, of dbias, of o, of dq dk dv, of parts of o
 * and of a rotation's tables. */
fg_elem fg_point_elem(const fg_point *point);
fg_elem fg_point_kv_elem(const fg_point *point);
fg_elem fg_point_bias_elem(const fg_point *point);
fg_elem fg_point_grad_elem(const fg_point *point);
fg_elem fg_point_o_elem(const fg_point *point);
fg_elem fg_point_dqkv_elem(const fg_point *point);
fg_elem fg_point_parts_elem(const fg_point *point);
fg_elem fg_point_rotary_elem(const fg_point *point);
/* Are k and v numbers of e4m3, which descales make what they stand for? */
bool fg_point_has_descales(const fg_point *point);
/* FG_ESPEC where the kind, or the pass, has no tensors of the point's dtypes. */
fg_status fg_point_check_dtype(const fg_point *point);
/* FG_ESPEC where the kind has no rows of the point's widths. */
fg_status fg_point_check_widths(const fg_point *point);
bool fg_point_equal(const fg_point *a, const fg_point *b);

/* Plan restrictions: for each plan field the values that are allowed, none = all. */
enum { FG_LIMIT_MAX = 32 };
typedef struct fg_limits {
  int value[FG_PLAN_FIELDS][FG_LIMIT_MAX], n[FG_PLAN_FIELDS];
} fg_limits;

/* The points of a grid, each with the plan restrictions of its table. */
typedef struct fg_grid {
  fg_point *point;
  const fg_limits **limits; /* of point i, one of `table_limits` */
  fg_limits **table_limits;
  int n, n_tables;
  int64_t combinations; /* before `when` and merging */
  int64_t rejected;     /* by `when` */
  int64_t merged;       /* points equal to an earlier one, with equal restrictions */
  /* A word "width=30" that gives no field of any kernel, but a number which a table declares: it is
   * for the launch. NULL: there is none. A row of fg_fields has the name. */
  const char *launch_number;
} fg_grid;

/* Spec files end with FG_ESPEC soon after *flag is set, as by an interrupt; NULL: they do not. */
void fg_spec_stop_when(const volatile int *flag);

/* Expands spec files (may be none) and words ("field=value", each replacing that field in every
 * table; without a file they make one table). All errors come in one text, a line each: those of
 * the words, then those of each file in the order of its tables. */
fg_status fg_grid_read(int n_files, const char *const *files, int n_words, const char *const *words,
                       fg_grid **grid);

/* The same from the C struct; lists are allowed. */
fg_status fg_grid_from_spec(const fg_spec *spec, fg_grid **grid);
void fg_grid_free(fg_grid *grid);
/* The restrictions of a point's plans; NULL: the grid has no such point. */
const fg_limits *fg_grid_limits(const fg_grid *grid, const fg_point *point);

/* FG_ESPEC where a word is for the launch, and there is none. */
fg_status fg_grid_without_launch(const fg_grid *grid);

#endif
