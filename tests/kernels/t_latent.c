/* t_latent.c - attention whose values are the first columns of its keys, latent=true: by wgmma,
 * which has K in shared memory once for both products, and by the families that read it as they
 * read other keys. On the host device, or on a GPU by the gpu label. */
#include "launch.h"
#include "launch_sequences.h"

/* Rows of a cluster: 64, of one block; 128, of two. */
#define ONCE "family=wgmma stages=2 block_q=64,128 latent=true "
#define MLA  ONCE "head_dim=576/512 "
#define MINI ONCE "head_dim=288/256 "

/* Heads of a query that fill the rows of a tile, leave some over, and are more; rows of several
 * queries; several key/value heads; keys that clusters divide, in parts of few tiles of rows, and
 * in equal stretches; an odd number of tiles and one alone; rows that see no key; pages that hold a
 * tile, and less. */
static const struct numbers {
  const char *words;
  fg_shape shape;
} numbers[] = {
    {MLA, SHAPE(1, 128, 1, 1, 700, 0)},
    {MLA "mask=causal", SHAPE(1, 16, 1, 4, 900, 0)},
    {MLA "dtype=f16 kv_layout=cached mask=causal", SHAPE(3, 16, 1, 3, 500, 0)},
    {MLA "kv_layout=paged mask=causal", SHAPE(3, 32, 1, 2, 600, 0)},
    {MINI, SHAPE(1, 128, 1, 1, 1, 0)},
    {MINI, SHAPE(1, 3, 1, 1, 1300, 0)},
    {MINI "mask=causal", SHAPE(2, 6, 2, 3, 77, 0)},
    {MINI "mask=causal", SHAPE(1, 150, 1, 2, 300, 0)},
    {MINI "mask=causal", SHAPE(1, 48, 1, 3, 1500, 0)},
    {MINI "mask=causal", SHAPE(1, 2, 1, 50, 17, 0)},
    {MINI "mask=window(300,0)", SHAPE(1, 4, 2, 3, 1300, 0)},
    {MINI "mask=window(70,3)", SHAPE(2, 2, 1, 90, 200, 0)},
    {MINI "inputs.w=i32[b] mask=p-k<w[b]%300", SHAPE(3, 4, 1, 3, 400, 0)},
    {MINI "score=s*s", SHAPE(2, 4, 1, 3, 200, 0)},
    {MINI "score=s+x[q,k] inputs.x=f32[q,k]", SHAPE(2, 4, 1, 3, 200, 0)},
    {MINI "score=s+0.01*(k-p) mask=causal", SHAPE(1, 4, 1, 3, 400, 0)},
    {MINI "sink=true mask=causal", SHAPE(1, 8, 2, 9, 1100, 0)},
    {MINI "sink=false,true", SHAPE(2, 4, 2, 2, 0, 0)},
    {MINI "o_dtype=f32 normalizer=retention", SHAPE(2, 5, 1, 3, 300, 0)},
    {MINI "normalizer=sigmoid,none", SHAPE(2, 5, 1, 3, 300, 0)},
    {MINI "kv_layout=cached", SHAPE(5, 2, 1, 1, 900, 0)},
    {MINI "kv_layout=paged mask=causal", SHAPE(5, 6, 2, 2, 900, 0)},
    {MINI "q_layout=packed kv_layout=packed", SHAPE(6, 4, 2, 3, 500, 0)},
    {MINI "q_layout=packed kv_layout=paged mask=causal", SHAPE(6, 3, 1, 4, 500, 0)},
    /* as other keys are read */
    {"family=mma,simt latent=true head_dim=96/64 mask=causal", SHAPE(2, 4, 2, 3, 200, 0)},
    {"family=decode latent=true head_dim=96/64 kv_layout=paged", SHAPE(2, 4, 2, 1, 300, 0)},
    {"family=wgmma latent=true head_dim=96/64,320/128 stages=2,8", SHAPE(2, 4, 2, 70, 200, 0)},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers, SEEDS = 3 };

TEST_TENTH(numbers_are_right, NUMBERS) {
  const struct numbers *row = &numbers[_i];
  kernels made = kernels_new("%s", row->words);
  ck_assert_int_gt(made.n, 0);
  for (int i = 0; i < made.n; i++)
    for (uint64_t seed = 0; seed < SEEDS; seed++)
      kernel_verify(&made.list[i], &(verify_case){.shape = row->shape,
                                                  .style = seed == 1 ? VERIFY_LARGE : VERIFY_PLAIN,
                                                  .sm_margin = seed == 2,
                                                  .again = seed < 1,
                                                  .seed = seed});
  kernels_free(&made);
}

/* v is k's view or is not given. */
TEST(v_is_in_k) {
  kernels made = kernels_new("family=simt latent=true head_dim=96/64");
  launch l = launch_new(made.list, (fg_shape)SHAPE(2, 4, 2, 3, 20, 0), 1);
  fg_args *args = &l.problem->args;
  ck_assert_ptr_null(args->v.data);
  args->v = args->k;
  launch_run(&l, 1);
  args->v.data = (char *)args->k.data + 64;
  ck_assert_int_eq(fg_launch_check(l.problem->recipe, &l.problem->shape, args), FG_EARGUMENT);
  ck_assert_str_eq(fg_error(), "v: with latent=true it is the first columns of k: its address and "
                               "strides are k's, or it is not given");
  args->v = args->k;
  args->v.stride[2] += 8;
  ck_assert_int_eq(fg_launch_check(l.problem->recipe, &l.problem->shape, args), FG_EARGUMENT);
  launch_free(&l);
  kernels_free(&made);
}

TEST_BEGIN { kernel_device(); }
