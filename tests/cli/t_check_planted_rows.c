/* t_check_planted_rows.c - bugs planted through FLASHGEN_TEMPLATES in kernels of rows, which
 * `flashgen check` must see. */
#include "checked_suite.h"

#define LANES     "kernel=layernorm width=40 bias=true residual=true"
#define WARPS     "kernel=layernorm width=1032 block_q=2"
#define RMS       "kernel=layernorm width=40 norm=rms"
#define RMS_WARPS "kernel=layernorm width=1032 block_q=2 norm=rms"
/* Each lane of both warps has a chunk; more chunks than a thread holds factors of; warps, of whose
 * last one a lane alone has columns. */
#define EQUAL "kernel=layernorm width=512 block_q=2"
#define MANY  "kernel=layernorm width=512 block_q=16"
#define THREE "kernel=layernorm width=520 warps=3"
#define GRADIENTS                                                                                  \
  "kernel=layernorm pass=backward width=40 bias=grad residual=true block_q=32 warps=8"
#define ONE_ROW    "kernel=layernorm pass=backward width=4104 block_q=1 stages=4 rows=29"
#define SOFTMAX    "kernel=logsoftmax"
#define BY_LANES   SOFTMAX " width=33"
#define BY_WARPS   SOFTMAX " width=1021 block_q=2"
#define BY_CLUSTER SOFTMAX " width=20001 block_kv=10008 rows=3"
#define BACKWARD   " pass=backward"
#define TARGET     SOFTMAX " width=33 target=true"

static const checked_bug bugs[] = {
    /* Rows of some lanes, not all of which have columns; of several warps; and elements one at a
     * time where padding, which the seed chooses, makes rows unaligned. */
    {"tile.columns.load", "(raw, from)", "(raw, from + 8)", LANES, 1},
    {"tile.columns.load_singly", "i < 8", "i < 7", LANES, 4},
    {"tile.columns.of", ">> 16", ">> 8", LANES, 4},
    {"tile.columns.store", "2 * i + 1]);", "2 * i]);", LANES, 4},
    {"tile.columns.store_singly", "i < 8", "i < 7", LANES, 4},
    {"tile.shared_rows.lanes_sum", "LANES / 2", "LANES / 4", RMS, 4},
    {"tile.shared_rows.place", "turn * ROWS + (int)threadIdx.x / GROUP", "turn * ROWS", RMS_WARPS,
     1},
    {"tile.shared_rows.put", "warp * PARTIALS", "0", RMS_WARPS, 1},
    {"tile.shared_rows.sync", "row_sync();", "", RMS_WARPS, 1},
    {"tile.shared_rows.join", "w = 1", "w = 2", RMS_WARPS, 4},
    {"layernorm.forward.row", "* ROWS + ", "* ROWS + 0 * ", LANES, BY_PROGRAM + 1},
    {"layernorm.forward.row", "has_row ? number : p.rows - 1", "number", LANES, 1},
    {"layernorm.forward.aligned", "% 16 == 0", "% 2 == 0", LANES, 1},
    {"layernorm.forward.load", "$(from) + c * GROUP * 8", "$(from)", WARPS, 4},
    {"layernorm.forward.load_singly", "0, 8, 0", "0, 7, 0", LANES, 4},
    {"layernorm.forward.gamma", " + first * 8", "", LANES, 4},
    {"layernorm.forward.beta", " + first * 8", "", LANES, 4},
    {"layernorm.forward.residual", "+= v[i]", "-= v[i]", LANES, 4},
    {"layernorm.forward.bias", "+= v[i]", "-= v[i]", LANES, 4},
    {"layernorm.forward.eps", "p.eps : 1e-5f", "1e-5f : 1e-5f", LANES, 4},
    {"layernorm.forward.eps", "1e-5f", "1e-2f", LANES, 4},
    {"layernorm.forward.share", "share = ", "share = 0.9f * ", LANES, 4},
    {"layernorm.forward.rest", "rest += z[c][i]", "rest += 1.0f", LANES, 4},
    {"layernorm.forward.deviation", "+= z[c][i] * z[c][i]", "+= z[c][i]", LANES, 4},
    {"layernorm.forward.squares", "squares - count * rest * rest", "count * rest * rest - squares",
     LANES, 4},
    {"layernorm.forward.variance", "(float)WIDTH", "(float)(WIDTH - 1)", LANES, 4},
    {"layernorm.forward.variance", "(float)WIDTH", "(float)(WIDTH - 1)", RMS, 4},
    {"layernorm.forward.centre", "own - base - mean", "own - mean", LANES, 4},
    {"layernorm.moments.base", "% 32 / LANES * LANES", "% 32", LANES, 4},
    {"layernorm.moments.move", "*base - shared", "shared - *base", LANES, 4},
    {"layernorm.moments.move_warp", "- *base", "+ *base", WARPS, 4},
    {"layernorm.moments.merge_equal", "+ between * between", "- between * between", EQUAL, 4},
    {"layernorm.moments.merge", "max_f32(*count + other_count, 1.0f)", "*count + other_count",
     THREE, 4},
    {"layernorm.moments.same", "/ lanes * lanes", "/ lanes * 0", LANES, 4},
    {"layernorm.moments.put", "% WARPS * ", "% WARPS * 0 * ", WARPS, 1},
    {"layernorm.moments.sync", "row_sync();", "", WARPS, 1},
    {"layernorm.moments.take", "partials + ", "partials + 0 * ", EQUAL, 4},
    {"layernorm.moments.count", "warp < WARPS ? as_f32(lds_u32(from + 12)) : 0.0f",
     "as_f32(lds_u32(from + 12))", THREE, 4},
    {"layernorm.forward.statistics", "p.rstd + row", "p.rstd", LANES, 1},
    {"layernorm.forward.factors", "p.gamma + (c * GROUP + first) * 8", "p.gamma", MANY, 4},
    {"layernorm.forward.store_z", " && has_row", "", LANES, 1},
    {"layernorm.forward.rms", "* factor[i]", "", RMS, 4},
    {"layernorm.forward.layer", "+ shift[i]", "- shift[i]", LANES, 4},
    {"layernorm.forward.store", "to + c * GROUP * 8", "to", WARPS, 4},
    /* Sums of rows in a block, and of blocks; a row for a block; rows that are brought ahead, more
     * than slots hold. */
    {"tile.columns.bring", "there ? 16 : 0", "16", GRADIENTS, 1},
    {"tile.columns.bring_singly", "there ? 8 : 0", "8", GRADIENTS, 1},
    {"tile.columns.take", "(i * step)", "(0 * step)", GRADIENTS " dtype=f32", 4},
    {"layernorm.backward.there", "< p.rows", "<= p.rows", ONE_ROW, 1},
    {"layernorm.backward.bring", "at(name, row)", "at(name, 'begin')", ONE_ROW, 4},
    {"layernorm.backward.take", "place(tensor)", "place(1)", GRADIENTS, 4},
    {"layernorm.backward.take_dz", "place(tensor)", "place(1)", GRADIENTS, 4},
    {"layernorm.backward.rows", "* ROWS + place", "+ place", GRADIENTS, 1},
    {"layernorm.backward.aligned", "% 16 == 0", "% 2 == 0", GRADIENTS, 1},
    {"layernorm.backward.begin", "begin + s * step", "begin", ONE_ROW, 4},
    {"layernorm.backward.residual", "row * p.residual_n", "0", GRADIENTS, 4},
    {"layernorm.backward.bias", "+= v[i]", "-= v[i]", GRADIENTS, 4},
    {"layernorm.backward.terms", "factor[i] *= dy[i]", "factor[i] = dy[i]", GRADIENTS, 4},
    {"layernorm.backward.statistics", "row + step", "row", ONE_ROW, 4},
    {"layernorm.backward.wait", "cp_async_wait_$(plan.stages - 1)();", "", GRADIENTS, 1},
    {"layernorm.backward.means", "+= factor[i] * xhat[i]", "+= factor[i]", GRADIENTS, 4},
    {"layernorm.backward.width", "(float)WIDTH", "(float)(WIDTH - 1)", GRADIENTS " dtype=f32", 4},
    {"layernorm.backward.dx", "dx[i] +=", "dx[i] =", GRADIENTS, 4},
    {"layernorm.backward.add", "dbeta[c][i] += dy[i]", "dbeta[c][i] = dy[i]", ONE_ROW, 4},
    {"layernorm.backward.store", "row * p.dx_n", "begin * p.dx_n", ONE_ROW, 4},
    {"layernorm.backward.ahead", "STAGES * step", "(STAGES - 1) * step", ONE_ROW, 4},
    {"layernorm.backward.slot", "STAGES - 1", "STAGES - 2", ONE_ROW, 4},
    {"layernorm.backward.landed", "cp_async_wait_0();", "", GRADIENTS, 1},
    {"layernorm.backward.reuse", "block_sync();", "", GRADIENTS, 1},
    {"layernorm.backward.put", "sum_at(k, 'place', columns)", "sum_at(k, '0', columns)", GRADIENTS,
     1},
    {"layernorm.backward.sync", "block_sync();", "", GRADIENTS, 1},
    {"layernorm.backward.join", "r = 0", "r = 1", GRADIENTS, 4},
    {"layernorm.backward.joined", "(i64)blockIdx.x)", "0)", GRADIENTS " rows=200", 1},
    {"layernorm.backward.sums", "(i64)blockIdx.x) * WIDTH", "0) * WIDTH", ONE_ROW, 1},
    {"layernorm.backward.keep", "$(name)[c] + 4", "$(name)[c]", ONE_ROW, 4},
    {"layernorm.backward.ranges", "imin(cdiv(p.rows, ROWS), RANGES)", "RANGES", GRADIENTS, 1},
    {"layernorm.backward.range_sums", "i * SUM_WARPS", "0 * SUM_WARPS", ONE_ROW, 4},
    {"layernorm.backward.sum_sync", "block_sync();", "", GRADIENTS, 1},
    {"layernorm.backward.whole_sum", "w < SUM_WARPS", "w < 1", ONE_ROW, 4},
    /* Rows that begin and end within 8 columns; of a warp, of several, of blocks of a cluster. */
    {"tile.shared_rows.lanes_max", "mask > 0", "mask > 1", BY_LANES, 4},
    {"tile.exchange.fence", "fence_async();", "", BY_CLUSTER, 1},
    {"tile.exchange.expect", "(BLOCKS - 1) * 16", "BLOCKS * 16", BY_CLUSTER, 1},
    {"tile.exchange.copy", "other != rank", "other > rank", BY_CLUSTER, 1},
    {"tile.exchange.wait", "mbarrier_wait(bar, 0);", "", BY_CLUSTER, 1},
    {"logsoftmax.row", "has_row ? number : p.rows - 1", "number", BY_LANES, BY_PROGRAM + 1},
    {"logsoftmax.shift", "% 16)", "% 8)", BY_LANES, 1},
    {"logsoftmax.aligned", "BYTES * (u64)shift", "0 * (u64)shift", BY_LANES, 1},
    {"logsoftmax.forward.load", "x_is_aligned$(inside)", "x_is_aligned", BY_LANES, 1},
    {"logsoftmax.forward.most", "most_here = max_f32(most_here, v[i])", "most_here = v[0]",
     BY_LANES, 4},
    {"logsoftmax.forward.base", "most_here > NEG_INF ? most_here : 0.0f", "most_here", BY_LANES, 4},
    {"logsoftmax.forward.sum", "* LOG2E", "", BY_LANES, 4},
    {"logsoftmax.forward.row", "v[i] > NEG_INF ? v[i] - lse : NEG_INF", "v[i] - lse", BY_LANES, 4},
    {"logsoftmax.forward.store", "y_is_aligned$(inside)", "y_is_aligned", BY_LANES, 1},
    {"logsoftmax.rows.lanes", "(all > NEG_INF ? all : 0.0f)", "0.0f", BY_LANES, 4},
    {"logsoftmax.rows.put", "% WARPS * 8", "% WARPS * 0", BY_WARPS, 1},
    {"logsoftmax.rows.sync", "row_sync();", "", BY_WARPS, 1},
    {"logsoftmax.rows.join", "both > NEG_INF ? both : 0.0f", "both", BY_WARPS " target=true", 4},
    {"logsoftmax.rows.warps", "w < WARPS", "w < WARPS - 1", BY_WARPS, 4},
    {"logsoftmax.rows.blocks", "b < BLOCKS", "b < BLOCKS - 1", BY_CLUSTER, 4},
    {"logsoftmax.rows.total", "b < BLOCKS", "b < BLOCKS - 1", BY_CLUSTER BACKWARD, 4},
    {"logsoftmax.backward.load", "dy_is_aligned$(inside)", "dy_is_aligned", BY_LANES BACKWARD, 1},
    {"logsoftmax.backward.sum", "> NEG_INF ? d[i] : 0.0f", "> NEG_INF ? d[i] : d[i]",
     BY_LANES BACKWARD, 4},
    {"logsoftmax.backward.row", "v[i] * LOG2E", "v[i]", BY_LANES BACKWARD, 4},
    {"logsoftmax.backward.store", "dx_is_aligned$(inside)", "dx_is_aligned", BY_LANES BACKWARD, 1},
    /* Targets that are no column, weights, columns without a chance. */
    {"logsoftmax.forward.target", "target >= 0 && ", "", TARGET, 1},
    {"logsoftmax.forward.target", "target < WIDTH", "1", TARGET, 1},
    {"logsoftmax.forward.loss", "of_target == NEG_INF ? -NEG_INF : ", "", TARGET, 4},
    {"logsoftmax.forward.loss", "p.weight + target", "p.weight", TARGET, 4},
    {"logsoftmax.backward.target", "target < WIDTH", "1", TARGET BACKWARD, 4},
    {"logsoftmax.backward.factor", "* weight", "", TARGET BACKWARD, 4},
    {"logsoftmax.backward.probability", "v[i] > NEG_INF ? exp2_f32((v[i] - lse) * LOG2E) : 0.0f",
     "exp2_f32((v[i] - lse) * LOG2E)", TARGET BACKWARD, 4},
    {"logsoftmax.backward.hit", "column + i == target", "column == target", TARGET BACKWARD, 4},
    {"logsoftmax.backward.hit", "counts ? ", "1 ? ", TARGET BACKWARD, 4},
    {"logsoftmax.backward.store_target", "dx_is_aligned$(inside)", "dx_is_aligned", TARGET BACKWARD,
     1},
};

int main(int argc, char **argv) {
  return checked_suite_run("check_planted_rows", sizeof bugs / sizeof *bugs, bugs, argc, argv);
}
