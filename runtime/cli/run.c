/* run.c - `flashgen run`: real tensors in and out.
 *
 * Everything that the files say (lengths, heads, head dims, the bias's dims) is taken from them and
 * must agree; nothing is written before all outputs are there. */
#include "run.h"

#include "base/text.h"
#include "reference/problem.h"
#include "reference/reference.h"
#include "spec/point_formula.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The value of a word field=value; NULL: there is none. */
static const char *word_of(const cli *c, const char *field) {
  size_t n = strlen(field);
  for (int i = 0; i < c->n_words + c->n_either; i++) {
    const char *word = i < c->n_words ? c->words[i] : c->either[i - c->n_words];
    if (!strncmp(word, field, n) && word[n] == '=') return word + n + 1;
  }
  return NULL;
}

/* Unless a word says which of its axes are broadcast, the bias file does. */
static void settle_bias(run_job *j, fg_point *point) {
  const fg_array *bias = &j->file[run_tensor(j, "bias")];
  const fg_shape *s = &j->shape;
  const int64_t full[4] = {s->b, s->h, j->layout.q == FG_PACKED ? s->tokens_q : s->nq,
                           j->layout.kv == FG_PACKED ? s->tokens_k : s->nk};
  int agrees = 1, dims = 0;
  if (!fg_kind_has_field(j->kind, FG_FIELD_BIAS_DIMS)) return;
  if (!bias->real || point->bias == FG_BIAS_OFF || word_of(j->c, "bias_dims")) return;
  for (int i = 0; i < 4; i++) {
    int kept = point->bias_dims >> i & 1;
    agrees &= bias->extent[i] == (kept ? full[i] : 1);
    dims |= (bias->extent[i] != 1) << i;
  }
  if (!agrees) point->bias_dims = dims;
}

/* The specs of words and files; unless a word gives the widths, `widths` does. */
static fg_status read_grid(const run_job *j, const fg_kind *kind, const char *widths,
                           fg_grid **grid) {
  return cli_grid_read(j->c, word_of(j->c, kind->width_field) == NULL, &widths, grid);
}

/* The kind and the layout that the spec is of: the files of --in tell its widths, but which tensors
 * they may be, and of which axes, depends on these. A spec that is wrong is of the kind that a word
 * says, else of the first, until read_spec says what is wrong. */
static void find_kind(run_job *j) {
  const char *word = word_of(j->c, "kernel");
  const fg_kind *given = word ? fg_kind_find(word) : NULL;
  j->kind = given ? given : fg_kinds;
  for (int i = 0; i < FG_KINDS; i++) {
    fg_grid *grid = NULL;
    char any[64];
    snprintf(any, sizeof any, "%s=16", fg_kinds[i].width_field);
    const bool is_good =
        (!given || given == &fg_kinds[i]) && read_grid(j, &fg_kinds[i], any, &grid) == FG_OK;
    if (is_good) {
      j->kind = fg_point_kind(grid->point), j->layout = fg_point_layout(grid->point);
      j->normalizer = grid->point->normalizer, j->dropout = grid->point->dropout;
      j->epilogue = grid->point->epilogue;
    }
    fg_grid_free(grid);
  }
}

/* "16/24", of what the files say or of the point; returns the length. */
static int print_widths(const run_job *j, const fg_point *point, size_t size, char *text) {
  int n = 0, width[FG_WIDTHS_MAX];
  if (point) fg_point_widths(point, width);
  for (int i = 0; j->kind->widths[i]; i++) {
    const int64_t learned = j->extent[(int)j->kind->widths[i]];
    n = fg_append(size, text, n, "%s%" PRId64, i ? "/" : "", point ? width[i] : learned);
  }
  return n;
}

/* "q has head dim 16, v has 24": which files said so. */
static const char *tell_widths(const run_job *j, size_t size, char *text) {
  int n = 0;
  for (const char *letter = j->kind->widths; *letter; letter++)
    n = fg_append(size, text, n, "%s%s has %s%s%" PRId64, n ? ", " : "", j->from[(int)*letter],
                  n ? "" : fg_axis_title(*letter), n ? "" : " ", j->extent[(int)*letter]);
  return text;
}

/* Does the spec have no such tensor because it says "false" where it might say "true"? */
static bool says_false(const run_job *j, const fg_point *p, const char *name) {
  const fg_field *field = fg_field_find(name);
  const uint64_t gone = p->pass == FG_PASS_BACKWARD ? j->kind->of_forward : 0;
  char text[64];
  if (!field || run_index(j, name) < 0 || !fg_kind_has_spec_field(j->kind, field)) return false;
  if (gone >> (field - fg_fields) & 1) return false;
  fg_field_print(field, p, sizeof text, text);
  return !strcmp(text, "false");
}

/* Tensors that are there because a field of their name says so: bias, residual, sink, target. */
static fg_status check_switched(const run_job *j, const fg_point *p) {
  for (int i = 0; i < j->c->n_in; i++) {
    const char *name = j->c->in[i].name;
    if (says_false(j, p, name))
      return fg_fail(FG_EARGUMENT, "%s is given, but the spec has %s=false: say %s=true", name,
                     name, name);
  }
  return FG_OK;
}

/* The spec of words and files: exactly one point, whose widths are those of the files. */
static fg_status read_spec(run_job *j) {
  const char *field = j->kind->width_field;
  char word[64], learned[48], own[48], told[160], complaint[40];
  print_widths(j, NULL, sizeof learned, learned);
  snprintf(word, sizeof word, "%s=%s", field, learned);
  fg_status status = read_grid(j, j->kind, word, &j->grid);
  snprintf(complaint, sizeof complaint, "%s:", field);
  if (status == FG_ESPEC && !word_of(j->c, field) && strstr(fg_error(), complaint))
    return fg_fail_in(status, "%s", tell_widths(j, sizeof told, told));
  TRY(status);
  if (j->grid->n != 1)
    return fg_fail(FG_EARGUMENT, "the words give %d specs; run takes one", j->grid->n);
  fg_point *p = &j->grid->point[0];
  print_widths(j, p, sizeof own, own);
  if (strcmp(own, learned))
    return fg_fail(FG_EARGUMENT, "%s, but %s is %s", tell_widths(j, sizeof told, told), field, own);
  TRY(check_switched(j, p));
  settle_bias(j, p);
  return FG_OK;
}

/* Are the tensor's words those of seed= and offset=? */
static bool is_said(run_job *j, const fg_recipe_tensor *t) {
  return t->argument->elem == FG_RULE_WORDS && j->c->arguments.has_seed && !run_knows(j, t->name);
}

static fg_status fill(run_job *j, fg_problem *p) {
  for (int i = 0; i < p->recipe->n_tensors; i++) {
    const fg_recipe_tensor *t = &p->recipe->tensor[i];
    int a = run_tensor(j, t->name);
    if ((t->output && !t->kept) || p->shares[i]) continue;
    if (is_said(j, t)) {
      TRY(fg_problem_set_ints(p, i, j->c->arguments.words));
      continue;
    }
    const fg_array *file = &j->file[a];
    if (!run_knows(j, t->name) && t->optional) {
      fg_problem_drop(p, i);
      continue;
    }
    assert(run_knows(j, t->name)); /* check_inputs */
    if (t->slot >= 0 && file->rank != (int)strlen(t->axes))
      return fg_fail(FG_EARGUMENT, "%s: its file has %d axes, expected %d", t->name, file->rank,
                     (int)strlen(t->axes));
    for (int x = 0; t->axes[x] && !j->value[a]; x++) {
      int64_t want = fg_recipe_extent(p->recipe, t->axes[x], &j->shape);
      if (file->extent[x] != want)
        return fg_fail(FG_EARGUMENT, "%s: axis %d has %" PRId64 ", expected %" PRId64, t->name, x,
                       file->extent[x], want);
    }
    if (file->integer)
      TRY(fg_problem_set_ints(p, i, file->integer));
    else
      TRY(fg_problem_set(p, i, file->real ? file->real : j->value[a]));
  }
  return FG_OK;
}

/* An output of integers becomes known as if a file had given it. */
static fg_status take_integers(const fg_problem *p, int tensor, fg_array *file) {
  const fg_recipe_tensor *t = &p->recipe->tensor[tensor];
  *file = (fg_array){.rank = (int)strlen(t->axes), .type = "i4"};
  file->count = fg_problem_count(p, tensor);
  for (int a = 0; a < FG_NPY_RANK; a++)
    file->extent[a] = a < file->rank ? fg_recipe_extent(p->recipe, t->axes[a], &p->shape) : 1;
  file->integer = malloc(((size_t)file->count + 1) * sizeof *file->integer);
  if (!file->integer) return fg_fail(FG_EMEMORY, "no memory for %s", t->name);
  return fg_problem_get_ints(p, tensor, file->integer);
}

/* Does a backward compute it itself, by its forward? Not what is of a linear layer's z, in which
 * there may be a residual that backward is not given. */
static bool is_saved(const run_job *j, const fg_recipe_tensor *t) {
  const bool is_of_z = !strcmp(t->name, "mean") || !strcmp(t->name, "rstd");
  if (is_of_z && fg_kind_has_field(j->kind, FG_FIELD_EPILOGUE)) return false;
  return reference_is_saved(reference_of(j->kind), t);
}

/* Outputs become known values, those that are kept new ones. Of a forward before a backward these
 * are what the backward reads: z is left out, so that the backward makes it of x in float32. */
static fg_status take(run_job *j, const fg_problem *p, bool is_before) {
  for (int i = 0; i < p->recipe->n_tensors; i++) {
    int a = run_tensor(j, p->recipe->tensor[i].name);
    const fg_recipe_tensor *t = &p->recipe->tensor[i];
    if (!t->output || (run_knows(j, t->name) && !t->kept)) continue;
    if (is_before && !is_saved(j, t)) continue;
    if (t->elem == FG_ELEM_I32) {
      TRY(take_integers(p, i, &j->file[a]));
      continue;
    }
    j->value[a] = malloc(((size_t)fg_problem_count(p, i) + 1) * sizeof(float));
    if (!j->value[a]) return fg_fail(FG_EMEMORY, "no memory for %s", p->recipe->tensor[i].name);
    TRY(fg_problem_get(p, i, j->value[a]));
  }
  return FG_OK;
}

/* Runs one pass on what is known, which may be a forward before a backward. name: of the variant
 * that did. */
static fg_status launch(run_job *j, const fg_pick *pick, bool is_before, char name[FG_NAME_MAX]) {
  fg_kernel *kernel = NULL;
  fg_problem *problem = NULL;
  fg_device *device = fg_context_device(j->context);
  uint64_t seed = j->c->seed < 0 ? 0 : (uint64_t)j->c->seed;
  fg_status status = FG_OK;
  device->seed = seed;
  TRY(fg_problem_new(device, pick->recipe, &j->shape, 0, seed, &problem));
  TRY_OUT(fill(j, problem));
  cli_numbers_set(j->c, problem);
  TRY_OUT(fg_pick_kernel(pick, &kernel));
  snprintf(name, FG_NAME_MAX, "%s", cli_info(kernel).name);
  TRY_OUT(fg_problem_run(problem, fg_kernel_module(kernel)));
  TRY_OUT(take(j, problem, is_before));
out:
  fg_kernel_free(kernel);
  fg_problem_free(problem);
  return status;
}

/* Is the tensor a part of another one? */
static bool is_in_another(const fg_recipe *r, const fg_recipe_tensor *t) {
  return r->layout.latent && !strcmp(t->name, "v");
}

/* No input is missing. Said before anything is compiled. */
static fg_status check_inputs(run_job *j, const fg_recipe *r) {
  for (int i = 0; i < r->n_numbers; i++)
    if (!cli_number_find(j->c, r->number[i].name))
      return fg_fail(FG_EARGUMENT, "%s is missing: give %s=NUMBER", r->number[i].name,
                     r->number[i].name);
  for (int i = 0; i < r->n_tensors; i++) {
    const char *name = r->tensor[i].name;
    const fg_recipe_tensor *t = &r->tensor[i];
    if (is_in_another(r, t) && run_knows(j, name))
      return fg_fail(FG_EARGUMENT, "v: with latent=true it is the first columns of k, not a file");
    if ((t->output && !t->kept) || is_in_another(r, t) || run_knows(j, name)) continue;
    if (t->unless && !run_knows(j, r->tensor[t->unless - 1].name))
      return fg_fail(FG_EARGUMENT, "%s is missing: give --in %s=FILE.npy, or --in %s=FILE.npy",
                     name, name, r->tensor[t->unless - 1].name);
    if (t->optional) continue;
    if (is_said(j, &r->tensor[i])) continue;
    if (r->tensor[i].argument->elem == FG_RULE_WORDS)
      return fg_fail(FG_EARGUMENT, "%s is missing: give %s=NUMBER", name, name);
    if (!is_saved(j, &r->tensor[i]))
      return fg_fail(FG_EARGUMENT, "%s is missing: give --in %s=FILE.npy", name, name);
  }
  return FG_OK;
}

/* Is something that the recipe takes from a forward not given? */
static bool needs_forward(run_job *j, const fg_recipe *r) {
  bool needs = false;
  for (int i = 0; i < r->n_tensors; i++)
    needs |= !r->tensor[i].output && is_saved(j, &r->tensor[i]) && !run_knows(j, r->tensor[i].name);
  return needs;
}

/* The forward that computes what a backward needs and is not given. */
static fg_status choose_forward(const run_job *j, const fg_point *backward, fg_pick *pick) {
  fg_point forward = *backward;
  forward.pass = FG_PASS_FORWARD;
  fg_point_settle(&forward);
  TRY(fg_point_forget_gradients(&forward));
  return fg_pick_plan(j->context, &forward, j->grid->limits[0], &j->shape, NULL, pick);
}

/* How the files were read: arrays in the order b h n d, where no heads disagree, give other lengths
 * and heads than were meant, and nothing else. */
static void report_axes(const run_job *j) {
  const fg_shape *s = &j->shape;
  if (!fg_form_has(j->kind->form, 'k') || j->layout.q != FG_DENSE || j->layout.kv != FG_DENSE)
    return;
  fprintf(stderr,
          "q is [b=%" PRId64 ", nq=%" PRId64 ", h=%" PRId64 ", d=%" PRId64 "], k is [b=%" PRId64
          ", nk=%" PRId64 ", hk=%" PRId64 ", d=%" PRId64 "]%s\n",
          s->b, s->nq, s->h, j->extent['d'], s->b, s->nk, s->hk, j->extent['d'],
          s->nq < s->h && s->nk < s->hk ? ": if the files are [b, h, n, d], they must be transposed"
                                        : "");
}

static void report(const run_job *j, const char *name) {
  if (j->c->json) {
    printf("{\"schema\": 1, \"variant\": \"%s\", \"shape\": ", name);
    cli_json_shape(stdout, j->kind->form, &j->shape);
    printf(", \"outputs\": {");
    for (int i = 0; i < j->c->n_out; i++) {
      printf("%s\"%s\": ", i ? ", " : "", j->c->out[i].name);
      cli_json_string(stdout, j->c->out[i].path);
    }
    printf("}}\n");
  } else if (!j->c->quiet) {
    char words[FG_SHAPE_WORDS];
    fg_shape_words(j->kind->form, &j->shape, sizeof words, words);
    fprintf(stderr, "%s: %s\n", name, words);
    report_axes(j);
    for (int i = 0; i < j->c->n_out; i++)
      fprintf(stderr, "%s -> %s\n", j->c->out[i].name, j->c->out[i].path);
  }
}

static fg_status run_all(run_job *j) {
  char name[FG_NAME_MAX];
  fg_pick pick, before = {0};
  if (j->c->n_names)
    return fg_fail(FG_EARGUMENT, "\"%s\": expected field=value or a spec file", j->c->names[0]);
  if (!j->c->n_out) return fg_fail(FG_EARGUMENT, "nothing to write: give --out o=FILE.npy");
  TRY(cli_context(j->c->device, &j->context));
  if (j->c->verbose) fg_context_tell_all(j->context);
  find_kind(j);
  TRY(run_read(j));
  TRY(read_spec(j));
  TRY(cli_numbers_check(j->c, 1, j->grid->point));
  const fg_point *point = &j->grid->point[0];
  TRY(fg_pick_plan(j->context, point, j->grid->limits[0], &j->shape, j->c->plan, &pick));
  const fg_recipe *recipe = pick.recipe;
  if (needs_forward(j, recipe)) TRY(choose_forward(j, point, &before));
  const fg_recipe *first = before.recipe;
  TRY(run_check_names(j, recipe, first));
  TRY(check_inputs(j, recipe));
  if (first) TRY(check_inputs(j, first));
  TRY(run_check_lengths(j));
  TRY(run_check_places(j));
  if (first) TRY(launch(j, &before, true, name));
  if (!cli_interrupted) TRY(launch(j, &pick, false, name));
  if (cli_interrupted) return FG_OK; /* nothing is written, nothing said */
  TRY(run_write(j, recipe));
  report(j, name);
  return FG_OK;
}

static int run(cli *c) {
  run_job j = {.c = c};
  fg_status status = run_all(&j);
  for (int i = 0; i < RUN_TENSORS; i++) {
    free(j.value[i]);
    fg_array_free(&j.file[i]);
  }
  fg_grid_free(j.grid);
  fg_close(j.context);
  return status == FG_OK ? CLI_OK : cli_fail(status);
}

const cli_command cli_run = {
    .name = "run",
    .line = "a kernel on real tensors, .npy files in and out",
    .usage = "[SPEC.lua] [WORD ...] --in NAME=FILE ... --out NAME=FILE ...",
    .options = " help json quiet verbose plan device seed in out ",
    .examples =
        "  flashgen run mask=causal --in q=q.npy --in k=k.npy --in v=v.npy --out o=o.npy\n"
        "  flashgen run pass=backward dtype=f16 scale=0.125 --in q=q.npy --in k=k.npy \\\n"
        "      --in v=v.npy --in do=do.npy --out dq=dq.npy --out dk=dk.npy --out dv=dv.npy\n"
        "tensors: q do o dq [b, nq, h, d]  k v dk dv [b, nk, hk, d]  lse dlse [b, h, nq]\n"
        "  bias dbias [b|1, h|1, nq|1, nk|1]  sink dsink [h]; lengths, heads and head dims come "
        "from the files\n"
        "  dropout=true: keep=0.9 seed=1 offset=0; --out keep_mask: what is kept, [b, h, nq, nk]\n"
        "  normalizer=logsoftmax: u [b, nq, h, dv]; retention: r [b, h, nq]  "
        "max_logit=true: max_logit [b, h]\n"
        "  dtype=e4m3: q_descale k_descale v_descale [b, hk], with descale_block=n [b, hk, "
        "blocks]; "
        "none = 1\n"
        "  kernel=logsoftmax: x y dy dx [rows, width]; target=true: target loss lse dloss [rows]  "
        "weight [width]\n"
        "  kernel=layernorm: x residual out z dout dz dx [rows, width]  gamma beta bias [width], "
        "with d their\n"
        "    gradients  mean rstd [rows]; eps=X (default 1e-5)\n"
        "  kernel=linear: x dx [rows, in]  w dw [out, in]  bias dbias [out]  y dy residual [rows, "
        "out]\n"
        "    keep [rows, cdiv(out, 32)] bits of relu, [rows, out] of others; gated w bias keep "
        "have "
        "2 out;\n"
        "    of a norm, as of layernorm: out z dout dz gamma beta mean rstd, and dresidual [rows, "
        "out]\n"
        "  q_layout=packed: q do o dq [tokens, h, d]  lse dlse [h, tokens]  starts_q [b+1]  used_q "
        "[b]\n"
        "  kv_layout=packed: k v dk dv [tokens, hk, d]  starts_k [b+1]  used_k [b]\n"
        "  kv_layout=cached: k v [caches, nk, hk, d]  used_k first_k rows [b]\n"
        "  kv_layout=paged: k v [pages, page, hk, d]  used_k first_k [b]  table [b, pages of one]\n"
        "  slices=true: q_ranges k_ranges [slices, 2]  kinds [slices]\n"
        "  shard=true: pos_q pos_k whole_q whole_k [b]\n"
        "  kernel=combine: o_parts [parts, b, nq, h, dv]  lse_parts [parts, b, h, nq]  o lse as "
        "above\n"
        "  kernel=append: k v, in and out, and k_new v_new q q_out rotary_cos rotary_sin "
        "row_positions;\n"
        "    kv_dtype=e4m3: k_descale v_descale [b, hk]\n"
        "layouts (q_layout, kv_layout): starts_q starts_k [b + 1]  used_q used_k first_k rows [b]\n"
        "  table [b, pages of a sequence], integers; packed q [tokens_q, h, d]  k [tokens_k, hk, "
        "d]\n"
        "  cached k [caches, nk, hk, d]  paged k [pages, page, hk, d]\n"
        "inputs that the spec declares: --in slope=slope.npy, --out dslope=dslope.npy; width=128 "
        "sets\n"
        "  one that is a number\n"
        "other words: scale=X (default 1/sqrt(d)), sm_margin=N (multiprocessors to leave free),\n"
        "  b= h= hk= nq= nk= rows= parts= tokens_q= tokens_k= pages= page= slices=N must agree "
        "with the files\n",
    .takes_arguments = 1,
    .run = run};
