/* t_build_nvrtc.c - `flashgen build` for GPUs, on a machine that need have none.
 *
 * Label compile: skipped where there is no libnvrtc, unless FLASHGEN_REQUIRE names the label. */
#include "build_case.h"
#include "cuda/nvrtc.h"
#include "flashgen.h"
#include "zoo/zoo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TWO "build head_dim=8 pass=forward,backward family=simt -q "

TEST(same_bytes) {
  program_gives(0, TWO "-j 1 -o a");
  program_gives(0, TWO "-j 3 -o b");
  build_same("a", "b");
  build_is_whole("a", 2);
  program_result r = program_gives(0, TWO "-o a");
  ck_assert_str_eq(r.out, "a is up to date: 2 variants, nothing to do\n");
}

TEST(figures) {
  fg_zoo_reader *zoo;
  fg_code code;
  int registers, spill;
  program_gives(0, TWO "--arch sm_80 -o zoo");
  ck_assert_int_eq(fg_zoo_open("zoo", &zoo), FG_OK);
  const fg_zoo_item *item = fg_zoo_find(zoo, "attn_fwd-bf16-d8.simt-q16-k32-w4.sm_80");
  ck_assert_ptr_nonnull(item);
  ck_assert_int_eq(
      sscanf(item->figures, "attn_fwd registers %d spill %d stack", &registers, &spill), 2);
  ck_assert(registers > 0 && spill == 0);
  program_says(item->compiler, "nvrtc ");
  ck_assert_int_eq(fg_zoo_read(zoo, item, &code), FG_OK);
  ck_assert_int_eq(memcmp(code.data, "\177ELF", 4), 0);
  free(code.data);
  fg_zoo_free(zoo);
}

/* Nothing is begun for what no GPU is called, whatever NVRTC takes. */
TEST(unknown_archs) {
  static const char *const archs[] = {"sm_90", "sm_100", "sm_120", "sm_999", "sm_80,"};
  for (int i = 0; i < 5; i++) {
    program_result r =
        program_gives(2, "build head_dim=8 family=simt --arch %s -q -o zoo", archs[i]);
    program_says(r.err, " is not known; expected one of host, sm_75, ");
    ck_assert_int_eq(program_count(r.err, "did you mean"), i < 3);
    ck_assert_int_eq(program_count(r.err, "\n"), 1);
    ck_assert_int_eq(build_has(".", "zoo"), 0);
  }
}

/* Every arch of the table that this NVRTC knows has kernels of every family that the table says. */
TEST(archs_of_the_table) {
  const fg_nvrtc *nvrtc;
  ck_assert_int_eq(fg_nvrtc_load(&nvrtc), FG_OK);
  for (int i = 1; i < fg_n_archs; i++) {
    const fg_arch *arch = &fg_archs[i];
    if (fg_nvrtc_check_arch(nvrtc, arch->name) != FG_OK) continue;
    program_gives(0, "build head_dim=64 pass=forward,backward family=%s --arch %s -q -o %s",
                  fg_arch_has(arch, FG_HAS_MMA) ? "mma" : "simt", arch->name, arch->name);
    build_is_whole(arch->name, 2);
    program_gives(fg_arch_has(arch, FG_HAS_MMA) ? 0 : 2, "list head_dim=64 family=mma --arch %s -q",
                  arch->name);
    program_gives(fg_arch_has(arch, FG_HAS_WGMMA) ? 0 : 2,
                  "list head_dim=64 family=wgmma --arch %s -q", arch->name);
  }
}

/* One zoo for several GPUs, by the program and by threads of the library. */
TEST(list_of_archs) {
  static const char *const specs[] = {"head_dim=64", "pass=forward,backward"};
  fg_config config = FG_INIT(fg_config);
  fg_order order = FG_INIT(fg_order);
  fg_built built = FG_INIT(fg_built);
  fg_context *context;
  program_gives(0, "build head_dim=64 pass=forward,backward --arch sm_80,sm_90a,sm_80 -q -o a");
  build_is_whole("a", 4);
  config.device = "host", config.cache = "cache";
  order.specs = specs, order.n_specs = 2;
  order.directory = "b", order.arch = "sm_80,sm_90a";
  ck_assert_int_eq(fg_open(&config, &context), FG_OK);
  ck_assert_msg(fg_build(context, &order, &built) == FG_OK, "%s", fg_error());
  ck_assert_int_eq(built.made, 4);
  fg_close(context);
  build_same("a", "b");
}

/* Names bring their arch, and each its compiler. */
TEST(two_archs) {
  program_result r = program_gives(0, "build -q -o zoo attn_fwd-bf16-d8.simt-q16-k32-w4.sm_80 "
                                      "attn_fwd-bf16-d8.simt-q16-k32-w4.host");
  program_says(r.out, "zoo: 2 variants: 2 made, 0 kept, 0 failed, 0 removed\n");
  build_is_whole("zoo", 2);
}

TEST_FIXTURE(build_enter, build_leave)
TEST_BEGIN {
  const fg_nvrtc *nvrtc;
  if (fg_nvrtc_load(&nvrtc) != FG_OK) suite_skip("compile", fg_error());
}
