/* doctor.c - `flashgen doctor`: what this machine has, and whether a kernel compiles and runs. */
#include "cli.h"

#include "process.h"
#include "setting.h"
#include "verify.h"

#include <string.h>

static int missing;

static void row(const char *what, int good, const char *text) {
  printf("  %-12s %-8s %s\n", what, good ? "ok" : "missing", text);
  missing += !good;
}

/* Returns whether kernels can be compiled. */
static int check_programs(void) {
  char text[8192];
  int code = 1;
  int compiles = fg_host_compiler(sizeof text, text) == FG_OK;
  row("compiler", compiles, compiles ? text : fg_error());
  const char *argv[] = {"addr2line", "--version", NULL};
  int found = fg_process_run(argv, sizeof text, text, &code) == FG_OK && code == 0;
  text[strcspn(text, "\n")] = 0;
  row("addr2line", found, found ? text : "faults of the host device will not name template lines");
  row("Lua", 1, fg_gen_lua());
  return compiles;
}

/* One small kernel, from its spec to right numbers. */
static fg_status try_kernel(verify_verdict *verdict, char name[FG_NAME_MAX]) {
  static const char *const words[] = {"head_dim=64", "mask=causal"};
  static const verify_case which = {.shape = {1, 2, 1, 40, 50, 0}, .seed = 1};
  cli c = {.n_words = 2, .words = {words[0], words[1]}};
  cli_variants v = {0};
  fg_source *source = NULL;
  fg_host_module *module = NULL;
  fg_status status = FG_OK;
  TRY(cli_variants_read(&c, "host", &v));
  fg_variant_name(v.variant, FG_NAME_MAX, name);
  TRY_OUT(fg_gen_expand(v.gen, v.variant, &source));
  TRY_OUT(fg_host_module_new(source, name, &module));
  TRY_OUT(verify_run(v.variant, source, module, &which, 0, verdict));
out:
  fg_host_module_free(module);
  fg_source_free(source);
  cli_variants_free(&v);
  return status;
}

static void print_environment(void) {
  int name_width = 0, value_width = 0;
  printf("\nenvironment\n");
  for (int i = 0; i < FG_SETTINGS; i++) {
    int name = (int)strlen(fg_settings[i].name);
    int value = (int)strlen(fg_setting_text((fg_setting)i, NULL));
    if (name > name_width) name_width = name;
    if (value > value_width) value_width = value;
  }
  for (int i = 0; i < FG_SETTINGS; i++) {
    int given;
    const char *value = fg_setting_text((fg_setting)i, &given);
    printf("  %-*s  %-*s  %-11s  %s\n", name_width, fg_settings[i].name, value_width,
           *value ? value : "-", given ? "environment" : "default", fg_settings[i].help);
  }
}

static int run(cli *c) {
  (void)c;
  verify_verdict verdict = {0};
  char name[FG_NAME_MAX] = "a kernel", text[256];
  printf("flashgen %s\n\nmachine\n", FG_VERSION);
  int compiles = check_programs();
  printf("\ndevice host\n");
  fg_status status = compiles ? try_kernel(&verdict, name) : FG_EENVIRONMENT;
  snprintf(text, sizeof text, "o %.2g of %g", verdict.tensor[0].error, verdict.tensor[0].limit);
  row("a kernel", status == FG_OK && verdict.pass,
      status == FG_OK ? text
      : compiles      ? fg_error()
                      : "not tried: there is no compiler");
  print_environment();
  if (status != FG_OK) return cli_exit_code(status) == CLI_KERNEL ? CLI_KERNEL : CLI_MACHINE;
  return !verdict.pass ? CLI_NUMBERS : missing ? CLI_MACHINE : CLI_OK;
}

const cli_command cli_doctor = {.name = "doctor",
                                .line = "what this machine has, and whether a kernel runs",
                                .usage = "",
                                .options = " help ",
                                .examples = "  flashgen doctor\n",
                                .run = run};
