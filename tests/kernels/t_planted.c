/* t_planted.c - bugs planted in the real templates: the host device or the oracle catches each;
 * faults name what is wrong and the template's line. Without a bug nothing is said. */
#include "planted_suite.h"

#define FORWARD  "attention/simt/forward.cut"
#define BACKWARD "attention/simt/backward.cut"
#define ROWS     "tile/rows.cut"

/* Tiles that pass through one place in turn. */
#define TURNS "family=simt head_dim=264 stages=2"

/* Meetings of threads: every occurrence in the file is dropped once. */
static const planted_bug dropped[] = {
    {FORWARD, "block_sync();", "(void)0;",
     .words = TURNS ";family=simt head_dim=40 mask=causal bias=true",
     .fault = "race: shared|never written"},
    {BACKWARD, "block_sync();", "(void)0;", .words = TURNS " pass=backward bias=grad bias_dims=[k]",
     .fault = "race: shared|never written"},
    {ROWS, "warp_sync(ALL_LANES);", "(void)0;", .words = planted_backward,
     .fault = "no warp_sync or barrier orders|never written"},
};

static const planted_bug faults[] = {
    /* meetings */
    {"prelude.all_lanes", "0xffffffffu", "0xffffu", NULL, "not in its mask|not in the mask",
     .place = {{"tile.warp.max", "max_f32"}}},
    {"prelude.all_lanes", "0xffffffffu", "0x7fffffffu", NULL, "not in its mask|not in the mask",
     .place = {{"tile.warp.max", "max_f32"}}},
    {"simt.forward.load_tile", "block_sync(); //", "if (lane < 16) { block_sync(); } //",
     .fault = "divergence|race: shared|never written"},
    {"simt.forward.store_o", "if (lane == 0", "if (lane == 0) { block_sync(); } if (lane == 0",
     .fault = "divergence: lane *barrier_sync"},
    {"simt.forward.load_tile", "block_sync(); //", "if (warp < 3) { block_sync(); } //",
     .fault = "deadlock|race: shared|never written"},
    {"simt.forward.store_o", "DV);", "DV); if (warp < 3) { block_sync(); }", NULL,
     "deadlock: no thread can run*barrier 0: * of 128 threads have come*returned",
     .place = {{"simt.forward.store_o", "inverse"}}},
    /* shared memory */
    {"simt.forward.load_tile",
     "$(turns and \"\" or seq.load_rows(\"sm + \" .. tile_v, \"PITCH_DV\", \"v\", \"k0\", \"32\", "
     "\"DV\", \"v_head\"))",
     "(void)v_head;", NULL, "which was never written", .place = {{"tile.rows.add", "const"}}},
    {"tile.rows.load", "row *", "(row + 1) *", .fault = "race: shared|never written"},
    {"tile.rows.put_weights", "(r", "((r + 1)",
     .fault = "out of bounds|race: shared|never written"},
    {"tile.rows.add", "jj)", "jj + 1)", NULL, "race: shared|never written",
     .place = {{"tile.rows.add", "const"}, {"tile.rows.put_weights", "sts_u32"}}},
    {"tile.rows.put_weights", " + (int)threadIdx.x % 32", "", NULL, "race: shared store",
     .place = {{"tile.rows.put_weights", "sts_u32"}}},
    {"simt.forward.scores", "+ SM_Q + (u32)(warp * ROWS * PITCH_D)", "- PITCH_D", NULL,
     "shared load out of bounds: * before the first", .place = {{"tile.rows.dots", "load_f32x8"}}},
    /* global memory */
    {"tile.rows.load", " end", "= end", NULL,
     "load past the end of tensor|load touches a gap between rows of tensor",
     .place = {{"tile.rows.load", "pair = $(form"}}},
    {"contract.pair", "texts.values[names.exponent and 4 or 2]",
     "(texts.values[names.exponent and 4 or 2]:gsub(' k%)', ' k + 1)'))", NULL,
     "load past the end of tensor bias|load touches a gap between rows of tensor bias",
     .place = {{"simt.forward.hide", "visible"}}},
    {"simt.forward.store_o", "q <", "q <=", NULL,
     "store past the end of tensor o|store touches a gap between rows of tensor o|race: store at",
     .place = {{"simt.forward.store_o", ".row"}, {"simt.forward.store_o", "lane"}}},
    {"tile.rows.store", "i <", "i <=", NULL,
     "store past the end of tensor o|store touches a gap between rows of tensor o|race: store at",
     .place = {{"tile.rows.store", "column + 64 * i,"}, {"tile.rows.store", "column + 64 * i +"}}},
    {"simt.forward.store_o", "== 0 && p.$(norm.second)", ">= 0", NULL,
     "race: store at * lse*, which thread * stores to",
     .place = {{"simt.forward.store_o", "lane"}}},
    /* plain C */
    {"simt.forward.zero_o", "c <", "c <=", NULL, "undefined behaviour: array index",
     .place = {{"simt.forward.zero_o", "{"}}},
    {"simt.forward.heads", "p.h /", "p.hk -", NULL, "integer division by zero|undefined behaviour",
     .place = {{"simt.forward.heads", "hk"}}},
    {"simt.forward.load_tile", "block_sync(); //", "for (volatile int spin = 1; spin;) { } //",
     .words = "head_dim=40 block_q=16",
     .fault = "no progress: no thread met another for 1 s, one spins"},
    /* backward */
    {"sequence.split_kept", "(%s >= (i64)p.b", "(%s > (i64)p.b", planted_backward,
     "load past the end of tensor", .place = {{"simt.backward.sum_delta", "dot +"}}},
    {"simt.backward.store_delta", "lane ==", "lane >=", planted_backward, "race: store at * delta",
     .place = {{"simt.backward.store_delta", "stg_f32"}}},
    {"simt.backward.store_delta",
     "stg_f32(p.delta + row, $(norm.delta and norm.delta(\"dot\", norm.dsecond, "
     "norm.second_of_row) or \"0.0f\")",
     "(void)(d$(second)", planted_backward, "load of an element never written: * delta",
     .place = {{"simt.backward.load_kept", ".delta"}}},
    {"simt.backward.load_kept", "$(second) + row)", "$(second) + row + 1)", planted_backward,
     "load past the end of tensor lse", .place = {{"simt.backward.load_kept", "float $"}}},
    {"simt.backward.store_dk", "k <", "k <=", planted_backward,
     "store past the end of tensor dk|store touches a gap between rows of tensor dk|race: store at",
     .place = {{"simt.backward.store_dk", "row(\"dk"}}},
    {"simt.backward.store_sum", "warp == 0 && ", "", planted_backward, "race: store at *dbias",
     .place = {{"simt.backward.store_sum", "name"}}},
    {"simt.backward.has_key", "k < ", "k <= ", planted_backward,
     "store past the end of tensor dbias|store touches a gap between rows of tensor dbias|race: "
     "store at",
     .place = {{"simt.backward.store_sum", "name"}}},
};

/* What no rule forbids: only the numbers say it. */
#define SUNK          "family=simt head_dim=40 sink=true"
#define SUNK_BACKWARD "family=simt pass=backward head_dim=40 mask=causal sink=grad"

/* Rows whose sink is larger than their scores. */
static const verify_case biased[] = {
    {.shape = SHAPE(2, 4, 2, 33, 70, 0), .launch = {FG_GIVEN_SIGMOID_BIAS, {-1.5f}}}, {.seed = 0}};
static const verify_case few_keys[] = {{.shape = SHAPE(2, 4, 2, 33, 1, 0), .seed = 0},
                                       {.shape = {0}}};

#define LINEAR            "family=mma head_dim=64 normalizer=none"
#define SIGMOID           "family=mma head_dim=64 normalizer=sigmoid"
#define SIGMOID_WGMMA     "family=wgmma head_dim=64 normalizer=sigmoid"
#define SIGMOID_BACKWARD  "family=mma pass=backward head_dim=64 mask=causal normalizer=sigmoid"
#define LINEAR_BACKWARD   "family=mma pass=backward head_dim=64 mask=causal normalizer=none"
#define RETAINED          "family=simt head_dim=40 normalizer=retention"
#define RETAINED_BACKWARD "family=simt pass=backward head_dim=40 mask=causal normalizer=retention"

#define LOGS          "family=simt head_dim=40 normalizer=logsoftmax"
#define LOGS_MMA      "family=mma head_dim=64 normalizer=logsoftmax"
#define LOGS_BACKWARD "family=simt pass=backward head_dim=40 mask=causal normalizer=logsoftmax"
#define LOGS_COMBINED "kernel=combine head_dim=64 normalizer=logsoftmax"

/* Rows of retention whose r is below 1, as even seeds draw them, and rows whose r is above. */
static const verify_case both_sums[] = {{.shape = SHAPE(3, 2, 1, 47, 77, 0), .seed = 0},
                                        {.shape = SHAPE(3, 2, 1, 47, 77, 0), .seed = 1},
                                        {.shape = {0}}};

/* Rows that see no key. */
static const verify_case more_rows[] = {{.shape = SHAPE(2, 4, 2, 70, 33, 0), .seed = 0},
                                        {.shape = {0}}};

/* All products are below 0: those of one key, by a negative scale or not. */
static const verify_case low[] = {
    {.shape = SHAPE(2, 4, 2, 33, 70, 0), .given = FG_GIVEN_SCALE, .scale = 1, .seed = 0},
    {.shape = SHAPE(4, 8, 8, 1, 1, 0), .given = FG_GIVEN_SCALE, .scale = 1, .seed = 1},
    {.seed = 0}};

#define DROPS               "family=simt head_dim=40 dropout=true"
#define DROPS_MMA           "family=mma head_dim=64 dropout=true"
#define DROPS_WGMMA         "family=wgmma head_dim=64 dropout=true"
#define DROPS_BACKWARD      "family=simt pass=backward head_dim=40 dropout=true"
#define DROPS_BACKWARD_MMA  "family=mma pass=backward head_dim=64 dropout=true"
#define DROPS_BACKWARD_ROWS DROPS_BACKWARD_MMA " deterministic=true"

/* Biases of -inf. */
static const verify_case absent[] = {
    {.shape = SHAPE(2, 4, 2, 33, 70, 0), .style = VERIFY_ABSENT, .seed = 0},
    {.shape = SHAPE(2, 4, 2, 33, 70, 0), .style = VERIFY_ABSENT, .seed = 1},
    {.seed = 0}};

static const verify_case parts[] = {{.shape = {.parts = 3, .b = 2, .h = 3, .nq = 5}, .seed = 0},
                                    {.seed = 0}};

static const planted_bug wrong[] = {
    {"tile.warp.max", "16; mask", "8; mask", .words = planted_forward},
    {"tile.warp.sum", "mask)", "mask & 30)", .words = planted_forward},
    {"simt.forward.scores", "(lane", "((lane + 1)", .words = planted_forward},
    {"tile.rows.dots", "ys[i]", "ys[0]", .words = planted_forward},
    {"simt.forward.hide", "$(norm.masked)", "0.0f", .words = planted_forward},
    {"simt.forward.correct_o", "o[r][c] *= $(row.correction);", "", .words = planted_forward},
    {"expr.trees.place", "- \" .. nq", "- 1 - \" .. nq", .words = planted_forward},
    {"expr.masks.tile", ", h", " .. \" - 1\", h", .words = planted_forward},
    {"normalizers.softmax.step", "$l *= $correction;", "", .words = planted_forward},
    {"simt.backward.store_dq", "p.scale", "1.0f", .words = planted_backward},
    {"simt.backward.add_dk", "add_rows(&dk[0][0], own, sm + $(lane_d), PITCH_D, D);", "",
     .words = planted_backward},
    {"simt.backward.zero_dq", "dq[r][c] = 0.0f; ", "", .words = planted_backward},
    {"simt.backward.sum_pairs", "r] +=", "r] =", .words = planted_backward},
    /* tiles in turn: the part that is read is the one that was asked for */
    {"simt.forward.turn", "\"k0\"", "\"(k0 + 32)\"", .words = TURNS},
    {"simt.backward.turn", "turn[part]", "turn.dv", .words = TURNS " pass=backward"},
    {"simt.backward.heads", "(g + 1) * group", "g * group + 1", .words = planted_backward},
    /* a maximum that is never set: garbage on a GPU, which may be small enough to be right */
    {"normalizers.softmax.init", "m = NEG_INF;\\n$", "",
     .words = "family=simt head_dim=40 mask=causal"},
    {"normalizers.softmax.init", "m = NEG_INF;\\n$", "", .words = "family=mma head_dim=64"},
    {"normalizers.softmax.ds", "($dp - $delta)", "$dp", .words = planted_backward},
    /* a sink: in the sum of weights, in their unit, and its gradient over all rows of a head */
    {"normalizers.softmax.sink", " + exp2_f32(sink - origin)", "", .words = SUNK},
    {"normalizers.softmax.sink", "of_keys * inverse_f32", "inverse_f32", .words = SUNK,
     .cases = few_keys},
    {"normalizers.softmax.sink", "$above) * LOG2E", "$above)", .words = SUNK, .cases = few_keys},
    {"normalizers.softmax.sink", "(origin + log2", "($m + log2", .words = SUNK, .cases = few_keys},
    {"normalizers.softmax.sink_gradient", "* -$delta", "* $delta", .words = SUNK_BACKWARD},
    {"normalizers.softmax.sink_gradient", " * LOG2E - $kept", " - $kept", .words = SUNK_BACKWARD},
    {"simt.backward.head_row", "p.delta + $(row)", "p.delta", .words = SUNK_BACKWARD},
    {"backward.head_grads.row", "+ i;", "+ i % 32;", .words = SUNK_BACKWARD},
    {"backward.head_grads.sum", "4 * (u32)warp", "4 * (u32)(warp % 2)", .words = SUNK_BACKWARD,
     .fault = "race: shared|wrong numbers|never written"},
    {"backward.head_grads.store", " + h, all", ", all", .words = SUNK_BACKWARD,
     .fault = "race: store|wrong numbers|never written"},
    {"backward.kept_heads.read", "2 * $(row) + 1", "2 * $(row)",
     .words = "family=mma pass=backward head_dim=64 sink=grad"},
    /* other normalisers */
    {"normalizers.sigmoid.bias", "p.sigmoid_bias * LOG2E", "p.sigmoid_bias", .words = SIGMOID,
     .cases = biased},
    {"normalizers.sigmoid.bias", ": -log2_f32", ": log2_f32", .words = SIGMOID},
    {"normalizers.sigmoid.weight", "$s * $unit", "$s", .words = SIGMOID},
    {"normalizers.sigmoid.ds", "(least_f32($basis, 1e38f) * $p)", "$p", .words = SIGMOID_BACKWARD},
    {"normalizers.none.step", "times(r.s, r.unit)", "r.s", .words = LINEAR},
    {"normalizers.none.ds", "return dp", "return \"0.0f\"", .words = LINEAR_BACKWARD},
    {"normalizers.retention.step", "abs_f32($p)", "$p", .words = RETAINED},
    {"normalizers.retention.finish", "max_f32($second, 1.0f)", "$second", .words = RETAINED,
     .cases = few_keys},
    {"normalizers.retention.merge", "$sum += $other", "$sum = $other",
     .words = "family=decode head_dim=64 normalizer=retention"},
    {"normalizers.retention.resume", "max_f32($second, 1.0f)", "$second",
     .words = "kernel=combine head_dim=64 normalizer=retention", .cases = parts},
    {"normalizers.retention.kept", "max_f32($r, 1.0f)", "$r", .words = RETAINED_BACKWARD,
     .cases = few_keys},
    {"normalizers.retention.p", "$s * $kept", "$s", .words = RETAINED_BACKWARD, .cases = both_sums},
    /* the largest product */
    {"attention.max_logit.start", "NEG_INF", "0.0f",
     .words = "family=simt head_dim=40 max_logit=true", .cases = low},
    {"attention.max_logit.rows", "\" < \" .. seq.nq", "\" < 32767 + \" .. seq.nq",
     .words = "family=mma head_dim=64 max_logit=true", .cases = low},
    {"attention.max_logit.add", "p.h + h", "p.h + h / 2",
     .words = "family=simt head_dim=40 max_logit=true"},
    {"mma.forward.most", "seen .. \") \"", "\"1) \"",
     .words = "family=mma head_dim=64 max_logit=true mask=causal"},
    {"wgmma.most.product", "whole_or_seen(whole,", "whole_or_seen(\"1\",",
     .words = "family=wgmma head_dim=64 max_logit=true mask=causal"},
    /* dropout */
    {"attention.dropout.declare", "p.keep + 0.5f", "p.keep - 500.0f", .words = DROPS},
    {"attention.dropout.declare", "65536.0f * inverse_f32", "inverse_f32", .words = DROPS},
    {"attention.dropout.call", "(u32)(%s) / 8", "(u32)(%s) / 16", .words = DROPS_MMA},
    {"tile.dropout.round", "0xcd9e8d57u * x[2]", "0xcd9e8d57u * x[3]", .words = DROPS},
    {"tile.dropout.bits", "~(most ^ x[i])", "(most ^ x[i])", .words = DROPS},
    {"tile.dropout.exchange", "lane & lane_bit ? 32 - size", "lane & lane_bit ? size",
     .words = DROPS_MMA},
    {"tile.dropout.own_tile", "threadIdx.x % 4", "0", .words = DROPS_MMA},
    {"tile.dropout.is_kept", "n / 2 % 2", "n % 2", .words = DROPS_MMA},
    {"tile.dropout.own_row", "own % 2", "own % 1", .words = DROPS_BACKWARD_MMA},
    {"simt.forward.drop", "\"k\")", "\"(k + 1)\")", .words = DROPS},
    {"simt.backward.drop", "drop_scale : 0.0f", "1.0f : 0.0f", .words = DROPS_BACKWARD},
    {"simt.backward.drop_indexed", "drop_scale : 0.0f", "drop_scale : drop_scale",
     .words = DROPS_BACKWARD " deterministic=true score=s+t[h,(k-q)*2+300] "
                             "inputs.t=f32[h,900]grad"},
    {"mma.forward.drop", "\"c\"", "\"0\"", .words = DROPS_MMA},
    {"mma.rows.drop", "\"c\"", "\"1\"", .words = DROPS_BACKWARD_ROWS},
    {"backward.pairs.keeps", "\"k0 + k_lane + \" .. step", "\"k0 + k_lane\"",
     .words = DROPS_BACKWARD_MMA},
    {"backward.pairs.drop", "\"c\"", "\"0\"", .words = DROPS_BACKWARD_MMA},
    {"wgmma.weights.draw", "8 * r", "0 * r", .words = DROPS_WGMMA},
    {"normalizers.logsoftmax.beside", "$p == NEG_INF ? 0.0f : 1.0f", "1.0f",
     .words = LOGS " mask=causal"},
    {"normalizers.logsoftmax.step", "$l *= exp2_f32($m - origin);", "", .words = LOGS},
    {"normalizers.logsoftmax.finish", "total == 0.0f ? 0.0f : -$second", "-$second",
     .words = LOGS " mask=causal", .cases = more_rows},
    {"normalizers.logsoftmax.merge", "exp2_f32($bm - origin) * $bl", "$bl", .words = LOGS_COMBINED,
     .cases = parts},
    {"normalizers.logsoftmax.resume", "is_empty ? 0.0f : $second", "0.0f", .words = LOGS_COMBINED,
     .cases = parts},
    {"normalizers.logsoftmax.p", "$s == $hidden ? -0.0f : ", "",
     .words = LOGS_BACKWARD " bias=grad", .cases = absent},
    {"normalizers.logsoftmax.ds", "as_u32($p) == 0x80000000u ? 0.0f : ", "",
     .words = LOGS_BACKWARD " bias=grad", .cases = absent},
    {"simt.forward.beside", "beside.value(\"s[r]\")", "beside.weight(\"s[r]\")", .words = LOGS},
    {"simt.forward.store_beside", "sum[r]", "o[r]", .words = LOGS},
    {"simt.forward.add_beside", "beside * sum", "sum", .words = LOGS},
    {"tile.rows.store_f32", "sum[2 * i + 1]", "sum[2 * i]", .words = LOGS},
    {"mma.forward.beside", "beside.weight(\"s[e]\")", "beside.value(\"s[e]\")", .words = LOGS_MMA},
    {"mma.forward.finish_beside", "o[e] = inverse * o[e] + beside", "o[e] = o[e] - beside",
     .words = LOGS_MMA},
    {"mma.forward.columns_of_block", "COLUMN_BLOCKS * DV,", "COLUMN_BLOCKS * 8,",
     .words = "family=mma head_dim=64/256 normalizer=logsoftmax",
     .fault = "race: store|wrong numbers", .place = {{"mma.forward.finish_beside", "stg_f32_if"}}},
    {"wgmma.output.finish_beside", "8 * r", "0 * r",
     .words = "family=wgmma head_dim=64 normalizer=logsoftmax"},
    {"tile.tiles.dot_f32", "2 * i + 1", "2 * i",
     .words = "family=mma pass=backward head_dim=64 normalizer=logsoftmax"},
    {"tile.sequences.zero_f32", "0.0f", "1.0f", .words = LOGS " q_layout=packed kv_layout=packed"},
    {"combine.beside", "by * x", "x", .words = LOGS_COMBINED, .cases = parts},
    {"combine.store_beside", "to_beside + c", "to_beside", .words = LOGS_COMBINED, .cases = parts},
    {"normalizers.retention.ds", "-2.0f", "2.0f", .words = RETAINED_BACKWARD, .cases = both_sums},
    {"prelude.step", "8.507059e37f", "1.0f", .words = RETAINED_BACKWARD, .cases = both_sums},
    {"normalizers.retention.delta", "* inverse_f32($r)", "", .words = RETAINED_BACKWARD,
     .cases = both_sums},
    {"normalizers.logsoftmax.kept", ": $lse", ": 0.0f", .words = LOGS_BACKWARD},
    {"wgmma.backward_background.beside", "32 * (lane % 2)", "0 * (lane % 2)",
     .words = "family=wgmma pass=backward head_dim=64 normalizer=logsoftmax"},
    {"wgmma.unit.scale_of_lane", "as_f32(", "2.0f * as_f32(",
     .words = "family=wgmma head_dim=64 block_kv=64 normalizer=retention"},
    {"wgmma.most.sum_below_limit", "* 1.01f", "* 0.0f",
     .words = "family=wgmma head_dim=128 max_logit=true"},
    {"wgmma.most.weight", "* 1.01f", "* 0.0f",
     .words = "family=wgmma head_dim=128 max_logit=true"},
    {"wgmma.most.of_row", "q_lane + $(8 * r) < $(seq.nq)", "1",
     .words = "family=wgmma head_dim=64 max_logit=true", .cases = low},
    {"wgmma.most.limit", "\"most_product\"", "\"(most_product + 10.0f)\"",
     .words = "family=wgmma head_dim=128 max_logit=true"},
    {"prelude.inverse_by_products", "0x7ef311c7u", "0x7e8311c7u", .words = SIGMOID},
    {"prelude.inverse_to_be_clipped", "0x7ef33400", "0x7e833400", .words = SIGMOID_WGMMA},
    {"prelude.inverse_to_be_clipped", "2.00128f", "2.02f", .words = SIGMOID_WGMMA},
    {"normalizers.sigmoid.step", "spec.dtype == \"bf16\"", "true",
     .words = SIGMOID_WGMMA " dtype=f16"},
    {"tile.dropout.keep_pair", "0xaabb", "0xbbaa", .words = DROPS_WGMMA},
};

/* No kernel comes of them. */
static const planted_bug refused[] = {
    {"simt.forward.scores", "ROWS]", "ROWS] = missing", NULL, "error*missing",
     .place = {{"simt.forward.scores", "float"}}, .refused = FG_ECOMPILER},
    {"tile.rows.load", "i /", "i //", NULL, "error: expected",
     .place = {{"tile.rows.load", "end"}, {"tile.rows.load", "u32 pair"}}, .refused = FG_ECOMPILER},
    {"simt.forward.tile", "mask.tile", "mask.tiles", NULL, "nil value (field 'tiles')",
     .place = {{"simt.forward.tile", "mask"}}, .refused = FG_ETEMPLATE},
    {"simt.forward.correct_o", "row.correction", "row.corection.x", NULL, "corection",
     .place = {{"simt.forward.correct_o", "row"}}, .refused = FG_ETEMPLATE},
};

/* Without a bug. */
static const planted_bug whole[] = {{.words = planted_forward}, {.words = planted_backward}};

PLANTED_SUITE(.name = "planted",
              .bugs = {PLANTED(dropped), PLANTED(faults), PLANTED(wrong), PLANTED(refused)},
              .whole = PLANTED(whole), .whole_seeds = 10)
