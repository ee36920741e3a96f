/* t_cli.c - `flashgen` list and emit, help, and command lines that are wrong. */
#include "json.h"
#include "program.h"
#include "recipe/arch.h"
#include "scratch.h"
#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZOO FLASHGEN_SOURCE "/specs/quickstart.lua"

static void put(const char *path, const char *text) { scratch_put(path, text, strlen(text)); }

static int lines(const char *text) { return program_count(text, "\n"); }

/* ---- list ---- */

TEST(list_quickstart) {
  program_result r = program_gives(0, "list " ZOO);
  ck_assert_int_eq(lines(r.out), 28);
  program_says(r.out, "attn_fwd-bf16-d192v128-causal.wgmma-");
  program_says(r.out, "attn_bwd-bf16-d64-causal-biasgrad_hqk.wgmma-");
  ck_assert_int_eq(program_count(r.out, ".wgmma-"), 28);
  ck_assert_int_eq(program_count(r.out, ".mma-"), 0);
  ck_assert_int_eq(program_count(r.out, "attn_bwd-"), 16);
  ck_assert_int_eq(program_count(r.out, "-f16-"), 4);
  ck_assert_str_eq(r.err, "28 variants of 28 specs: 40 combinations, 8 rejected by when, 4 equal "
                          "to another\n");
  ck_assert_str_eq(program_gives(0, "list -q " ZOO).err, "");
}

TEST(list_words_over_files) {
  put("a.lua", "return { head_dim = { 64, 128 }, mask = 'causal' }");
  put("b.lua", "return { { head_dim = 8 }, { head_dim = 16 } }");
  program_result r = program_gives(0, "list a.lua b.lua dtype=f16 family=simt");
  ck_assert_str_eq(r.out, "attn_fwd-f16-d64-causal.simt-q16-k32-w4.sm_90a\n"
                          "attn_fwd-f16-d128-causal.simt-q16-k32-w4.sm_90a\n"
                          "attn_fwd-f16-d8.simt-q16-k32-w4.sm_90a\n"
                          "attn_fwd-f16-d16.simt-q16-k32-w4.sm_90a\n");
  r = program_gives(0, "list a.lua head_dim=40 mask=full,causal --arch sm_80 family=simt");
  ck_assert_str_eq(r.out, "attn_fwd-bf16-d40.simt-q16-k32-w4.sm_80\n"
                          "attn_fwd-bf16-d40-causal.simt-q16-k32-w4.sm_80\n");
  r = program_gives(0, "list head_dim=40 family=mma,simt --arch sm_75"); /* too old for mma */
  ck_assert_str_eq(r.out, "attn_fwd-bf16-d40.simt-q16-k32-w4.sm_75\n");
  program_refuses(2,
                  "attn_fwd-bf16-d40: no plan fits: 2 candidates, none within the restrictions; "
                  "wgmma: needs sm_90a, not sm_75; mma: needs sm_80 or newer, not sm_75; decode: "
                  "needs sm_80 or newer, not sm_75",
                  "list head_dim=40 family=mma --arch sm_75");
}

/* What to write instead is said. */
TEST(slips) {
  program_refuses(2,
                  "\"head_dim\" has no value: write head_dim=VALUE, without spaces\nflashgen list "
                  "--help says what it takes",
                  "list head_dim = 64");
  program_refuses(2,
                  "\"head_dim=\": write field=value, without spaces\nflashgen list --help says "
                  "what it takes",
                  "list head_dim= 64");
  program_refuses(2,
                  "\"=64\": write field=value, without spaces\nflashgen list --help says what it "
                  "takes",
                  "list mask=causal =64");
  program_refuses(2,
                  "mask: column 1: window does not take 1 value: write window(l, r)\n"
                  "  window(128)\n  ^",
                  "list head_dim=64 mask=window(128)");
  program_refuses(2, "unknown field \"widht\" (did you mean \"width\"?)",
                  "check head_dim=8 mask=window(width,0) inputs.width=int widht=3");
  program_refuses(2, "unknown field \"sm_margn\" (did you mean \"sm_margin\"?)",
                  "check head_dim=8 sm_margn=1");
  program_refuses(2, "unknown field \"scael\" (did you mean \"scale\"?)",
                  "check head_dim=8 scael=3");
  program_says(program_gives(2, "vresion").err, "(did you mean \"version\"?)");
  static const char *const words[] = {"version", "-V", "--version"};
  for (int i = 0; i < 3; i++)
    ck_assert_str_eq(program_gives(0, "%s", words[i]).out, "flashgen 0.1.0\n");
}

/* --help lists every value of a field that is a choice. */
TEST(values_of_fields) {
  const char *help = program_gives(0, "list --help").out;
  for (int i = 0; i < FG_FIELDS; i++) {
    char list[256] = ":";
    for (int v = 0; fg_fields[i].type == &fg_type_choice && fg_fields[i].choices[v]; v++)
      snprintf(list + strlen(list), sizeof list - strlen(list), "%s %s", v ? "," : "",
               fg_fields[i].choices[v]);
    if (fg_fields[i].type == &fg_type_choice) program_says(help, list);
  }
  program_says(help, "tiles in flight (restricts plans)\n");
  program_says(help, "warps that share the same keys (restricts plans of mma)\n");
}

/* One table: the page's, --help's and doctor's rows are those of arch.c. */
TEST(archs_are_said) {
  program_result help = program_gives(0, "build --help");
  char text[1 << 14];
  snprintf(text, sizeof text, "%s", help.out);
  const char *page = program_text(FLASHGEN_SOURCE "/runtime/docs/doors/which_kernel.md");
  for (int i = 0; i < fg_n_archs; i++) {
    const fg_arch *arch = &fg_archs[i];
    char row[160];
    snprintf(row, sizeof row, "\n| %s | %s | %s |\n", arch->name, fg_arch_families(arch),
             arch->gpus);
    program_page_says(page, row);
    snprintf(row, sizeof row, "\n  %-12s %-17s %s\n", arch->name, fg_arch_families(arch),
             arch->gpus);
    program_says(text, row);
  }
  static const char *const commands[] = {
      "list head_dim=40 --arch sm_999", "emit head_dim=40 --arch sm_90",
      "list head_dim=40 --arch sm_80,sm_100", "check head_dim=40 --device sm_90"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    program_says(program_gives(2, "%s", commands[i]).err,
                 " is not known; expected one of host, sm_75, ");
  program_says(program_gives(2, "emit attn_fwd-bf16-d64.simt-q16-k32-w4.sm_90").err,
               "\"attn_fwd-bf16-d64.simt-q16-k32-w4.sm_90\" is not the name of a variant: arch "
               "\"sm_90\" is not known");
}

TEST(list_filter_and_plans) {
  ck_assert_int_eq(lines(program_gives(0, "list " ZOO " --filter *-causal*").out), 14);
  ck_assert_int_eq(lines(program_gives(0, "list " ZOO " --plans 1").out), 28);
  ck_assert_int_eq(lines(program_gives(0, "list " ZOO " --plans all pass=forward family=simt").out),
                   24);
  ck_assert_int_eq(lines(program_gives(0, "list head_dim=64 --plans=2").out), 2);
  program_result r = program_gives(0, "list head_dim=64 --plans all --plan simt-q4-*");
  ck_assert_str_eq(r.out, "attn_fwd-bf16-d64.simt-q4-k32-w4.sm_90a\n");
  r = program_gives(0, "list head_dim=64 block_q=4"); /* only simt has that */
  ck_assert_str_eq(r.out, "attn_fwd-bf16-d64.simt-q4-k32-w4.sm_90a\n");
  r = program_gives(
      0, "list head_dim=64 pass=backward deterministic=true warps_per_key=2 block_kv=128");
  ck_assert_str_eq(r.out, "attn_bwd-bf16-d64-det.mma-q64-k128-s2-w8-p2.sm_90a\n");
  r = program_gives(0, "list -v head_dim=128/64 bias=true bias_dims=[h,k]");
  program_says(r.out, "  kernel=attention pass=forward dtype=bf16 head_dim=128/64 mask=full "
                      "bias=true bias_dims=[h,k] ");
}

TEST(list_json) {
  program_result r = program_gives(0, "list " ZOO " family=simt --json");
  json_whole(r.out);
  ck_assert_int_eq(program_count(r.out, "{\"name\": \"attn_"), 28);
  program_says(r.out, "{\"schema\": 1, \"variants\": [");
  program_says(r.out, "\"plan\": \"simt-q16-k32-w4\", \"arch\": \"sm_90a\", \"spec\": {\"kernel\": "
                      "\"attention\", \"pass\": \"forward\", ");
  program_says(r.out, "], \"specs\": 28, \"combinations\": 40, \"rejected\": 8, \"merged\": 4}\n");
  ck_assert_str_eq(r.err, "");
  r = program_gives(0, "list attn_fwd-bf16-d64.simt-q4-k32-w4.sm_80 --json");
  json_whole(r.out);
}

/* ---- emit ---- */

TEST(emit_by_name_and_words) {
  static const struct {
    const char *words, *name;
  } one[] = {{"head_dim=128 mask=causal family=simt --arch sm_80",
              "attn_fwd-bf16-d128-causal.simt-q16-k32-w4.sm_80"},
             {"head_dim=64 pass=backward bias=grad dtype=f16 family=simt --arch host",
              "attn_bwd-f16-d64-biasgrad_bhqk.simt-q16-k32-w4.host"},
             {"head_dim=128 mask=causal block_q=64 stages=1 --arch sm_80",
              "attn_fwd-bf16-d128-causal.mma-q64-k64-s1-w4.sm_80"},
             {"head_dim=64 pass=backward deterministic=true warps_per_key=4 stages=1 --arch host",
              "attn_bwd-bf16-d64-det.mma-q64-k64-s1-w8-p4.host"}};
  for (int i = 0; i < 4; i++) {
    char *by_words = strdup(program_gives(0, "emit %s", one[i].words).out);
    program_result r = program_gives(0, "emit %s", one[i].name);
    ck_assert_str_eq(r.out, by_words);
    ck_assert_str_eq(r.err, "");
    program_says(r.out, one[i].name);
    free(by_words);
  }
}

/* A file each, named and filled as emit alone would print it. */
TEST(emit_to_a_directory) {
  program_gives(0, "emit head_dim=8,16 family=simt -o made");
  ck_assert_int_eq(scratch_files(), 2); /* made, tmp */
  program_result r = program_gives(0, "emit head_dim=16 family=simt");
  ck_assert_str_eq(r.out, program_text("made/attn_fwd-bf16-d16.simt-q16-k32-w4.sm_90a.cu"));
  program_gives(0,
                "emit head_dim=16 family=simt --arch host -omade"); /* the directory may be there */
  ck_assert_int_eq(access("made/attn_fwd-bf16-d16.simt-q16-k32-w4.host.c", R_OK), 0);
  program_gives(0, "emit head_dim=16 family=simt --recipe --output=made");
  char *recipe = strdup(program_gives(0, "emit head_dim=16 family=simt --recipe").out);
  ck_assert_str_eq(recipe, program_text("made/attn_fwd-bf16-d16.simt-q16-k32-w4.sm_90a.recipe"));
  program_says(recipe, "attn_fwd");
  ck_assert_ptr_null(strstr(recipe, "for ("));
  free(recipe);
}

TEST(emit_refused) {
  put("file", "");
  program_refuses(2, "2 variants: give -o DIR to write a file for each", "emit head_dim=8,16");
  program_refuses(2, "\"attn_fwd\" is not the name of a variant", "emit attn_fwd");
  program_refuses(3, "cannot make the directory a/b: No such file or directory",
                  "emit head_dim=8 -o a/b");
  program_refuses(3,
                  "cannot write file/attn_fwd-bf16-d8.simt-q16-k32-w4.sm_90a.cu: Not a directory",
                  "emit head_dim=8 family=simt -o file");
}

/* ---- help and wrong command lines ---- */

TEST(help) {
  static const char *const commands[] = {"list", "emit", "run", "check", "doctor"};
  char *all = strdup(program_gives(0, "--help").out);
  ck_assert_str_eq(program_gives(0, "help").out, all);
  ck_assert_str_eq(program_gives(0, "-h").out, all);
  for (int i = 0; i < 5; i++) {
    char line[32], *text = strdup(program_gives(0, "%s --help", commands[i]).out);
    snprintf(line, sizeof line, "\n  flashgen %s", commands[i]);
    program_says(all, line);
    program_says(strstr(text, "\nexamples:\n"), line);
    program_says(text, "  -h, --help ");
    ck_assert_str_eq(program_gives(0, "help %s", commands[i]).out, text);
    ck_assert_str_eq(program_gives(0, "%s -h", commands[i]).out, text);
    free(text);
  }
  free(all);
  program_says(program_gives(0, "--version").out, "flashgen 0.");
}

static void usage_says(const char *words, const char *text) {
  program_result r = program_gives(2, "%s", words);
  ck_assert_str_eq(r.out, "");
  program_says(r.err, text);
}

TEST(unknown_commands) {
  usage_says("", "flashgen COMMAND --help");
  usage_says("chek", "flashgen: unknown command \"chek\" (did you mean \"check\"?)\n");
  usage_says("zzzzzz", "flashgen: unknown command \"zzzzzz\"\n");
  usage_says("--json", "flashgen: unknown command \"--json\"\n");
  usage_says("help lst", "flashgen: help has no topic \"lst\" (did you mean \"list\"?)\n");
}

TEST(options_refused) {
  program_refuses(2, "list takes no option --verbos (did you mean --verbose?)", "list --verbos");
  program_refuses(2, "check takes no option --seeed=3 (did you mean --seed?)", "check --seeed=3");
  program_refuses(2, "emit takes no option --json", "emit --json");
  program_refuses(2, "list takes no option -x", "list -x");
  program_refuses(2, "list takes no option -j", "list head_dim=64 -j 2");
  program_refuses(2, "--jobs needs a value: N", "check head_dim=64 -j");
  program_refuses(2, "--filter needs a value: GLOB", "list head_dim=64 --filter");
  program_refuses(2, "--quiet takes no value", "list head_dim=64 --quiet=1");
  program_refuses(2, "--jobs: \"0\" is not an integer of at least 1", "check head_dim=64 -j0");
  program_refuses(2, "--jobs: \"2x\" is not an integer of at least 1", "check head_dim=64 -j 2x");
  program_refuses(2, "--jobs: \"+2\" is not an integer of at least 1", "check head_dim=64 -j +2");
  program_refuses(2, "--seed: \"-1\" is not an integer of at least 0",
                  "check head_dim=64 --seed -1");
  program_refuses(2, "--seed: \"99999999999999999999\" is not an integer of at least 0",
                  "check head_dim=64 --seed 99999999999999999999");
  program_refuses(2, "--plans 0: expected first, all or a number", "list head_dim=64 --plans 0");
  program_refuses(2, "--plans best: expected first, all or a number",
                  "list head_dim=64 --plans best"); /* which is best is a matter of shapes */
  const char *first = strdup(program_gives(0, "list head_dim=64 -q --plans first").out);
  ck_assert_str_eq(program_gives(0, "list head_dim=64 -q").out, first);
  program_refuses(2, "device x: expected host or cuda:N", "check head_dim=64 --device x");
  program_result r = program_gives(3, "check head_dim=64 --device cuda:900");
  ck_assert_msg(!strncmp(r.err, "flashgen: device cuda:900: ", 27), "%s", r.err);
  program_refuses(2, "\"head_dim=64\": doctor takes options only", "doctor head_dim=64");
}

TEST(words_refused) {
  put("none.lua", "return { head_dim = 64, when = function() return false end }");
  program_refuses(2, "no variant matches --filter x*", "list head_dim=64 --filter x*");
  program_refuses(2, "attn_fwd-bf16-d64: no plan matches --plan x; the first is simt-q16-k32-w4",
                  "list head_dim=64 family=simt --plan x");
  program_refuses(2, "the grid is empty: `when` rejected all 1 combinations", "list none.lua");
  program_refuses(2, "unknown field \"nq\"", "list head_dim=64 nq=3");
  program_refuses(2, "w: it is a number of the launch, not of the spec",
                  "list head_dim=64 mask=k<w inputs.w=int w=3");
  program_refuses(2, "missing.lua: cannot be opened: No such file or directory",
                  "list missing.lua");
  program_refuses(2, "attn_fwd-bf16-d8.simt-q16-k32-w4.sm_90a is for sm_90a; the device is host",
                  "check attn_fwd-bf16-d8.simt-q16-k32-w4.sm_90a");
  program_refuses(2, "h = 3 is not a multiple of hk = 2", "check head_dim=8 h=3 hk=2");
}

/* Everything wrong with files and words in one run. */
TEST(all_mistakes_at_once) {
  put("a.lua", "return { { head_dim = 12, maks = 'full' }, { dtype = 'fp16', head_dim = 64 } }");
  put("b.lua", "return { head_dim = 64");
  program_result r = program_gives(2, "list a.lua b.lua bais=true");
  ck_assert_str_eq(r.out, "");
  program_says(r.err, "flashgen: unknown field \"bais\" (did you mean \"bias\"?)\n"
                      "a.lua: table 1: unknown field \"maks\" (did you mean \"mask\"?)\n"
                      "a.lua: table 1: head_dim: \"12\" is not allowed; ");
  program_says(r.err, "\na.lua: table 2: dtype: \"fp16\" is not allowed; ");
  program_says(r.err, "\nb.lua:1: '}' expected near ");
}

TEST_FIXTURE(scratch_enter, scratch_leave)
