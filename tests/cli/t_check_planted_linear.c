/* t_check_planted_linear.c - bugs planted through FLASHGEN_TEMPLATES in kernels of linear layers,
 * which `flashgen check` must see. */
#include "planted.h"
#include "program.h"
#include "scratch.h"

typedef struct bug {
  const char *where, *text, *instead, *words;
  int code; /* a fault of the order ends with 1, wrong numbers with 4 */
} bug;

/* `check` ends with each one's code. */
static void find_all(const bug *bugs, size_t n) {
  static const program_setup with_templates = {.env = {"FLASHGEN_TEMPLATES=t"}};
  for (size_t i = 0; i < n; i++) {
    planted_in_t(bugs[i].where, bugs[i].text, bugs[i].instead);
    program_result r =
        program_run(&with_templates, "check -q --seed 1 kernel=linear %s", bugs[i].words);
    ck_assert_msg(r.code == bugs[i].code, "%s: %s -> %s: exit %d\n%s%s", bugs[i].where,
                  bugs[i].text, bugs[i].instead, r.code, r.out, r.err);
  }
}

/* Products in order, and what becomes of their sums. */
START_TEST(simt) {
#define SIMT     "family=simt block_q=32 width=72/40 "
#define BACKWARD "pass=backward bias=grad "
  static const bug bugs[] = {
      {"linear.simt.load_major", "own = i / STEP", "own = i / STEP / 2", SIMT, 1},
      {"linear.simt.load_minor", "own = i % $(rows)", "own = i % $(rows) / 2", SIMT BACKWARD, 1},
      {"linear.simt.load", "at < $(operand.end_) && ", "", SIMT, 1},
      {"linear.simt.multiply", "4 * (row - m0)", "0", SIMT, 4},
      {"linear.simt.next", "block_sync(); //", "//", SIMT, 1},
      {"linear.simt.store", "acc[i / 4][i % 4]", "acc[i / 4][0]", SIMT BACKWARD, 4},
      {"linear.simt.column", "(n) / 4 * 2", "(n) / 4", SIMT "epilogue=swiglu", 1},
      {"linear.simt.bias", "ROW_OF_W(column + j))", "ROW_OF_W(column))", SIMT "bias=true", 4},
      {"linear.simt.gated", "acc[i / 4][i % 2 + 2]", "acc[i / 4][i % 2]", SIMT "epilogue=swiglu",
       4},
      {"linear.simt.finish", "$(addend)", "", SIMT "residual=true", 4},
      {"linear.simt.bits", "> 0.0f", "< 0.0f", SIMT "epilogue=relu", 4},
      {"linear.simt.store_bits", " && row + i < p.rows", "", SIMT "epilogue=relu", 1},
      {"linear.simt.keep_gated", "factor * activation_slope", "factor + activation_slope",
       SIMT "epilogue=geglu", 4},
      {"linear.simt.keep", "$(h)", "0.0f", SIMT "epilogue=gelu", 4},
      {"linear.epilogue.value", "$(row.value)", "h + $(row.value)", SIMT "epilogue=gelu", 4},
      {"linear.epilogue.derivative", "$(row.derivative)", "1.0f + $(row.derivative)",
       SIMT "epilogue=silu", 4},
      {"linear.epilogue.bits", "lane ^ mask", "lane", SIMT "epilogue=relu", 4},
      {"prelude.normal_cdf", "0.18043703f", "0.28043703f", SIMT "epilogue=gelu_erf", 4},
  };
  find_all(bugs, sizeof bugs / sizeof *bugs);
}
END_TEST

/* The last step of a forward that ends with a norm. */
START_TEST(norm) {
#define NORM "epilogue=layernorm "
  static const bug bugs[] = {
      {"linear.simt.leave_z", "$(addend)", "", SIMT NORM "residual=true", 4},
      {"linear.norm.load", "ldg_f32x4(z + 4, from + column + 4)", "ldg_f32x4(z + 4, from + column)",
       SIMT NORM, 4},
      {"linear.norm.eps", "p.eps == p.eps ? p.eps : 1e-5f", "1e-5f", SIMT NORM "eps=1", 4},
      {"linear.norm.sum", "+= z[i]", "+= 1e7f * z[i]", SIMT NORM, 4},
      {"linear.norm.mean", "1.0f / (float)WIDTH_OUT", "1e7f", SIMT NORM, 4},
      {"linear.norm.square", "d * d", "d", SIMT NORM, 4},
      {"linear.norm.rest", "rest = sum_over_lanes", "rest = 9.0f + sum_over_lanes", SIMT NORM, 4},
      {"linear.norm.rstd", "(float)WIDTH_OUT", "(float)(WIDTH_OUT - 1)", SIMT NORM, 4},
      {"linear.norm.beta", "p.beta + column", "p.beta", SIMT NORM, 4},
      {"linear.norm.out", " * factor[i]", "", SIMT NORM, 4},
      {"linear.norm.statistics", "p.rstd + row, rstd", "p.rstd + row, rstd * rstd", SIMT NORM, 4},
      {"linear.epilogue.sum", "mask > 0", "mask > 1", SIMT NORM, 4},
      {"linear.mma.residual_of_z", "high +=", "high -=",
       "family=mma block_q=64 block_kv=64 width=72/40 residual=true " NORM, 4},
  };
  find_all(bugs, sizeof bugs / sizeof *bugs);
}
END_TEST

/* The gradient of h, its sums of columns, and parts of dw. */
START_TEST(gradient) {
#define MANY "family=mma block_q=64 block_kv=64 width=16/24 pass=backward rows=2101 "
  static const bug bugs[] = {
      {"linear.gradient.half", ": column - WIDTH_OUT", ": 0", SIMT BACKWARD "epilogue=swiglu", 4},
      {"linear.gradient.load", "dy_column", "0", SIMT BACKWARD, 4},
      {"linear.gradient.bits", "column % 32", "column % 16", SIMT BACKWARD "epilogue=relu", 4},
      {"linear.gradient.factors", "kept_n + column", "kept_n", SIMT BACKWARD "epilogue=gelu", 4},
      {"linear.gradient.store", "column, v, ", "column, factor, ", SIMT BACKWARD "epilogue=gelu",
       4},
      {"linear.gradient.sum", "+= v[i]", "= v[i]", SIMT BACKWARD, 4},
      {"linear.gradient.put", "2048 * (number - 1)", "0", SIMT BACKWARD NORM, 1},
      {"linear.gradient.warps", "256 * i + ", "", SIMT BACKWARD, 4},
      {"linear.gradient.put_part", "number * parts", "parts", SIMT BACKWARD NORM, 1},
      {"linear.gradient.tensor", "tensors", "{ tensors[1] }", SIMT BACKWARD NORM, 1},
      {"linear.gradient.terms", " * rstd", " + rstd", SIMT BACKWARD NORM, 4},
      {"linear.gradient.means", "p.z_n + column", "p.z_n", SIMT BACKWARD NORM, 4},
      {"linear.gradient.put_means", "product, 32", "product, 2", SIMT BACKWARD NORM, 4},
      {"linear.gradient.gamma", "p.gamma + column", "p.gamma", SIMT BACKWARD NORM, 4},
      {"linear.gradient.dz", "if (p.dz) ", "if (p.dz && row > 0) ", SIMT BACKWARD NORM, 4},
      {"linear.gradient.norm_sums", "v[i] * xhat", "v[i]", SIMT BACKWARD NORM, 4},
      {"linear.gradient.norm", " - sum_of[r]", " + sum_of[r]", SIMT BACKWARD NORM, 4},
      {"linear.mma.more",
       "c[1] += ", "c[0] += ", "family=mma block_q=64 block_kv=64 width=72/40 " BACKWARD, 4},
      {"linear.wgmma.backward.more", "+ n0 + 2 * (lane % 4)", "+ n0",
       "family=wgmma width=72/328 pass=backward", 4},
      {"linear.gradient.parts", "part = warp;", "part = warp + 1;", SIMT BACKWARD, 4},
      {"linear.gradient.groups", "32 * i + lane", "lane", SIMT BACKWARD, 4},
      {"linear.gradient.dw_parts", "$(linear.count_parts)", "1", MANY, 4},
      {"linear.gradient.dw_part", "part * count + first + 4", "first + 4", MANY, 4},
      {"linear.gradient.dw_store", "first % WIDTH_IN", "first % WIDTH_IN / 16", MANY, 1},
  };
  find_all(bugs, sizeof bugs / sizeof *bugs);
}
END_TEST

/* Eight columns at once. */
START_TEST(columns) {
#define MMA "family=mma block_q=64 block_kv=64 width=72/136 "
  static const bug bugs[] = {
      {"tile.columns.load", "ldg_u32x4(raw, from);", "for (int i = 0; i < 4; i++) { raw[i] = 0; }",
       MMA BACKWARD "epilogue=gelu", 4},
      {"tile.columns.load_singly", "(u32)ldg_u16(from + i)", "(u32)ldg_u16(from)",
       SIMT BACKWARD "epilogue=gelu", 4},
      {"tile.columns.of", "(u16)(raw[i] >> 16)", "(u16)raw[i]", SIMT BACKWARD "epilogue=gelu", 4},
      {"tile.columns.store", "$(x.pack)(v[2 * i], ", "$(x.pack)(0.0f, ",
       MMA BACKWARD "epilogue=gelu", 4},
  };
  find_all(bugs, sizeof bugs / sizeof *bugs);
}
END_TEST

/* Products on tensor cores. */
START_TEST(mma) {
#define LONG "family=mma block_q=64 block_kv=64 width=520/24 "
  static const bug bugs[] = {
      {"linear.mma.load_major", "$(operand.from) + k", "$(operand.from)", MMA, 4},
      {"linear.mma.load_minor", "$(operand.from) + $(own)", "$(operand.from)", MMA BACKWARD, 4},
      {"linear.mma.place", "in_band / height", "in_band % height", MMA, 1},
      {"linear.mma.lanes", "by_rows(sm, CHUNKS_K, m_warp, 0)", "by_rows(sm, CHUNKS_K, 0, 0)", MMA,
       4},
      {"linear.mma.wait", "plan.stages - 2", "plan.stages - 1", MMA, 1},
      {"linear.mma.next", "(i + $(plan.stages - 1)) % $(plan.stages)", "i % $(plan.stages)", LONG,
       1},
      {"linear.mma.multiply", "stage * A_BYTES", "0 * A_BYTES", MMA, 4},
      {"linear.mma.store", "row < $(rows) && ", "", MMA, 1},
      {"linear.mma.put", "c[2], c[3]", "c[0], c[1]", MMA BACKWARD, 4},
      {"linear.mma.residual", "p.residual + $(first_y)", "p.residual", MMA "residual=true", 4},
      {"linear.mma.bias_of_half", "j % 2 * WIDTH_OUT", "0", MMA "bias=true epilogue=swiglu", 4},
      {"linear.mma.bias", "half + column", "half", MMA "bias=true", 4},
      {"linear.mma.keep_rows", "< p.rows", "< p.rows - 1", MMA "epilogue=gelu", 4},
      {"linear.mma.rows", "< p.rows", "< p.rows - 1", MMA, 4},
      {"linear.mma.finish", "activate(\"h[1]\")", "activate(\"h[0]\")", MMA, 4},
      {"linear.mma.add_residual", "more >> 16", "more", MMA "residual=true", 4},
      {"linear.mma.bits", "> 0.0f", ">= 0.0f", MMA "epilogue=relu", 4},
      {"linear.mma.store_bits", " && row < p.rows", "", MMA "epilogue=relu", 1},
      {"linear.mma.keep_gated", "h[5] * activation_slope", "activation_slope", MMA "epilogue=geglu",
       4},
      {"linear.mma.keep", "activation_slope(h[1])", "activation_slope(h[0])", MMA "epilogue=gelu",
       4},
      {"linear.mma.halves", "row / 8 % 2 * WIDTH_OUT", "0", MMA "epilogue=swiglu", 4},
      {"linear.mma.half", "own + r / 2 < WIDTH_OUT && ", "", MMA "epilogue=swiglu", 1},
      {"linear.mma.part", "cdiv(p.rows, parts)", "p.rows / parts", MANY, 4},
      {"linear.mma.store_part", "low, high", "high, low", MANY, 4},
  };
  find_all(bugs, sizeof bugs / sizeof *bugs);
}
END_TEST

/* Products by warpgroups, and their way to memory. */
START_TEST(wgmma) {
#define WGMMA "family=wgmma width=456/192 "
  static const bug bugs[] = {
      {"linear.wgmma.product.find", "* CLUSTER + rank", "* CLUSTER", WGMMA, 1},
      {"linear.wgmma.product.load", "$(parity(\"count\", STAGES)) ^ 1", "1", WGMMA, 1},
      {"linear.wgmma.product.give_back", "(count - 1)", "count", WGMMA, 1},
      {"linear.wgmma.product.part", "part * k_of_part", "0",
       "family=wgmma width=16/24 pass=backward rows=2101", 4},
      {"linear.wgmma.product.parts", "cdiv(cdiv($(given.k), parts), 64) * 64",
       "cdiv($(given.k), parts)", "family=wgmma width=16/24 pass=backward rows=2101", 4},
      {"linear.wgmma.product.asked", "%s ? %s : 0", "%s ? 0 : %s", WGMMA BACKWARD, 1},
      {"linear.wgmma.product.multiply", "+ A_BYTES / 32", "", WGMMA "block_kv=128", 4},
      {"linear.wgmma.product.wait_turn", "barrier_sync(1 + GROUPS + group, 256);", "",
       "family=wgmma block_kv=128 width=456/264 rows=1100", 1},
      {"linear.wgmma.product.pass_turn", "tile + tile_step < tiles", "0",
       "family=wgmma block_kv=128 width=136/264 rows=1100", 1},
      {"linear.wgmma.kernel.own", "count += (GROUPS - 1) * steps", "count += GROUPS * steps",
       "family=wgmma block_kv=128 width=136/264 rows=1100", 1},
      {"linear.wgmma.kernel.turn", "place = tile_step - 1 - place", "place = tile_step - place",
       "family=wgmma width=264/520 pass=backward rows=3000", 1},
      {"linear.wgmma.kernel.last", "unit >= ", "unit > ", WGMMA BACKWARD, 1},
      {"linear.wgmma.kernel.order", ": unit - $(second)", ": unit",
       "family=wgmma width=264/24 pass=backward rows=1000", 4},
      {"linear.wgmma.product.end", "cluster_sync();", "", WGMMA, 1},
      {"linear.wgmma.forward.results", "(y0, y1)", "(y1, y0)", WGMMA "epilogue=gelu", 4},
      {"linear.wgmma.forward.factors", "(&slope%d, h%d)", "(&slope%d, 0.0f * h%d)",
       WGMMA "epilogue=gelu", 4},
      {"linear.wgmma.forward.put_factors", "(c6, c7)", "(c6, c6)", WGMMA "epilogue=gelu", 4},
      {"linear.epilogue.both", "$(row.value)", "h + $(row.value)", WGMMA "epilogue=gelu", 4},
      {"linear.wgmma.forward.bits", "h1 > 0.0f", "h1 < 0.0f", WGMMA "epilogue=relu", 4},
      {"linear.wgmma.forward.half", "< WIDTH_OUT", "< 2 * WIDTH_OUT", WGMMA "epilogue=swiglu", 1},
      {"linear.wgmma.columns.store_sums", "row = m0 + ",
       "row = ", "family=wgmma width=16/520 pass=backward rows=2101", 1},
  };
  find_all(bugs, sizeof bugs / sizeof *bugs);
}
END_TEST

/* Blocks of a cluster that have a row together. */
START_TEST(wgmma_norm) {
#define ROWS "family=wgmma width=72/328 bias=true residual=true rows=300 " NORM
  static const bug bugs[] = {
      {"linear.wgmma.norm.vectors", "(has_mean and 1 or 0)", "0", ROWS, 1},
      {"linear.wgmma.norm.add", "%s += residual1", "%s -= residual1", ROWS, 4},
      {"linear.wgmma.norm.sum", "mean%d += %s + %s", "mean%d += 1e7f * (%s + %s)", ROWS, 4},
      {"linear.wgmma.norm.rest", "rest = rest$(r) * each", "rest = 1.0f + rest$(r) * each", ROWS,
       4},
      {"linear.wgmma.norm.square", "d1 * d1", "d1", ROWS, 4},
      {"linear.wgmma.norm.out", "rstd%d * gamma%d + beta", "rstd%d + gamma%d + beta", ROWS, 4},
      {"linear.wgmma.norm.quad", ", 4)", ", 2)", ROWS, 4},
      {"linear.wgmma.norm.put", "* 8, as_u32", "* 8 + 4, as_u32", ROWS, 1},
      {"linear.wgmma.norm.own", "warp_sync(ALL_LANES);", "", ROWS, 1},
      {"linear.wgmma.norm.send", "lane != rank", "lane <= rank", ROWS, 1},
      {"linear.wgmma.norm.tell", "mbarrier_arrive_remote_if(full, lane, is_sent);",
       "for (int i = 1; i < CLUSTER; i++) { mbarrier_arrive_if(full, lane == 0); }",
       "family=wgmma width=16/328 block_q=64 rows=1000 " NORM, 1},
      {"linear.wgmma.norm.merge_means", "$(columns_from(\"from * BLOCK_N\"))", "BLOCK_N", ROWS, 4},
      {"linear.wgmma.norm.merge", "d * d * (float)", "d * (float)", ROWS, 4},
      {"linear.wgmma.norm.mean", "1.0f / (float)", "1e7f * (float)", ROWS, 4},
      {"linear.wgmma.norm.eps", "p.eps == p.eps ? p.eps : 1e-5f", "1e-5f", ROWS "eps=1", 4},
      {"linear.norm.add", "z[i] += v[i]", "z[i] -= v[i]",
       "family=wgmma width=16/2056 bias=true rows=8 " NORM, 4},
      {"linear.wgmma.norm.statistics", "p.mean + row, mean%d", "p.mean + row, rstd%d", ROWS, 4},
  };
  find_all(bugs, sizeof bugs / sizeof *bugs);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("check_planted_linear");
  TCase *tests = tcase_create("check_planted_linear");
  tcase_add_checked_fixture(tests, scratch_enter, scratch_leave);
  suite_add(tests, simt);
  suite_add(tests, norm);
  suite_add(tests, gradient);
  suite_add(tests, columns);
  suite_add(tests, mma);
  suite_add(tests, wgmma);
  suite_add(tests, wgmma_norm);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
