/* t_check_draws.c - bugs that only some inputs show: `flashgen check` draws these under each seed.
 */
#include "planted.h"
#include "program.h"
#include "scratch.h"

#define SIMT "family=simt head_dim=16 "

static const struct {
  const char *where, *text, *instead, *words;
  int code; /* a fault ends with 1, wrong numbers with 4 */
} bugs[] = {
    /* an lse that the launch is not given */
    {"simt.forward.store_o", "lane == 0 && p.$(norm.second)", "lane == 0", SIMT, 1},
    /* sums r of retention below 1 */
    {"normalizers.retention.finish", "1.0f", "0.25f", SIMT "normalizer=retention", 4},
    {"normalizers.retention.delta", "> 1.0f", "> 0.25f", SIMT "normalizer=retention pass=backward",
     4},
    /* 0 as a value of a number of the launch */
    {"normalizers.sigmoid.bias", "== p.sigmoid_bias ?",
     "== p.sigmoid_bias && p.sigmoid_bias != 0.0f ?", SIMT "normalizer=sigmoid", 4},
    /* rows whose scores are all -inf, and a sink of -inf on rows without keys */
    {"normalizers.softmax.step", "peak == NEG_INF ? 0.0f : peak", "peak", SIMT "bias=true", 4},
    {"normalizers.softmax.sink", "highest == NEG_INF ? 0.0f : highest", "highest",
     SIMT "mask=causal sink=true", 4},
    /* a first row in the midst of a page */
    {"sequence.paged.find_row", "(u32)(row_k + %s)", "(u32)(row_k / p.page * p.page + %s)",
     "family=decode head_dim=64 kv_layout=paged", 4},
    /* a descale of 0 */
    {"simt.forward.descale", "of_key;", "max_f32(of_key, 0.25f);",
     SIMT "kv_dtype=e4m3 descale_block=128", 4},
    /* a sequence alone */
    {"simt.forward.store_o", "or \"inverse\")", "or \"(p.b > 1 ? 1.0f : 0.5f) * inverse\")",
     SIMT "batch_invariant=true", 4},
    /* more heads a group than a tile has rows */
    {"decode.line.heads", " + $(prefix)head % head_tiles * wide", "", "family=decode head_dim=64",
     1},
    {"decode.parts.head", "imin(row % wide, heads - 1)", "row % wide",
     "family=decode head_dim=64 sink=true", 1},
    /* the same in products that weights are made of */
    {"attention.descale.scale", "max_f32(abs_f32(descaled), 1e-36f)", "abs_f32(descaled)",
     "family=mma head_dim=64 dtype=e4m3", 4},
    {"attention.descale.scale", "max_f32(abs_f32(descaled), 1e-36f)", "abs_f32(descaled)",
     "family=wgmma head_dim=64 dtype=e4m3", 4},
    {"attention.descale.scale", "max_f32(abs_f32(descaled), 1e-36f)", "abs_f32(descaled)",
     "family=decode head_dim=64 kv_dtype=e4m3 kv_layout=paged", 4},
    /* a sink far below a cap, on rows without keys */
    {"normalizers.softmax.sink", "if r.origin then", "if false then",
     "family=mma head_dim=64 score=softcap(30.0) mask=causal sink=true", 4},
    {"normalizers.softmax.sink", "if r.origin then", "if false then",
     "family=wgmma head_dim=64 score=softcap(30.0) mask=causal sink=true", 4},
    /* tiles of tokens that no sequence has, of which a mask reads no bounds */
    {"decode.line.bound", "\"%s ? %s : 0\", seq.has_q(\"q0\"), key", "\"%s\", key",
     "family=decode head_dim=64 q_layout=packed mask=k<lim[b] inputs.lim=i32[b]", 1},
    {"backward.walk.bound", "\"%s ? %s : 0\", seq.has_k(k0), row", "\"%s\", row",
     "family=wgmma pass=backward head_dim=64 kv_layout=packed mask=k<lim[b] inputs.lim=i32[b]", 1},
    /* weights of a sigmoid within 2^-20 of 1 */
    {"normalizers.sigmoid.ds", "(least_f32($basis, 1e38f) * $p)", "(1.0f - $p)",
     SIMT "pass=backward normalizer=sigmoid", 4},
    /* tanh of small numbers as a weight */
    {"contract.score_is_weight", "hooks.norm.score_is_weight", "false",
     "family=mma head_dim=64 normalizer=retention score=softcap(30.0) dtype=f16 b=1 h=4 hk=1 nq=64 "
     "nk=6000 scale=1e-3",
     4},
};
enum { BUGS = sizeof bugs / sizeof *bugs };

TEST_TENTH(shown, BUGS) {
  static const program_setup with_templates = {.env = {"FLASHGEN_TEMPLATES=t"}};
  planted_in_t(bugs[_i].where, bugs[_i].text, bugs[_i].instead);
  for (int seed = 1; seed <= 2; seed++) {
    program_result r = program_run(&with_templates, "check -q --seed %d %s", seed, bugs[_i].words);
    ck_assert_msg(r.code == bugs[_i].code, "%s, seed %d: exit %d\n%s%s", bugs[_i].where, seed,
                  r.code, r.out, r.err);
  }
}

TEST_FIXTURE(scratch_enter, scratch_leave)
