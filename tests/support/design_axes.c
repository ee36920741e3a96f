/* design_axes.c - the table of the design's axes, and what the families differ in.
 *
 * To add a feature: a row in `attention`, then `make_design tests/design NAME`. The first level of
 * an axis is what other axes meet most often. */
#include "design.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
#define LEVELS(...)                                                                                \
  { __VA_ARGS__ }

enum { FORWARD = 1, BACKWARD = 2, BOTH = 3 };

typedef struct axis_row {
  const char *name;
  int passes;
  design_part part;
  const char *level[DESIGN_LEVELS];
  const char *needs;
} axis_row;

/* The kernels of attention. Expressions have no spaces, so that a row is words. */
static const axis_row attention[] = {
    {"dtype", BOTH, DESIGN_SPEC, LEVELS("", "dtype=f16", "dtype=e4m3"), NULL},
    {"head_dim", BOTH, DESIGN_SPEC,
     LEVELS("head_dim=64", "head_dim=8", "head_dim=40", "head_dim=72", "head_dim=128",
            "head_dim=256", "head_dim=192/128", "head_dim=32/96", "head_dim=264",
            "head_dim=576/512", "head_dim=64/320"),
     NULL},
    {"mask", BOTH, DESIGN_SPEC,
     LEVELS("", "mask=causal", "mask=window(20,3)", "mask=chunked(48)",
            "mask=k<=p&&doc[b,q]==own[b,k] inputs.doc=i32[b,q] inputs.own=i32[b,k]",
            "mask=k<=p&&k>=first[b] inputs.first=i32[b]"),
     NULL},
    {"score", FORWARD, DESIGN_SPEC,
     LEVELS("", "score=softcap(5.0)", "score=alibi(slope) inputs.slope=f32[h]",
            "score=s+near[h,min(max(p-k,0),31)] inputs.near=f32[h,32]",
            "score=s+rel[h,k-q+nq] inputs.rel=f32[h,nq+nk+1]", "score=s/(1.0+abs(s))",
            "score=s+key[h,k] inputs.key=f32[h,k]", "score=s*pair[h,q,k] inputs.pair=bf16[h,q,k]"),
     NULL},
    {"score", BACKWARD, DESIGN_SPEC,
     LEVELS("", "score=softcap(5.0)", "score=alibi(slope) inputs.slope=f32[h]grad",
            "score=s+near[h,min(max(p-k,0),31)] inputs.near=f32[h,32]grad",
            "score=s+rel[h,k-q+nq] inputs.rel=f32[h,nq+nk+1]grad", "score=s/(1.0+abs(s))",
            "score=s+key[h,k] inputs.key=f32[h,k]grad",
            "score=s*pair[h,q,k] inputs.pair=bf16[h,q,k]grad"),
     NULL},
    {"normalizer", BOTH, DESIGN_SPEC,
     LEVELS("", "normalizer=sigmoid", "normalizer=retention", "normalizer=logsoftmax",
            "normalizer=none"),
     NULL},
    {"bias", FORWARD, DESIGN_SPEC,
     LEVELS("", "bias=true", "bias=true bias_dims=[b,h,k]", "bias=true bias_dims=[]",
            "bias=true bias_dims=[b,k]", "bias=true bias_dims=[h,q,k]", "bias=true bias_dims=[q]",
            "bias=true bias_dims=[k]", "bias=true bias_dims=[h]", "bias=true bias_dims=[b,q]"),
     NULL},
    {"bias", BACKWARD, DESIGN_SPEC,
     LEVELS("", "bias=true", "bias=true bias_dims=[b,h,k]", "bias=grad", "bias=grad bias_dims=[]",
            "bias=grad bias_dims=[b,k]", "bias=grad bias_dims=[h,q,k]", "bias=grad bias_dims=[q]",
            "bias=grad bias_dims=[k]", "bias=grad bias_dims=[h]", "bias=grad bias_dims=[b,q]"),
     NULL},
    {"bias_dtype", BOTH, DESIGN_SPEC, LEVELS("", "bias_dtype=f32"), "bias="},
    {"grad_dtype", BACKWARD, DESIGN_SPEC, LEVELS("", "grad_dtype=f32"), "bias=grad"},
    {"o_dtype", BOTH, DESIGN_SPEC, LEVELS("", "o_dtype=f32", "o_dtype=f16"), NULL},
    {"dqkv_dtype", BACKWARD, DESIGN_SPEC, LEVELS("", "dqkv_dtype=f32"), NULL},
    {"kv_dtype", BOTH, DESIGN_SPEC, LEVELS("", "kv_dtype=e4m3"), NULL},
    {"descale_block", FORWARD, DESIGN_SPEC,
     LEVELS("", "descale_block=64", "descale_block=48", "descale_block=128"), "e4m3"},
    {"sink", FORWARD, DESIGN_SPEC, LEVELS("", "sink=true"), NULL},
    {"sink", BACKWARD, DESIGN_SPEC, LEVELS("", "sink=true", "sink=grad"), NULL},
    {"dropout", BOTH, DESIGN_SPEC, LEVELS("", "dropout=true"), NULL},
    {"max_logit", FORWARD, DESIGN_SPEC, LEVELS("", "max_logit=true"), NULL},
    {"deterministic", BACKWARD, DESIGN_SPEC, LEVELS("", "deterministic=true"), NULL},
    {"batch_invariant", FORWARD, DESIGN_SPEC, LEVELS("", "batch_invariant=true"), NULL},
    {"layout", BOTH, DESIGN_SPEC,
     LEVELS("", "q_layout=packed kv_layout=packed", "q_layout=packed", "kv_layout=packed",
            "kv_layout=cached", "kv_layout=paged", "q_layout=packed kv_layout=cached",
            "q_layout=packed kv_layout=paged"),
     NULL},
    {"slices", BOTH, DESIGN_SPEC, LEVELS("", "slices=true"), NULL},
    {"shard", BOTH, DESIGN_SPEC, LEVELS("", "shard=true"), NULL},
    {"latent", FORWARD, DESIGN_SPEC, LEVELS("", "latent=true"), NULL},
    {"plan", BOTH, DESIGN_PLANS, {NULL}, NULL},
    {"heads", BOTH, DESIGN_SHAPE, {NULL}, NULL},
    {"nq", BOTH, DESIGN_SHAPE, {NULL}, NULL},
    {"nk", BOTH, DESIGN_SHAPE, {NULL}, NULL},
    {"q_kind", BOTH, DESIGN_KIND, {NULL}, NULL},
    {"k_kind", BOTH, DESIGN_KIND, {NULL}, NULL},
    {"style", BOTH, DESIGN_SHAPE, LEVELS("", "style=large", "style=absent"), NULL},
    {"scale", BOTH, DESIGN_SHAPE, LEVELS("", "scale=0.2", "scale=-0.2"), NULL},
    {"seed", BOTH, DESIGN_SEED, {NULL}, NULL},
};

/* New rows of a cache. */
static const axis_row append[] = {
    {"dtype", BOTH, DESIGN_SPEC, LEVELS("", "dtype=f16"), NULL},
    {"head_dim", BOTH, DESIGN_SPEC,
     LEVELS("head_dim=64/24", "head_dim=8", "head_dim=40", "head_dim=128", "head_dim=256",
            "head_dim=48/16", "head_dim=576/264", "head_dim=576/272"),
     NULL},
    {"kv_dtype", BOTH, DESIGN_SPEC, LEVELS("", "kv_dtype=e4m3"), NULL},
    {"q_layout", BOTH, DESIGN_SPEC, LEVELS("", "q_layout=packed"), NULL},
    {"kv_layout", BOTH, DESIGN_SPEC,
     LEVELS("kv_layout=cached", "kv_layout=paged", "kv_layout=dense", "kv_layout=packed"), NULL},
    {"rotary", BOTH, DESIGN_SPEC, LEVELS("", "rotary=halves", "rotary=interleaved"), NULL},
    {"rotary_dim", BOTH, DESIGN_SPEC,
     LEVELS("", "rotary_dim=2", "rotary_dim=16", "rotary_dim=24", "rotary_dim=48"), "rotary="},
    {"rotary_dtype", BOTH, DESIGN_SPEC, LEVELS("", "rotary_dtype=f32"), "rotary="},
    {"plan", BOTH, DESIGN_PLANS, {NULL}, NULL},
    {"heads", BOTH, DESIGN_SHAPE,
     LEVELS("b=5 h=6 hk=3", "b=1 h=1 hk=1", "b=3 h=10 hk=10", "b=5 h=33 hk=33", "b=0 h=2 hk=2"),
     NULL},
    {"nq", BOTH, DESIGN_SHAPE, LEVELS("nq=3", "nq=0", "nq=1", "nq=12"), NULL},
    {"nk", BOTH, DESIGN_SHAPE,
     LEVELS("nk=70 positions=80", "nk=1 positions=1", "nk=10 positions=9", "nk=20 positions=24"),
     NULL},
    {"seed", BOTH, DESIGN_SEED, {NULL}, NULL},
};

/* Lengths with the kind of each: one less than tiles have rows and keys, as many and one more; then
 * several tiles. */
typedef struct lengths {
  int n, length[DESIGN_LEVELS], kind[DESIGN_LEVELS];
} lengths;

static const lengths of_simt = {8, {0, 1, 3, 113, 203, 339, 799, 1023}, {0, 1, 2, 3, 4, 5, 6, 7}};
static const lengths of_mma = {16,
                               {0, 1, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129, 203, 339},
                               {0, 1, 2, 3, 4, 2, 3, 4, 2, 3, 4, 2, 3, 4, 5, 5}};
static const lengths of_wgmma = {
    11, {0, 1, 63, 64, 65, 128, 129, 193, 200, 255, 257}, {0, 1, 2, 3, 4, 3, 4, 5, 5, 2, 5}};
static const lengths rows_of_decode = {
    11, {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 64}, {0, 1, 2, 3, 4, 2, 3, 4, 2, 4, 3}};
static const lengths keys_of_decode = {
    8, {0, 1, 31, 33, 64, 511, 513, 1100}, {0, 1, 2, 4, 3, 5, 5, 6}};

typedef struct family {
  const char *prefix;
  const lengths *q, *k;
  int some, several;
  int64_t most;
  const char *wide; /* heads of a group that is wider than a tile */
} family;

static const family families[] = {
    {"simt", &of_simt, &of_simt, 113, 113, (int64_t)1023 * 799 * (128 + 48), "b=1 h=5 hk=1"},
    {"mma", &of_mma, &of_mma, 31, 203, (int64_t)203 * 203 * (512 + 48) * 8, "b=1 h=12 hk=1"},
    {"wgmma", &of_wgmma, &of_wgmma, 63, 193, (int64_t)257 * 257 * (512 + 48) * 8, "b=1 h=80 hk=1"},
    {"decode", &rows_of_decode, &keys_of_decode, 7, 16, (int64_t)64 * 1100 * (512 + 48) * 4,
     "b=1 h=20 hk=1"},
};

const char *const design_names[] = {"simt_forward",   "simt_backward",  "mma_forward",
                                    "mma_backward",   "wgmma_forward",  "wgmma_backward",
                                    "decode_forward", "append_forward", NULL};
static const char *const words[] = {"pass=forward family=simt",   "pass=backward family=simt",
                                    "pass=forward family=mma",    "pass=backward family=mma",
                                    "pass=forward family=wgmma",  "pass=backward family=wgmma",
                                    "pass=forward family=decode", "kernel=append family=simt"};

static int find_axis(const design *d, const char *name) {
  for (int i = 0; i < d->n; i++)
    if (!strcmp(d->axis[i].name, name)) return i;
  return -1;
}

static void add_axes(design *d, const axis_row *rows, int n, int pass) {
  for (int i = 0; i < n; i++) {
    if (!(rows[i].passes & pass)) continue;
    design_axis *axis = &d->axis[d->n++];
    *axis = (design_axis){.name = rows[i].name, .part = rows[i].part, .needs = rows[i].needs};
    while (axis->n < DESIGN_LEVELS && rows[i].level[axis->n]) {
      axis->level[axis->n] = rows[i].level[axis->n];
      axis->n++;
    }
  }
  d->plan = find_axis(d, "plan"), d->heads = find_axis(d, "heads");
  d->nq = find_axis(d, "nq"), d->nk = find_axis(d, "nk"), d->seed = find_axis(d, "seed");
  d->q_kind = find_axis(d, "q_kind"), d->k_kind = find_axis(d, "k_kind");
  d->axis[d->seed].n = 2;
}

/* "nq=64" for a length of a family: a text that lives as long as the program. */
static const char *length_words(const char *name, int n) {
  enum { LENGTHS = 160, SIZE = 12 };
  static char text[LENGTHS][SIZE];
  static int used;
  char own[SIZE];
  snprintf(own, sizeof own, "%s=%d", name, n);
  for (int i = 0; i < used; i++)
    if (!strcmp(text[i], own)) return text[i];
  if (used == LENGTHS) return NULL;
  return strcpy(text[used++], own);
}

/* Sets the levels of an axis of lengths, and how many kinds there are, counted from 0. */
static void add_lengths_of(design *d, int axis, int kind_axis, const lengths *all, int *length,
                           int *kind) {
  d->axis[axis].n = all->n;
  for (int i = 0; i < all->n; i++) {
    length[i] = all->length[i], kind[i] = all->kind[i];
    d->axis[axis].level[i] = length_words(d->axis[axis].name, length[i]);
    if (kind[i] >= d->axis[kind_axis].n) d->axis[kind_axis].n = kind[i] + 1;
  }
}

static void add_lengths(design *d, const family *f) {
  static const char *const heads[] = {"b=2 h=4 hk=2", "b=1 h=1 hk=1", "b=1 h=4 hk=1",
                                      "b=1 h=6 hk=3"};
  for (int i = 0; i < COUNT(heads); i++) d->axis[d->heads].level[i] = heads[i];
  d->axis[d->heads].level[COUNT(heads)] = f->wide;
  d->axis[d->heads].n = COUNT(heads) + 1;
  add_lengths_of(d, d->nq, d->q_kind, f->q, d->q_length, d->q_kinds);
  add_lengths_of(d, d->nk, d->k_kind, f->k, d->k_length, d->k_kinds);
  d->some = f->some, d->several = f->several, d->most = f->most;
}

design *design_new(const char *name) {
  int at = 0;
  while (design_names[at] && strcmp(design_names[at], name)) at++;
  if (!design_names[at]) return NULL;
  design *d = calloc(1, sizeof *d);
  if (!d) return NULL;
  d->name = design_names[at], d->words = words[at];
  if (strstr(d->words, "kernel=append")) {
    add_axes(d, append, COUNT(append), FORWARD);
    d->most = INT64_MAX;
    for (int i = 0; i < d->axis[d->nq].n; i++)
      d->q_length[i] = design_number(d->axis[d->nq].level[i], "nq", 0);
    for (int i = 0; i < d->axis[d->nk].n; i++)
      d->k_length[i] = design_number(d->axis[d->nk].level[i], "nk", 0);
    return d;
  }
  add_axes(d, attention, COUNT(attention), strstr(d->words, "backward") ? BACKWARD : FORWARD);
  for (int i = 0; i < COUNT(families); i++) {
    const size_t size = strlen(families[i].prefix);
    if (!strncmp(name, families[i].prefix, size) && name[size] == '_') add_lengths(d, &families[i]);
  }
  return d;
}
