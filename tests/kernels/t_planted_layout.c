/* t_planted_layout.c - bugs planted where templates find the sequences of layouts that are not
 * dense: the host device or the oracle catches each. What no sequence reads is NaN, so that most
 * show as wrong numbers. */
#include "wgmma_planted.h"

/* Whatever a wrong place of a row comes to. */
#define PLACE                                                                                      \
  "wrong numbers|race: store at|past the end of tensor|before the start of tensor|which was "      \
  "never written|"                                                                                 \
  "touches a gap between rows|out of bounds|outside of all tensors"

#define MOVED PLACE "|undefined behaviour: array index, shift or integer overflow"

#define FORWARD  "attention/simt/forward.cut"
#define BACKWARD "attention/simt/backward.cut"
#define PAGES    "attention/wgmma/pages.cut"

static const char packed[] = "family=simt head_dim=40/24 mask=causal q_layout=packed "
                             "kv_layout=packed",
                  packed_backward[] = "family=simt pass=backward head_dim=40/24 mask=causal "
                                      "q_layout=packed kv_layout=packed",
                  cached[] = "family=simt head_dim=40 mask=causal kv_layout=cached",
                  paged[] = "family=simt head_dim=40 mask=causal kv_layout=paged",
                  mma_packed[] = "family=mma head_dim=64 q_layout=packed kv_layout=packed",
                  wgmma_packed[] = "family=wgmma head_dim=64 q_layout=packed kv_layout=packed",
                  wgmma_cached[] = "family=wgmma head_dim=64 kv_layout=cached",
                  wgmma_dense_paged[] = "family=wgmma head_dim=64 kv_layout=paged",
                  wgmma_paged[] = "family=wgmma head_dim=64 q_layout=packed kv_layout=paged",
                  wgmma_backward[] = "family=wgmma pass=backward head_dim=64 q_layout=packed "
                                     "kv_layout=packed",
                  wgmma_wide[] = "family=wgmma pass=backward head_dim=256 q_layout=packed "
                                 "kv_layout=packed",
                  mma_paged[] = "family=mma head_dim=64 q_layout=packed kv_layout=paged",
                  mma_backward[] = "family=mma pass=backward head_dim=64 q_layout=packed "
                                   "kv_layout=packed",
                  mma_rows[] = "family=mma pass=backward head_dim=64 q_layout=packed "
                               "kv_layout=packed deterministic=true";

/* So many sequences that they are left in their order: few of them have a token. */
static const verify_case many[] = {
    {.shape = {.b = 4200, .h = 1, .hk = 1, .tokens_q = 200, .tokens_k = 200}, .seed = 0},
    {.shape = {.b = 4200, .h = 1, .hk = 1, .tokens_q = 200, .tokens_k = 200}, .seed = 1},
    {.seed = 0}};

/* Pages of 16 and 64 keys, and sequences of several boxes and tiles. Under odd seeds no sequence
 * has a first_k, so that each box is of a whole page. */
static const verify_case boxes[] = {
    {.shape = {.b = 8, .h = 2, .hk = 2, .nq = 8, .nk = 100, .page = 16, .pages = 58}, .seed = 6},
    {.shape = {.b = 8, .h = 2, .hk = 2, .nq = 8, .nk = 100, .page = 16, .pages = 58}, .seed = 12},
    {.shape = {.b = 8, .h = 2, .hk = 2, .nq = 20, .nk = 500, .page = 16, .pages = 258}, .seed = 10},
    {.shape = {.b = 8, .h = 2, .hk = 2, .nq = 8, .nk = 100, .page = 64, .pages = 18}, .seed = 6},
    {.shape = {.b = 8, .h = 2, .hk = 2, .nq = 20, .nk = 500, .page = 64, .pages = 66}, .seed = 10},
    {.seed = 0}};

static const planted_bug bugs[] = {
    /* where packed sequences are */
    {"tile.sequences.start", "i < 0 ? 0 : ", "", packed, "load before the start of tensor starts",
     .place = {{"tile.sequences.start", "starts"}}},
    {"tile.sequences.start", "i > n", "i >= n", packed, PLACE, .place = {{FORWARD, NULL}}},
    {"tile.sequences.used", "i >= n", "i > n", packed, "load past the end of tensor used",
     .place = {{"tile.sequences.used", "used"}}},
    {"tile.sequences.used", ", rows)", ", 1 << 20)", packed, PLACE, .place = {{FORWARD, NULL}}},
    {"tile.sequences.search", "<= tile", "< tile", packed, PLACE, .place = {{FORWARD, NULL}}},
    {"tile.sequences.zero", "i / width", "i / width + 1", packed, .fault = PLACE},
    {"tile.sequences.zero", "i % width", "i % (width / 2)", packed, .fault = PLACE},
    {"tile.sequences.fill", "i, value", "i - 1, value", packed, .fault = PLACE},
    {"sequence.packed.declare", ", b + 1)", ", b)", packed, PLACE, .place = {{FORWARD, NULL}}},
    {"sequence.packed.find", "starts, tile, size)", "starts, tile, size .. \" + 1\")", packed,
     PLACE, .place = {{FORWARD, NULL}}},
    {"sequence.packed.base", "b + 1)", "b)", packed, PLACE, .place = {{FORWARD, NULL}}},
    {"sequence.packed.head", "first, t)", "\"0\", t)", packed, PLACE, .place = {{FORWARD, NULL}}},
    {"sequence.packed.row", "(%s + %s)", "(%s + 1 + %s)", packed, PLACE,
     .place = {{FORWARD, NULL}, {"tile.rows.store", NULL}}},
    {"sequence.find_tile", "sides[x].base(size)", "sides[x].base(size) .. \" - 1\"", packed, PLACE,
     .place = {{FORWARD, NULL}}},
    {"sequence.find", "\"block % tiles\", size", "\"block % (tiles - 1)\", size", packed, PLACE,
     .place = {{FORWARD, NULL}}},
    {"sequence.behind", "\" + \" .. sides[x].base(size)", "\"\"", mma_backward, PLACE,
     .place = {{"attention/mma/backward.cut", NULL}, {"attention/backward/kept.cut", NULL}}},
    {"sequence.row_number", "token_q + %s", "%s", packed_backward, PLACE,
     .place = {{BACKWARD, NULL}}},
    {"sequence.place", "side.length, i)", "\"(1 << 20)\", i)", wgmma_packed, PLACE,
     .place = {WGMMA_MOVERS}},
    {"sequence.list.order", "other < b", "other <= b", wgmma_packed,
     .fault = "load of an element never written"},
    {"sequence.list.places", "b + 2 - at", "b + 1 - at", wgmma_packed,
     .fault = "load of an element never written", .cases = many},
    {"sequence.list.count", "all, places", "all - 1, places", .words = wgmma_packed},
    /* what no sequence covers */
    {"sequence.zero_rest", "sides[x].length, first", "sides[x].rows, first", .words = packed},
    {"sequence.zero_rest", "q.length, first", "q.rows, first", .words = packed},
    {"simt.forward.zero_rest", "$(seq.zero_rest(\"o\", \"BLOCK_Q\", \"DV\"",
     "$(seq.zero_rest(\"o\", \"BLOCK_Q\", \"8\"", .words = packed},
    {"simt.backward.zero_rest_of_keys", "(\"dv\", \"BLOCK\", \"DV\"", "(\"dv\", \"BLOCK\", \"8\"",
     .words = packed_backward},
    {"simt.backward.zero_rest_of_rows", "(\"dq\", \"BLOCK\", \"D\"", "(\"dq\", \"ROWS\", \"D\"",
     .words = packed_backward},
    {"simt.backward.sum_delta", "ldg_u16(d_o + c)", "ldg_u16(o + c)", .words = packed_backward},
    {"mma.forward.zero_rest", "\"o\", \"BLOCK_Q\"", "\"o\", \"8\"", .words = mma_packed},
    {"mma.backward.zero_rest", "\"DV\", \"(int)threadIdx.x\"", "\"DV\", \"(int)threadIdx.x + 1\"",
     .words = mma_backward},
    {"wgmma.output.zero_rest", "\"o\", \"64\", \"DV\", thread",
     "\"o\", \"64\", \"DV\", thread .. \" + 1\"", .words = wgmma_packed},
    {"wgmma.backward.keys_of_none", "$(seq.nk)", "$(seq.nk) - 60", .words = wgmma_backward},
    {"wgmma.backward_wide.keys_of_none", "$(seq.nk)", "$(seq.nk) - 60", .words = wgmma_wide},
    {"wgmma.backward_jobs.lengths", ", lengths)", ", words)", .words = wgmma_backward,
     .fault = "race: store at|wrong numbers", .place = {{"attention/wgmma/backward.cut", NULL}}},
    {"wgmma.backward_tiles.zero_rest", "\"(int)threadIdx.x % 128\"",
     "\"(int)threadIdx.x % 128 + 1\"", .words = wgmma_backward},
    {"mma.forward.packed_rows", ".. \" - 1 - \"", ".. \" - \"", .words = mma_packed},
    {"mma.rows.zero_rest", "\"TILE_Q\"", "\"TILE_Q / 2\"", .words = mma_rows},
    {"backward.dq.zero_rest", "if (q < $(seq.q_rows))", "if (q < $(seq.nq))",
     .words = mma_backward},
    /* caches and pages */
    {"sequence.cached.declare", " - row_k", "", cached, PLACE, .place = {{FORWARD, NULL}}},
    {"sequence.cached.declare", "of_sequence(\"rows\")", "\"b\"", cached, PLACE,
     .place = {{FORWARD, NULL}}},
    {"sequence.cached.declare", "imin(imax(%s, 0), p.nk)", "imax(%s, 0)", cached, PLACE,
     .place = {{"tile.rows.load", NULL}}},
    {"sequence.cached.head", "row_k * p", "0 * p", cached, PLACE, .place = {{FORWARD, NULL}}},
    {"sequence.paged.table", "b * p.table_b", "0 * p.table_b", paged, PLACE,
     .place = {{"tile.rows.load_paged", NULL}}},
    {"sequence.paged.declare", "of_sequence(\"first_k\")", "\"1\"", paged, PLACE,
     .place = {{"tile.rows.load_paged", NULL}}},
    {"sequence.paged.head", "head, t)", "\"0\", t)", paged, PLACE, .place = {{FORWARD, NULL}}},
    {"tile.rows.load_paged", "key % page", "key / page", paged, .fault = PLACE},
    {"tile.rows.load_paged", "< end", "<= end", paged, .fault = PLACE},
    {"tile.tiles.load_paged", "key / page)", "row0 / page)", mma_paged, .fault = PLACE},
    {"tile.tiles.load_paged", "is_row ? (int)ldg_u32(pages + key / page) : 0",
     "(int)ldg_u32(pages + (first + row0 + row + r) / page)", mma_paged, .fault = PLACE},
    {"sequence.paged.find_row", "row_k + %s)", "0 * row_k + %s)", wgmma_paged, MOVED,
     .place = {{PAGES, NULL}}},
    {"sequence.paged.find_row", "at %% (u32)p.page", "at / (u32)p.page", wgmma_paged, MOVED,
     .place = {{PAGES, NULL}}},
    {"sequence.paged.declare_boxes", "(p.page | %s) & -(p.page | %s)", "%s & -%s", wgmma_paged,
     "deadlock", .place = {WGMMA_MOVERS}},
    {"sequence.paged.declare_boxes", "row_k %% common == 0", "common", wgmma_paged, MOVED,
     .place = {{PAGES, NULL}}},
    {"wgmma.pages.find", "%s * box", "%s", wgmma_paged, MOVED, .cases = boxes},
    {"wgmma.pages.next", "(i + lane)", "lane", wgmma_paged, .fault = MOVED},
    {"wgmma.pages.load", ".. \" + i * box)\"", ".. \")\"", wgmma_paged, .fault = MOVED},
    {"wgmma.pages.number", "(count + (v0 >= 0))", "count", wgmma_dense_paged,
     "mbarrier_expect * all 1 arrivals of its phase * have come", .cases = boxes},
    {"wgmma.pages.job_is_read", "warp_sync(ALL_LANES);", "", wgmma_paged,
     "race: shared store at * which several lanes of warp 0 read", .place = {WGMMA_MOVERS}},
};

/* Of any lengths, at edges of tiles, equal ones, one that has all; with lengths that are used and
 * without; two key/value heads. */
static const verify_case cases[] = {
    {.shape = {.b = 3, .h = 4, .hk = 2, .nq = 47, .nk = 77}, .seed = 0},
    {.shape = {.b = 5, .h = 2, .hk = 2, .nq = 29, .nk = 41}, .seed = 1},
    {.shape = {.b = 3, .h = 2, .hk = 2, .nq = 64, .nk = 64}, .seed = 10},
    {.shape = {.b = 3, .h = 4, .hk = 2, .nq = 40, .nk = 50}, .seed = 9},
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 50, .nk = 70}, .seed = 14},
    /* used_k past the cache's last row, with first_k and, in the second order, without */
    {.shape = {.b = 5, .h = 2, .hk = 2, .nq = 29, .nk = 41}, .seed = 2},
    /* in the second order, rows of a sequence whose first_k begins no page */
    {.shape = {.b = 3, .h = 4, .hk = 2, .nq = 40, .nk = 50}, .seed = 11},
    {.seed = 0}};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = packed},       {.words = packed_backward}, {.words = cached},
    {.words = paged},        {.words = mma_packed},      {.words = mma_paged},
    {.words = mma_backward}, {.words = mma_rows},        {.words = wgmma_packed},
    {.words = wgmma_cached}, {.words = wgmma_backward},  {.words = wgmma_wide},
    {.words = wgmma_paged}};

PLANTED_SUITE(.name = "planted_layout", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .whole_seeds = 4, .cases = cases)
