/* list.c - `flashgen list`: the variants that specs give, before anything is made. */
#include "help.h"

#include <inttypes.h>
#include <string.h>

/* As words that give this spec again: a value with commas is one, not a list. */
static void print_spec(FILE *to, const fg_point *point) {
  for (int i = 0; i < FG_SPEC_FIELDS; i++) {
    const fg_field *field = &fg_fields[i];
    char text[64];
    if (!fg_field_belongs(field, point)) continue;
    if (i >= FG_FIELD_MASK && i <= FG_FIELD_DEFINE) { /* quoted as a shell wants them */
      const char *formula = fg_field_text(field, point), *quote = strchr(formula, ' ') ? "'" : "";
      if (i == FG_FIELD_MASK || strcmp(formula, field->fallback))
        fprintf(to, " %s%s=%s%s", quote, field->name, formula, quote);
      continue;
    }
    fg_field_print(field, point, sizeof text, text);
    int list = strchr(text, ',') != NULL;
    fprintf(to, "%s%s=%s%s%s", i ? " " : "", fg_fields[i].name, list ? "[" : "", text,
            list ? "]" : "");
  }
}

/* The decisions that are on in the variant, where its family has any. */
static fg_status print_switches(fg_gen *gen, const fg_variant *variant) {
  char text[1024];
  TRY(fg_gen_switches(gen, variant, sizeof text, text));
  if (*text) printf("  switches: %s", text);
  return FG_OK;
}

static fg_status print_names(const cli *c, const cli_variants *v) {
  for (int i = 0; i < v->n; i++) {
    char name[FG_NAME_MAX];
    fg_variant_name(&v->variant[i], sizeof name, name);
    printf("%s", name);
    if (c->verbose) {
      printf("  ");
      print_spec(stdout, &v->variant[i].point);
      TRY(print_switches(v->gen, &v->variant[i]));
    }
    printf("\n");
  }
  return FG_OK;
}

static void print_json(const cli_variants *v) {
  printf("{\"schema\": 1, \"variants\": [");
  for (int i = 0; i < v->n; i++) {
    const fg_variant *x = &v->variant[i];
    char name[FG_NAME_MAX], plan[64];
    fg_variant_name(x, sizeof name, name);
    fg_plan_name(&x->plan, sizeof plan, plan);
    printf("%s\n  {\"name\": \"%s\", \"plan\": \"%s\", \"arch\": \"%s\", \"spec\": {", i ? "," : "",
           name, plan, x->arch);
    for (int j = 0; j < FG_SPEC_FIELDS; j++) {
      bool formula = j >= FG_FIELD_MASK && j <= FG_FIELD_DEFINE;
      char text[64];
      if (!fg_field_belongs(&fg_fields[j], &x->point)) continue;
      if (!formula) fg_field_print(&fg_fields[j], &x->point, sizeof text, text);
      printf("%s\"%s\": ", j ? ", " : "", fg_fields[j].name);
      cli_json_string(stdout, formula ? fg_field_text(&fg_fields[j], &x->point) : text);
    }
    printf("}}");
  }
  printf("\n]");
  if (v->grid)
    printf(", \"specs\": %d, \"combinations\": %" PRId64 ", \"rejected\": %" PRId64
           ", \"merged\": %" PRId64,
           v->grid->n, v->grid->combinations, v->grid->rejected, v->grid->merged);
  printf("}\n");
}

/* Of the specs of the command line; without any of what flashgen has. */
static fg_status print_support(const cli *c) {
  cli_page page = {.to = stdout, .markdown = c->markdown};
  fg_grid *grid = NULL;
  fg_status status = FG_OK;
  if (!c->n_files && !c->n_words) return cli_support_print(&page, 0, NULL);
  TRY(cli_grid_read(c, 0, NULL, &grid));
  status = cli_support_print(&page, grid->n, grid->point);
  fg_grid_free(grid);
  return status;
}

static int run(cli *c) {
  if (c->support) {
    fg_status status = print_support(c);
    return status == FG_OK ? CLI_OK : cli_fail(status);
  }
  cli_variants v;
  fg_status status = cli_variants_read(c, c->arch ? c->arch : FG_ARCH_USUAL, &v);
  if (status != FG_OK) return cli_fail(status);
  if (c->json) {
    print_json(&v);
  } else {
    status = print_names(c, &v);
    cli_flush();
    if (status == FG_OK && v.grid && !c->quiet)
      fprintf(stderr,
              "%d variant%s of %d spec%s: %" PRId64 " combination%s, %" PRId64
              " rejected by when, %" PRId64 " equal to another\n",
              v.n, cli_s(v.n), v.grid->n, cli_s(v.grid->n), v.grid->combinations,
              cli_s(v.grid->combinations), v.grid->rejected, v.grid->merged);
  }
  cli_variants_free(&v);
  return status == FG_OK ? CLI_OK : cli_fail(status);
}

const cli_command cli_list = {
    .name = "list",
    .line = "the variants that specs give",
    .usage = "[SPEC.lua ...] [WORD ...]",
    .options = " help json quiet verbose filter plan plans arch support markdown ",
    .examples = "  flashgen list specs/quickstart.lua\n"
                "  flashgen list head_dim=64,128 mask=full,causal pass=forward,backward\n"
                "  flashgen list specs/quickstart.lua dtype=f16 --filter '*-causal*' --json\n"
                "  flashgen list --support head_dim=64,256 pass=forward,backward\n",
    .run = run};
