/* t_mma_order.c - order in the tensor-core templates: every meeting of threads and every step of an
 * asynchronous copy is dropped in turn, every wait is tried one too weak; the host device reports
 * each, in a kernel of each kind that has it. So none is there that need not be. */
#include "mma_planted.h"

#define CAUSAL   "mask=causal "
#define BIASED   CAUSAL "bias=true "
#define F_LINEAR F_TWO CAUSAL ";" F_ONE CAUSAL ";" F_WIDE CAUSAL
/* Of k and v of e4m3. */
#define F_BYTES  "family=mma head_dim=48/64 warps=4 block_kv=64 block_q=64 stages=2 kv_dtype=e4m3"
#define F_ALL    F_LINEAR ";" F_TWO BIASED ";" F_WIDE BIASED ";" F_BYTES
#define B_LINEAR B_PARTS CAUSAL ";" B_PAIRS CAUSAL
#define B_ALL    B_LINEAR ";" B_EIGHT BIASED ";" B_PAIRS BIASED
#define B_SYNC   B_ALL ";" B_PARTS CAUSAL "deterministic=true;" B_PAIRS CAUSAL "deterministic=true"
/* The passes that own rows: dQ, and the gradient of an input over axes of each kind, and by
 * distance. */
#define R_DQ B_PAIRS CAUSAL "deterministic=true"
#define R_ALL                                                                                      \
  R_DQ ";" B_PAIRS CAUSAL                                                                          \
       "deterministic=true bias=grad bias_dims=[b],[q],[k],[q,k];" B_PAIRS CAUSAL                  \
       "deterministic=true score=relative(t) inputs.t=f32[h,nq+nk-1]grad"

static const planted_bug bugs[] = {
    {FORWARD, "block_sync();", "(void)0;", .words = F_ALL, .fault = ORDER},
    {FORWARD, "cp_async_commit();", "(void)0;", .words = F_ALL, .fault = ORDER},
    {FORWARD, "cp_async_wait_0();", "(void)0;", .words = F_ALL, .fault = ORDER},
    {FORWARD, "cp_async_wait_0", "cp_async_wait_1", .words = F_ALL, .fault = ORDER},
    {"mma.forward.wait_for_stage", "cp_async_wait_$(plan.stages - 2)()", "(void)0", .words = F_ALL,
     .fault = ORDER},
    {"mma.forward.wait_for_stage", "stages - 2", "stages - 1", .words = F_ALL, .fault = ORDER},
    {BACKWARD, "block_sync();", "(void)0;", .words = B_SYNC, .fault = ORDER, AT_WORK},
    {BACKWARD, "cp_async_commit();", "(void)0;", .words = B_ALL, .fault = ORDER, AT_WORK},
    {BACKWARD, "cp_async_wait_0();", "(void)0;", .words = B_ALL, .fault = ORDER, AT_WORK},
    {BACKWARD, "cp_async_wait_0", "cp_async_wait_1", .words = B_ALL, .fault = ORDER, AT_WORK},
    {ROWS, "block_sync();", "(void)0;", .words = R_ALL ";" R_SHARED CAUSAL, .fault = ORDER},
    {ROWS, "cp_async_commit();", "(void)0;", .words = R_ALL, .fault = ORDER},
    {ROWS, "cp_async_wait_0();", "(void)0;", .words = R_ALL, .fault = ORDER},
    {ROWS, "cp_async_wait_0", "cp_async_wait_1", .words = R_ALL, .fault = ORDER},
    /* In the main kernel of backward this one stands behind a barrier; nowhere else. */
    {TILES, "warp_sync(ALL_LANES);", "(void)0;", .words = F_TWO CAUSAL ";" R_DQ,
     .fault = "no warp_sync or barrier orders|never written"},
};

/* Stages that are mistaken for each other. */
static const planted_bug stages[] = {
    {"mma.forward.add_values", "stage + 1", "stage + 0", .words = F_TWO CAUSAL ";" F_TWO BIASED,
     .fault = MIXED},
    {"mma.forward.next_tile", "(stage + $(plan.stages - 1)) % $(plan.stages)", "stage",
     .words = F_TWO CAUSAL, .fault = ORDER},
    {"mma.forward.scores", "$(ring.of(\"K_BYTES\"))", "", .words = F_TWO CAUSAL, .fault = MIXED},
    {"mma.forward.add_values", "$(ring.of(\"V_BYTES\"))", "", .words = F_TWO CAUSAL,
     .fault = MIXED},
    {"mma.forward.input_tile", "$(ring.of(\"INPUT_BYTES\"))", "", .words = F_TWO BIASED,
     .fault = MIXED},
    {"mma.forward.next_tile", "next_key", "\"0\"", .words = F_TWO CAUSAL},
    {"mma.forward.load_next_keys", "k_next", "\"k0\"", .words = F_ONE CAUSAL ";" F_WIDE CAUSAL},
    {"mma.backward.next_stage", "stage = 1 - stage", "(void)0", .words = B_TWO CAUSAL,
     .fault = MIXED},
    {"mma.backward.load_next", "(1 - stage)", "stage", .words = B_TWO CAUSAL, .fault = ORDER,
     AT_WORK},
    {"mma.backward.load_next", "h_next\", \"q_next", "h\", \"q0", .words = B_TWO CAUSAL},
    {"mma.backward.load_next_input", "h_next\", \"q_next", "h\", \"q0", .words = B_TWO BIASED},
};

/* Without a bug. */
static const planted_bug whole[] = {{.words = F_ALL}, {.words = B_SYNC}, {.words = R_ALL}};

PLANTED_SUITE(.name = "mma order", .bugs = {PLANTED(bugs), PLANTED(stages)},
              .whole = PLANTED(whole), .whole_seeds = 3, .cases = mma_cases)
