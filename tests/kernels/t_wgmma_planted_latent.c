/* t_wgmma_planted_latent.c - bugs planted in wgmma's forward for latent keys: in what a block of a
 * cluster fetches, and when a place is empty; in what the two sides of a block tell each other of a
 * tile; in which rows, parts and keys are whose. The host device or the oracle catches each. */
#include "wgmma_planted.h"

#define FWD    "family=wgmma stages=2 latent=true head_dim=288/256 "
#define FULL   FWD "block_q=128 mask=full "
#define CAUSAL FWD "block_q=128 mask=causal "
#define ALONE  FWD "block_q=64 mask=full "
#define MORE   "family=wgmma stages=2 latent=true head_dim=576/512 mask=causal "
#define PAGED  FWD "block_q=128 kv_layout=paged "
#define PACKED FWD "block_q=64 q_layout=packed kv_layout=packed mask=causal "

#define LATENT "attention/wgmma/forward_latent.cut"
#define MOVER  "attention/wgmma/forward_latent_mover.cut"

#define RACE  WGMMA_RACE
#define STUCK WGMMA_STUCK "|have come"
#define GONE  "has ended|nothing makes it wait|in flight|ends with"

/* One tile of rows, whose keys clusters divide. */
static const verify_case parts[] = {{.shape = {.b = 1, .h = 4, .hk = 1, .nq = 2, .nk = 2100}},
                                    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 3, .nk = 2600}},
                                    {.seed = 0}};

/* A tile lies in several pages. */
static const verify_case pages[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 3, .nk = 300, .page = 16}}, {.seed = 0}};

static const planted_bug bugs[] = {
    /* jobs, and what a mover fetches */
    {"wgmma.forward_latent_mover.line", "(int)blockIdx.x / CLUSTER", "(int)blockIdx.x",
     .words = FULL, .fault = RACE "|" STUCK},
    {"wgmma.forward_latent_mover.job_empty",
     "mbarrier_wait($(barrier(\"job_empty\", \"job_number % 2\")), $(parity(\"job_number\", 2)) ^ "
     "1);",
     "", .words = ALONE, .fault = RACE "|" STUCK},
    {"wgmma.forward_latent_mover.places", "(u32)second_place", "(u32)first_place", .words = ALONE,
     .cases = parts},
    {"wgmma.forward_latent_mover.send_piece", "(k0 + own_key)", "(k0)", .words = FULL},
    {"wgmma.forward_latent_mover.send_box", "i * box * 128", "i * 128", .words = PAGED,
     .fault = RACE, .cases = pages},
    {"wgmma.forward_latent_mover.find_box", "own_key + i * box", "own_key + i", .words = PAGED,
     .cases = pages},
    {"wgmma.forward_latent_mover.order", "tile * DV_PIECES", "(1 - tile) * DV_PIECES",
     .words = FULL, .fault = RACE "|" STUCK, .place = {{LATENT}, {MOVER}}},
    {"wgmma.forward_latent_mover.keys", "tiles - 1", "tiles - 2", .words = FULL},
    /* S */
    {"wgmma.forward_latent.scores", "q_rows + (u32)", "k_tiles + (u32)", .words = FULL,
     .fault = RACE},
    {"wgmma.forward_latent.add_part", "ADD_PART()", "", .words = FULL ";" MORE},
    /* P, and what is told of it */
    {"wgmma.forward_latent.scores_are_made", "barrier_sync(OWN + side, 128);", "", .words = FULL,
     .fault = RACE "|still reads|in flight"},
    {"wgmma.forward_latent.put_weights", "2 * i", "i", .words = FULL, .fault = RACE},
    {"wgmma.forward_latent.lane", "16 * warp + lane % 16", "lane % 16", .words = FULL,
     .fault = RACE},
    {"wgmma.forward_latent.tell", "side * TOLD_BYTES", "0 * TOLD_BYTES", .words = FULL,
     .fault = RACE},
    {"wgmma.forward_latent.weights_are_there", "fence_async();", "", .words = FULL,
     .fault = "fence"},
    {"wgmma.forward_latent.weights_are_there", "warp_sync(ALL_LANES);", "", .words = FULL,
     .fault = RACE},
    {"wgmma.forward_latent.wait_told",
     "mbarrier_wait($(barrier(\"p_full\", \"1 - side\")), other_uses & 1);", "", .words = FULL,
     .fault = RACE},
    {"wgmma.forward_latent.take_told", "j - 1", "0 * j", .words = FULL},
    {"wgmma.forward_latent.follow", "SCALE_O_ROW$(r)(moved$(r))", "", .words = FULL,
     .cases = wgmma_far},
    {"wgmma.weights.moved", "$(given.moved(r)) = $(rows.row[r].correction);", "", .words = FULL,
     .cases = wgmma_far},
    /* O += P V */
    {"wgmma.forward_latent.values", "(K_PIECES - 1) * (PIECE_BYTES / 16)", "0", .words = FULL,
     .fault = RACE, .place = {{LATENT}, {MOVER}, {"attention/wgmma/parts.cut"}}},
    {"wgmma.forward_latent.values", "side * (DV_PIECES", "0 * (DV_PIECES", .words = FULL,
     .fault = RACE, .place = {{LATENT}, {MOVER}, {"attention/wgmma/parts.cut"}}},
    {"wgmma.forward_latent.release", "wait_values(o);", "", .words = FULL,
     .fault = RACE "|still reads|in flight", .place = {{LATENT}, {MOVER}, WGMMA_WEIGHTS}},
    {"wgmma.forward_latent.release", "2 * (", "(", .words = FULL, .fault = RACE "|" STUCK,
     .place = {{LATENT}, {MOVER}, {"attention/wgmma/parts.cut"}}},
    /* rows */
    {"wgmma.forward_latent.query", "h = first_head + row % wide", "h = first_head", .words = FULL},
    {"wgmma.forward_latent.sign_of_scale", "$(score.scale_is_negative)", "p.scale < -99.0f",
     .words = FULL, .cases = wgmma_far},
    {"wgmma.forward_latent.put_queries", "(chunk % 8 ^ r % 8)", "(chunk % 8)", .words = FULL},
    {"wgmma.forward_latent.put_queries", "fence_async();", "", .words = FULL, .fault = "fence"},
    {"wgmma.forward_latent.rows", ": $(seq.nq)", ": 0", .words = CAUSAL,
     .fault = "race: store|wrong numbers", .place = {{"attention/wgmma/output.cut"}, {LATENT}}},
    {"wgmma.forward_latent.zero_rest", "\"o\", \"tokens\"", "\"o\", \"1\"", .words = PACKED},
    /* O leaves, and parts are joined */
    {"wgmma.forward_latent.column", "DV_COLUMNS * side", "DV_COLUMNS * (1 - side)", .words = FULL},
    {"wgmma.forward_latent.part", "(i - 1) * place_step", "i * place_step", .words = ALONE,
     .cases = parts, .seeds = 1, .fault = "wrong numbers|never written|outside|beyond",
     .place = {{LATENT}, {MOVER}, {"attention/wgmma/parts.cut"}}},
    {"wgmma.forward_latent.part", "\"first_place * GROUPS + group\"", "\"first_place * GROUPS\"",
     .words = ALONE, .cases = parts, .seeds = 1, .fault = "wrong numbers|race|never written",
     .place = {{LATENT}, {MOVER}, {"attention/wgmma/parts.cut"}}},
    {"wgmma.forward_latent.job_is_read", "lane == 0", "lane < 0", .words = ALONE, .fault = STUCK},
    {"wgmma.forward_latent.end", "cluster_sync();", "", .words = FULL, .fault = GONE,
     .place = {{LATENT}, {MOVER}, {"attention/wgmma/parts.cut"}}},
};

/* Several jobs a block, of several tiles each, an odd number too; rows that are left over. */
static const verify_case cases[] = {
    {.shape = {.b = 5, .h = 6, .hk = 2, .nq = 21, .nk = 180}, .contiguous = 1},
    {.shape = {.b = 1, .h = 6, .hk = 2, .nq = 150, .nk = 391}},
    {.seed = 0}};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = FULL},
    {.words = CAUSAL},
    {.words = ALONE},
    {.words = MORE},
    {.words = PAGED},
    {.words = PACKED},
    {.words = FWD "block_q=64 mask=window(100,7) kv_layout=cached "},
    {.words = FWD "block_q=128 mask=causal normalizer=retention "},
    {.words = FULL, .cases = wgmma_far},
    {.words = CAUSAL, .cases = wgmma_far},
    {.words = ALONE, .cases = parts},
    {.words = FWD "block_q=128 sink=true ", .cases = parts},
};

PLANTED_SUITE(.name = "wgmma planted latent", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .whole_seeds = ORDERS, .cases = cases)
