/* paged_decode.c - a new user's task: a token of each of two sequences over pages of keys, beside a loop in plain C. From c.md and
 * serving.md. */
#include <flashgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 2, H = 4, HK = 2, D = 64, PAGE = 16, PAGES = 8, COLUMNS = 4 };
static uint16_t q[B][1][H][D], o[B][1][H][D], k[PAGES][PAGE][HK][D], v[PAGES][PAGE][HK][D];
static int32_t table[B][COLUMNS] = {{5, 2, 7, 0}, {3, -1, -1, -1}}, used[B] = {60, 9};

static float number(uint16_t bits) {
  union {
    uint32_t u;
    float f;
  } x = {(uint32_t)bits << 16};
  return x.f;
}

static void fill(uint16_t *x, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = (uint16_t)(0x3f00 + rand() % 128 + 0x8000 * (rand() % 2)); /* 0.5 to 1 in size */
}

static double worst(void) {
  double most = 0;
  for (int b = 0; b < B; b++)
    for (int h = 0; h < H; h++) {
      double p[COLUMNS * PAGE], sum = 0;
      for (int j = 0; j < used[b]; j++) {
        double s = 0;
        for (int c = 0; c < D; c++) s += number(q[b][0][h][c]) * number(k[table[b][j / PAGE]][j % PAGE][h / 2][c]);
        sum += p[j] = exp(s / 8);
      }
      for (int c = 0; c < D; c++) {
        double right = 0;
        for (int j = 0; j < used[b]; j++) right += p[j] / sum * number(v[table[b][j / PAGE]][j % PAGE][h / 2][c]);
        most = fmax(most, fabs(right - number(o[b][0][h][c])));
      }
    }
  return most;
}

int main(void) {
  fg_context *ctx;
  fg_op *op;
  fg_kernel *kernel;
  fg_info info = FG_INIT(fg_info);
  fg_config config = FG_INIT(fg_config, .device = "host");
  fg_spec spec = FG_INIT(fg_spec, .head_dim = "64", .kv_layout = "paged");
  fg_shape shape = FG_INIT(fg_shape, .b = B, .h = H, .hk = HK, .nq = 1, .nk = COLUMNS * PAGE, .pages = PAGES, .page = PAGE);
  fg_args args = FG_INIT(fg_args, .q = {q, {H * D, D, H * D, 1}}, .o = {o, {H * D, D, H * D, 1}},
                         .k = {k, {PAGE * HK * D, D, HK * D, 1}}, .v = {v, {PAGE * HK * D, D, HK * D, 1}},
                         .table = {table, {COLUMNS, 0, 0, 1}}, .used_k = {used, {1}});
  fill(q[0][0][0], sizeof q / 2), fill(k[0][0][0], sizeof k / 2), fill(v[0][0][0], sizeof v / 2);
  if (fg_open(&config, &ctx) || fg_define(ctx, &spec, &op) || fg_select(op, &shape, NULL, &kernel) ||
      fg_launch(kernel, &shape, &args, malloc(fg_workspace_bytes(kernel, &shape)), NULL)) {
    fprintf(stderr, "%s\n", fg_error());
    return 1;
  }
  fg_kernel_info(kernel, &info);
  printf("%s: off by %g\n", info.name, worst());
  return worst() < 4e-3 ? 0 : 2;
}
