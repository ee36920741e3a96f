/* minimal.c - attention, forward and backward, through flashgen.h alone: defines the two kernels,
 * selects them for one shape and launches them on the host device. Prints o and dq of row 0. */
#include <flashgen.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 1, H = 4, HK = 2, N = 100, D = 64 };

static uint16_t bf16(float x) { /* toward zero: enough for an example */
  union {
    float f;
    uint32_t u;
  } v = {x};
  return (uint16_t)(v.u >> 16);
}

static float f32(uint16_t x) {
  union {
    uint32_t u;
    float f;
  } v = {(uint32_t)x << 16};
  return v.f;
}

/* A contiguous [b, n, h, d] tensor of small random numbers; strides in the order b h n d. */
static fg_tensor tensor(int heads) {
  uint16_t *data = malloc(sizeof *data * B * N * (size_t)heads * D);
  for (int i = 0; data && i < B * N * heads * D; i++)
    data[i] = bf16((float)rand() / (float)RAND_MAX - 0.5f);
  return (fg_tensor){data, {(int64_t)N * heads * D, D, (int64_t)heads * D, 1}};
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
  const fg_shape shape = {B, H, HK, N, N, 0};
  fg_config config = FG_INIT(fg_config);
  fg_context *ctx;
  fg_args args = FG_INIT(fg_args);
  config.device = "host";
  args.q = tensor(H), args.k = tensor(HK), args.v = tensor(HK), args.o = tensor(H);
  args.dout = tensor(H), args.dq = tensor(H), args.dk = tensor(HK), args.dv = tensor(HK);
  args.lse.data = malloc(sizeof(float) * B * H * N);
  if (fg_open(&config, &ctx) || run(ctx, "forward", &shape, &args) ||
      run(ctx, "backward", &shape, &args)) {
    fprintf(stderr, "%s\n", fg_error());
    return 1;
  }
  printf("o  %g %g\ndq %g %g\n", f32(((uint16_t *)args.o.data)[0]),
         f32(((uint16_t *)args.o.data)[1]), f32(((uint16_t *)args.dq.data)[0]),
         f32(((uint16_t *)args.dq.data)[1]));
  fg_close(ctx);
  return 0;
}
