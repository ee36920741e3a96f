/* doctor.c - `flashgen doctor`: what this machine has, and whether a kernel compiles and runs. */
#include "cli.h"

#include "base/setting.h"
#include "base/text.h"
#include "cache/cache.h"
#include "cuda/nvrtc.h"
#include "device/host_cc.h"
#include "device/process.h"
#include "expand/overlay.h"
#include "reference/verify.h"

#include <inttypes.h>
#include <string.h>

static int missing;

/* As a page to read, or as one JSON document. */
static bool json;
static const char *section;
static int rows;

static void begin(const char *title) {
  section = title;
  if (!json) printf("\n%s\n", title);
}

/* What was looked at, what came of it ("ok", "missing", "none"), in which words. */
static void say(const char *what, const char *state, const char *text) {
  const char *const pairs[][2] = {
      {"section", section}, {"what", what}, {"state", state}, {"text", text}};
  if (!json) {
    printf("  %-12s %-8s %s\n", what, state, text);
    return;
  }
  for (int i = 0; i < 4; i++) {
    printf("%s\"%s\": ", i ? ", " : rows++ ? ",\n  {" : "\n  {", pairs[i][0]);
    cli_json_string(stdout, pairs[i][1]);
  }
  printf("}");
}

static void row(const char *what, int good, const char *text) {
  say(what, good ? "ok" : "missing", text);
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
  static const verify_case which = {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 40, .nk = 50},
                                    .seed = 1};
  cli c = {.command = &cli_doctor, .n_words = 2, .words = {words[0], words[1]}};
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

static void drop(void *context, const char *sentence) { (void)context, (void)sentence; }

/* A context of the library on the host device, and its kernel: compiled, or found again. */
static fg_status select_kernel(int *from_cache) {
  const fg_shape shape = FG_INIT(fg_shape, .b = 1, .h = 1, .hk = 1, .nq = 8, .nk = 8);
  fg_config config = FG_INIT(fg_config);
  fg_spec spec = FG_INIT(fg_spec);
  fg_info info = FG_INIT(fg_info);
  fg_context *context;
  fg_op *op;
  fg_kernel *kernel;
  fg_status status = FG_OK;
  config.device = "host";
  config.warn = drop; /* it has been said above */
  spec.head_dim = "8";
  TRY(fg_open(&config, &context));
  TRY_OUT(fg_define(context, &spec, &op));
  TRY_OUT(fg_select(op, &shape, NULL, &kernel));
  TRY_OUT(fg_kernel_info(kernel, &info));
  *from_cache = info.from_cache;
out:
  fg_close(context);
  return status;
}

static void no_warning(void *context, const char *sentence) {
  snprintf(context, 512, "%s", sentence);
}

typedef struct {
  int replaced, added;
  char first[256]; /* of those added */
} templates_found;

/* A visitor. */
static fg_status count_template(void *context, const char *path, const char *name) {
  templates_found *found = context;
  (void)path;
  if (fg_overlay_has(NULL, name))
    found->replaced++;
  else if (!found->added++)
    snprintf(found->first, sizeof found->first, "%s", name);
  return FG_OK;
}

/* A file with a name that no built-in template has is named, for the name may be misspelt. */
static void check_templates(void) {
  const char *folder = fg_setting_text(FG_SET_TEMPLATES, NULL);
  templates_found found = {0};
  char text[1024];
  if (!*folder) return;
  begin("templates");
  fg_status status = fg_overlay_check(folder);
  if (status == FG_OK) status = fg_overlay_each(folder, count_template, &found);
  int n = snprintf(text, sizeof text, "%s replaces %d built-in template%s", folder, found.replaced,
                   cli_s(found.replaced));
  if (found.added)
    fg_append(sizeof text, text, n, ", and has %d of other names: %s%s", found.added, found.first,
              found.added > 1 ? ", ..." : "");
  row("directory", status == FG_OK, status == FG_OK ? text : fg_error());
}

/* Where compiled kernels are kept, and that the second context finds what the first one made. */
static void check_cache(int compiles) {
  char text[1024], warning[512] = "";
  fg_cache_report report = {0};
  fg_cache *cache;
  int first = 0, again = 0;
  begin("cache");
  if (fg_cache_open(NULL, no_warning, warning, &cache) != FG_OK) {
    row("directory", 0, fg_error());
    return;
  }
  const char *path = fg_cache_path(cache);
  fg_status status = path ? fg_cache_stat(cache, &report) : FG_OK;
  snprintf(text, sizeof text, "%s, %" PRIu64 " entries, %.1f MiB", path ? path : "memory only",
           report.entries, (double)report.bytes / (1 << 20));
  if (status == FG_OK && path && !*warning)
    row("directory", 1, text);
  else /* kernels are compiled anew by each process: slower, not wrong */
    say("directory", "none", status != FG_OK ? fg_error() : *warning ? warning : text);
  fg_cache_close(cache);
  if (!compiles || !path) return;
  status = select_kernel(&first);
  if (status == FG_OK) status = select_kernel(&again);
  snprintf(text, sizeof text, "%s, then found in the cache", first ? "found" : "compiled");
  row("a kernel", status == FG_OK && again,
      status != FG_OK ? fg_error()
      : again         ? text
                      : "compiled, and not found again");
}

/* A member of a JSON object; NULL: null. */
static void member(const char *key, const char *text, bool first) {
  printf("%s\"%s\": ", first ? "" : ", ", key);
  if (text)
    cli_json_string(stdout, text);
  else
    printf("null");
}

static void print_environment_json(void) {
  printf("\n], \"environment\": [");
  for (int i = 0; i < FG_SETTINGS; i++) {
    char why[512];
    int given;
    const char *value = fg_setting_text((fg_setting)i, &given);
    const char *fault = fg_setting_fault((fg_setting)i);
    printf("%s\n  {", i ? "," : "");
    member("name", fg_settings[i].name, true);
    member("value", value, false);
    member("origin", given ? "environment" : "default", false);
    member("expected", fault, false);
    member("trouble", fg_setting_absent((fg_setting)i, sizeof why, why) ? why : NULL, false);
    printf("}");
  }
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
    const char *fault = fg_setting_fault((fg_setting)i);
    char why[512];
    if (fault) printf("  %-*s  is not allowed; expected %s\n", name_width, "", fault);
    if (fg_setting_absent((fg_setting)i, sizeof why, why))
      printf("  %-*s  %s\n", name_width, "", why);
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
  begin("GPU");
  if (fg_nvrtc_load(&nvrtc) == FG_OK) {
    snprintf(text, sizeof text, "%d.%d, %s", fg_nvrtc_version(nvrtc) / 1000,
             fg_nvrtc_version(nvrtc) % 1000 / 10, fg_nvrtc_path(nvrtc));
    row("NVRTC", 1, text);
  } else {
    say("NVRTC", "none", fg_error());
  }
  if (fg_device_open("cuda:0", &device) == FG_OK) {
    row(device->name, 1, device->arch);
    code = check_device(device);
    fg_device_close(device);
  } else {
    say("cuda:0", "none", fg_error());
  }
  return code;
}

/* Which GPUs there are kernels for, and whether NVRTC can compile them here. */
static void print_archs(void) {
  const fg_nvrtc *nvrtc;
  const bool loaded = fg_nvrtc_load(&nvrtc) == FG_OK;
  if (json)
    printf("\n], \"archs\": [");
  else
    printf("\narchs, the families that compute there, and whether NVRTC compiles for them\n");
  for (int i = 0; i < fg_n_archs; i++) {
    const fg_arch *arch = &fg_archs[i];
    const bool host = fg_arch_has(arch, FG_HAS_ENGINE);
    const bool can = loaded && !host && fg_nvrtc_check_arch(nvrtc, arch->name) == FG_OK;
    const char *compiles = host ? "-" : can ? "yes" : "no";
    if (!json) {
      printf("  %-12s %-17s %-4s %s\n", arch->name, fg_arch_families(arch), compiles, arch->gpus);
      continue;
    }
    printf("%s\n  {", i ? "," : "");
    member("arch", arch->name, true);
    member("families", fg_arch_families(arch), false);
    member("gpus", arch->gpus, false);
    printf(", \"nvrtc\": %s}", can ? "true" : "false");
  }
}

static int run(cli *c) {
  fg_device *host;
  json = c->json;
  if (json)
    printf("{\"schema\": 1, \"version\": \"%s\", \"checks\": [", FG_VERSION);
  else
    printf("flashgen %s\n", FG_VERSION);
  begin("machine");
  int compiles = check_programs(), code = CLI_MACHINE;
  check_templates();
  begin("device host");
  fg_status status = fg_device_open("host", &host);
  if (status != FG_OK) return cli_fail(status);
  if (compiles)
    code = check_device(host);
  else
    row("a kernel", 0, "not tried: there is no compiler");
  fg_device_close(host);
  int gpu = check_gpu();
  check_cache(compiles);
  print_archs();
  code = code ? code : gpu ? gpu : missing ? CLI_MACHINE : CLI_OK;
  if (json)
    print_environment_json();
  else
    print_environment();
  if (json) printf("\n], \"exit\": %d}\n", code);
  return code;
}

const cli_command cli_doctor = {.name = "doctor",
                                .line = "what this machine has, and whether a kernel runs",
                                .usage = "",
                                .options = " help json ",
                                .examples = "  flashgen doctor\n"
                                            "  flashgen doctor --json\n",
                                .run = run};
