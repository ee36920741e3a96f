/* emit.c - `flashgen emit`: a variant's text, or its recipe. */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that cannot be written whole is not left behind. */
static fg_status write_text(const cli *c, const char *name, const char *arch, const char *text) {
  char path[PATH_MAX];
  const char *suffix = c->recipe ? "recipe" : fg_arch_is_host(arch) ? "c" : "cu";
  int n = snprintf(path, sizeof path, "%s/%s.%s", c->directory, name, suffix);
  errno = ENAMETOOLONG;
  FILE *file = n < (int)sizeof path ? fopen(path, "wbe") : NULL;
  if (!file) return fg_fail(FG_EIO, "cannot write %s: %s", path, strerror(errno));
  int error = fputs(text, file) < 0 ? errno : 0;
  if (fclose(file) && !error) error = errno;
  if (!error) return FG_OK;
  unlink(path);
  return fg_fail(FG_EIO, "cannot write %s: %s", path, strerror(error));
}

static fg_status emit(const cli *c, const cli_variants *v, int i) {
  char name[FG_NAME_MAX], recipe[FG_RECIPE_TEXT];
  fg_source *source;
  fg_status status = FG_OK;
  fg_variant_name(&v->variant[i], sizeof name, name);
  TRY(fg_gen_expand(v->gen, &v->variant[i], &source));
  if (c->recipe) fg_recipe_print(&source->recipe, sizeof recipe, recipe);
  const char *text = c->recipe ? recipe : source->text;
  if (c->directory)
    status = write_text(c, name, v->variant[i].arch, text);
  else
    fputs(text, stdout);
  fg_source_free(source);
  return status;
}

static int run(cli *c) {
  cli_variants v;
  fg_status status = cli_variants_read(c, c->arch ? c->arch : FG_ARCH_USUAL, &v);
  if (status != FG_OK) return cli_fail(status);
  if (c->directory && mkdir(c->directory, 0777) && errno != EEXIST)
    status = fg_fail(FG_EIO, "cannot make the directory %s: %s", c->directory, strerror(errno));
  if (v.n > 1 && !c->directory)
    status = fg_fail(FG_EARGUMENT, "%d variants: give -o DIR to write a file for each", v.n);
  for (int i = 0; i < v.n && status == FG_OK && !cli_interrupted; i++) status = emit(c, &v, i);
  cli_variants_free(&v);
  return status == FG_OK ? CLI_OK : cli_fail(status);
}

const cli_command cli_emit = {
    .name = "emit",
    .line = "the CUDA text of a variant",
    .usage = "[NAME ...] [SPEC.lua ...] [WORD ...]",
    .options = " help filter plan plans arch output recipe ",
    .examples = "  flashgen emit head_dim=128 mask=causal\n"
                "  flashgen emit attn_fwd-bf16-d128-causal.simt-q16-k32-w4.sm_90a\n"
                "  flashgen emit specs/quickstart.lua --arch sm_80 -o kernels\n"
                "  flashgen emit head_dim=64 pass=backward --recipe\n",
    .run = run};
