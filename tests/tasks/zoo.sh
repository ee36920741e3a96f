# A task of a new user, a zoo in a CMake project, and a program that compiles nothing where it runs. From zoo.md and c.md.
cat > kernels.lua <<'END'
return { head_dim = 64, mask = { "full", "causal" } }
END
cat > CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES C)
find_package(flashgen CONFIG REQUIRED)
flashgen_add_zoo(kernels SPECS kernels.lua ARCHS host EMBED)
add_executable(app app.c)
target_link_libraries(app PRIVATE kernels)
END
cat > app.c <<'END'
#include "kernels.h"
#include <stdio.h>

int main(void) {
  fg_context *ctx;
  fg_op *op;
  fg_kernel *kernel;
  fg_counts counts = FG_INIT(fg_counts);
  fg_info info = FG_INIT(fg_info);
  const fg_zoo *const zoos[] = {&kernels};
  fg_config config = FG_INIT(fg_config, .device = "host", .zoos = zoos, .n_zoos = 1, .jit = -1);
  fg_spec spec = FG_INIT(fg_spec, .head_dim = "64", .mask = "causal");
  fg_spec other = FG_INIT(fg_spec, .head_dim = "128");
  fg_shape shape = FG_INIT(fg_shape, .b = 1, .h = 2, .hk = 2, .nq = 50, .nk = 50);
  if (fg_open(&config, &ctx) || fg_define(ctx, &spec, &op) || fg_select(op, &shape, NULL, &kernel))
    return fprintf(stderr, "%s\n", fg_error()), 1;
  fg_kernel_info(kernel, &info);
  fg_context_counts(ctx, &counts);
  printf("%s, %d from the zoo, %d compiled\n", info.name, (int)counts.zoo_hits, (int)counts.compiles);
  if (fg_define(ctx, &other, &op) || fg_select(op, &shape, NULL, &kernel) != FG_EENVIRONMENT) return 2;
  printf("%s\n", fg_error());
  return counts.zoo_hits != 1 || counts.compiles;
}
END
cmake -B out -G Ninja -DCMAKE_PREFIX_PATH="$PREFIX"
cmake --build out
FLASHGEN_CC=/nonexistent out/app
