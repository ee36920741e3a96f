/* embedded.c - attention with kernels that are part of the program, forward and backward:
 *
 *   embedded [host|cuda:N]
 *
 * kernels.lua says which kernels there are; nothing is compiled when it runs, and no file of
 * flashgen's is read but libflashgen.so. The last row of each output is compared with plain C. */
#include "device.h"
#include "kernels.h"

#include <math.h>

enum { H = 2, N = 90, D = 64, COUNT = N * H * D };

static const fg_shape shape = FG_INIT(fg_shape, .b = 1, .h = H, .hk = H, .nq = N, .nk = N);

static int fail(void) {
  fprintf(stderr, "%s\n", fg_error());
  return 1;
}

/* A contiguous [1, n, h, d] tensor, random where `values` is given, and these values as floats. */
static fg_tensor tensor(float *values) {
  static uint16_t bits[COUNT];
  for (int i = 0; i < COUNT && values; i++) {
    bits[i] = to_bf16((float)(rand() % 2001 - 1000) / 1000.0f);
    values[i] = from_bf16(bits[i]);
  }
  const fg_tensor t = {device_new(values ? bits : NULL, sizeof bits), {COUNT, D, H * D, 1}};
  return t;
}

static int run(fg_context *ctx, const char *pass, const fg_args *args) {
  fg_spec spec = FG_INIT(fg_spec);
  fg_op *op;
  fg_kernel *kernel;
  spec.pass = pass, spec.head_dim = "64", spec.mask = "causal";
  if (fg_define(ctx, &spec, &op) || fg_select(op, &shape, NULL, &kernel)) return fail();
  void *workspace = device_new(NULL, fg_workspace_bytes(kernel, &shape));
  return fg_launch(kernel, &shape, args, workspace, NULL) ? fail() : 0;
}

static float q[COUNT], k[COUNT], v[COUNT], dout[COUNT];

/* What o, dq, and the last key's dk and dv are in the last row of head h: it sees all keys, and
 * alone sees the last one. */
static void expect(int h, float want[4][D]) {
  const float scale = 1.0f / sqrtf(D);
  float p[N], dp[N], sum = 0, delta = 0;
  const int last = ((N - 1) * H + h) * D;
  memset(want, 0, 4 * sizeof want[0]);
  for (int j = 0; j < N; j++) {
    float s = 0;
    for (int i = 0; i < D; i++) s += q[last + i] * k[(j * H + h) * D + i];
    sum += p[j] = expf(s * scale);
  }
  for (int j = 0; j < N; j++) {
    p[j] /= sum, dp[j] = 0;
    for (int i = 0; i < D; i++) {
      want[0][i] += p[j] * v[(j * H + h) * D + i];
      dp[j] += dout[last + i] * v[(j * H + h) * D + i];
    }
    delta += p[j] * dp[j];
  }
  for (int j = 0; j < N; j++)
    for (int i = 0; i < D; i++)
      want[1][i] += scale * p[j] * (dp[j] - delta) * k[(j * H + h) * D + i];
  for (int i = 0; i < D; i++) {
    want[2][i] = scale * p[N - 1] * (dp[N - 1] - delta) * q[last + i];
    want[3][i] = p[N - 1] * dout[last + i];
  }
}

/* The largest difference of a tensor's last row, as a share of its largest value. */
static float error_of(const fg_tensor *t, int h, const float want[D]) {
  static uint16_t bits[COUNT];
  float largest = 0, error = 0;
  device_read(bits, t->data, sizeof bits);
  for (int i = 0; i < D; i++) {
    largest = fmaxf(largest, fabsf(want[i]));
    error = fmaxf(error, fabsf(from_bf16(bits[((N - 1) * H + h) * D + i]) - want[i]));
  }
  return error / largest;
}

static int check(const fg_args *args) {
  const fg_tensor *const tensors[] = {&args->o, &args->dq, &args->dk, &args->dv};
  static const char *const names[] = {"o", "dq", "dk", "dv"};
  float want[4][D];
  for (int h = 0; h < H; h++) {
    expect(h, want);
    for (int t = 0; t < 4; t++) {
      const float error = error_of(tensors[t], h, want[t]);
      if (error < 0.02f) continue; /* bf16 keeps 8 bits of values, probabilities and dS */
      fprintf(stderr, "%s of head %d is wrong by %g\n", names[t], h, (double)error);
      return 1;
    }
  }
  return 0;
}

int main(int argc, char **argv) {
  fg_config config = FG_INIT(fg_config);
  fg_args args = FG_INIT(fg_args);
  fg_counts counts = FG_INIT(fg_counts);
  fg_context *ctx;
  config.device = argc > 1 ? argv[1] : "host";
  device_open(config.device);
  const fg_zoo *const zoos[] = {&kernels};
  config.zoos = zoos, config.n_zoos = 1;
  config.jit = -1; /* what is not in it is an error, whatever the cache has */
  if (fg_open(&config, &ctx)) return fail();
  args.q = tensor(q), args.k = tensor(k), args.v = tensor(v), args.dout = tensor(dout);
  args.o = tensor(NULL), args.dq = tensor(NULL), args.dk = tensor(NULL), args.dv = tensor(NULL);
  args.lse.data = device_new(NULL, sizeof(float) * H * N);
  if (run(ctx, "forward", &args) || run(ctx, "backward", &args) || check(&args)) return 1;
  fg_context_counts(ctx, &counts);
  printf("%d kernels of the program, %d compiled: right\n", (int)counts.zoo_hits,
         (int)counts.compiles);
  fg_close(ctx);
  return 0;
}
