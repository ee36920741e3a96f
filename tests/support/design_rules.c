/* design_rules.c - the rules of what does not fit, the library's answers, and known faults. */
#include "design_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rule stands before one whose text is a part of its own. */
const design_rule design_rules[] = {
    {"e4m3 backward", "pass=backward head_dim=64 kv_dtype=e4m3", "e4m3 is of the forward"},
    {"e4m3 columns", "head_dim=72 dtype=e4m3", "head_dim: e4m3 takes multiples of 16"},
    {"e4m3 normalizer", "head_dim=64 dtype=e4m3 normalizer=sigmoid", "dtype=e4m3 takes softmax"},
    {"o_dtype", "head_dim=64 o_dtype=f16", "o_dtype: with dtype="},
    {"backward layout", "pass=backward head_dim=64 kv_layout=paged",
     "kv_layout: backward takes dense or packed keys"},
    {"slices layout", "head_dim=64 slices=true kv_layout=cached", "slices: they are of dense"},
    {"slices shard", "head_dim=64 slices=true shard=true", "shard: the tokens of slices=true"},
    {"latent columns", "head_dim=64/128 latent=true", "latent: v is the first"},
    {"shard extent", "head_dim=64 shard=true score=s+rel[h,k-q+nq] inputs.rel=f32[h,nq+nk+1]",
     "with shard=true an extent is a number"},
    {"dropout normalizer", "family=mma head_dim=64 dropout=true normalizer=none",
     "takes no dropout"},
    {"sink normalizer", "family=mma head_dim=64 sink=true normalizer=none", "takes no sink"},
    {"mma e4m3 wide", "family=mma head_dim=512 kv_dtype=e4m3", "takes head dims of e4m3 up to 256"},
    {"mma e4m3 second accumulator", "family=mma head_dim=64 kv_dtype=e4m3 normalizer=logsoftmax",
     "takes no k and v of e4m3 with normalizer="},
    {"order",
     "family=mma pass=backward head_dim=64 deterministic=true "
     "score=s+near[h,min(max(p-k,0),31)] inputs.near=f32[h,32]grad",
     "gradient has no fixed order"},
    {"order of slices",
     "family=mma pass=backward head_dim=64 deterministic=true slices=true "
     "score=s+rel[h,k-q+nq] inputs.rel=f32[h,nq+nk+1]grad",
     "runs over slices of any places"},
    {"gradient of packed pairs", "family=mma pass=backward head_dim=64 q_layout=packed bias=grad",
     "is of pairs of packed sequences"},
    {"gradient of all packed pairs",
     "family=mma pass=backward head_dim=64 q_layout=packed kv_layout=packed bias=grad",
     "would be of all pairs of packed"},
    {"gradient of sliced pairs", "family=mma pass=backward head_dim=64 slices=true bias=grad",
     "is of pairs of slices"},
    {"wgmma cache of e4m3", "family=wgmma head_dim=64 kv_dtype=e4m3",
     "takes no e4m3 beside a query of 16 bits"},
    {"wgmma e4m3 wide", "family=wgmma head_dim=576/512 dtype=e4m3", "takes no e4m3 wider than"},
    {"wgmma e4m3 dropout", "family=wgmma head_dim=64 dtype=e4m3 dropout=true",
     "takes e4m3 with softmax alone, without dropout"},
    {"wgmma large expressions", "family=wgmma head_dim=64 score=tanh(s+1.0)+tanh(s*s)",
     "leaves large expressions to mma"},
    {"wgmma wide pages", "family=wgmma head_dim=264 kv_layout=paged", "where keys lie in pages"},
    {"wgmma wide slices", "family=wgmma head_dim=264 slices=true", "where pairs are of slices"},
    {"wgmma wide second accumulator", "family=wgmma head_dim=264 normalizer=logsoftmax",
     "where a second accumulator stands"},
    {"wgmma wide gradients",
     "family=wgmma pass=backward head_dim=264 score=s+key[h,k] inputs.key=f32[h,k]grad",
     "where an input has a gradient"},
    {"wgmma wide dS", "family=wgmma pass=backward head_dim=264 normalizer=none",
     "where dS is not proportional to P"},
    {"wgmma wide products",
     "family=wgmma pass=backward head_dim=256 score=s*pair[h,q,k] inputs.pair=bf16[h,q,k]grad",
     "where an input of a score that is more than s"},
    {"wgmma order of sequences",
     "family=wgmma pass=backward head_dim=64 deterministic=true slices=true",
     "where sequences are packed, parts or slices"},
    {"wgmma wide order", "family=wgmma pass=backward head_dim=264 deterministic=true",
     "where dQ is summed in an order"},
    {"wgmma wide dropout", "family=wgmma pass=backward head_dim=256 dropout=true",
     "where weights are dropped"},
    {"decode wide", "family=decode head_dim=264", "leaves head dims of more than"},
    {"decode e4m3", "family=decode head_dim=64 dtype=e4m3", "takes e4m3 of k and v alone"},
    {"decode second accumulator", "family=decode head_dim=64 normalizer=logsoftmax",
     "has a second accumulator"},
    {"decode dropout", "family=decode head_dim=64 dropout=true", "drops no weights"},
    {"decode slices", "family=decode head_dim=64 slices=true", "leaves slices to mma"},
    {"decode shard", "family=decode head_dim=64 shard=true", "leaves parts of sequences to mma"},
    {"decode max_logit", "family=decode head_dim=64 max_logit=true", "leaves max_logit to mma"},
    {"append layout", "kernel=append family=simt head_dim=64", "is no cache"},
    {"append rotary_dim",
     "kernel=append family=simt head_dim=8 kv_layout=cached rotary=halves rotary_dim=16",
     "is more than the head dim"},
    {"tiles of descales", "family=mma head_dim=64 kv_dtype=e4m3 descale_block=8",
     "may lie in two blocks"},
    {"shared memory", "family=mma head_dim=576/512 block_kv=96", "its tiles need"},
    {"registers", "family=mma head_dim=512 block_q=128 block_kv=64 stages=1 warps=4",
     "registers a thread, which has"},
    {"spills", "family=wgmma pass=backward head_dim=256 score=softcap(5.0)", "spills in it"},
    {"plan", "family=mma head_dim=64 block_q=128 block_kv=1024", "none within the restrictions"},
    {NULL, NULL, NULL},
};

int design_rule_find(const char *name) {
  for (int i = 0; design_rules[i].name; i++)
    if (!strcmp(design_rules[i].name, name)) return i;
  return -1;
}

/* What a refusal of all families says of this one: its sentence, or why its plans do not fit, or
 * nothing more than that none does. A refusal of another kind is of all families. */
static void cut_out(const char *family, const char *refusal, size_t size, char *text) {
  static const char *const families[] = {"; wgmma: ", "; mma: ", "; decode: ", "; simt: "};
  static const char none[] = "none within the restrictions";
  char start[16];
  snprintf(text, size, "%s", refusal);
  if (!strstr(refusal, none)) return;
  snprintf(start, sizeof start, "; %s: ", family);
  const char *at = strstr(refusal, start);
  snprintf(start, sizeof start, "; %s-", family);
  if (!at) at = strstr(refusal, start);
  snprintf(text, size, "%s", at ? at + strlen("; ") : none);
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    char *end = strstr(text, families[i]);
    if (end) *end = 0;
  }
}

int design_rule_of(const char *family, const char *refusal) {
  char text[2048];
  cut_out(family, refusal, sizeof text, text);
  for (int i = 0; design_rules[i].name; i++)
    if (strstr(text, design_rules[i].text)) return i;
  return -1;
}

/* The words that restrict a launch to the plan. 1 allows a plan without the field. */
static void plan_words(const fg_plan *plan, char words[DESIGN_PLAN]) {
  size_t n = 0;
  words[0] = 0;
  for (int i = 1; i < FG_PLAN_FIELDS && n < DESIGN_PLAN; i++) {
    const fg_field *field = &fg_fields[FG_SPEC_FIELDS + i];
    if (fg_field_is_of(field, fg_plan_family(plan)))
      n += (size_t)snprintf(words + n, DESIGN_PLAN - n, "%s%s=%d", n ? " " : "", field->name,
                            plan->value[i] ? plan->value[i] : 1);
  }
}

/* Has a variant of the point and plan a name that is short enough? */
static bool has_name(const fg_point *point, const fg_plan *plan) {
  enum { LONG = 1024, MARGIN = 4 };
  char name[LONG];
  fg_variant v = {.point = *point, .plan = *plan, .arch = "sm_90a"};
  return fg_variant_name(&v, sizeof name, name) < FG_NAME_MAX - MARGIN;
}

static fg_status read_grid(char *words, fg_grid **grid) {
  enum { WORDS_MAX = 48 };
  const char *word[WORDS_MAX];
  char *rest;
  int n = 0;
  for (char *w = strtok_r(words, " ", &rest); w && n < WORDS_MAX; w = strtok_r(NULL, " ", &rest))
    word[n++] = w;
  return fg_grid_read(0, NULL, n, word, grid);
}

fg_status design_ask(fg_gen *gen, design *d, const design_row *row, design_answer *answer) {
  static const char too_long[] = "the name of the variant is too long";
  char words[DESIGN_TEXT], family[16], plan[DESIGN_PLAN];
  fg_grid *grid;
  fg_plan *plans = NULL;
  int n = 0;
  *answer = (design_answer){.rule = -1};
  snprintf(family, sizeof family, "%s", strstr(d->words, "family=") + strlen("family="));
  design_spec_words(d, row, sizeof words, words);
  fg_status status = read_grid(words, &grid);
  if (status == FG_OK) {
    status = fg_gen_plans(gen, grid->point, "host", grid->limits[0], &plans, &n);
    if (status == FG_OK && !has_name(grid->point, plans))
      status = fg_fail(FG_ESPEC, "%s", too_long);
    for (int i = 0; status == FG_OK && i < n; i++) {
      plan_words(&plans[i], plan);
      const int level = design_plan_level(d, plan);
      if (level < 0) status = fg_fail(FG_EBUG, "%s has too many plans", d->name);
      if (level >= 0) answer->plans |= (uint64_t)1 << level;
    }
    free(plans);
    fg_grid_free(grid);
  }
  answer->accepted = status == FG_OK;
  if (status == FG_ESPEC)
    answer->rule =
        !strcmp(fg_error(), too_long) ? DESIGN_TOO_LONG : design_rule_of(family, fg_error());
  return status == FG_ESPEC ? FG_OK : status;
}

int design_known_read(const char *path, design_known known[DESIGN_KNOWN]) {
  char line[512];
  int n = 0;
  FILE *f = fopen(path, "r");
  if (!f) return -1;
  while (n < DESIGN_KNOWN && fgets(line, sizeof line, f))
    if (*line != '#' && sscanf(line, "%15s %255[^\n]", known[n].fault, known[n].words) == 2) n++;
  fclose(f);
  return n;
}

const design_known *design_known_find(int n, const design_known *known, const char *line) {
  for (int i = 0; i < n; i++)
    if (design_has_words(line, known[i].words)) return &known[i];
  return NULL;
}
