/* t_planted_e4m3.c - bugs planted where templates take numbers of e4m3: the oracle catches each. */
#include "planted_suite.h"

static const char heads[] = "family=simt head_dim=64 dtype=e4m3 mask=causal",
                  blocks[] = "family=simt head_dim=64 dtype=e4m3 descale_block=48",
                  of_keys[] = "family=simt head_dim=48/64 kv_dtype=e4m3 normalizer=none",
                  mma[] = "family=mma head_dim=64 dtype=e4m3 mask=causal",
                  mma_f32[] = "family=mma head_dim=64 dtype=e4m3 o_dtype=f32",
                  mma_kv[] = "family=mma head_dim=48/80 kv_dtype=e4m3 mask=causal",
                  decode8[] = "family=decode head_dim=48 kv_dtype=e4m3 mask=causal block_q=8 "
                              "block_kv=32 stages=4 warps=4",
                  decode16[] = "family=decode head_dim=48/80 dtype=f16 kv_dtype=e4m3 block_q=16",
                  decode_f32[] = "family=decode head_dim=48 kv_dtype=e4m3 o_dtype=f32 block_q=8",
                  decode_paged[] = "family=decode head_dim=48 kv_dtype=e4m3 kv_layout=paged",
                  paged[] =
                      "family=simt head_dim=64 kv_dtype=e4m3 kv_layout=paged descale_block=32",
                  mma_blocks[] = "family=mma head_dim=64 dtype=e4m3 mask=causal descale_block=32 "
                                 "block_q=64 block_kv=32 stages=2",
                  mma_slices[] = "family=mma head_dim=64 dtype=e4m3 slices=true descale_block=64",
                  mma_most[] = "family=mma head_dim=64 dtype=e4m3 max_logit=true descale_block=64",
                  kv_blocks[] = "family=mma head_dim=48/80 kv_dtype=e4m3 descale_block=64",
                  decode_blocks[] = "family=decode head_dim=48 kv_dtype=e4m3 block_q=16 "
                                    "block_kv=32 mask=causal descale_block=32";

/* All descales are given: even seeds. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 4, .hk = 2, .nq = 77, .nk = 203}, .seed = 2},
    {.shape = {.b = 3, .h = 2, .hk = 2, .nq = 139, .nk = 103}, .seed = 4},
    {.seed = 0}};

/* The scale is negative. */
static const verify_case negative[] = {{.shape = {.b = 1, .h = 2, .hk = 1, .nq = 40, .nk = 150},
                                        .given = FG_GIVEN_SCALE,
                                        .scale = -0.25F,
                                        .seed = 2},
                                       {.seed = 0}};

static const planted_bug bugs[] = {
    {"prelude.round_e4m3", "0x7ffffu", "0xfffffu", .words = heads},
    {"tile.rows.held_pair", "pair >> 8", "pair", .words = of_keys},
    {"attention.descale.factor", "256.0f", "4096.0f", .words = heads},
    {"attention.descale.load", "(i64)g", "(i64)0", .words = heads},
    {"attention.descale.load", "seq.nq or seq.nk", "seq.nk or seq.nq", .words = blocks},
    {"attention.descale.load", "- 1) / %s", "- 1) / 2 / %s", .words = paged},
    {"attention.descale.declare", "\"const float descaled = p.scale * %s%s;",
     "\"const float descaled = p.scale * %.0s%s;", .words = heads},
    {"attention.descale.declare_o", "load(\"v\")", "load(\"k\")", .words = heads},
    {"attention.descale.rounded", "e4m3_to_f32(f32_to_e4m3(%s * %s))", "%.0s%s", .words = heads},
    {"simt.forward.descale", "\" * \" or \"\")of_key", "\" * \" or \"\")1.0f", .words = paged},
    {"simt.forward.weights", "$(of_value)", "", .words = blocks},
    /* of blocks, by tiles */
    {"attention.descale.rows", "load(\"q\", q)", "load(\"k\", q)", .words = mma_blocks},
    {"attention.descale.tile", "of_tile(\"k\", k0)", "of_tile(\"v\", k0)", .words = mma_blocks},
    {"attention.descale.tile", "of_tile(\"v\", k0)", "of_tile(\"k\", k0)", .words = mma_blocks},
    {"sequence.slices.first_tile", "spec.descale_block or \"0\"", "\"0\"", .words = mma_slices},
    {"mma.forward.descale_of_rows", "q0 + warp * WARP_Q", "q0", .words = mma_blocks},
    {"mma.forward.unit_of_tile", "descale.tile(\"k0\")", "descale.tile(\"(k0 + BLOCK_KV)\")",
     .words = mma_blocks},
    {"mma.forward.unit_of_tile", "descale.values(\"k0\")", "descale.values(\"(k0 + BLOCK_KV)\")",
     .words = mma_blocks},
    {"attention.descale.scale", "abs_f32(descaled)", "abs_f32(of_rows)", .words = mma_blocks},
    {"mma.forward.sign_of_unit", "= -s[e]", "= s[e]", .words = mma_blocks, .cases = negative},
    {"tile.descaled.add", "x[i] * by", "x[i]", .words = mma_blocks},
    {"tile.descaled.multiply_pn", "widen(high, words[2 * chunk + 1])",
     "widen(high, words[2 * chunk])", .words = kv_blocks},
    {"tile.descaled.weights", "p[4 * l + 4 + 2 * r]", "p[4 * l + 2 * r]", .words = decode_blocks},
    {"tile.descaled.columns", "words[2 + chunk]", "words[chunk]", .words = decode_blocks},
    {"decode.forward.descale_of_tile", "descale.tile(\"k0\")", "descale.tile(\"(k0 + BLOCK_KV)\")",
     .words = decode_blocks},
    {"decode.forward.descale_of_tile", "descale.values(\"k0\")",
     "descale.values(\"(k0 + BLOCK_KV)\")", .words = decode_blocks},
    {"decode.forward.sign_of_unit", "= -s[e]", "= s[e]", .words = decode_blocks, .cases = negative},
    {"tile.bytes.pack", "c[2], c[3]", "c[3], c[2]", .words = mma},
    {"tile.bytes.columns", "x[2 * i + 1], 0x6420", "x[2 * i + 1], 0x7531", .words = mma},
    {"tile.bytes.multiply", "8 * l + 16", "8 * l", .words = mma},
    {"tile.bytes.put", "4 * i + 4", "4 * i", .words = mma},
    {"tile.bytes.store", "column + 8 * i <", "column + 16 + 8 * i <", .words = mma_f32},
    {"mma.forward.add_rounded_values", "SM_V", "SM_K", .words = mma},
    {"mma.forward.store_f32_columns", "factor[2 * i + 1]", "factor[2 * i]", .words = mma_f32},
    {"mma.forward.put_columns", "factor[2 * i + 1]", "factor[2 * i]", .words = mma},
    /* k and v alone, widened */
    {"prelude.widen_pair", "x >> $(form.shift)", "x >> 3", .words = decode8},
    {"prelude.widen_pair", "(x & 0x80008000u)", "0x80008000u", .words = decode16},
    {"tile.widened.load", "0x5410", "0x3210", .words = decode8},
    {"tile.widened.mma", "mma(c + 4, a, y + 4)", "mma(c + 4, a, y + 2)", .words = decode8},
    {"tile.widened.mma", "mma(next, a_next, y + 2)", "mma(next, a, y + 2)", .words = decode16},
    {"tile.widened.multiply_rt", "a + 4 * k + 4", "a + 4 * k", .words = decode16},
    {"tile.widened.halves", "4 * ((k + 1) % half)", "4 * (k % half)", .words = decode8},
    {"tile.widened.halves", "(k < half ? c : other)", "c", .words = decode8},
    {"tile.widened.sum", "other[4 * j + 3]", "other[4 * j + 2]", .words = decode8},
    {"tile.widened.weights", "p[4 * l + 4 + 2 * r]", "p[4 * l + 2 * r]", .words = decode16},
    {"tile.widened.columns", "words[2 + chunk]", "words[chunk]", .words = decode8},
    {"tile.pages.row", "$(form.of_chunk) * (chunk + c)", "8 * (chunk + c)", .words = decode_paged,
     .fault = "load touches a gap|load past the end of|wrong numbers"},
    {"tile.widened.put_even_first", "0x7632", "0x5432", .words = mma_kv},
    {"tile.widened.operands", "M_STEP * i, 2 * k + 2", "M_STEP * i, 2 * k", .words = mma_kv},
    {"tile.widened.multiply_nt", "i % 2 * 4 + i / 2 * 2", "2 * i", .words = mma_kv},
    {"tile.widened.multiply_pn", "widen(high, words[2 * chunk + 1])",
     "widen(high, words[2 * chunk])", .words = mma_kv},
    {"mma.forward.even_first", "cp_async_wait_0();", "", .words = mma_kv, .fault = "*"},
    {"mma.forward.even_first", "block_sync();", "", .words = mma_kv, .fault = "*"},
    {"mma.forward.widened_scores", "N_KV", "N_KV - 2", .words = mma_kv},
    {"mma.forward.add_widened_values", "s, N_KV", "s, N_KV - 2", .words = mma_kv},
    {"decode.forward.load_even_halves", "half * CHUNKS_D / 2", "half", .words = decode8},
    {"decode.forward.load_even_rows", "x + 4 * i + r", "x + 4 * i", .words = decode16},
    {"decode.parts.put_widened", "lane / 4 * 2 + i / 2 % 2", "lane / 4 + i / 2 % 2 * 8",
     .words = decode8},
    {"decode.parts.descale", "inverse * %s;", "inverse; (void)%s;", .words = decode_f32},
};

/* Without a bug. */
static const planted_bug whole[] = {
    {.words = heads},      {.words = blocks},       {.words = of_keys},   {.words = paged},
    {.words = mma},        {.words = mma_f32},      {.words = decode8},   {.words = decode16},
    {.words = decode_f32}, {.words = decode_paged}, {.words = mma_kv},    {.words = mma_blocks},
    {.words = mma_slices}, {.words = mma_most},     {.words = kv_blocks}, {.words = decode_blocks}};

PLANTED_SUITE(.name = "planted_e4m3", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .whole_seeds = 2, .cases = cases)
