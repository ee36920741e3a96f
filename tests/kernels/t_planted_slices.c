/* t_planted_slices.c - bugs planted where templates find and walk slices: the oracle or the host
 * device catches each. */
#include "wgmma_planted.h"

static const char forward[] = "family=simt head_dim=40 mask=window(20,3) slices=true",
                  full[] = "family=simt head_dim=40 slices=true",
                  backward[] = "family=simt pass=backward head_dim=40/24 mask=causal slices=true",
                  mma[] = "family=mma head_dim=64 slices=true",
                  mma_window[] = "family=mma head_dim=64 mask=window(20,3) slices=true",
                  mma_backward[] = "family=mma pass=backward head_dim=64 slices=true",
                  mma_rows[] =
                      "family=mma pass=backward head_dim=64 deterministic=true slices=true",
                  wgmma[] = "family=wgmma head_dim=64 mask=causal slices=true",
                  wgmma_full[] = "family=wgmma head_dim=64 slices=true",
                  wgmma_backward[] = "family=wgmma pass=backward head_dim=64 slices=true";

/* Lists of a case's seed: reference_slices.c. Overlapping ranges, none, documents, single rows and
 * keys, such as leave the tokens, and one that is longer than a warp looks through at once. */
static const verify_case cases[] = {
    {.shape = {.b = 1, .h = 4, .hk = 2, .nq = 77, .nk = 103, .slices = 5}, .seed = 0},
    /* no slices: in the first order, and in the second */
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 47, .nk = 77}, .seed = 3},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 47, .nk = 77}, .seed = 2},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 47, .nk = 77, .slices = 1}, .seed = 1},
    /* slices of up to 8 rows and keys, one of which shows a single key to a tile of rows */
    {.shape = {.b = 1, .h = 4, .hk = 2, .nq = 77, .nk = 103, .slices = 5}, .seed = 11},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 139, .nk = 203, .slices = 3}, .seed = 15},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 64, .nk = 90, .slices = 33}, .seed = 11},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 60, .nk = 80, .slices = 70}, .seed = 14},
    {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 60, .nk = 80, .slices = 1200}, .seed = 4},
    {.seed = 0}};

/* One slice of many tiles, and five. */
static const verify_case lone[] = {
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 139, .nk = 203, .slices = 1}, .seed = 41},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 139, .nk = 203, .slices = 5}, .seed = 40},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 139, .nk = 203, .slices = 1}, .seed = 185},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 139, .nk = 203, .slices = 5}, .seed = 184},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 139, .nk = 203, .slices = 1}, .seed = 329},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 139, .nk = 203, .slices = 5}, .seed = 328},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 139, .nk = 203, .slices = 1}, .seed = 473},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 139, .nk = 203, .slices = 5}, .seed = 472},
    {.seed = 0}};

/* Many slices, of which a warpgroup's rows see few. */
static const verify_case many[] = {
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 300, .nk = 500, .slices = 40}, .seed = 3},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 300, .nk = 500, .slices = 40}, .seed = 5},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 300, .nk = 500, .slices = 100}, .seed = 7},
    {.shape = {.b = 1, .h = 4, .hk = 1, .nq = 300, .nk = 500, .slices = 60}, .seed = 8},
    {.shape = {.b = 1, .h = 4, .hk = 1, .nq = 300, .nk = 500, .slices = 60}, .seed = 9},
    {.seed = 0}};

/* Few slices of many keys, and documents that begin with a tile: whole tiles behind such as a
 * warpgroup's rows see none of. */
static const verify_case long_ones[] = {
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 300, .nk = 1500, .slices = 6}, .seed = 3},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 300, .nk = 1500, .slices = 12}, .seed = 8},
    {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 256, .nk = 1024, .slices = 2}, .seed = 3},
    {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 256, .nk = 1024, .slices = 2}, .seed = 4},
    {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 256, .nk = 1024, .slices = 2}, .seed = 5},
    {.shape = {.b = 1, .h = 1, .hk = 1, .nq = 256, .nk = 1024, .slices = 2}, .seed = 22},
    {.seed = 0}};

#define WALK "attention/wgmma/slices.cut"
#define PLACE                                                                                      \
  "wrong numbers|out of bounds|before the start of tensor|past the end of tensor|undefined "       \
  "behaviour: array index, shift or integer overflow"

static const planted_bug bugs[] = {
    /* a slice */
    {"tile.slices.token", "imax((int)ldg_u32(end), 0)", "(int)ldg_u32(end)", forward,
     .fault = PLACE, .place = {{"tile/slices.cut", NULL}, {"simt.forward.load_tile", NULL}}},
    {"tile.slices.ends", "q_ranges + 2 * i + 1", "q_ranges + 2 * i", .words = forward},
    {"tile.slices.kind", "kind & 2", "kind & 4", .words = full},
    {"tile.slices.shows", "s.low <= k - q", "s.low < k - q", .words = full},
    {"tile.slices.keys", "+ s.low", "+ s.low + 1", .words = mma},
    {"tile.slices.key_end", "+ s.high)", "+ s.high - 1)", .words = mma},
    {"tile.slices.from_tile", "first - begin)", "first - begin + size)", .words = forward},
    {"tile.slices.columns", "slice_has_row(s, q)", "1", .words = mma},
    {"tile.slices.columns_of_key", "(u32)(k - s.k) < (u32)s.nk", "1", .words = mma_backward},
    {"tile.slices.rows", "- s.high", "- s.high + 1", .words = mma_backward},
    {"tile.slices.row_end", "- s.low)", "- s.low - 1)", .words = mma_backward},
    {"tile.slices.some", "slice_key_end(s, q1))", "slice_key_end(s, q1) - 1)", .words = forward},
    {"tile.slices.all", "s.low <= k0 - (q1 - 1)", "1", .words = full, .cases = lone},
    {"tile.slices.all", "!s.is_shared", "1", .words = full},
    {"tile.slices.put", "(u32)s.nk, (u32)s.low", "(u32)s.nk, (u32)s.high", .words = wgmma_backward},
    {"tile.slices.take", "(int)own[1], (int)own[2]", "(int)own[2], (int)own[1]",
     .words = wgmma_backward, .fault = PLACE},
    /* where expressions see a pair */
    {"sequence.slices.place", "own(\"k\", \"k\", \"%s - %s\")",
     "own(\"k\", \"k\", \"%s - 1 - %s\")", .words = forward},
    {"sequence.slices.within", "\"imax(%s, %s + (%s))\"", "\"imax(%s, %s + 40 + (%s))\"",
     .words = forward},
    {"sequence.slices.tile", "own.always == \"1\" and fills", "own.always == \"1\" and \"1\"",
     .words = full},
    /* lists of tiles */
    {"tile.slices.bit", "i / 32", "0 * i", .words = full},
    {"tile.slices.from", "<< from % 32", "<< from % 32 << 1", .words = full},
    {"tile.slices.next", "(first + at) * 32", "(first + at) * 32 + 1", .words = full},
    {"tile.slices.from_of_one", "<< from % 32", "<< from % 32 << 1", .words = wgmma_backward},
    {"sequence.slices.declare", "* 2 * cdiv", "* cdiv", .words = full},
    {"sequence.slices.shown", "$(run) < $(run_end)", "$(run) + 1 < $(run_end)", .words = full},
    {"sequence.slices.before", "(1u << lane) - 1", "(1u << lane / 2) - 1", .words = full},
    {"sequence.slices.shared", "$(most_before)", "$(least_before)", .words = full},
    /* walks */
    {"sequence.slices.skip", ".number < p.slices", ".number < p.slices / 2", .words = mma_window},
    {"sequence.slices.skip_rows", "$(h)++;", "$(h) += 2;", .words = mma_backward},
    {"sequence.slices.heads", "? h_first", "? h_first + 1", .words = mma_backward},
    {"wgmma.slices.none", "imax($(seq.nk), BLOCK_KV)", "-1", wgmma, .fault = "deadlock",
     .place = {WGMMA_MOVERS, WGMMA_FORWARD, {WALK, NULL}}},
    {"wgmma.slices.number", "tile - 1", "tile", wgmma,
     .fault = "deadlock|mbarrier_expect * all 1 arrivals of its phase * have come",
     .place = {WGMMA_MOVERS, WGMMA_FORWARD, {WALK, NULL}}},
    {"wgmma.slices.job_is_read", "warp_sync(ALL_LANES);", "", wgmma,
     .fault = "race: shared store at * which several lanes of warp 2 read", .place = {WGMMA_MOVERS},
     .cases = many, .seeds = 1},
    {"wgmma.slices.record", "(u32)k0, 0", "(u32)k0 + 8, 0", .words = wgmma},
    {"wgmma.slices.told", "seen |", "seen << 8 |", .words = wgmma},
    {"wgmma.slices.record_is_empty", "(\"tile\", \"RECORDS\")) ^ 1", "(\"tile\", \"RECORDS\"))",
     wgmma, .fault = "deadlock", .place = {{WALK, NULL}}},
    {"wgmma.slices.empty_record", "(tile - STAGES - 1)", "(tile - STAGES)", wgmma,
     .fault = "deadlock", .place = {{WALK, NULL}}, .cases = many, .seeds = 1},
    {"wgmma.slices.seen", "&& ($(always))", "&& 1", .words = wgmma},
    {"wgmma.slices.read", "records.told", "records.own", wgmma, .fault = "deadlock",
     .place = {WGMMA_MOVERS, WGMMA_FORWARD, {WALK, NULL}}},
    {"wgmma.slices.read_own", "(records.own)", "(records.told)", .words = wgmma_full,
     .cases = long_ones},
    {"wgmma.slices.take", "$(records.k0)", "$(records.told)", .words = wgmma},
    {"wgmma.records.place", "%% RECORDS", "%% STAGES", wgmma, .fault = "race: shared * at *",
     .place = {{WALK, NULL}, {"tile.slices.put", NULL}}},
    {"wgmma.keys_slices.leave_keys", "warp_sync(ALL_LANES);", "", wgmma,
     .fault = "deadlock|race: shared store at *",
     .place = {WGMMA_MOVERS, WGMMA_FORWARD, {"tile.slices.put", NULL}}, .cases = many, .seeds = 1},
    {"wgmma.keys_slices.leave_tile", "CLEAR_P()", "", .words = wgmma},
    {"wgmma.keys_slices.next_slice", "$(records.none)", "!($(records.none))", .words = wgmma},
    /* pairs that an earlier slice shows, and the bits of those that a slice does */
    {"simt.forward.hide_shared", "1u << r", "2u << r", .words = forward},
    {"simt.backward.hide_shared", "1u << r", "2u << r", .words = backward},
    {"mma.forward.see", "8 * r", "4 * r", .words = mma},
    {"mma.rows.see", "k0 + k_lane", "k0 + 1 + k_lane", .words = mma_rows},
    {"backward.pairs.see", "q0 + q_lane", "q0 + 1 + q_lane", .words = mma_backward},
    {"wgmma.seen.see", "8 * r", "4 * r", .words = wgmma},
    {"sequence.slices.before_by_lane", "(1u << rest) - 1", "(2u << rest) - 1", .words = wgmma},
    {"sequence.slices.number_of_lane", "first_bit(lanes)", "first_bit(lanes) / 2", .words = wgmma,
     .cases = many},
};

/* Passes in an order take long over many slices. */
static const verify_case few[] = {
    {.shape = {.b = 1, .h = 4, .hk = 2, .nq = 77, .nk = 103, .slices = 5}, .seed = 0},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 47, .nk = 77}, .seed = 3},
    {.seed = 0}};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = forward},  {.words = full},       {.words = backward},
    {.words = mma},      {.words = mma_window}, {.words = mma_backward},
    {.words = mma_rows, .seeds = 1, .cases = few},
    {.words = wgmma}, {.words = wgmma_backward}};

PLANTED_SUITE(.name = "planted_slices", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .cases = cases)
