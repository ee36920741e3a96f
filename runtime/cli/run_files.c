/* run_files.c - the files of `flashgen run`: extents from those that go in, a place for those that
 * come out. */
#include "run.h"

#include "base/spelling.h"
#include "reference/oracle_epilogue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int run_index(const run_job *j, const char *name) {
  const fg_argument *a = fg_argument_find(j->kind, name);
  return a && fg_argument_belongs(a, j->layout, j->dropout, j->normalizer) ? (int)(a - fg_arguments)
                                                                           : -1;
}

/* The name of the recipe's tensor: "inputs.slope" is slope where no argument is called so. */
static const char *name_of(const run_job *j, const cli_pair *pair) {
  const char *bare = fg_input_bare(pair->name);
  return run_index(j, bare) < 0 ? bare : pair->name;
}

int run_tensor(run_job *j, const char *name) {
  int i = run_index(j, name), n = 0;
  if (i >= 0) return i;
  while (n < j->n_extra && strcmp(j->extra[n], name)) n++;
  if (n == j->n_extra && n < RUN_EXTRA - 1)
    snprintf(j->extra[j->n_extra++], sizeof j->extra[0], "%s", name);
  return FG_ARGUMENTS + n;
}

int run_knows(run_job *j, const char *name) {
  int i = run_tensor(j, name);
  return j->value[i] || j->file[i].real || j->file[i].integer;
}

/* May the spec, which is read later, have an input of that name? */
static int may_be_input(const run_job *j, const char *name) {
  char word[80];
  int n = snprintf(word, sizeof word, "inputs.%s=", fg_input_bare(name)), may = j->c->n_files > 0;
  for (int i = 0; i < j->c->n_words; i++)
    may |= !strncmp(j->c->words[i], word, (size_t)n) || !strncmp(j->c->words[i], "inputs=", 7);
  return may && strlen(name) < FG_NAME_SIZE;
}

static fg_status unknown_tensor(const run_job *j, const char *option, const char *name) {
  const char *names[FG_ARGUMENTS];
  int n = 0;
  for (int i = 0; i < FG_ARGUMENTS; i++)
    if (run_index(j, fg_arguments[i].name) == i) names[n++] = fg_arguments[i].name;
  const char *near = fg_nearest(name, names, n);
  return fg_fail(FG_EARGUMENT, "%s %s: there is no tensor of that name%s%s%s", option, name,
                 near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* A row's axes as the spec's layout has them. */
static const char *axes_of(const run_job *j, const fg_argument *a, char axes[FG_AXES_MAX + 1]) {
  fg_layout_axes(j->layout, a->axes, axes);
  return axes;
}

/* One axis of a file's tensor: says what the extent is, or agrees with what was said. A bias may
 * have 1 instead. There is one start more than sequences. */
static fg_status learn(run_job *j, int argument, int axis, int letter, int64_t extent) {
  const fg_argument *a = &fg_arguments[argument];
  int bias = a->elem == FG_RULE_BIAS;
  if (bias) return FG_OK; /* it is compared with the recipe, when bias_dims is known */
  if (letter == 'c' && extent-- == 0)
    return fg_fail(FG_EARGUMENT, "%s: it is empty; it has a start of each sequence and an end",
                   a->name);
  if (letter == 'c') letter = 'b';
  if (j->extent[letter] < 0) {
    j->extent[letter] = extent;
    j->from[letter] = a->name;
  }
  if (j->extent[letter] == extent) return FG_OK;
  return fg_fail(FG_EARGUMENT, "%s: its %s (axis %d) is %" PRId64 ", but %s has %" PRId64, a->name,
                 fg_axis_title((char)letter), axis, extent, j->from[letter], j->extent[letter]);
}

static fg_status read_input(run_job *j, const cli_pair *pair) {
  const char *name = name_of(j, pair);
  int i = run_index(j, name);
  if (i < 0 && !may_be_input(j, name)) return unknown_tensor(j, "--in", name);
  /* a declared input: the recipe says its shape */
  if (i < 0) return fg_npy_read(name, pair->path, &j->file[run_tensor(j, name)]);
  fg_array *file = &j->file[i];
  const bool has_integers = fg_argument_has_integers(&fg_arguments[i]);
  char axes[FG_AXES_MAX + 1], shape[64];
  TRY(fg_npy_read(name, pair->path, file));
  const bool is_either = fg_arguments[i].elem == FG_RULE_SAID; /* run_check_names knows */
  if (!is_either && has_integers != (file->integer != NULL))
    return fg_fail(FG_EARGUMENT, "%s: %s holds %s (%s); expected %s", name, pair->path,
                   has_integers ? "floats" : "integers", file->type,
                   has_integers ? "i4 or i8" : "f2, f4 or f8");
  int rank = (int)strlen(axes_of(j, &fg_arguments[i], axes));
  const bool has_blocks = fg_arguments[i].elem == FG_RULE_DESCALE && file->rank == rank + 1;
  if (file->rank != rank && !has_blocks) {
    fg_axes_print(axes, sizeof shape, shape);
    return fg_fail(FG_EARGUMENT, "%s: %s has %d axes; expected %s", name, pair->path, file->rank,
                   shape);
  }
  for (int a = 0; a < rank; a++) TRY(learn(j, i, a, axes[a], file->extent[a]));
  return FG_OK;
}

/* Extents that words gave come first, so that a file that disagrees is the one named. */
static fg_status learn_words(run_job *j) {
  for (int i = 0; i < RUN_LETTERS; i++) j->extent[i] = -1;
  for (int i = 0; i < FG_EXTENTS; i++) {
    const int64_t n = fg_extent_get(&fg_extents[i], &j->c->arguments.shape);
    if (n < 0) continue;
    j->extent[(int)fg_extents[i].letter] = n;
    j->from[(int)fg_extents[i].letter] = "the command line";
    fg_extent_set(&fg_extents[i], &j->shape, n);
  }
  return fg_shape_fits(j->kind, &j->shape);
}

/* Has the kind a tensor of that row, which says the extent of the letter? Of a bias any axis may be
 * 1. */
static bool says(const run_job *j, const fg_argument *a, int letter) {
  char axes[FG_AXES_MAX + 1];
  if (a->elem == FG_RULE_BIAS || run_index(j, a->name) != a - fg_arguments) return false;
  axes_of(j, a, axes);
  return strchr(axes, letter) || (letter == 'b' && strchr(axes, 'c'));
}

/* An extent is known, or the first tensor that would say it is missing. */
static fg_status check_known(const run_job *j, int letter) {
  int a = 0;
  if (j->extent[letter] >= 0) return FG_OK;
  while (a < FG_ARGUMENTS && !says(j, &fg_arguments[a], letter)) a++;
  if (a == FG_ARGUMENTS) a = 0;
  return fg_fail(FG_EARGUMENT, "%s is missing: give --in %s=FILE.npy", fg_arguments[a].name,
                 fg_arguments[a].name);
}

/* The columns that come out, where no file says them: those of h, or half of these. */
static fg_status settle_output(run_job *j) {
  const oracle_epilogue *epilogue = oracle_epilogue_find(j->epilogue);
  const bool is_gated = epilogue && epilogue->is_gated;
  const int out = 'o', rows_of_w = 'f';
  if (j->extent[out] >= 0) return FG_OK;
  TRY(check_known(j, rows_of_w));
  j->extent[out] = j->extent[rows_of_w] / (is_gated ? 2 : 1);
  j->from[out] = is_gated ? "half of w" : j->from[rows_of_w];
  return FG_OK;
}

/* Extents that no file need say: bounds of lengths, from tokens and from a table; heads of queries
 * that a kernel may be without, and positions where nothing turns. */
static fg_status settle_extents(run_job *j) {
  int64_t *n = j->extent;
  const bool has_scores = j->kind->has_scale;
  if (strchr(j->kind->widths, 'o')) TRY(settle_output(j));
  if (j->layout.kv == FG_PAGED && n['k'] < 0) TRY(check_known(j, 'm'));
  if (n['q'] < 0 && j->layout.q == FG_PACKED) n['q'] = n['s'];
  if (n['k'] < 0 && j->layout.kv == FG_PACKED) n['k'] = n['t'];
  if (n['k'] < 0 && n['m'] >= 0 && n['z'] >= 0) n['k'] = n['m'] * n['z'];
  if (n['h'] < 0 && !has_scores) n['h'] = n['g'];
  if (n['n'] < 0) n['n'] = 0;
  return FG_OK;
}

static fg_status check_extents(const run_job *j) {
  const int h = 'h', hk = 'g';
  if (j->extent[hk] > 0 && j->extent[h] % j->extent[hk])
    return fg_fail(FG_EARGUMENT,
                   "%s: its heads are %" PRId64 ", not a multiple of the %" PRId64
                   " key/value heads of %s; heads are axis 2, behind the length: [b, n, h, d]",
                   j->from[h], j->extent[h], j->extent[hk], j->from[hk]);
  return fg_shape_check_of(j->kind, &j->shape);
}

fg_status run_read(run_job *j) {
  TRY(learn_words(j));
  for (int i = 0; i < j->c->n_in; i++) TRY(read_input(j, &j->c->in[i]));
  char letters[FG_LETTERS], more[FG_LAYOUT_EXTENTS + 1];
  TRY(settle_extents(j));
  snprintf(letters, sizeof letters, "%s%s", j->kind->form->letters,
           fg_layout_extents(j->layout, more));
  for (const char *letter = letters; *letter; letter++) {
    TRY(check_known(j, *letter));
    fg_extent_set(fg_extent_of(*letter), &j->shape, j->extent[(int)*letter]);
  }
  for (const char *letter = j->kind->widths; *letter; letter++) TRY(check_known(j, *letter));
  return check_extents(j);
}

/* ---- lengths ---- */

/* The integers of the tensor's file; NULL: there is none. */
static const int64_t *integers(run_job *j, const char *name) {
  return j->file[run_tensor(j, name)].integer;
}

static fg_status check_starts(run_job *j, const char *name, int64_t tokens) {
  const int64_t *starts = integers(j, name);
  for (int64_t i = 0; starts && i <= j->shape.b; i++) {
    if (starts[i] < (i ? starts[i - 1] : 0))
      return fg_fail(FG_EARGUMENT, "%s: start %" PRId64 " is %" PRId64 ", less than %" PRId64 "%s",
                     name, i, starts[i], i ? starts[i - 1] : 0, i ? ", the one before" : "");
    if (starts[i] > tokens)
      return fg_fail(FG_EARGUMENT,
                     "%s: start %" PRId64 " is %" PRId64 ", beyond the %" PRId64
                     " tokens of the tensor",
                     name, i, starts[i], tokens);
  }
  return FG_OK;
}

/* starts: of packed sequences; NULL: each has `rows`. */
static fg_status check_used(run_job *j, const char *name, const int64_t *starts, int64_t rows) {
  const int64_t *used = integers(j, name);
  for (int64_t i = 0; used && i < j->shape.b; i++) {
    const int64_t most = starts ? starts[i + 1] - starts[i] : rows;
    if (used[i] < 0 || used[i] > most)
      return fg_fail(FG_EARGUMENT,
                     "%s: sequence %" PRId64 " has %" PRId64 "; expected 0 to %" PRId64
                     ", the rows that it has",
                     name, i, used[i], most);
  }
  return FG_OK;
}

fg_status run_check_lengths(run_job *j) {
  TRY(check_starts(j, "starts_q", j->shape.tokens_q));
  TRY(check_starts(j, "starts_k", j->shape.tokens_k));
  TRY(check_used(j, "used_q", integers(j, "starts_q"), j->shape.nq));
  return check_used(j, "used_k", integers(j, "starts_k"), j->shape.nk);
}

/* A directory that is not there is a slip of the command line. */
static fg_status check_directory(const cli_pair *out) {
  struct stat info;
  char *directory = strdup(out->path), *slash = directory ? strrchr(directory, '/') : NULL;
  if (!directory) return fg_fail(FG_EMEMORY, "no memory for %s", out->path);
  if (slash) slash[slash == directory] = 0; /* "/" stays */
  int there = !slash || (stat(directory, &info) == 0 && S_ISDIR(info.st_mode));
  fg_status status = there ? FG_OK
                           : fg_fail(FG_EARGUMENT, "--out %s=%s: there is no directory %s",
                                     out->name, out->path, directory);
  free(directory);
  return status;
}

fg_status run_check_places(const run_job *j) {
  const float zero = 0;
  for (int i = 0; i < j->c->n_out; i++) {
    const cli_pair *out = &j->c->out[i];
    char *temporary;
    for (int k = 0; k < i; k++)
      if (!strcmp(j->c->out[k].path, out->path))
        return fg_fail(FG_EARGUMENT, "--out: %s and %s would both be %s", j->c->out[k].name,
                       out->name, out->path);
    TRY(check_directory(out));
    fg_status status = fg_npy_stage(out->path, 0, NULL, &zero, &temporary);
    if (status != FG_OK) return fg_fail_in(status, "%s", out->name);
    fg_npy_discard(temporary);
  }
  return FG_OK;
}

/* A name that is none of the recipe's tensors on that side. */
static fg_status bad_name(const run_job *j, const fg_recipe *r, const cli_pair *pair, int output) {
  const char *name = name_of(j, pair);
  for (int i = 0; i < r->n_numbers; i++)
    if (!output && !strcmp(r->number[i].name, name))
      return fg_fail(FG_EARGUMENT, "--in %s: it is a number; say %s=X", name, name);
  if (run_index(j, name) < 0) return unknown_tensor(j, output ? "--out" : "--in", name);
  return fg_fail(FG_EARGUMENT, "%s: the spec has no such %s", name, output ? "output" : "input");
}

/* Values of a file are never made integers, or of integers floats. */
static fg_status check_type(const fg_recipe_tensor *t, const fg_array *file, const char *path) {
  bool integers = t->elem == FG_ELEM_I32;
  if (integers == (file->integer != NULL)) return FG_OK;
  return fg_fail(FG_EARGUMENT, "%s: %s holds %s (%s); expected %s", t->name, path,
                 integers ? "floats" : "integers", file->type,
                 integers ? "i4 or i8" : "f2, f4 or f8");
}

/* The recipe's tensor of that name on that side; NULL: it has none, or there is no recipe. */
static const fg_recipe_tensor *find(const fg_recipe *r, const char *name, bool output) {
  for (int t = 0; r && t < r->n_tensors; t++)
    if ((r->tensor[t].output == output || r->tensor[t].kept) && !strcmp(r->tensor[t].name, name))
      return &r->tensor[t];
  return NULL;
}

fg_status run_check_names(run_job *j, const fg_recipe *r, const fg_recipe *before) {
  for (int i = 0; i < j->c->n_in; i++) {
    const cli_pair *in = &j->c->in[i];
    const char *name = name_of(j, in);
    const fg_recipe_tensor *t = find(r, name, false);
    if (!t) t = find(before, name, false);
    if (!t) return bad_name(j, r, in, 0);
    TRY(check_type(t, &j->file[run_tensor(j, name)], in->path));
  }
  for (int i = 0; i < j->c->n_out; i++) {
    if (run_is_mask(j, j->c->out[i].name))
      TRY(run_mask_check(j));
    else if (!find(r, name_of(j, &j->c->out[i]), true))
      return bad_name(j, r, &j->c->out[i], 1);
  }
  return FG_OK;
}

static fg_status stage_mask(run_job *j, const char *path, char **staged) {
  int64_t extent[FG_AXES_MAX];
  float *mask;
  TRY(run_mask_new(j, j->file[run_tensor(j, "seed")].integer, extent, &mask));
  const fg_status status = fg_npy_stage(path, 4, extent, mask, staged);
  free(mask);
  return status;
}

fg_status run_write(run_job *j, const fg_recipe *r) {
  char *staged[16] = {NULL};
  int n = 0;
  fg_status status = FG_OK;
  for (int i = 0; i < j->c->n_out; i++) {
    int64_t extent[FG_AXES_MAX];
    int t = 0;
    if (run_is_mask(j, j->c->out[i].name)) {
      TRY_OUT(stage_mask(j, j->c->out[i].path, &staged[n]));
      n++;
      continue;
    }
    while (strcmp(r->tensor[t].name, name_of(j, &j->c->out[i]))) t++;
    for (int a = 0; r->tensor[t].axes[a]; a++)
      extent[a] = fg_recipe_extent(r, r->tensor[t].axes[a], &j->shape);
    const int a = run_tensor(j, r->tensor[t].name), rank = (int)strlen(r->tensor[t].axes);
    const char *path = j->c->out[i].path;
    if (r->tensor[t].elem == FG_ELEM_I32)
      TRY_OUT(fg_npy_stage_integers(path, rank, extent, j->file[a].integer, &staged[n]));
    else
      TRY_OUT(fg_npy_stage(path, rank, extent, j->value[a], &staged[n]));
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
