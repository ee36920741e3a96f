/* t_cuda_launch.c - what the driver is given: tensor maps by the recipe and the arguments, launch
 * attributes by the step. The driver is the tests' own. */
#include "cuda/cuda_launch.h"
#include "device/tensor_map.h"
#include "fake_cuda.h"
#include "launch.h"
#include "status.h"
#include "suite.h"

#include <string.h>

static const char text[] =
    "head_dim 128 64\nalign 16\n"
    "tensor q in bf16 [b, nq, h, 128]\n"
    "tensor k in bf16 [b, nk, hk, 128]\n"
    "tensor v in f16 [b, nk, hk, 64]\n"
    "tensor bias in f16 [1, h, nq, nk]\n"
    "map bias_map bias 64 16 swizzle 128\n"
    "map q_map q 64 128 2 swizzle 128\n"
    "map v_map v 32 256 swizzle 64\n"
    "launch plain grid b, 1, 1 threads 32 shared 16 registers 80 work nk\n"
    "launch both grid 4, h, 1 threads 384 shared 99 registers 168 cluster 2 resident 1 early work "
    "nk\n"
    "launch early grid b, 1, 1 threads 32 shared 0 registers 80 early work nk\n";
static const fg_shape shape = {.b = 2, .h = 6, .hk = 3, .nq = 100, .nk = 70};

static fg_recipe recipe;
static const fg_cuda *cuda;
static fg_args args;
static _Alignas(64) char params[FG_PARAMS_MAX];

static void enter(void) {
  ck_assert_msg(fg_recipe_parse(text, &recipe) == FG_OK, "%s", fg_error());
  ck_assert_int_eq(fg_cuda_load(&cuda), FG_OK);
  args = (fg_args)FG_INIT(fg_args);
  args.q = (fg_tensor){(void *)256, {76800, 128, 768, 1}};
  args.v = (fg_tensor){(void *)512, {13440, 64, 192, 1}};
  args.bias = (fg_tensor){(void *)1024, {-5, 7200, 72, 1}};
}

static fg_status encode(const fg_shape *s) {
  return fg_cuda_encode_maps(cuda, &recipe, s, &args, NULL, params);
}

/* The map that was made last. */
static void is_map(const struct fake_map *want) {
  const struct fake_map *m = &fake_cuda.map;
  ck_assert(m->rank == want->rank && m->base == want->base && m->type == want->type);
  ck_assert(m->swizzle == want->swizzle && m->l2 == CU_TENSOR_MAP_L2_256);
  for (int i = 0; i < 5; i++)
    ck_assert_msg(m->extent[i] == want->extent[i] && m->box[i] == want->box[i], "axis %d: %llu, %u",
                  i, m->extent[i], m->box[i]);
  for (int i = 0; i < 4; i++) ck_assert_int_eq((long long)m->stride[i], (long long)want->stride[i]);
}

TEST(maps_of_both_ranks) {
  ck_assert_int_eq(encode(&shape), FG_OK);
  is_map(&(struct fake_map){.rank = 4,
                            .base = (void *)512,
                            .type = CU_TENSOR_MAP_F16,
                            .swizzle = 2,
                            .extent = {64, 70, 3, 2},
                            .stride = {384, 128, 26880},
                            .box = {32, 256, 1, 1}});
  for (int i = 0; i < 3 * FG_MAP_BYTES; i++) ck_assert_int_eq(params[i], 0x5a);
  ck_assert_int_eq(params[3 * FG_MAP_BYTES], 0);
  recipe.n_maps = 2;
  ck_assert_int_eq(encode(&shape), FG_OK);
  is_map(&(struct fake_map){.rank = 5,
                            .base = (void *)256,
                            .type = CU_TENSOR_MAP_BF16,
                            .swizzle = 3,
                            .extent = {64, 100, 2, 6, 2},
                            .stride = {1536, 128, 256, 153600},
                            .box = {64, 128, 2, 1, 1}});
}

/* A number of one byte is no float of TMA's. */
TEST(maps_of_bytes) {
  static const char bytes[] =
      "head_dim 128 64\nalign 16\n"
      "tensor v in e4m3 [b, nk, hk, 64]\n"
      "map v_map v 64 128 swizzle 64\n"
      "launch plain grid b, 1, 1 threads 32 shared 16 registers 80 work nk\n";
  ck_assert_msg(fg_recipe_parse(bytes, &recipe) == FG_OK, "%s", fg_error());
  ck_assert_int_eq(encode(&shape), FG_OK);
  is_map(&(struct fake_map){.rank = 4,
                            .base = (void *)512,
                            .type = CU_TENSOR_MAP_U8,
                            .swizzle = 2,
                            .extent = {64, 70, 3, 2},
                            .stride = {192, 64, 13440},
                            .box = {64, 128, 1, 1}});
}

/* What the kernel is told of the map of the bias. */
static int made(void) {
  static char filled[FG_PARAMS_MAX];
  int32_t value = -1;
  ck_assert_msg(fg_params_fill(&recipe, &shape, &args, NULL, filled) == FG_OK, "%s", fg_error());
  for (int i = 0; i < recipe.n_parameters; i++)
    if (recipe.parameter[i].from == FG_FROM_MADE)
      memcpy(&value, filled + recipe.parameter[i].offset, sizeof value);
  return value;
}

/* Of an input only where it is aligned: else there is none, and the kernel is told. */
TEST(maps_of_inputs) {
  static const fg_tensor others[] = {{(void *)1032, {0, 7200, 72, 1}},
                                     {(void *)1024, {0, 7200, 76, 1}},
                                     {(void *)1024, {0, 7204, 72, 1}},
                                     {(void *)1024, {0, 0, 72, 1}}};
  recipe.n_maps = 1;
  ck_assert_int_eq(encode(&shape), FG_OK);
  is_map(&(struct fake_map){.rank = 4,
                            .base = (void *)1024,
                            .type = CU_TENSOR_MAP_F16,
                            .swizzle = 3,
                            .extent = {70, 100, 6, 1},
                            .stride = {144, 14400, 128},
                            .box = {64, 16, 1, 1}});
  ck_assert_int_eq(made(), 1);
  memset(params, 0, sizeof params);
  for (int i = 0; i < 4; i++) {
    args.bias = others[i];
    ck_assert_int_eq(encode(&shape), FG_OK);
    ck_assert_int_eq(params[0], 0);
    ck_assert_int_eq(made(), 0);
  }
}

/* Axes of one element may have any stride, tensors of none no address. */
TEST(nothing_is_a_map_too) {
  const fg_shape one = {.b = 1, .h = 1, .hk = 1, .nq = 1, .nk = 0};
  args.q = (fg_tensor){(void *)256, {7, -3, 1LL << 60, 1}};
  args.v = (fg_tensor){NULL, {0, 0, 0, 0}};
  ck_assert_int_eq(encode(&one), FG_OK);
  ck_assert_ptr_nonnull(fake_cuda.map.base);
  for (unsigned i = 0; i < 4; i++) ck_assert_int_gt((long long)fake_cuda.map.extent[i], 0);
  recipe.n_maps = 2;
  ck_assert_int_eq(encode(&one), FG_OK);
  for (unsigned i = 0; i < 4; i++)
    ck_assert(fake_cuda.map.stride[i] % 16 == 0 && fake_cuda.map.stride[i] < 1ull << 40);
}

TEST(refused_maps) {
  args.bias.data = (void *)1032; /* which has none */
  args.q.stride[0] = 1LL << 39;
  FAILS_AS(FG_EARGUMENT, "q: a stride of 1099511627776 bytes is beyond TMA's 2^40", encode(&shape));
  args.q.stride[0] = 76800;
  fake_cuda.call = "cuTensorMapEncodeTiled", fake_cuda.result = 1, fake_cuda.times = 1;
  FAILS_AS(FG_EARGUMENT, "q: a tensor map of it: CUDA_ERROR_1 (an error of the test)",
           encode(&shape));
  fake_cuda.result = 700, fake_cuda.times = 1;
  ck_assert_int_eq(encode(&shape), FG_ECUDA);
}

/* Caches whose rows a ragged map numbers one behind the other. */
TEST(refused_caches) {
  static const char ragged[] = "layout dense cached\nhead_dim 64 64\nalign 16\n"
                               "tensor k in bf16 [pages, nk, hk, 64]\n"
                               "map k_map k 64 128 swizzle 128 ragged\n"
                               "launch f grid b, 1, 1 threads 32 shared 0 registers 80 work nk\n";
  static const struct {
    int64_t pages, cache, row;
  } list[] = {{2, 64 * 70 + 8, 64},
              {2, 64 * 70, 0},
              {2, (int64_t)64 << 30, 64},
              {1 << 20, (int64_t)64 << 11, 64},
              {(1 << 29) + 1, (int64_t)64 << 35, 64}}; /* 2^64 rows: none, in 64 bits */
  fg_shape caches = {.b = 2, .h = 2, .hk = 1, .nq = 1, .nk = 70, .pages = 2};
  ck_assert_msg(fg_recipe_parse(ragged, &recipe) == FG_OK, "%s", fg_error());
  args.k = (fg_tensor){(void *)256, {64 * 72, 64, 64, 1}};
  ck_assert_msg(encode(&caches) == FG_OK, "%s", fg_error());
  ck_assert_uint_eq(fake_cuda.map.extent[2], 72 + 70 + 1);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    caches.pages = list[i].pages;
    args.k.stride[0] = list[i].cache, args.k.stride[2] = list[i].row;
    ck_assert_msg(encode(&caches) == FG_EARGUMENT, "%d", (int)i);
    ck_assert_str_eq(fg_error(), "k: its first stride is no multiple of its third, or too long; "
                                 "family=mma,decode,simt asks for a kernel that takes it");
  }
}

static void launch(int step) {
  uint32_t grid[3];
  bool empty;
  fake_cuda.attributes = 99;
  ck_assert_int_eq(fg_step_grid(&recipe.step[step], &shape, grid, &empty), FG_OK);
  ck_assert_int_eq(
      fg_cuda_launch(cuda, (CUfunction)&recipe, &recipe.step[step], grid, NULL, params), FG_OK);
}

TEST(attributes_of_a_launch) {
  launch(0);
  ck_assert_int_eq((int)fake_cuda.attributes, 99); /* not by the extended call */
  launch(1);
  ck_assert_int_eq((int)fake_cuda.attributes, 2);
  ck_assert_int_eq(fake_cuda.attribute[0].id, CU_LAUNCH_CLUSTER);
  ck_assert_int_eq((int)fake_cuda.attribute[0].value.cluster[0], 2);
  ck_assert_int_eq((int)fake_cuda.attribute[0].value.cluster[2], 1);
  ck_assert_int_eq(fake_cuda.attribute[1].id, CU_LAUNCH_EARLY);
  ck_assert_int_eq(fake_cuda.attribute[1].value.allow, 1);
  launch(2);
  ck_assert_int_eq((int)fake_cuda.attributes, 1);
  ck_assert_int_eq(fake_cuda.attribute[0].id, CU_LAUNCH_EARLY);
  ck_assert_int_eq(cuda->version, 13000);
  ((fg_cuda *)cuda)->version = 12020; /* a driver whose graphs do not take it */
  launch(2);
  ck_assert_int_eq((int)fake_cuda.attributes, 99);
}

TEST(clusters_at_a_time) {
  int clusters = 0;
  fake_cuda.clusters = 15;
  ck_assert_int_eq(fg_cuda_clusters(cuda, (CUfunction)&recipe, &recipe.step[1], &clusters), FG_OK);
  ck_assert_int_eq(clusters, 15);
  ck_assert_int_eq((int)fake_cuda.grid[0], 2);
  ck_assert_int_eq(fake_cuda.attribute[0].id, CU_LAUNCH_CLUSTER);
  ck_assert_int_eq((int)fake_cuda.attribute[0].value.cluster[0], 2);
}

/* What a part of a GPU cannot run is a plan that is not taken, no launch that fails. */
TEST(no_room_for_a_cluster) {
  int clusters = 0;
  fake_cuda.clusters = 0;
  FAILS(FG_ECOMPILER, "the GPU has no room for a cluster of 2 of its blocks",
        fg_cuda_clusters(cuda, (CUfunction)&recipe, &recipe.step[1], &clusters));
  fake_cuda.clusters = 4;
  fake_cuda.call = "cuOccupancyMaxActiveClusters", fake_cuda.result = 912, fake_cuda.times = 1;
  FAILS(FG_ECOMPILER, "CUDA_ERROR_912",
        fg_cuda_clusters(cuda, (CUfunction)&recipe, &recipe.step[1], &clusters));
}

TEST(whole_clusters) {
  fg_step *step = &recipe.step[1];
  uint32_t grid[3] = {100, 1, 1};
  bool empty;
  fg_step_limit(step, 7, 0, grid);
  ck_assert_int_eq((int)grid[0], 6);
  fg_step_limit(step, 1, 0, grid); /* one multiprocessor is less than a cluster */
  ck_assert_int_eq((int)grid[0], 2);
  grid[0] = 100;
  fg_step_limit(step, 7, 2, grid); /* the GPU has room for two clusters at a time */
  ck_assert_int_eq((int)grid[0], 4);
  grid[0] = 100;
  fg_step_limit(&recipe.step[0], 7, 0, grid);
  ck_assert_int_eq((int)grid[0], 100);
  step->cluster = 8;
  FAILS_AS(FG_EBUG, "both: 4 blocks along x are not whole clusters of 8",
           fg_step_grid(step, &shape, grid, &empty));
}

TEST_FIXTURE(enter, NULL)
