/* t_merge.c - the normaliser's merge: two rows' states over different keys are one over all.
 *
 * The forward kernel is expanded from templates that part the keys: every second tile goes to a
 * state and an accumulator of its own, which are merged before the row is finished. */
#include "kernel_case.h"
#include "templates.h"

static void part_keys(void) {
  static const char file[] = "attention/simt/forward.cut";
  templates_change(file,
                   "  $(text.floats(norm.states(function(name) return name .. \"[ROWS]\" end)))\n"
                   "  float o[ROWS][LANE_DV];\n",
                   "  float m[ROWS], l[ROWS], m_b[ROWS], l_b[ROWS];\n"
                   "  float o[ROWS][LANE_DV], o_b[ROWS][LANE_DV];\n");
  templates_change(file, "    $(norm.init(row))\n",
                   "    $(norm.init(row))\n"
                   "    $(norm.init(other))\n"
                   "    #pragma unroll\n"
                   "    for (int c = 0; c < LANE_DV; c++) { o_b[r][c] = 0.0f; }\n");
  templates_change(file, "@ function row.sum(x)",
                   "@ local other = { s = \"s[r]\", p = \"s[r]\", correction = \"correction\","
                   " m = \"m_b[r]\", l = \"l_b[r]\", each = row.each, max = row.max }\n"
                   "@ function row.sum(x)");
  templates_change(file,
                   "      $(norm.step(row))\n"
                   "      @ if row.correction then\n"
                   "      @ spot \"simt.forward.correct_o\"\n"
                   "      #pragma unroll\n"
                   "      for (int c = 0; c < LANE_DV; c++) { o[r][c] *= $(row.correction); }\n"
                   "      @ end\n",
                   "      if (k0 / 32 % 2) {\n"
                   "        $(norm.step(other))\n"
                   "        for (int c = 0; c < LANE_DV; c++) { o_b[r][c] *= correction; }\n"
                   "      } else {\n"
                   "        $(norm.step(row))\n"
                   "        for (int c = 0; c < LANE_DV; c++) { o[r][c] *= correction; }\n"
                   "      }\n");
  templates_change(file, "    add_rows(&o[0][0], weights,",
                   "    add_rows(k0 / 32 % 2 ? &o_b[0][0] : &o[0][0], weights,");
  templates_change(file, "    const int q = q_warp + r;\n    $(norm.finish(row))\n",
                   "    const int q = q_warp + r;\n"
                   "    {\n"
                   "      @ row.correction, other.correction = \"own\", \"others\"\n"
                   "      $(norm.merge(row, other))\n"
                   "      for (int c = 0; c < LANE_DV; c++) {\n"
                   "        o[r][c] = own * o[r][c] + others * o_b[r][c];\n"
                   "      }\n"
                   "    }\n"
                   "    $(norm.finish(row))\n");
}

/* One tile leaves the other state empty; causal leaves rows that neither has seen a key of. */
TEST(parts_are_the_whole) {
  static const fg_shape shapes[] = {SHAPE(2, 2, 1, 20, 20, 0), SHAPE(1, 2, 2, 50, 70, 0),
                                    SHAPE(1, 1, 1, 130, 113, 0), SHAPE(1, 2, 2, 5, 339, 0)};
  kernels made;
  part_keys();
  GOOD(kernels_make("t", "head_dim=40 mask=full,causal bias=true family=simt", &made));
  for (int i = 0; i < made.n; i++) {
    for (int c = 0; c < 4 * VERIFY_STYLES; c++) {
      const verify_case which = {
          .shape = shapes[c % 4], .style = (verify_style)(c / 4), .seed = (uint64_t)c};
      kernel_verify(&made.list[i], &which);
    }
  }
  kernels_free(&made);
}

TEST_FIXTURE(templates_enter, templates_leave)
