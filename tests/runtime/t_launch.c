/* t_launch.c - arguments that no launch accepts: the sentence names the field, nothing is run. */
#include "launch_case.h"

#include "device/tensor_map.h"
#include "host/engine.h"
#include "recipe/extent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fg_shape shape = {.b = 2, .h = 4, .hk = 2, .nq = 5, .nk = 7};

/* Which argument is spoilt, and how. */
typedef enum spoil {
  SET_B,
  SET_H,
  SET_HK,
  SET_NQ,
  SET_NK,
  MISSING, /* value: nothing */
  MOVED,   /* by `value` bytes */
  STRIDE_B,
  STRIDE_H,
  STRIDE_N,
  STRIDE_LAST,
  NO_WORKSPACE
} spoil;

typedef struct wrong {
  const char *name; /* of the tensor */
  spoil how;
  int64_t value;
  const char *says;
} wrong;

static const wrong list[] = {
    {"", SET_B, -1, "b = -1: expected 0 to 2^30 - 1"},
    {"", SET_H, -4, "h = -4: expected 0 to 2^30 - 1"},
    {"", SET_HK, -2, "hk = -2: expected 0 to 2^30 - 1"},
    {"", SET_NQ, -1, "nq = -1: expected 0 to 2^30 - 1"},
    {"", SET_NQ, 1 << 30, "nq = 1073741824: expected 0 to 2^30 - 1"},
    {"", SET_NK, INT64_MIN, "nk = -9223372036854775808: expected 0 to 2^30 - 1"},
    {"", SET_NK, 1 << 30, "nk = 1073741824: expected 0 to 2^30 - 1"},
    {"", SET_H, 3, "h = 3 is not a multiple of hk = 2"},
    {"", SET_HK, 0, "h = 4 is not a multiple of hk = 0"},
    {"", SET_HK, 8, "h = 4 is not a multiple of hk = 8"},
    {"q", MISSING, 0, "q is missing"},
    {"k", MISSING, 0, "k is missing"},
    {"v", MISSING, 0, "v is missing"},
    {"bias", MISSING, 0, "bias is missing"},
    {"o", MISSING, 0, "o is missing"},
    {"lse", MISSING, 0, "lse is missing"},
    {"do", MISSING, 0, "do is missing"},
    {"dq", MISSING, 0, "dq is missing"},
    {"dk", MISSING, 0, "dk is missing"},
    {"dv", MISSING, 0, "dv is missing"},
    {"dbias", MISSING, 0, "dbias is missing"},
    {"k", MOVED, 1, "k: its address is not a multiple of 2"},
    {"bias", MOVED, 2, "bias: its address is not a multiple of 4"},
    {"lse", MOVED, 2, "lse: its address is not a multiple of 4"},
    {"dlse", MOVED, 1, "dlse: its address is not a multiple of 4"},
    {"dv", MOVED, 1, "dv: its address is not a multiple of 2"},
    {"q", STRIDE_LAST, 2, "q: its last stride is 2, not 1"},
    {"o", STRIDE_LAST, 0, "o: its last stride is 0, not 1"},
    {"bias", STRIDE_LAST, 3, "bias: its last stride is 3, not 1"},
    {"dbias", STRIDE_LAST, -1, "dbias: its last stride is -1, not 1"},
    {"v", STRIDE_N, -8, "v: a stride is negative"},
    {"bias", STRIDE_H, -1, "bias: a stride is negative"},
    {"dq", STRIDE_B, 0, "dq: a stride is 0: its elements would be written twice"},
    {"dk", STRIDE_N, 0, "dk: a stride is 0: its elements would be written twice"},
    {"dbias", STRIDE_H, 0, "dbias: a stride is 0: its elements would be written twice"},
    {"q", STRIDE_N, INT64_MAX, "q: its strides reach beyond 64 bits"},
    {"k", STRIDE_B, INT64_MAX / 2, "k: its strides reach beyond 64 bits"},
    {"do", STRIDE_H, INT64_MAX / 3, "do: its strides reach beyond 64 bits"},
    {"", NO_WORKSPACE, 0, "workspace is missing: the launch needs 256 bytes"},
};
enum { LIST = sizeof list / sizeof *list };

static void spoil_shape(fg_shape *s, const wrong *w) {
  int64_t *const extent[] = {&s->b, &s->h, &s->hk, &s->nq, &s->nk};
  *extent[w->how - SET_B] = w->value;
}

static void spoil_tensor(launch *l, const wrong *w) {
  int i = fg_problem_find(l->problem, w->name);
  fg_tensor *t = fg_args_tensor_of(&l->problem->args, &l->problem->recipe->tensor[i]);
  if (w->how == MISSING) t->data = NULL;
  if (w->how == MOVED) t->data = (char *)t->data + w->value;
  if (w->how >= STRIDE_B && w->how <= STRIDE_LAST) t->stride[w->how - STRIDE_B] = w->value;
}

/* No output has been touched: all are the NaN they began as. */
static void untouched(const launch *l) {
  const fg_recipe *r = l->problem->recipe;
  for (int i = 0; i < r->n_tensors; i++) {
    if (!r->tensor[i].output || !l->problem->buffer[i]) continue;
    const unsigned char *bytes = l->problem->buffer[i];
    for (size_t j = 0; j < l->problem->bytes[i]; j++) ck_assert_uint_eq(bytes[j], 0xff);
  }
}

static void refuse(const kernel *k, const wrong *w) {
  launch l = launch_new(k, shape, 1);
  fg_shape spoilt = shape;
  int i = *w->name ? fg_problem_find(l.problem, w->name) : 0;
  if (i < 0 || (w->how == MISSING && l.problem->recipe->tensor[i].optional)) {
    launch_free(&l);
    return;
  }
  if (*w->name)
    spoil_tensor(&l, w);
  else if (w->how != NO_WORKSPACE)
    spoil_shape(&spoilt, w);
  void *workspace = w->how == NO_WORKSPACE ? NULL : l.problem->workspace;
  fg_status status = fg_module_launch(k->module, &spoilt, &l.problem->args, workspace, NULL);
  ck_assert_msg(status == FG_EARGUMENT, "%s: \"%s\" expected", k->name, w->says);
  ck_assert_str_eq(fg_error(), w->says);
  untouched(&l);
  launch_free(&l);
}

/* What copies 16 bytes at a time, from or to tensors of the spec's dtype, wants them aligned; and
 * nothing else of the others than what every kernel does. */
static const wrong aligned[] = {
    {"q", MOVED, 2, "q: its address is not a multiple of 16"},
    {"q", MOVED, 8, "q: its address is not a multiple of 16"},
    {"k", MOVED, 1, "k: its address is not a multiple of 16"},
    {"v", MOVED, 4, "v: its address is not a multiple of 16"},
    {"o", MOVED, 8, "o: its address is not a multiple of 16"},
    {"do", MOVED, 8, "do: its address is not a multiple of 16"},
    {"dq", MOVED, 8, "dq: its address is not a multiple of 16"},
    {"dk", MOVED, 8, "dk: its address is not a multiple of 16"},
    {"dv", MOVED, 8, "dv: its address is not a multiple of 16"},
    {"q", STRIDE_H, 12, "q: a stride of 12 elements is not a multiple of 16 bytes"},
    {"k", STRIDE_N, 17, "k: a stride of 17 elements is not a multiple of 16 bytes"},
    {"v", STRIDE_B, 116, "v: a stride of 116 elements is not a multiple of 16 bytes"},
    {"o", STRIDE_N, 36, "o: a stride of 36 elements is not a multiple of 16 bytes"},
    {"do", STRIDE_H, 9, "do: a stride of 9 elements is not a multiple of 16 bytes"},
    {"dq", STRIDE_N, 33, "dq: a stride of 33 elements is not a multiple of 16 bytes"},
    {"dk", STRIDE_B, 113, "dk: a stride of 113 elements is not a multiple of 16 bytes"},
    {"dv", STRIDE_H, 10, "dv: a stride of 10 elements is not a multiple of 16 bytes"},
    {"bias", MOVED, 2, "bias: its address is not a multiple of 4"},
    {"dbias", MOVED, 2, "dbias: its address is not a multiple of 4"},
    {"lse", MOVED, 2, "lse: its address is not a multiple of 4"},
    {"q", STRIDE_LAST, 2, "q: its last stride is 2, not 1"},
    {"v", STRIDE_N, -8, "v: a stride is negative"},
    {"dq", STRIDE_B, 0, "dq: a stride is 0: its elements would be written twice"},
};

TEST_LOOP(test_aligned, 3) {
  static const char *const words[] = {
      "head_dim=8 bias=true bias_dtype=f32 family=mma",
      "pass=backward head_dim=8 bias=grad bias_dtype=f32 family=mma",
      "pass=backward head_dim=8 bias=grad bias_dtype=f32 "
      "deterministic=true family=mma"};
  kernels made = kernels_some(_i, "%s", words[_i]);
  ck_assert_int_eq(made.n, 1);
  ck_assert_int_eq(made.list->source->recipe.align, 16);
  for (size_t i = 0; i < sizeof aligned / sizeof *aligned; i++) refuse(made.list, &aligned[i]);
  kernels_free(&made);
}

TEST(test_refused) {
  kernels made = kernels_new("pass=backward head_dim=8 bias=grad bias_dtype=f32 block_q=4");
  for (int i = 0; i < LIST; i++) refuse(made.list, &list[i]);
  kernels_free(&made);
  made = kernels_new("head_dim=8 bias=true bias_dtype=f32 block_q=4");
  for (int i = 0; i < LIST; i++)
    if (list[i].how != NO_WORKSPACE) refuse(made.list, &list[i]);
  kernels_free(&made);
}

/* What says where sequences are: needed by its layout, and refused by others. */
/* What hot calls ask of a shape, and what has the reasons, agree wherever an align is less than
 * 2^30: any two extents of any kind with any two of the numbers. */
TEST_LOOP(test_good_shapes, FG_KINDS) {
  static const int64_t numbers[] = {
      INT64_MIN, -1, 0, 1, 2, 3, 256, 257, FG_LENGTH_MAX - 1, FG_LENGTH_MAX, INT64_MAX};
  enum { NUMBERS = sizeof numbers / sizeof *numbers, PAIRS = NUMBERS * NUMBERS };
  const fg_kind *kind = &fg_kinds[_i];
  const fg_form_rule rule = fg_form_rule_of(kind->form);
  int good = 0;
  for (int at = 0; at < FG_EXTENTS * FG_EXTENTS * PAIRS; at++) {
    const fg_extent_row *x = &fg_extents[at / PAIRS / FG_EXTENTS];
    const fg_extent_row *y = &fg_extents[at / PAIRS % FG_EXTENTS];
    fg_shape s = {.align = at % 5 - 1};
    for (const char *letter = kind->form->letters; *letter; letter++)
      fg_extent_set(fg_extent_of(*letter), &s, 2);
    fg_extent_set(x, &s, numbers[at % PAIRS / NUMBERS]);
    fg_extent_set(y, &s, numbers[at % NUMBERS]);
    const bool is_good = fg_shape_is_good(&rule, &s);
    ck_assert_msg(is_good == (fg_shape_check_of(kind, &s) == FG_OK), "%s %s = %lld, %s = %lld",
                  kind->name, x->name, (long long)fg_extent_get(x, &s), y->name,
                  (long long)fg_extent_get(y, &s));
    good += is_good;
  }
  ck_assert_int_gt(good, PAIRS);
}

TEST(test_layout) {
  static const struct {
    const char *words, *name, *says;
  } layouts[] = {
      {"q_layout=packed", "starts_q", "starts_q is missing"},
      {"kv_layout=packed", "starts_k", "starts_k is missing"},
      {"kv_layout=cached", "used_k", "used_k is missing"},
      {"kv_layout=paged", "table", "table is missing"},
      {"mask=full", "starts_q",
       "starts_q is given, but the kernel has no such tensor: its spec has q_layout=dense, "
       "kv_layout=dense, slices=false, shard=false"},
      {"kv_layout=packed", "starts_q",
       "starts_q is given, but the kernel has no such tensor: its spec has q_layout=dense, "
       "kv_layout=packed, slices=false, shard=false"},
      {"q_layout=packed kv_layout=cached", "table",
       "table is given, but the kernel has no such tensor: its spec has q_layout=packed, "
       "kv_layout=cached, slices=false, shard=false"},
      {"slices=true", "used_k", "b = 2: with slices=true all tokens are of one batch, b = 1"},
  };
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    kernels made = kernels_new("head_dim=8 block_q=4 %s", layouts[i].words);
    launch l = launch_new(made.list,
                          (fg_shape){.b = 2,
                                     .h = 2,
                                     .hk = 2,
                                     .nq = 5,
                                     .nk = 8,
                                     .tokens_q = 10,
                                     .tokens_k = 16,
                                     .pages = 4,
                                     .page = 4},
                          1);
    const bool is_missing = launch_has(&l, layouts[i].name);
    const fg_recipe_tensor t = {.argument = fg_argument_find(&fg_kinds[0], layouts[i].name),
                                .slot = -1};
    ck_assert_ptr_nonnull(t.argument);
    fg_args_tensor_of(&l.problem->args, &t)->data = is_missing ? NULL : l.problem->buffer[0];
    ck_assert_int_eq(fg_problem_run(l.problem, made.list->module), FG_EARGUMENT);
    ck_assert_str_eq(fg_error(), layouts[i].says);
    untouched(&l);
    launch_free(&l);
    kernels_free(&made);
  }
}

static const fg_map *find_map(const fg_recipe *r, const char *name) {
  int i = 0;
  while (i < r->n_maps && strcmp(r->map[i].name, name) != 0) i++;
  ck_assert_int_lt(i, r->n_maps);
  return &r->map[i];
}

/* A box of pages ends where pages end, and tiles of 128 keys. Rows of all pages follow each other.
 */
TEST(test_maps_of_pages) {
  static const int64_t pages[][2] = {{1, 1}, {3, 1}, {12, 4}, {16, 16}, {48, 16}, {512, 128}};
  kernels made = kernels_new("family=wgmma head_dim=64 kv_layout=paged block_q=128 block_kv=128");
  const fg_recipe *r = &made.list->source->recipe;
  for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
    const int64_t page = pages[i][0];
    const fg_shape of = {.b = 1, .h = 1, .hk = 1, .nq = 5, .nk = 10, .pages = 11, .page = page};
    launch l = launch_new(made.list, of, 1);
    fg_tensor *k = &l.problem->args.k;
    fg_map_view view;
    if (page == 1) k->stride[2] = -7;
    const int64_t rows = page == 1 ? 1 : k->stride[0] / k->stride[2];
    GOOD(fg_map_view_of(r, find_map(r, "k_map"), &of, &l.problem->args, NULL, &view));
    ck_assert_int_eq(view.box[1], pages[i][1]);
    ck_assert_uint_eq(view.extent[2], (uint64_t)(10 * rows + page + 1));
    ck_assert_int_eq(
        fg_map_cache_rows(r, &r->tensor[find_map(r, "k_map")->tensor], &of, &l.problem->args),
        rows);
    GOOD(fg_map_view_of(r, find_map(r, "k_row_map"), &of, &l.problem->args, NULL, &view));
    ck_assert_int_eq(view.box[1], 1);
    launch_set_ints(&l, "used_k", &(int64_t){0});
    launch_run(&l, 0);
    if (page > 1) {
      k->stride[0] += 8;
      ck_assert_int_eq(fg_problem_run(l.problem, made.list->module), FG_EARGUMENT);
      ck_assert_str_eq(fg_error(), "k: its first stride is no multiple of its third, or too long; "
                                   "family=mma,decode,simt asks for a kernel that takes it");
    }
    launch_free(&l);
  }
  const fg_shape none = {.b = 1, .h = 1, .hk = 1, .nq = 5, .page = 16};
  launch l = launch_new(made.list, none, 1);
  fg_map_view view;
  GOOD(fg_map_view_of(r, find_map(r, "k_map"), &none, &l.problem->args, NULL, &view));
  ck_assert_uint_eq(view.extent[2], 0);
  launch_run(&l, 0);
  launch_free(&l);
  kernels_free(&made);
}

/* More blocks than a grid can have. */
TEST(test_grid) {
  kernels made = kernels_new("head_dim=8 block_q=4");
  const fg_step *step = &made.list->source->recipe.step[0];
  uint32_t grid[3];
  bool none;
  fg_shape large = {.b = 1, .h = 32, .hk = 32, .nq = 1 << 28, .nk = 1};
  ck_assert_int_eq(fg_step_grid(step, &large, grid, &none), FG_EARGUMENT);
  ck_assert_str_eq(fg_error(), "attn_fwd: the shape needs 2147483648 blocks; at most 2147483647");
  large.nq -= 4;
  GOOD(fg_step_grid(step, &large, grid, &none));
  ck_assert_uint_eq(grid[0], INT32_MAX - 31);
  large.b = INT64_C(1) << 29;
  large.h = large.hk = INT64_C(1) << 29;
  ck_assert_int_eq(fg_step_grid(step, &large, grid, &none), FG_EARGUMENT);
  kernels_free(&made);
}

/* Strides along axes of one element, and pointers and strides of nothing, are of no consequence. */
TEST_LOOP(test_accepted, 2) {
  kernels made = kernels_new("head_dim=8 bias=true bias_dims=[q] %s",
                             _i ? "family=mma block_kv=96" : "family=simt block_q=4");
  ck_assert_int_eq(made.n, 1);
  launch l = launch_new(made.list, (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 5, .nk = 7}, 1);
  fg_args *a = &l.problem->args;
  a->q.stride[0] = a->k.stride[1] = a->o.stride[1] = -7;
  a->bias.stride[0] = a->bias.stride[1] = a->bias.stride[3] = INT64_MAX;
  launch_run(&l, 0);
  launch_free(&l);
  l = launch_new(made.list, (fg_shape){.b = 1, .h = 1, .hk = 1, .nq = 5, .nk = 0}, 1);
  l.problem->args.k = l.problem->args.v = (fg_tensor){0};
  launch_run(&l, 0);
  launch_free(&l);
  /* o is given, contiguous in the order b h n d, and has no rows: its heads lie 0 apart */
  l = launch_new(made.list, (fg_shape){.b = 2, .h = 2, .hk = 1, .nq = 0, .nk = 7}, 1);
  l.problem->args.o = (fg_tensor){l.problem->args.k.data, {0, 0, 8, 1}};
  launch_run(&l, 0);
  launch_free(&l);
  kernels_free(&made);
}

/* A buffer for [1, 1, nq, nk] under the default bias_dims, by which dbias has b h nq nk elements:
 * the library cannot know, but memory that ends where the buffer does can. */
TEST_LOOP(test_small_dbias, 2) {
  const fg_shape many = {.b = 2, .h = 2, .hk = 1, .nq = 45, .nk = 70};
  kernels made =
      kernels_new("pass=backward bias=grad head_dim=64 family=%s", _i ? "mma" : "simt block_q=16");
  const size_t bytes = 45 * 70 * sizeof(uint16_t);
  for (int i = 0; i < made.n; i++) {
    launch l = launch_new(&made.list[i], many, 1);
    fg_tensor *dbias = &l.problem->args.dbias;
    GOOD(fg_host_guarded_new(bytes, 0, &dbias->data));
    const int64_t stride[4] = {45 * 70, 45 * 70, 70, 1};
    memcpy(dbias->stride, stride, sizeof stride);
    ck_assert_int_eq(fg_problem_run(l.problem, made.list[i].module), FG_ETEMPLATE);
    const char *said = strstr(fg_error(), "access to unmapped memory: byte ");
    ck_assert_msg(said && strstr(said, " of tensor dbias"), "%s", fg_error());
    fg_host_guarded_free(dbias->data, bytes);
    launch_free(&l);
  }
  kernels_free(&made);
}
