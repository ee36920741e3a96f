/* mma_planted.h - what the suites of bugs planted in the tensor-core templates share. */
#ifndef FG_TESTS_MMA_PLANTED_H
#define FG_TESTS_MMA_PLANTED_H

#include "planted_suite.h"

#define FORWARD  "attention/mma/forward.cut"
#define SCORES   "attention/mma/scores.cut"
#define BACKWARD "attention/mma/backward.cut"
#define PAIRS    "attention/backward/pairs.cut"
#define WEIGHTS  "attention/mma/weights.cut"
#define ROWS     "attention/mma/rows.cut"
#define TILES    "tile/tiles.cut"

/* Widths that end within a pair of chunks, and at a whole line of 128 bytes. */
#define FWD "family=mma head_dim=40/64 warps=4 block_kv=64 "
#define BWD "family=mma pass=backward head_dim=40/64 "
/* Of forward: two stages and one, warps of 16 rows; one stage, warps of 32; eight warps. */
#define F_TWO   FWD "block_q=64 stages=2 "
#define F_ONE   FWD "block_q=64 stages=1 "
#define F_WIDE  FWD "block_q=128 stages=1 "
#define F_EIGHT "family=mma head_dim=40/64 warps=8 block_kv=64 stages=2 "
/* Columns of K that are summed in two parts. */
#define F_MANY "family=mma head_dim=264/40 warps=4 block_q=64 "
/* Of backward: warps that share no keys, two stages, queries at once and in parts; warps that do,
 * in pairs and in fours, one stage. */
#define B_TWO    BWD "block_q=32 block_kv=64 "
#define B_PARTS  "family=mma pass=backward head_dim=64 block_kv=128 warps=4 "
#define B_HALVES "family=mma pass=backward head_dim=32 block_kv=128 warps=4 "
#define B_EIGHT  BWD "block_kv=128 warps=8 "
#define B_PAIRS  BWD "block_kv=32 "
#define B_FOURS  BWD "warps_per_key=4 stages=1 "
/* Of passes that own rows: warps that share these. */
#define R_SHARED "family=mma pass=backward head_dim=296/40 warps=8 block_q=16 deterministic=true "

/* What is said: of order in shared memory, of global loads, of global stores. */
#define ORDER  "race: shared|never written|still filling it|in flight"
#define MIXED  ORDER "|wrong numbers"
#define BEYOND "load past the end of|load touches a gap|load before the start|outside of all"
#define STORED "store past the end of|store before the start|store touches a gap|race: store at"

/* A bug in backward's loop over tiles of rows shows in either file. */
#define AT_WORK .place = {{BACKWARD}, {WEIGHTS}}

/* They reach every path: several tiles each way, the last partly empty, heads that share keys; a
 * negative scale; rows that see no key; no rows; scores of some hundreds, also of few keys; rows
 * and heads without gaps. The first one's lengths differ by 2 less than a tile: the edge of a
 * causal mask lies at a corner. */
static const verify_case mma_cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 150, .nk = 212}},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 70, .nk = 90},
     .given = FG_GIVEN_SCALE,
     .scale = -0.2f},
    {.shape = {.b = 1, .h = 4, .hk = 2, .nq = 230, .nk = 40}},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 0, .nk = 70}},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 90, .nk = 150}, .style = VERIFY_LARGE},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 300, .nk = 2}, .style = VERIFY_LARGE},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 300, .nk = 1}, .style = VERIFY_LARGE},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 90, .nk = 104}, .contiguous = 1},
    {.seed = 0}};

#endif
