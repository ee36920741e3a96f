/* doctor.c - `flashgen doctor`: what this machine has, and whether a kernel compiles and runs. */
#include "cli.h"

#include "host_cc.h"
#include "nvrtc.h"
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
  int compiles = fg_host_cc_version(sizeof text, text) == FG_OK;
  row("compiler", compiles, compiles ? text : fg_error());
  const char *argv[] = {"addr2line", "--version", NULL};
  int found = fg_process_run(argv, sizeof text, text, &code) == FG_OK && code == 0;
  text[strcspn(text, "\n")] = 0;
  row("addr2line", found, found ? text : "faults of the host device will not name template lines");
  row("Lua", 1, fg_gen_lua());
  return compiles;
}

/* One small kernel, from its spec to right numbers. */
static fg_status try_kernel(fg_device *device, verify_verdict *verdict, char name[FG_NAME_MAX]) {
  static const char *const words[] = {"head_dim=64", "mask=causal"};
  static const verify_case which = {.shape = {1, 2, 1, 40, 50, 0}, .seed = 1};
  cli c = {.n_words = 2, .words = {words[0], words[1]}};
  cli_variants v = {0};
  fg_source *source = NULL;
  fg_module *module = NULL;
  fg_status status = FG_OK;
  TRY(cli_variants_read(&c, device->arch, &v));
  fg_variant_name(v.variant, FG_NAME_MAX, name);
  TRY_OUT(fg_gen_expand(v.gen, v.variant, &source));
  TRY_OUT(fg_module_new(device, source, name, &module));
  TRY_OUT(verify_run(v.variant, source, module, &which, 0, verdict));
out:
  fg_module_free(module);
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

/* A row for the device's kernel. Returns what it says of the exit code. */
static int check_device(fg_device *device) {
  verify_verdict verdict = {0};
  char name[FG_NAME_MAX] = "a kernel", text[256];
  fg_status status = try_kernel(device, &verdict, name);
  snprintf(text, sizeof text, "o %.2g of %g", verdict.tensor[0].error, verdict.tensor[0].limit);
  row("a kernel", status == FG_OK && verdict.pass, status == FG_OK ? text : fg_error());
  if (status != FG_OK) return cli_exit_code(status) == CLI_KERNEL ? CLI_KERNEL : CLI_MACHINE;
  return verdict.pass ? CLI_OK : CLI_NUMBERS;
}

/* A machine need not have a GPU: what is not there is said and is no fault. */
static int check_gpu(void) {
  const fg_nvrtc *nvrtc;
  fg_device *device;
  char text[640];
  int code = CLI_OK;
  printf("\nGPU\n");
  if (fg_nvrtc_load(&nvrtc) == FG_OK) {
    snprintf(text, sizeof text, "%d.%d, %s", fg_nvrtc_version(nvrtc) / 1000,
             fg_nvrtc_version(nvrtc) % 1000 / 10, fg_nvrtc_path(nvrtc));
    row("NVRTC", 1, text);
  } else {
    printf("  %-12s %-8s %s\n", "NVRTC", "none", fg_error());
  }
  if (fg_device_open("cuda:0", &device) == FG_OK) {
    row(device->name, 1, device->arch);
    code = check_device(device);
    fg_device_close(device);
  } else {
    printf("  %-12s %-8s %s\n", "cuda:0", "none", fg_error());
  }
  return code;
}

static int run(cli *c) {
  (void)c;
  fg_device *host;
  printf("flashgen %s\n\nmachine\n", FG_VERSION);
  int compiles = check_programs(), code = CLI_MACHINE;
  fg_status status = fg_device_open("host", &host);
  if (status != FG_OK) return cli_fail(status);
  printf("\ndevice host\n");
  if (compiles)
    code = check_device(host);
  else
    row("a kernel", 0, "not tried: there is no compiler");
  fg_device_close(host);
  int gpu = check_gpu();
  print_environment();
  return code ? code : gpu ? gpu : missing ? CLI_MACHINE : CLI_OK;
}

const cli_command cli_doctor = {.name = "doctor",
                                .line = "what this machine has, and whether a kernel runs",
                                .usage = "",
                                .options = " help ",
                                .examples = "  flashgen doctor\n",
                                .run = run};
