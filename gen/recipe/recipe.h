/* recipe.h - how to launch a variant, as data; launcher, devices and reports read nothing else.
 *
 * Numbers that depend on the shape are integer expressions over b h hk nq nk, in a postfix form
 * with one evaluator. */
#ifndef FG_RECIPE_H
#define FG_RECIPE_H

#include "base/elem.h"
#include "base/error.h"
#include "kind.h"
#include "layout.h"

#include <stdbool.h>

/* Postfix code. An operand is a constant (op = FG_OP_CONST) or an extent of the shape. */
enum { FG_EXPR_MAX = 64, FG_OP_CONST = 0 };
typedef struct fg_expr {
  int n;
  unsigned char op[FG_EXPR_MAX];
  int64_t constant[FG_EXPR_MAX];
} fg_expr;

/* Compiles infix text: integers, extents, of attention b h hk nq nk, + - * / % and parentheses, min
 * max cdiv(a, b) = ceil(a / b) roundup(a, b). Division truncates. letters: of the extents that
 * there are (extent.h). FG_ETEMPLATE with the place. */
fg_status fg_expr_compile(const char *text, const char *letters, fg_expr *expr);

/* FG_EARGUMENT when it overflows 64 bits or divides by what is not positive. */
fg_status fg_expr_eval(const fg_expr *expr, const fg_shape *shape, int64_t *value);

/* Its postfix text, "nq 16 cdiv h *"; returns the length. fg_expr_parse is the inverse; FG_EIO says
 * what is wrong. */
int fg_expr_print(const fg_expr *expr, size_t size, char *text);
fg_status fg_expr_parse(const char *text, const char *letters, fg_expr *expr);

/* One row of the table of kernel arguments: what every kernel may take, and where fg_args has it.
 * axes: storage order of a tensor's axes, slowest first, by letter: b batch, h query heads, g
 * key/value heads, q query rows, k keys, d and v the head dims; r rows, w their width, j and o
 * those of linear that go in and come out, f rows of its weights, x columns of what it keeps; p
 * parts; c one more than the batch, m pages of a sequence. The letters before the last have strides
 * unless the tensor is contiguous (lse, dlse). Those of dense sequences: fg_layout_axes has the
 * other layouts'. */
typedef enum fg_elem_rule {
  FG_RULE_SPEC,
  FG_RULE_KV,
  FG_RULE_O,
  FG_RULE_DQKV,
  FG_RULE_BIAS,
  FG_RULE_GRAD,
  FG_RULE_WORDS, /* i32, of a launch */
  FG_RULE_PARTS,
  FG_RULE_ROTARY,
  FG_RULE_F32,
  FG_RULE_DESCALE, /* f32; an axis of blocks of tokens is the last one where the spec has blocks */
  FG_RULE_I32,     /* of a layout */
  FG_RULE_COLUMN,  /* i32, the number of a column */
  FG_RULE_SAID,    /* as the description says */
  FG_RULE_INPUT    /* as the spec declares it; so are its axes and its name */
} fg_elem_rule;
typedef struct fg_argument {
  const char *name;  /* in files, words and messages */
  const char *ident; /* in C and in kernels */
  const char *axes;
  fg_elem_rule elem;
  bool contiguous;
  const char *normalizer; /* whose kernels alone have it; NULL: of all */
  bool optional;          /* may be null at launch, in every kernel */
  bool has_strides;       /* of all axes: the last one's need not be 1 */
  size_t place;           /* of the fg_tensor in fg_args; a declared input has none */
  const char *help;
} fg_argument;
enum { FG_ARGUMENTS = 87, FG_NAME_SIZE = 32, FG_AXES_MAX = 5 };
extern const fg_argument fg_arguments[FG_ARGUMENTS];
/* Are its elements integers? */
static inline bool fg_argument_has_integers(const fg_argument *a) {
  return a->elem == FG_RULE_I32 || a->elem == FG_RULE_WORDS || a->elem == FG_RULE_COLUMN;
}
/* Have kernels of such specs the argument? normalizer NULL: softmax. */
bool fg_argument_belongs(const fg_argument *argument, fg_layout layout, bool dropout,
                         const char *normalizer);
/* The argument of that name that the kind has: all its axes are the kind's; NULL: it has none. */
const fg_argument *fg_argument_find(const fg_kind *kind, const char *name);
/* The same of a launch whose sequences lie so: v that is the first columns of k has k's place. */
const fg_argument *fg_argument_laid(const fg_kind *kind, fg_layout layout, const char *name);

/* The argument that stands for any declared input: its value, or its gradient. */
const fg_argument *fg_argument_input(bool gradient);

/* An argument by a number that both libraries know, each of which has a table of its own. */
int fg_argument_number(const fg_argument *argument);
const fg_argument *fg_argument_at(int number);

/* A tensor of one variant. An axis letter '1' is broadcast: extent 1, no stride; 'A' on are the
 * recipe's own extents; those of a layout are in place of the argument's (layout.h). `slot` is the
 * place of a declared input among fg_args.inputs, -1 for others. */
typedef struct fg_recipe_tensor {
  const fg_argument *argument;
  fg_elem elem;
  bool output;
  bool kept; /* an output that holds something before, and goes on to where nothing is written */
  bool optional; /* may be null at launch: the kernel looks */
  int unless;    /* 1 + index of the tensor without which it may not be null; 0: there is none */
  int slot;
  char axes[FG_AXES_MAX + 1];
  int stride[FG_AXES_MAX];  /* by axis: fg_tensor_axis; fg_recipe_params fills it in */
  char name[FG_NAME_SIZE];  /* in files, words and messages */
  char ident[FG_NAME_SIZE]; /* in kernels */
} fg_recipe_tensor;

/* A declared input that is a number of the launch. */
typedef struct fg_recipe_number {
  int slot;
  bool real; /* a float, else an int */
  char name[FG_NAME_SIZE];
} fg_recipe_number;

/* A number of a launch, a float32, that kernels of some specs read: a member of Params by its name,
 * NaN where it is not given. */
typedef struct fg_launch_number {
  const char *name;
  uint32_t given;      /* its bit of fg_args.given */
  size_t place;        /* in fg_args */
  const char *belongs; /* what a spec that has it says: "normalizer=sigmoid" */
  float tried[2]; /* where nobody says one: NaN is not given, which is right if the first one is */
  float least, most;
} fg_launch_number;
enum { FG_NUMBER_SIGMOID_BIAS, FG_NUMBER_KEEP, FG_NUMBER_EPS, FG_LAUNCH_NUMBERS };
extern const fg_launch_number fg_launch_numbers[FG_LAUNCH_NUMBERS];
float fg_launch_number_of(const fg_launch_number *number, const fg_args *args);

/* Scratch of the caller: 256-byte aligned regions of `count` elements. */
typedef struct fg_region {
  char name[16];
  fg_elem elem;
  int width; /* columns of a row where it is a matrix, which a map may move; 0: it is none */
  fg_expr count;
} fg_region;

/* What TMA knows of a tensor, as a member of Params: it moves boxes of `rows` rows of `columns`
 * columns, in shared memory one behind the other and swizzled, zero outside of the tensor. The
 * device makes it from the arguments at launch (tensor_map.h). Axes, fastest first: d, row, head,
 * batch; with `blocks` the columns are two axes, and a box is so many blocks. Of an input of the
 * score, and of its gradient, 16-bit and [.., q, k], the axes are key, row, head, batch, of one
 * element where it has none of them; such a tensor need not be aligned, and the int NAME_made of
 * Params says whether there is a map of it.
 *
 * A ragged map has boxes that end anywhere. Its axes: d, window, row, back, head. The window has as
 * many rows as FG_WINDOW, and so has `back`, which goes as far back as the window reaches forward,
 * modulo 2^64: the box at window FG_WINDOW - n, row i + n, back FG_WINDOW has rows i to i + n of
 * the tensor, what is behind them is zero, and is not written. Rows of caches follow each other,
 * each cache having as many as lie between it and the next; so do those of pages. A box of pages
 * has as many rows as the greatest power of two that divides both those of a page and `rows`. */
enum { FG_WINDOW = 1 << 30 };
typedef struct fg_map {
  char name[16];
  int tensor; /* index */
  int columns, rows, blocks;
  int swizzle; /* bytes of a box's row, 32, 64 or 128; 0: not swizzled */
  bool ragged;
  int region; /* 1 + index of the region that it moves in place of a tensor; 0: none */
} fg_map;

/* A member of the kernel's Params struct: what goes to which byte of it. */
typedef enum fg_source_kind {
  FG_FROM_MAP,    /* map[index]: FG_MAP_BYTES, filled in by the device */
  FG_FROM_TENSOR, /* the data pointer of tensor[index] */
  FG_FROM_STRIDE, /* the stride (64-bit, in elements) of tensor[index] along `axis` */
  FG_FROM_REGION, /* the address of region[index] */
  FG_FROM_EXTENT, /* a 32-bit extent of the shape: axis = b h g q k */
  FG_FROM_SCALE,  /* float32 */
  FG_FROM_NUMBER, /* number[index]: an int or a float32 */
  FG_FROM_LAUNCH, /* fg_launch_numbers[index], float32 */
  FG_FROM_MADE,   /* an int: 1 if there is a map[index], else 0 */
  FG_FROM_CACHE   /* an int: rows of tensor[index] from a cache, or page, to the next */
} fg_source_kind;
typedef struct fg_parameter {
  fg_source_kind from;
  int index;
  char axis;
  int stride; /* FG_FROM_STRIDE: its place in fg_tensor's strides */
  int offset;
} fg_parameter;

typedef enum fg_step_kind { FG_STEP_LAUNCH, FG_STEP_ZERO } fg_step_kind;
typedef struct fg_step {
  fg_step_kind kind;
  char entry[48];   /* launch: the entry point */
  fg_expr grid[3];  /* blocks; a zero extent means nothing to launch */
  int threads;      /* of a block */
  int registers;    /* of a thread, at least, as the family expects */
  fg_expr work;     /* of a block; any unit, the same for all plans of a spec */
  int shared_bytes; /* dynamic shared memory */
  int cluster;      /* blocks along x that run together and reach each other's shared memory */
  int resident;     /* at most so many blocks a multiprocessor are launched; 0: the whole grid */
  bool early;       /* may start before the step before it in the stream has ended */
  int region;       /* zero: the first region to fill with zero bytes, */
  int regions;      /* and how many, one behind the other */
} fg_step;

enum {
  FG_TENSOR_MAX = 28,
  FG_REGION_MAX = 12,
  FG_MAP_MAX = 12,
  FG_STEP_MAX = 24,
  FG_PARAMETER_MAX = 120,
  FG_INPUT_SLOTS = 8,
  FG_EXTENT_MAX = 16,
  FG_MAP_BYTES = 128,
  FG_CLUSTER_MAX = 8
};

/* fg_recipe_params makes what stands behind `extent` and the tensors' `stride`: launches look them
 * up. */
typedef struct fg_recipe {
  int n_tensors, n_regions, n_maps, n_steps, n_parameters, n_numbers, n_extents;
  int params_bytes;
  uint32_t takes;           /* bit i: fg_launch_numbers[i] */
  int kernel;               /* row of fg_kinds; both libraries have that table: no pointer */
  fg_layout layout;         /* of its sequences */
  int width[FG_WIDTHS_MAX]; /* by the kind's letters: of attention d and dv */
  int align; /* bytes that addresses and strides of tensors of the spec's dtype are multiples of */
  int generation; /* of the family, from 1: raised when its speed changes; wisdom.h */
  fg_expr whole;  /* not negative where the mask hides nothing, by the lengths of a sequence; n = 0:
                   * not known */
  fg_recipe_tensor tensor[FG_TENSOR_MAX];
  fg_region region[FG_REGION_MAX];
  fg_map map[FG_MAP_MAX];
  fg_step step[FG_STEP_MAX];
  fg_parameter parameter[FG_PARAMETER_MAX];
  fg_recipe_number number[FG_INPUT_SLOTS];
  fg_expr extent[FG_EXTENT_MAX]; /* of axes of declared inputs: letter 'A' + i */
  fg_form_rule form;             /* of its shapes */
  int n_absent;                  /* arguments that say where sequences are, and descales, */
  unsigned char absent[FG_ARGUMENTS]; /* that the kernel does not have: rows of fg_arguments */
} fg_recipe;

/* Values of these numbers, in their order; those whose bit of `given` is set count. */
typedef struct fg_launch_values {
  uint32_t given;
  float value[FG_LAUNCH_NUMBERS];
} fg_launch_values;
/* Gives a launch the values that count. */
void fg_launch_values_give(const fg_launch_values *values, fg_args *args);
/* Values to try for numbers that the recipe takes and that do not count yet: the first, or the
 * second of each. */
void fg_launch_values_fill(const fg_recipe *recipe, int which, fg_launch_values *values);
/* The numbers of another launch, given or not. */
void fg_launch_numbers_copy(const fg_args *from, fg_args *to);

const fg_kind *fg_recipe_kind(const fg_recipe *recipe);

/* The recipe takes the launch's number of that name; FG_EIO: there is none. */
fg_status fg_recipe_take(fg_recipe *recipe, const char *name);

/* The letters of a launch's extents, in the order of Params: the kind's, then the layout's. */
enum { FG_LETTERS = FG_EXTENTS + 1 };
const char *fg_recipe_letters(const fg_recipe *recipe, char letters[FG_LETTERS]);

/* The extent of an axis letter for a shape; widths come from the recipe. */
int64_t fg_recipe_extent(const fg_recipe *recipe, char axis, const fg_shape *shape);

/* Is the axis one of the recipe's widths? */
bool fg_recipe_has_width(const fg_recipe *recipe, char axis);

/* "nq" for the axis letter q; "1" for one that is broadcast. */
const char *fg_axis_name(char axis);
/* The same for people: "query length", "head dim". */
const char *fg_axis_title(char axis);

/* "[b, nq, hk, d]" for the axes "bqgd". */
int fg_axes_print(const char *axes, size_t size, char *text);

/* The index of axis letter a among fg_tensor's strides. Their order is b h n d, or b h q k for a
 * tensor that has both q and k, or p b h n of parts, whose columns have no stride: they have the
 * index FG_STRIDES. An extent of its own stands for rows. fg_axis_suffix: the letter of that order
 * at the index. */
enum { FG_STRIDES = 4 };
int fg_axis_index(const char *axes, char a);
char fg_axis_suffix(const char *axes, char a);

/* Fills in names: of the tensor's argument, or (its slot set) of an input or its gradient. */
void fg_recipe_name(fg_recipe_tensor *tensor);
/* is_shared: an argument of the kernel is called so too, and the tensor's name is "inputs.table".
 */
void fg_recipe_name_input(fg_recipe_tensor *tensor, const char *input, bool gradient,
                          bool is_shared);
/* The name without "inputs." before it. */
const char *fg_input_bare(const char *name);
/* Does the name mean the tensor? A declared input is "inputs.slope" in every recipe, and slope
 * where no argument is. */
bool fg_recipe_tensor_is(const fg_recipe_tensor *tensor, const char *name);
/* The recipe's tensor of the declared input, or of its gradient; -1: it has none. */
int fg_recipe_input(const fg_recipe *recipe, int slot, bool gradient);

/* The place of a tensor's axis i in fg_tensor's strides: a declared input's are in its own order.
 */
int fg_tensor_axis(const fg_recipe_tensor *tensor, int i);
/* The stride of its axis i; 1 where it has none. */
int64_t fg_tensor_stride(const fg_recipe_tensor *tensor, const fg_tensor *given, int i);

/* A declared input of args by its slot. A recipe's tensor in args; one of a declared input lies in
 * args->inputs, which fg_launch_check has seen to hold it. */
const fg_input_value *fg_args_input(const fg_args *args, int slot);
const fg_tensor *fg_args_tensor(const fg_args *args, const fg_recipe_tensor *tensor);
fg_tensor *fg_args_tensor_of(fg_args *args, const fg_recipe_tensor *tensor);

/* Is the tensor one of the kind's own, and so aligned to what the recipe needs? Others of a map are
 * inputs of the score. */
static inline bool fg_tensor_aligned(const fg_recipe_tensor *tensor) {
  const fg_elem_rule rule = tensor->argument->elem;
  return rule <= FG_RULE_DQKV || (rule == FG_RULE_SAID && tensor->elem != FG_ELEM_I32);
}

/* A sentence on what is wrong with a map of the recipe's tensors; NULL: nothing is. */
const char *fg_map_fault(const fg_recipe *recipe, const fg_map *map);

/* Can TMA reach what the map moves, whatever the arguments? */
static inline bool fg_map_is_aligned(const fg_recipe *recipe, const fg_map *map) {
  return map->region || fg_tensor_aligned(&recipe->tensor[map->tensor]);
}

/* The name of the tensor, or the region, that it moves. */
static inline const char *fg_map_of(const fg_recipe *recipe, const fg_map *map) {
  return map->region ? recipe->region[map->region - 1].name : recipe->tensor[map->tensor].name;
}

/* A ragged map of pages. */
bool fg_map_has_pages(const fg_recipe *recipe, const fg_map *map);

/* Fixes the Params struct from the maps, tensors and regions: fills `parameter` and params_bytes,
 * and writes the struct's C text (members only, a line each). */
fg_status fg_recipe_params(fg_recipe *recipe, size_t size, char *text);

/* As people, manifests and cache entries read it: head dims, tensors, regions, steps, a line each.
 * Returns the length; whole lines only when it does not fit, FG_RECIPE_TEXT holds any recipe that
 * fg_recipe_parse takes.
 *
 *   kernel logsoftmax                             the kind; without the line attention
 *   layout packed paged                           of queries, of keys; without the line dense
 *   layout dense dense slices                     the same, and pairs are those of a list of slices
 *   layout packed packed shard                    the same of parts of sequences
 *   layout dense cached latent                    v is the first columns of k; last of such words
 *   head_dim 64 128                               the widths, under their field's name
 *   align 16                                      of q k v o and their gradients, in bytes
 *   generation 2                                  of the family; without the line 1
 *   tensor dbias out f32 [1, h, nq, 1]            1 = broadcast
 *   tensor k inout bf16 [pages, page, hk, 64]     an output that is kept
 *   tensor lse out? f32 [b, h, nq]                it may be null
 *   tensor k_descale in? f32 [b, hk, nk 64 cdiv]  without blocks of tokens [b, hk]
 *   tensor x in|z bf16 [rows, 64]                 where z is given
 *   input 0 slope in f32 [h]                      a declared input, or its gradient (out)
 *   number 1 width int
 *   region delta f32: b h * nq *
 *   region dp bf16 512: rows 512 *                a matrix of so many columns
 *   map q_map q 64 128 2 swizzle 128              columns and rows of a box, its blocks of columns
 *   map o_map o 64 64 swizzle 128 ragged
 *   zero delta sums1                              regions that lie one behind the other
 *   launch attn_bwd_dq grid nq 16 cdiv h * b *, 1, 1 threads 128 shared 8192 registers 80 work nk
 *   launch f grid b, 1, 1 threads 384 shared 0 registers 168 cluster 2 resident 1 early work nk */
enum { FG_RECIPE_TEXT = 16384 };
int fg_recipe_print(const fg_recipe *recipe, size_t size, char *text);

/* The recipe that fg_recipe_print wrote as this text, its parameters too; a line "cost ...", which
 * recipes had once, is passed over. FG_EIO names the line of any other text: "recipe line 3: ...".
 */
fg_status fg_recipe_parse(const char *text, fg_recipe *recipe);

#endif
