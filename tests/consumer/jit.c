/* jit.c - attention with a score that the user types, compiled while the program runs:
 *
 *   jit SCORE [host|cuda:N]        jit 's / (1.0 + abs(s))'
 *
 * Two threads ask for the kernel at the same time, each for tensors of its own; it is compiled
 * once, and found in the cache the next time. Prints what was compiled and the first output, beside
 * the mean of the values, which is the output where all scores are equal. */
#include "device.h"

#include <flashgen.h>
#include <pthread.h>

enum { H = 2, N = 60, D = 64, COUNT = N * H * D };

static const fg_shape shape = FG_INIT(fg_shape, .b = 1, .h = H, .hk = H, .nq = N, .nk = N);
static fg_op *op;

typedef struct {
  unsigned seed;
  char error[1024];
  float o[D], mean[D]; /* of row 0, head 0 */
} job;

static fg_tensor tensor(unsigned *seed, uint16_t bits[COUNT]) {
  for (int i = 0; i < COUNT; i++) bits[i] = to_bf16((float)(rand_r(seed) % 2001 - 1000) / 1000.0f);
  const fg_tensor t = {device_new(bits, sizeof(uint16_t) * COUNT), {COUNT, D, H * D, 1}};
  return t;
}

static fg_status attend(job *j) {
  static _Thread_local uint16_t bits[COUNT];
  fg_args args = FG_INIT(fg_args);
  fg_kernel *kernel;
  fg_status status = fg_select(op, &shape, NULL, &kernel);
  if (status) return status;
  void *workspace = device_new(NULL, fg_workspace_bytes(kernel, &shape));
  args.q = tensor(&j->seed, bits), args.k = tensor(&j->seed, bits);
  args.o = tensor(&j->seed, bits), args.v = tensor(&j->seed, bits);
  args.lse.data = device_new(NULL, sizeof(float) * H * N);
  for (int n = 0; n < N; n++)
    for (int i = 0; i < D; i++) j->mean[i] += from_bf16(bits[n * H * D + i]) / N;
  if ((status = fg_launch(kernel, &shape, &args, workspace, NULL))) return status;
  device_read(bits, args.o.data, sizeof bits);
  for (int i = 0; i < D; i++) j->o[i] = from_bf16(bits[i]);
  return FG_OK;
}

static void *work(void *context) {
  job *j = (job *)context;
  device_enter();
  if (attend(j)) snprintf(j->error, sizeof j->error, "%s", fg_error()); /* it is the thread's */
  return NULL;
}

static int fail(const char *why) {
  fprintf(stderr, "%s\n", why);
  return 1;
}

int main(int argc, char **argv) {
  static job jobs[2] = {{.seed = 1}, {.seed = 2}};
  fg_config config = FG_INIT(fg_config);
  fg_spec spec = FG_INIT(fg_spec);
  fg_counts counts = FG_INIT(fg_counts);
  fg_context *ctx;
  pthread_t thread[2];
  if (argc < 2) return fail("usage: jit SCORE [host|cuda:N]");
  config.device = argc > 2 ? argv[2] : "host";
  device_open(config.device);
  if (fg_open(&config, &ctx)) return fail(fg_error());
  spec.head_dim = "64", spec.score = argv[1];
  if (fg_define(ctx, &spec, &op)) return fail(fg_error()); /* what is wrong with it, and where */
  for (int i = 0; i < 2; i++)
    if (pthread_create(&thread[i], NULL, work, &jobs[i])) return fail("no thread");
  for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < 2; i++)
    if (*jobs[i].error) return fail(jobs[i].error);
  fg_context_counts(ctx, &counts);
  printf("%d compiled\n", (int)counts.compiles);
  for (int i = 0; i < 2; i++)
    printf("%.3f %.3f, mean %.3f %.3f\n", (double)jobs[i].o[0], (double)jobs[i].o[1],
           (double)jobs[i].mean[0], (double)jobs[i].mean[1]);
  fg_close(ctx);
  return 0;
}
