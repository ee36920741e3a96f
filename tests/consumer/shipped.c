/* shipped.c - a host application and its zoo, through flashgen.h alone: `shipped make DIR` builds
 * the zoo, `shipped use DIR` computes with it. Prints what was compiled and where the kernel came
 * from.
 */
#include <flashgen.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(void) {
  fprintf(stderr, "%s\n", fg_error());
  return 1;
}

static int make(fg_context *ctx, const char *zoo) {
  static const char *const specs[] = {"head_dim=8,16", "family=simt"};
  fg_order order = FG_INIT(fg_order);
  fg_built built = FG_INIT(fg_built);
  order.directory = zoo, order.specs = specs, order.n_specs = 2;
  if (fg_build(ctx, &order, &built)) return fail();
  printf("%d made, %d kept\n", built.made, built.kept);
  return 0;
}

/* One head, one row, one key: the result is v's row. */
static int use(fg_context *ctx) {
  static uint16_t q[8], k[8], o[8], v[8] = {0x3f80, 0x4000, 0x4040, 0x4080};
  static float lse[1];
  const fg_shape shape = FG_INIT(fg_shape, .b = 1, .h = 1, .hk = 1, .nq = 1, .nk = 1);
  const fg_tensor row = {NULL, {8, 8, 8, 1}};
  fg_args args = FG_INIT(fg_args);
  fg_spec spec = FG_INIT(fg_spec);
  fg_counts counts = FG_INIT(fg_counts);
  fg_op *op;
  fg_kernel *kernel;
  spec.head_dim = "8";
  args.q = args.k = args.v = args.o = row;
  args.q.data = q, args.k.data = k, args.v.data = v, args.o.data = o, args.lse.data = lse;
  if (fg_define(ctx, &spec, &op) || fg_select(op, &shape, NULL, &kernel) ||
      fg_launch(kernel, &shape, &args, NULL, NULL))
    return fail();
  fg_context_counts(ctx, &counts);
  printf("%d compiled, %d from the zoo, o %s v\n", (int)counts.compiles, (int)counts.zoo_hits,
         memcmp(o, v, sizeof o) ? "is not" : "is");
  spec.head_dim = "24";
  if (!fg_define(ctx, &spec, &op) && fg_select(op, &shape, NULL, &kernel))
    printf("d24: %s\n", fg_error());
  return 0;
}

int main(int argc, char **argv) {
  fg_config config = FG_INIT(fg_config);
  fg_context *ctx;
  if (argc != 3) return 2;
  fg_zoo zoo = FG_INIT(fg_zoo);
  const fg_zoo *zoos[] = {&zoo};
  zoo.directory = argv[2];
  const int making = !strcmp(argv[1], "make");
  config.device = "host";
  if (!making) config.zoos = zoos, config.n_zoos = 1;
  if (fg_open(&config, &ctx)) return fail();
  int failed = making ? make(ctx, argv[2]) : use(ctx);
  fg_close(ctx);
  return failed;
}
