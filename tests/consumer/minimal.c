/* minimal.c - attention, forward and backward, through flashgen.h alone: defines two kernels,
 * selects them for a shape, launches them on the host device; prints o and dq of the last row. */
#include <flashgen.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 1, H = 4, HK = 2, N = 100, D = 64 };

static float f32(uint16_t bf16) {
  union {
    uint32_t u;
    float f;
  } v = {(uint32_t)bf16 << 16};
  return v.f;
}

/* A contiguous [b, n, h, d] tensor of random bf16 from 0.5 to 2; its strides in the order b h n d.
 */
static fg_tensor tensor(int heads) {
  fg_tensor t = {NULL, {(int64_t)N * heads * D, D, (int64_t)heads * D, 1}};
  uint16_t *data = (uint16_t *)malloc(sizeof *data * B * N * (size_t)heads * D);
  for (int i = 0; data && i < B * N * heads * D; i++) data[i] = (uint16_t)(0x3f00 + rand() % 256);
  t.data = data;
  return t;
}

static int run(fg_context *ctx, const char *pass, const fg_shape *shape, const fg_args *args) {
  fg_spec spec = FG_INIT(fg_spec);
  fg_op *op;
  fg_kernel *kernel;
  spec.pass = pass, spec.head_dim = "64", spec.mask = "causal";
  if (fg_define(ctx, &spec, &op) || fg_select(op, shape, NULL, &kernel)) return 1;
  void *workspace = malloc(fg_workspace_bytes(kernel, shape) + 1);
  int failed = !workspace || fg_launch(kernel, shape, args, workspace, NULL);
  free(workspace);
  return failed;
}

int main(void) {
  fg_shape shape = FG_INIT(fg_shape);
  fg_config config = FG_INIT(fg_config);
  fg_args args = FG_INIT(fg_args);
  fg_context *ctx;
  config.device = "host";
  shape.b = B, shape.h = H, shape.hk = HK, shape.nq = N, shape.nk = N;
  args.q = tensor(H), args.k = tensor(HK), args.v = tensor(HK), args.o = tensor(H);
  args.dout = tensor(H), args.dq = tensor(H), args.dk = tensor(HK), args.dv = tensor(HK);
  args.lse.data = malloc(sizeof(float) * B * H * N);
  if (fg_open(&config, &ctx) || run(ctx, "forward", &shape, &args) ||
      run(ctx, "backward", &shape, &args)) {
    fprintf(stderr, "%s\n", fg_error());
    return 1;
  }
  const uint16_t *o = (uint16_t *)args.o.data + (N - 1) * H * D;
  const uint16_t *dq = (uint16_t *)args.dq.data + (N - 1) * H * D;
  printf("o  %g %g\ndq %g %g\n", f32(o[0]), f32(o[1]), f32(dq[0]), f32(dq[1]));
  fg_close(ctx);
  return 0;
}
