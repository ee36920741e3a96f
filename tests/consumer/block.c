/* block.c - a block of a transformer, forward and backward, through flashgen.h alone.
 *
 *   block DIR host|cuda:N WIDTH B N relu|gelu bf16|f16 [graph] [TIMES]
 *
 * DIR has a file NAME.bin of 16-bit numbers for each input and gets one for each result: block.py
 * makes inputs and judges results. With `graph` the results are those of a CUDA graph of all
 * launches, replayed. With TIMES the program prints the median time of so many runs.
 *
 * Of rows x [b n, width], with heads of 64 columns and weights [out, in]:
 *
 *   q, k, v = x w_qkv^T              o = softmax(q k^T / 8, causal) v
 *   z1 = o w_o^T + b_o + x           a = layernorm(z1, gamma1, beta1)
 *   u  = relu(a w_1^T + b_1)         z2 = u w_2^T + b_2 + a     y = layernorm(z2, gamma2, beta2) */
#include "device.h"

#include <flashgen.h>

enum { HEAD = 64 };
static int width, b, n;
static const char *epilogue, *dtype;

/* ---- tensors ---- */

static fg_tensor x, w_qkv, w_o, b_o, gamma1, beta1, w_1, b_1, w_2, b_2, gamma2, beta2, y;
static fg_tensor dx, dw_qkv, dw_o, db_o, dgamma1, dbeta1, dw_1, db_1, dw_2, db_2, dgamma2, dbeta2;
static fg_tensor dy, dqkv, dout, da, du; /* dout: of o */
static fg_tensor dz1, dz2;               /* of x and of a through a residual */
static fg_tensor qkv, o, z1, a, u, z2, lse, mean1, rstd1, keep, mean2, rstd2; /* kept */

/* Pairs of tensors of the same extents: an input and a result, or two without a file. Rows and
 * columns are multiples of `width`, but for b n rows, TOKENS, and one row, VECTOR. */
enum { TOKENS = 0, VECTOR = -1 };
static const struct pair {
  fg_tensor *tensor[2];
  const char *name[2];
  int rows, columns;
} pairs[] = {
#define FILES(in, out, rows, columns)                                                              \
  { {&in, &out}, {#in, #out}, rows, columns }
#define INNER(one, two, columns)                                                                   \
  { {&one, &two}, {NULL, NULL}, TOKENS, columns }
    FILES(x, dx, TOKENS, 1),
    FILES(dy, y, TOKENS, 1),
    FILES(w_qkv, dw_qkv, 3, 1),
    FILES(w_o, dw_o, 1, 1),
    FILES(w_1, dw_1, 4, 1),
    FILES(w_2, dw_2, 1, 4),
    FILES(b_o, db_o, VECTOR, 1),
    FILES(b_1, db_1, VECTOR, 4),
    FILES(b_2, db_2, VECTOR, 1),
    FILES(gamma1, dgamma1, VECTOR, 1),
    FILES(beta1, dbeta1, VECTOR, 1),
    FILES(gamma2, dgamma2, VECTOR, 1),
    FILES(beta2, dbeta2, VECTOR, 1),
    INNER(qkv, dqkv, 3),
    INNER(o, dout, 1),
    INNER(a, da, 1),
    INNER(u, du, 4),
    INNER(z1, z2, 1),
    INNER(dz1, dz2, 1)};
enum { PAIRS = sizeof pairs / sizeof *pairs };

static size_t count(const struct pair *p) {
  const int rows = p->rows == TOKENS ? b * n : p->rows == VECTOR ? 1 : p->rows * width;
  return (size_t)rows * (size_t)(p->columns * width);
}

/* A new tensor, NaN in each dtype so that a number that no kernel writes shows in the results. Its
 * strides are those of [b n, columns] and of [b, n, columns / 64, 64] at once. */
static fg_tensor tensor(size_t bytes, int64_t columns) {
  void *nan = malloc(bytes);
  if (!nan) device_die("no memory");
  void *data = device_new(memset(nan, 0xff, bytes), bytes);
  free(nan);
  return (fg_tensor){data, {n * columns, HEAD, columns, 1}};
}

static void make_tensors(void) {
  const size_t rows = (size_t)(b * n), f32 = sizeof(float);
  const int is_relu = !strcmp(epilogue, "relu");
  for (const struct pair *p = pairs; p < pairs + PAIRS; p++)
    for (int i = 0; i < 2; i++) *p->tensor[i] = tensor(2 * count(p), p->columns * width);
  lse = tensor(f32 * rows * (size_t)(width / HEAD), n);
  mean1 = tensor(f32 * rows, 1), rstd1 = tensor(f32 * rows, 1);
  mean2 = tensor(f32 * rows, 1), rstd2 = tensor(f32 * rows, 1);
  /* Of relu a bit for each column of u, of gelu a factor. */
  keep = tensor(2 * rows * (size_t)(4 * width), is_relu ? 4 * width / 32 : 4 * width);
}

/* Columns i width to (i + 1) width. */
static fg_tensor part(fg_tensor t, int i) {
  t.data = (uint16_t *)t.data + i * width;
  return t;
}

enum files { INPUTS, RESULTS };
static void transfer(const char *directory, enum files which) {
  for (const struct pair *p = pairs; p < pairs + PAIRS; p++) {
    if (!p->name[which]) continue;
    const size_t bytes = 2 * count(p);
    void *numbers = malloc(bytes), *there = p->tensor[which]->data;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.bin", directory, p->name[which]);
    FILE *file = fopen(path, which == INPUTS ? "rb" : "wb");
    if (!file || !numbers) device_die(path);
    if (which == INPUTS) {
      if (!fread(numbers, bytes, 1, file)) device_die(path);
      device_write(there, numbers, bytes);
    } else {
      device_read(numbers, there, bytes);
      if (!fwrite(numbers, bytes, 1, file)) device_die(path);
    }
    if (fclose(file)) device_die(path);
    free(numbers);
  }
}

/* ---- kernels ---- */

enum op { TO_QKV, ATTENTION, PROJECTION, UP, DOWN, OPS };
enum pass { FORWARD, BACKWARD, PASSES };
static fg_op *ops[OPS][PASSES];
static fg_shape shapes[OPS];
static void *stream, *workspace, *recorded; /* recorded: a graph */
static size_t workspace_bytes;

static void good(fg_status status) {
  if (status != FG_OK) device_die(fg_error());
}

/* Backward does without the residual, whose gradient is that of y. */
static void define_ops(fg_context *context) {
  char same[16], to_3[32], to_4[32], from_4[32];
  snprintf(same, sizeof same, "%d", width);
  snprintf(to_3, sizeof to_3, "%d/%d", width, 3 * width);
  snprintf(to_4, sizeof to_4, "%d/%d", width, 4 * width);
  snprintf(from_4, sizeof from_4, "%d/%d", 4 * width, width);
  const fg_spec specs[OPS] = {
      [TO_QKV] = FG_INIT(fg_spec, .kernel = "linear", .width = to_3),
      [ATTENTION] = FG_INIT(fg_spec, .head_dim = "64", .mask = "causal"),
      [PROJECTION] = FG_INIT(fg_spec, .kernel = "linear", .width = same, .bias = "grad",
                             .residual = "true", .epilogue = "layernorm"),
      [UP] =
          FG_INIT(fg_spec, .kernel = "linear", .width = to_4, .bias = "grad", .epilogue = epilogue),
      [DOWN] = FG_INIT(fg_spec, .kernel = "linear", .width = from_4, .bias = "grad",
                       .residual = "true", .epilogue = "layernorm")};
  for (int op = 0; op < OPS; op++) {
    fg_spec spec = specs[op];
    spec.dtype = dtype;
    good(fg_define(context, &spec, &ops[op][FORWARD]));
    spec.pass = "backward";
    good(fg_define(context, &spec, &ops[op][BACKWARD]));
    shapes[op] = (fg_shape)FG_INIT(fg_shape, .rows = b * n);
  }
  const int h = width / HEAD;
  shapes[ATTENTION] = (fg_shape)FG_INIT(fg_shape, .b = b, .h = h, .hk = h, .nq = n, .nk = n);
}

/* Launches follow each other on one stream, so that they share a workspace. */
static void launch(enum pass pass, enum op op, const fg_args *args) {
  fg_kernel *kernel;
  good(fg_select(ops[op][pass], &shapes[op], stream, &kernel));
  const size_t bytes = fg_workspace_bytes(kernel, &shapes[op]);
  if (bytes > workspace_bytes) workspace = device_new(NULL, workspace_bytes = bytes);
  good(fg_launch(kernel, &shapes[op], args, workspace, stream));
}
#define RUN(pass, op, ...) launch(pass, op, &(fg_args)FG_INIT(fg_args, __VA_ARGS__))

static void forward(void) {
  RUN(FORWARD, TO_QKV, .x = x, .w = w_qkv, .y = qkv);
  RUN(FORWARD, ATTENTION, .q = part(qkv, 0), .k = part(qkv, 1), .v = part(qkv, 2), .o = o,
      .lse = lse);
  RUN(FORWARD, PROJECTION, .x = o, .w = w_o, .bias = b_o, .residual = x, .gamma = gamma1,
      .beta = beta1, .out = a, .z = z1, .mean = mean1, .rstd = rstd1);
  RUN(FORWARD, UP, .x = a, .w = w_1, .bias = b_1, .y = u, .kept = keep);
  RUN(FORWARD, DOWN, .x = u, .w = w_2, .bias = b_2, .residual = a, .gamma = gamma2, .beta = beta2,
      .out = y, .z = z2, .mean = mean2, .rstd = rstd2);
}
static void backward(void) {
  RUN(BACKWARD, DOWN, .dout = dy, .x = u, .w = w_2, .z = z2, .gamma = gamma2, .mean = mean2,
      .rstd = rstd2, .dx = du, .dw = dw_2, .dbias = db_2, .dresidual = dz2, .dgamma = dgamma2,
      .dbeta = dbeta2);
  RUN(BACKWARD, UP, .dy = du, .x = a, .w = w_1, .kept = keep, .dx_more = dz2, .dx = da, .dw = dw_1,
      .dbias = db_1);
  RUN(BACKWARD, PROJECTION, .dout = da, .x = o, .w = w_o, .z = z1, .gamma = gamma1, .mean = mean1,
      .rstd = rstd1, .dx = dout, .dw = dw_o, .dbias = db_o, .dresidual = dz1, .dgamma = dgamma1,
      .dbeta = dbeta1);
  RUN(BACKWARD, ATTENTION, .q = part(qkv, 0), .k = part(qkv, 1), .v = part(qkv, 2), .o = o,
      .lse = lse, .dout = dout, .dq = part(dqkv, 0), .dk = part(dqkv, 1), .dv = part(dqkv, 2));
  RUN(BACKWARD, TO_QKV, .dy = dqkv, .x = x, .w = w_qkv, .dx_more = dz1, .dx = dx, .dw = dw_qkv);
}

static void step(void) {
  forward();
  backward();
}

static void replay(void) { device_replay(recorded, stream); }

/* The first step compiles and loads, which a capture must not. */
static void record(void) {
  if (!device.driver) {
    printf("the host device has no graphs: launched plainly\n");
    return;
  }
  step();
  device_capture(stream);
  step();
  recorded = device_captured(stream);
}

int main(int argc, char **argv) {
  fg_config config = FG_INIT(fg_config);
  fg_context *context;
  if (argc < 8)
    device_die("usage: block DIR host|cuda:N WIDTH B N relu|gelu bf16|f16 [graph] [TIMES]");
  config.device = argv[2], epilogue = argv[6], dtype = argv[7];
  width = atoi(argv[3]), b = atoi(argv[4]), n = atoi(argv[5]);
  const int is_graph = argc > 8 && !strcmp(argv[8], "graph");
  const int times = argc > 8 + is_graph ? atoi(argv[8 + is_graph]) : 0;
  device_open(config.device);
  stream = device_stream();
  good(fg_open(&config, &context));
  define_ops(context);
  make_tensors();
  if (is_graph) record();
  transfer(argv[1], INPUTS);
  recorded ? replay() : step();
  transfer(argv[1], RESULTS);
  if (times)
    printf("forward %.4f ms, with backward %.4f ms\n", device_median_ms(times, forward, stream),
           device_median_ms(times, step, stream));
  if (times && recorded) printf("as a graph %.4f ms\n", device_median_ms(times, replay, stream));
  fg_close(context);
  return 0;
}
