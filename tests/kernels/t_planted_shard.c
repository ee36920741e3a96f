/* t_planted_shard.c - bugs planted where templates place parts of sequences: the oracle catches
 * each. */
#include "planted_suite.h"

static const char forward[] = "family=simt head_dim=40 mask=window(20,3) shard=true",
                  causal[] = "family=mma head_dim=64 mask=causal shard=true",
                  backward[] = "family=mma pass=backward head_dim=64 mask=causal shard=true",
                  rows[] = "family=simt head_dim=40 score=s*x[q]+y[k] inputs.x=f32[q] "
                           "inputs.y=f32[k] shard=true",
                  dropped[] = "family=mma head_dim=64 dropout=true shard=true",
                  alone[] = "family=simt head_dim=64 dropout=true shard=true",
                  wgmma[] = "family=wgmma head_dim=64 mask=causal shard=true",
                  packed[] = "family=simt head_dim=40 mask=causal shard=true q_layout=packed "
                             "kv_layout=packed";

/* Parts of a case's seed: reference_layout.c. Even seeds have all four numbers. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 77, .nk = 203}, .seed = 0},
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 139, .nk = 103}, .seed = 2},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 139, .nk = 203}, .seed = 4},
    {.shape = {.b = 3, .h = 1, .hk = 1, .nq = 33, .nk = 90}, .seed = 6},
    {.seed = 0}};

#define PLACE "wrong numbers|out of bounds|before the start of tensor|past the end of tensor"

static const planted_bug bugs[] = {
    {"tile.sequences.part", "of && i >= 0", "of && i > 0", .words = causal},
    {"sequence.shard.declare", "p.whole_%s, p.b, b, %s)", "p.pos_%s, p.b, b, %s)", .words = causal},
    {"sequence.shard.place", "names[name] .. \" + pos_k\"", "names[name] .. \" + 1 + pos_k\"",
     .words = forward},
    {"sequence.shard.place", "\"whole_q\", \"whole_k\"", "seq.nq, seq.nk", .words = packed},
    {"sequence.shard.first", "\"(-pos_%s)\"", "\"(8 - pos_%s)\"", rows, .fault = PLACE,
     .place = {{"attention/simt/forward.cut", NULL}}},
    {"sequence.shard.own", "\"(%s) - pos_%s\"", "\"(%s) - 70 - pos_%s\"", .words = causal},
    {"sequence.shard.own", "\"(%s) - pos_%s\"", "\"(%s) - 1 - pos_%s\"", .words = wgmma},
    {"sequence.shard.own", "\"(%s) - pos_%s\"", "\"(%s) + 40 - pos_%s\"", .words = backward},
    {"attention.dropout.place", "pos_%s\", i, x", "pos_%s - pos_%s\", i, x, x", .words = alone},
    {"tile.dropout.two_groups", "from < 8", "from < 9", .words = dropped},
};

/* Without a bug. */
static const planted_bug whole[] = {{.words = forward}, {.words = causal},  {.words = backward},
                                    {.words = rows},    {.words = dropped}, {.words = alone},
                                    {.words = wgmma},   {.words = packed}};

PLANTED_SUITE(.name = "planted_shard", .bugs = {PLANTED(bugs)}, .whole = PLANTED(whole),
              .whole_seeds = 2, .cases = cases)
