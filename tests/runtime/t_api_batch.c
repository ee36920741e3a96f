/* t_api_batch.c - which plan is chosen where bits are not to depend on the sequences beside one. */
#include "api_case.h"

static const fg_shape alone = SHAPE(1, 4, 1, 1, 40, 0), many = SHAPE(64, 4, 1, 1, 100000, 0);

/* The kernels of both shapes, by the words, are the same. */
static int is_same(const char *words) {
  fg_context *context = api_open("cache");
  fg_op *op = api_define(context, words);
  const int same = api_select(op, alone) == api_select(op, many);
  fg_close(context);
  return same;
}

TEST(plan_is_of_one_sequence) {
  ck_assert(!is_same("head_dim=64"));
  ck_assert(is_same("head_dim=64 batch_invariant=true"));
  ck_assert(!is_same("head_dim=64 mask=window(1023,0)"));
  ck_assert(is_same("head_dim=64 mask=window(1023,0) batch_invariant=true"));
}

/* One row sees all keys of a causal mask, whatever their number; the bits of a kernel without the
 * mask may be others than those of one with it. */
TEST(mask_stays) {
  fg_context *context = api_open("cache");
  fg_info info = FG_INIT(fg_info);
  fg_op *op = api_define(context, "head_dim=64 mask=causal batch_invariant=true");
  GOOD(fg_kernel_info(api_select(op, alone), &info));
  ck_assert_msg(strstr(info.name, "-causal-inv.") != NULL, "%s", info.name);
  fg_close(context);
}

/* Of packed rows only a longest sequence is known. */
TEST(longest_sequence_does_not_count) {
  fg_context *context = api_open("cache");
  fg_op *op = api_define(
      context, "head_dim=64 mask=causal q_layout=packed kv_layout=packed batch_invariant=true");
  fg_shape few = alone, long_ones = many;
  few.tokens_q = 3, few.tokens_k = 100;
  long_ones.nq = 5000, long_ones.tokens_q = 40000, long_ones.tokens_k = 100000;
  ck_assert_ptr_eq(api_select(op, few), api_select(op, long_ones));
  fg_close(context);
}

TEST_FIXTURE(api_enter, api_leave)
