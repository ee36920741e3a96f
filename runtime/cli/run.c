/* run.c - `flashgen run`: real tensors in and out.
 *
 * Everything that the files say (lengths, heads, head dims, the bias's dims) is taken from them and
 * must agree; nothing is written before all outputs are there. */
#include "cli.h"

#include "npy.h"
#include "problem.h"
#include "setting.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "bhgqkdv"; /* axes: batch, heads, key/value heads, rows, keys, dims */
static const char *const letter_names[] = {
    "batch", "heads", "key/value heads", "query length", "key length", "head dim", "v head dim"};
enum { B, H, HK, NQ, NK, D, DV, LETTERS };

typedef struct {
  const cli *c;
  fg_device *device;
  fg_gen *gen;
  fg_array file[FG_ARGUMENTS]; /* what --in gave; rank 0 and no data where it did not */
  float *value[FG_ARGUMENTS];  /* of a tensor that is known: from a file, or computed */
  int64_t extent[LETTERS];     /* -1: not known yet */
  const char *from[LETTERS];   /* the tensor that said so */
  fg_shape shape;
  fg_grid *grid;
} job;

static int index_of(const char *name) {
  const fg_argument *a = fg_argument_find(name);
  return a ? (int)(a - fg_arguments) : -1;
}

static fg_status unknown_tensor(const char *option, const char *name) {
  const char *names[FG_ARGUMENTS];
  for (int i = 0; i < FG_ARGUMENTS; i++) names[i] = fg_arguments[i].name;
  const char *near = fg_nearest(name, names, FG_ARGUMENTS);
  return fg_fail(FG_EARGUMENT, "%s %s: there is no tensor of that name%s%s%s", option, name,
                 near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* One axis of a file's tensor: says what the extent is, or agrees with what was said. A bias may
 * have 1 instead. */
static fg_status learn(job *j, int argument, int axis, int64_t extent) {
  const fg_argument *a = &fg_arguments[argument];
  int letter = (int)(strchr(letters, a->axes[axis]) - letters);
  int bias = a->elem == FG_RULE_BIAS;
  if (bias) return FG_OK; /* it is compared with the recipe, when bias_dims is known */
  if (j->extent[letter] < 0) {
    j->extent[letter] = extent;
    j->from[letter] = a->name;
  }
  if (j->extent[letter] == extent) return FG_OK;
  return fg_fail(FG_EARGUMENT, "%s: its %s (axis %d) is %" PRId64 ", but %s has %" PRId64, a->name,
                 letter_names[letter], axis, extent, j->from[letter], j->extent[letter]);
}

static fg_status read_input(job *j, const cli_pair *pair) {
  int i = index_of(pair->name);
  if (i < 0) return unknown_tensor("--in", pair->name);
  fg_array *file = &j->file[i];
  TRY(fg_npy_read(pair->name, pair->path, file));
  if (!file->real)
    return fg_fail(FG_EARGUMENT, "%s: %s holds integers (%s); expected f4 or f2", pair->name,
                   pair->path, file->type);
  int rank = (int)strlen(fg_arguments[i].axes);
  if (file->rank != rank) {
    char shape[64];
    fg_axes_print(fg_arguments[i].axes, sizeof shape, shape);
    return fg_fail(FG_EARGUMENT, "%s: %s has %d axes; expected %s", pair->name, pair->path,
                   file->rank, shape);
  }
  for (int a = 0; a < rank; a++) TRY(learn(j, i, a, file->extent[a]));
  j->value[i] = file->real;
  return FG_OK;
}

/* Extents that words gave come first, so that a file that disagrees is the one named. */
static void learn_words(job *j) {
  const cli_arguments *w = &j->c->arguments;
  const int64_t given[LETTERS] = {w->b, w->h, w->hk, w->nq, w->nk, -1, -1};
  for (int i = 0; i < LETTERS; i++) {
    j->extent[i] = given[i];
    if (given[i] >= 0) j->from[i] = "the command line";
  }
}

static fg_status known_extents(const job *j) {
  for (int i = 0; i < LETTERS; i++) {
    const char *needs = strchr("gkd", letters[i]) ? "k" : letters[i] == 'v' ? "v" : "q";
    if (j->extent[i] < 0)
      return fg_fail(FG_EARGUMENT, "%s is missing: give --in %s=FILE.npy", needs, needs);
  }
  return FG_OK;
}

static fg_status check_extents(const job *j) {
  if (j->extent[HK] > 0 && j->extent[H] % j->extent[HK])
    return fg_fail(FG_EARGUMENT,
                   "%s: its heads are %" PRId64 ", not a multiple of the %" PRId64
                   " key/value heads of %s",
                   j->from[H], j->extent[H], j->extent[HK], j->from[HK]);
  return fg_shape_check(&j->shape);
}

static int has_word(const cli *c, const char *field) {
  size_t n = strlen(field);
  for (int i = 0; i < c->n_words; i++)
    if (!strncmp(c->words[i], field, n) && c->words[i][n] == '=') return 1;
  return 0;
}

/* Unless a word says which of its axes are broadcast, the bias file does. */
static void settle_bias(const job *j, fg_point *point) {
  const fg_array *bias = &j->file[index_of("bias")];
  const int64_t full[4] = {j->shape.b, j->shape.h, j->shape.nq, j->shape.nk};
  int agrees = 1, dims = 0;
  if (!bias->real || point->bias == FG_BIAS_OFF || has_word(j->c, "bias_dims")) return;
  for (int i = 0; i < 4; i++) {
    int kept = point->bias_dims >> i & 1;
    agrees &= bias->extent[i] == (kept ? full[i] : 1);
    dims |= (bias->extent[i] != 1) << i;
  }
  if (!agrees) point->bias_dims = dims;
}

/* The spec of words and files: exactly one point. */
static fg_status read_spec(job *j) {
  const char *words[CLI_LIST_MAX + 1];
  char head_dim[64];
  int n = j->c->n_words;
  memcpy(words, j->c->words, sizeof *words * (size_t)n);
  snprintf(head_dim, sizeof head_dim, "head_dim=%" PRId64 "/%" PRId64, j->extent[D], j->extent[DV]);
  if (!has_word(j->c, "head_dim")) words[n++] = head_dim;
  fg_status status = fg_grid_read(j->c->n_files, j->c->files, n, words, &j->grid);
  if (status == FG_ESPEC && words[n - 1] == head_dim && strstr(fg_error(), "head_dim:"))
    return fg_fail_in(status, "q has head dim %" PRId64 ", v has %" PRId64, j->extent[D],
                      j->extent[DV]);
  TRY(status);
  if (j->grid->n != 1)
    return fg_fail(FG_EARGUMENT, "the words give %d specs; run takes one", j->grid->n);
  fg_point *p = &j->grid->point[0];
  if (p->d != j->extent[D] || p->dv != j->extent[DV])
    return fg_fail(FG_EARGUMENT,
                   "q has head dim %" PRId64 ", v has %" PRId64 ", but head_dim is %d/%d",
                   j->extent[D], j->extent[DV], p->d, p->dv);
  if (j->file[index_of("bias")].real && p->bias == FG_BIAS_OFF)
    return fg_fail(FG_EARGUMENT, "bias is given, but the spec has bias=false: say bias=true");
  settle_bias(j, p);
  return FG_OK;
}

/* The best plan that --plan lets through; for a pass that was not asked for, any plan will do. */
static fg_status choose(const job *j, const fg_point *point, int asked, fg_variant *variant) {
  cli_variants v = {.gen = j->gen};
  cli pick = *j->c;
  fg_grid grid = *j->grid;
  fg_point one = *point;
  grid.point = &one;
  v.grid = &grid;
  pick.plan = asked ? pick.plan : NULL;
  fg_status status = cli_variants_plan(&pick, j->device->arch, &v);
  if (status == FG_OK) *variant = v.variant[0];
  free(v.variant);
  return status;
}

static fg_status fill(job *j, fg_problem *p) {
  for (int i = 0; i < p->recipe->n_tensors; i++) {
    const fg_recipe_tensor *t = &p->recipe->tensor[i];
    int a = (int)(t->argument - fg_arguments);
    if (t->output) continue;
    if (!j->value[a] && t->argument->optional) {
      fg_problem_drop(p, i);
      continue;
    }
    assert(j->value[a]); /* check_inputs */
    for (int x = 0; t->axes[x] && j->file[a].real; x++) {
      int64_t want = fg_recipe_extent(p->recipe, t->axes[x], &j->shape);
      if (j->file[a].extent[x] != want)
        return fg_fail(FG_EARGUMENT, "%s: axis %d has %" PRId64 ", expected %" PRId64,
                       t->argument->name, x, j->file[a].extent[x], want);
    }
    TRY(fg_problem_set(p, i, j->value[a]));
  }
  return FG_OK;
}

/* Outputs become known values. */
static fg_status take(job *j, const fg_problem *p) {
  for (int i = 0; i < p->recipe->n_tensors; i++) {
    int a = (int)(p->recipe->tensor[i].argument - fg_arguments);
    if (!p->recipe->tensor[i].output || j->value[a]) continue;
    j->value[a] = malloc(((size_t)fg_problem_count(p, i) + 1) * sizeof(float));
    if (!j->value[a]) return fg_fail(FG_EMEMORY, "no memory for %s", fg_arguments[a].name);
    TRY(fg_problem_get(p, i, j->value[a]));
  }
  return FG_OK;
}

/* The variant of a pass, expanded. */
static fg_status prepare(const job *j, const fg_point *point, int asked, char name[FG_NAME_MAX],
                         fg_source **source) {
  fg_variant variant;
  TRY(choose(j, point, asked, &variant));
  fg_variant_name(&variant, FG_NAME_MAX, name);
  return fg_gen_expand(j->gen, &variant, source);
}

/* Runs one pass on what is known. */
static fg_status launch(job *j, const fg_source *source, const char *name) {
  fg_module *module = NULL;
  fg_problem *problem = NULL;
  uint64_t seed = j->c->seed < 0 ? 0 : (uint64_t)j->c->seed;
  fg_status status = FG_OK;
  j->device->seed = seed;
  TRY(fg_problem_new(j->device, &source->recipe, &j->shape, 0, seed, &problem));
  TRY_OUT(fill(j, problem));
  problem->args.scale = (float)j->c->arguments.scale;
  TRY_OUT(fg_module_new(j->device, source, name, &module));
  TRY_OUT(fg_problem_run(problem, module));
  TRY_OUT(take(j, problem));
out:
  fg_module_free(module);
  fg_problem_free(problem);
  return status;
}

/* No input is missing; a backward computes o and lse itself. Said before anything is compiled. */
static fg_status check_inputs(const job *j, const fg_recipe *r) {
  for (int i = 0; i < r->n_tensors; i++) {
    const fg_argument *a = r->tensor[i].argument;
    if (r->tensor[i].output || a->optional || j->value[a - fg_arguments]) continue;
    if (strcmp(a->name, "o") && strcmp(a->name, "lse"))
      return fg_fail(FG_EARGUMENT, "%s is missing: give --in %s=FILE.npy", a->name, a->name);
  }
  return FG_OK;
}

/* What would fail after the run, said before it: two outputs in one file, and a place where no file
 * can be made. */
static fg_status check_places(const job *j) {
  const float zero = 0;
  for (int i = 0; i < j->c->n_out; i++) {
    const cli_pair *out = &j->c->out[i];
    char *temporary;
    for (int k = 0; k < i; k++)
      if (!strcmp(j->c->out[k].path, out->path))
        return fg_fail(FG_EARGUMENT, "--out: %s and %s would both be %s", j->c->out[k].name,
                       out->name, out->path);
    fg_status status = fg_npy_stage(out->path, 0, NULL, &zero, &temporary);
    if (status != FG_OK) return fg_fail_in(status, "%s", out->name);
    fg_npy_discard(temporary);
  }
  return FG_OK;
}

/* Every tensor that was given is used; every output asked for is one. */
static fg_status check_names(const job *j, const fg_recipe *r) {
  for (int side = 0; side < 2; side++) {
    const cli_pair *list = side ? j->c->out : j->c->in;
    for (int i = 0; i < (side ? j->c->n_out : j->c->n_in); i++) {
      int found = 0;
      for (int t = 0; t < r->n_tensors; t++)
        found |= r->tensor[t].output == side && !strcmp(r->tensor[t].argument->name, list[i].name);
      if (!found && index_of(list[i].name) < 0) return unknown_tensor("--out", list[i].name);
      if (!found)
        return fg_fail(FG_EARGUMENT, "%s: the spec has no such %s", list[i].name,
                       side ? "output" : "input");
    }
  }
  return FG_OK;
}

static fg_status write_outputs(const job *j, const fg_recipe *r) {
  char *staged[16] = {NULL};
  int n = 0;
  fg_status status = FG_OK;
  for (int i = 0; i < j->c->n_out; i++) {
    int64_t extent[4];
    int t = 0;
    while (strcmp(r->tensor[t].argument->name, j->c->out[i].name)) t++;
    for (int a = 0; r->tensor[t].axes[a]; a++)
      extent[a] = fg_recipe_extent(r, r->tensor[t].axes[a], &j->shape);
    TRY_OUT(fg_npy_stage(j->c->out[i].path, (int)strlen(r->tensor[t].axes), extent,
                         j->value[r->tensor[t].argument - fg_arguments], &staged[n]));
    n++;
  }
  for (int i = 0; i < n; i++) {
    char *temporary = staged[i];
    staged[i] = NULL;
    TRY_OUT(fg_npy_publish(temporary, j->c->out[i].path));
  }
out:
  for (int i = 0; i < n; i++) fg_npy_discard(staged[i]);
  return status;
}

/* A backward needs the forward's results: what is not given is computed. */
static fg_status add_forward(job *j, const fg_point *backward) {
  char name[FG_NAME_MAX];
  fg_source *source = NULL;
  fg_point forward = *backward;
  if (j->value[index_of("o")] && j->value[index_of("lse")]) return FG_OK;
  forward.pass = FG_PASS_FORWARD;
  fg_point_settle(&forward);
  TRY(prepare(j, &forward, 0, name, &source));
  fg_status status = launch(j, source, name);
  fg_source_free(source);
  return status;
}

static void report(const job *j, const char *name) {
  if (j->c->json) {
    printf("{\"schema\": 1, \"variant\": \"%s\", \"shape\": {\"b\": %" PRId64 ", \"h\": %" PRId64
           ", \"hk\": %" PRId64 ", \"nq\": %" PRId64 ", \"nk\": %" PRId64 "}, \"outputs\": {",
           name, j->shape.b, j->shape.h, j->shape.hk, j->shape.nq, j->shape.nk);
    for (int i = 0; i < j->c->n_out; i++) {
      printf("%s\"%s\": ", i ? ", " : "", j->c->out[i].name);
      cli_json_string(stdout, j->c->out[i].path);
    }
    printf("}}\n");
  } else if (!j->c->quiet) {
    fprintf(stderr,
            "%s: b=%" PRId64 " h=%" PRId64 " hk=%" PRId64 " nq=%" PRId64 " nk=%" PRId64 "\n", name,
            j->shape.b, j->shape.h, j->shape.hk, j->shape.nq, j->shape.nk);
    for (int i = 0; i < j->c->n_out; i++)
      fprintf(stderr, "%s -> %s\n", j->c->out[i].name, j->c->out[i].path);
  }
}

static fg_status run_job(job *j) {
  char name[FG_NAME_MAX];
  fg_source *source = NULL;
  fg_status status = FG_OK;
  if (j->c->n_names)
    return fg_fail(FG_EARGUMENT, "\"%s\": expected field=value or a spec file", j->c->names[0]);
  if (!j->c->n_out) return fg_fail(FG_EARGUMENT, "nothing to write: give --out o=FILE.npy");
  TRY(fg_device_open(j->c->device, &j->device));
  TRY(fg_gen_new(fg_setting_text(FG_SET_TEMPLATES, NULL), &j->gen));
  learn_words(j);
  for (int i = 0; i < j->c->n_in; i++) TRY(read_input(j, &j->c->in[i]));
  TRY(known_extents(j));
  j->shape = (fg_shape){j->extent[B], j->extent[H], j->extent[HK], j->extent[NQ], j->extent[NK], 0};
  TRY(check_extents(j));
  TRY(read_spec(j));
  const fg_point *point = &j->grid->point[0];
  TRY(prepare(j, point, 1, name, &source));
  TRY_OUT(check_names(j, &source->recipe));
  TRY_OUT(check_inputs(j, &source->recipe));
  TRY_OUT(check_places(j));
  if (point->pass == FG_PASS_BACKWARD) TRY_OUT(add_forward(j, point));
  if (!cli_interrupted) TRY_OUT(launch(j, source, name));
  if (cli_interrupted) goto out; /* nothing is written, nothing said */
  TRY_OUT(write_outputs(j, &source->recipe));
  report(j, name);
out:
  fg_source_free(source);
  return status;
}

static int run(cli *c) {
  job j = {.c = c};
  fg_status status = run_job(&j);
  for (int i = 0; i < FG_ARGUMENTS; i++) {
    if (j.value[i] != j.file[i].real) free(j.value[i]);
    fg_array_free(&j.file[i]);
  }
  fg_grid_free(j.grid);
  fg_gen_free(j.gen);
  fg_device_close(j.device);
  return status == FG_OK ? CLI_OK : cli_fail(status);
}

const cli_command cli_run = {
    .name = "run",
    .line = "a kernel on real tensors, .npy files in and out",
    .usage = "[SPEC.lua] [WORD ...] --in NAME=FILE ... --out NAME=FILE ...",
    .options = " help json quiet plan device seed in out ",
    .examples =
        "  flashgen run mask=causal --in q=q.npy --in k=k.npy --in v=v.npy --out o=o.npy\n"
        "  flashgen run pass=backward dtype=f16 scale=0.125 --in q=q.npy --in k=k.npy \\\n"
        "      --in v=v.npy --in do=do.npy --out dq=dq.npy --out dk=dk.npy --out dv=dv.npy\n"
        "tensors: q do o dq [b, nq, h, d]  k v dk dv [b, nk, hk, d]  lse dlse [b, h, nq]\n"
        "  bias dbias [b|1, h|1, nq|1, nk|1]; lengths, heads and head dims come from the files\n"
        "other words: scale=X (default 1/sqrt(d)), b= h= hk= nq= nk= must agree with the files\n",
    .takes_arguments = 1,
    .run = run};
