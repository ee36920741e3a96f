/* ring.c - causal attention over a sequence that several GPUs share, forward and backward, through
 * flashgen.h and NCCL.
 *
 *   ring host|cuda RANKS TOKENS H HK [TIMES]
 *
 * Tokens are cut into 2 RANKS chunks, of which rank r holds the chunks r and 2 RANKS - 1 - r, so
 * that each rank has as much to do (zigzag). K and V go round the ring: a rank computes with one
 * rank's while it receives the next rank's. In backward the sums of dK and dV go round behind them,
 * and one step more brings them home. Parts are float32, and rounded once.
 *
 * Each rank compares its rows with those of one launch over the whole sequence. With TIMES the
 * program prints the median times of both, and how much of all GPUs the ring makes use of. */
#include "ring.h"

#include <flashgen.h>
#include <math.h>

enum { D = 128, RUNS = 2 };     /* a rank has RUNS chunks */
static int tokens, h, hk, rows; /* rows: of a chunk */
static size_t q_size, k_size;   /* numbers of a chunk of q, of k */
static void *compute;           /* the stream of kernels */

static int chunk(int rank, int run) { return run ? 2 * ring.ranks - 1 - rank : rank; }

static void must(fg_status status) {
  if (status) device_die(fg_error());
}

/* ---- kernels ---- */

enum { WHOLE, WHOLE_BACKWARD, PART, PART_BACKWARD, MERGE, ADD, ROUND_MERGED, ROUND_ADDED, OPS };
#define HEAD_DIM  .head_dim = "128"
#define ATTENTION HEAD_DIM, .dtype = "bf16", .mask = "causal"
static const fg_spec specs[OPS] = {
    [WHOLE] = FG_INIT(fg_spec, ATTENTION),
    [WHOLE_BACKWARD] = FG_INIT(fg_spec, ATTENTION, .pass = "backward"),
    [PART] = FG_INIT(fg_spec, ATTENTION, .shard = "true", .o_dtype = "f32"),
    [PART_BACKWARD] =
        FG_INIT(fg_spec, ATTENTION, .shard = "true", .pass = "backward", .dqkv_dtype = "f32"),
    [MERGE] = FG_INIT(fg_spec, HEAD_DIM, .kernel = "combine", .dtype = "f32"),
    [ADD] = FG_INIT(fg_spec, HEAD_DIM, .kernel = "combine", .dtype = "f32", .normalizer = "none"),
    [ROUND_MERGED] = FG_INIT(fg_spec, HEAD_DIM, .kernel = "combine", .dtype = "bf16"),
    [ROUND_ADDED] =
        FG_INIT(fg_spec, HEAD_DIM, .kernel = "combine", .dtype = "bf16", .normalizer = "none")};
static fg_op *ops[OPS];

static void launch(int op, fg_shape shape, fg_args args) {
  static void *workspace;
  static size_t room;
  fg_kernel *kernel;
  must(fg_select(ops[op], &shape, compute, &kernel));
  const size_t bytes = fg_workspace_bytes(kernel, &shape);
  if (bytes > room) workspace = device_new(NULL, room = bytes);
  must(fg_launch(kernel, &shape, &args, workspace, compute));
}

/* A contiguous [n, heads, D]. */
static fg_tensor tensor(void *data, int64_t n, int64_t heads) {
  return (fg_tensor){data, {n * heads * D, D, heads * D, 1}};
}

/* A sum of parts [n, heads, D] in float32, of attention's with their lse. Of three places one has
 * the sum so far; the next one is where a part goes, and the third one where both go then. */
struct sum {
  int op, n, heads, now, is_begun;
  float *data, *lse;
};
static struct sum new_sum(int op, int n, int heads) {
  const size_t places = 3 * (size_t)n * (size_t)heads * sizeof(float);
  return (struct sum){op, n, heads, 0, 0, device_new(NULL, places * D), device_new(NULL, places)};
}
static float *data_at(const struct sum *s, int place) {
  return s->data + (int64_t)place * s->n * s->heads * D;
}
static float *lse_at(const struct sum *s, int place) {
  return s->lse + (int64_t)place * s->n * s->heads;
}
static int place_of_part(const struct sum *s) { return (s->now + s->is_begun) % 3; }

/* The sum of so many places, `apart` from each other, goes to `data` and `lse`. */
static void add_up(const struct sum *s, int op, int parts, int first, int apart, void *data,
                   float *lse) {
  const int64_t n = s->n, heads = s->heads, all = n * heads;
  fg_args args = FG_INIT(fg_args, .o = tensor(data, n, heads));
  args.o_parts = (fg_tensor){data_at(s, first), {apart * all * D, all * D, D, heads * D}};
  if (s->op == MERGE) {
    args.lse = (fg_tensor){lse, {all, n, 1, 1}};
    args.lse_parts = (fg_tensor){lse_at(s, first), {apart * all, all, n, 1}};
  }
  launch(op, (fg_shape)FG_INIT(fg_shape, .b = 1, .h = heads, .nq = n, .parts = parts), args);
}

/* Counts the part that has come to its place. */
static void count_part(struct sum *s) {
  const int part = place_of_part(s), both = (part + 1) % 3, first = part < s->now ? part : s->now;
  if (s->is_begun)
    add_up(s, s->op, 2, first, part + s->now - 2 * first, data_at(s, both), lse_at(s, both));
  s->now = s->is_begun ? both : part, s->is_begun = 1;
}

/* Rounds the sum to bf16. */
static void round_sum(const struct sum *s, uint16_t *data, float *lse) {
  add_up(s, s->op == MERGE ? ROUND_MERGED : ROUND_ADDED, 1, s->now, 1, data, lse);
}

/* ---- a rank ---- */

/* [run][rows, h, D]; kv, dkv [run][k, v][rows, hk, D]; lse [run][h, rows]. kv[1] and kv[2] are
 * received. */
static uint16_t *q, *dout, *o, *dq, *dkv, *kv[3];
static float *lse;
static int32_t *firsts, *whole; /* of each chunk the first token; the number of all */
static struct sum o_sum[RUNS], dq_sum[RUNS],
    dkv_sums[2][RUNS];           /* in turn: of this step and of the last */
static void *gradients_are_here; /* the moment; NULL: none come */

/* Rows of one run beside the keys of a chunk: k, then v. */
static void part(int run, int key_chunk, uint16_t *keys) {
  struct sum *sum = &o_sum[run];
  const int place = place_of_part(sum);
  launch(PART, (fg_shape)FG_INIT(fg_shape, .b = 1, .h = h, .hk = hk, .nq = rows, .nk = rows),
         (fg_args)FG_INIT(
             fg_args, .q = tensor(q + (size_t)run * q_size, rows, h), .k = tensor(keys, rows, hk),
             .v = tensor(keys + k_size, rows, hk), .o = tensor(data_at(sum, place), rows, h),
             .lse = {.data = lse_at(sum, place)}, .pos_q = {.data = firsts + chunk(ring.rank, run)},
             .pos_k = {.data = firsts + key_chunk}, .whole_q = {.data = whole},
             .whole_k = {.data = whole}));
  count_part(sum);
}

static void part_backward(int run, int key_chunk, uint16_t *keys, struct sum *dkv_sum) {
  struct sum *sum = &dq_sum[run];
  const size_t at = (size_t)run * q_size;
  float *dk = data_at(dkv_sum, place_of_part(dkv_sum));
  launch(PART_BACKWARD,
         (fg_shape)FG_INIT(fg_shape, .b = 1, .h = h, .hk = hk, .nq = rows, .nk = rows),
         (fg_args)FG_INIT(fg_args, .q = tensor(q + at, rows, h), .k = tensor(keys, rows, hk),
                          .v = tensor(keys + k_size, rows, hk), .o = tensor(o + at, rows, h),
                          .lse = {.data = lse + at / D}, .dout = tensor(dout + at, rows, h),
                          .dq = tensor(data_at(sum, place_of_part(sum)), rows, h),
                          .dk = tensor(dk, rows, hk), .dv = tensor(dk + k_size, rows, hk),
                          .pos_q = {.data = firsts + chunk(ring.rank, run)},
                          .pos_k = {.data = firsts + key_chunk}, .whole_q = {.data = whole},
                          .whole_k = {.data = whole}));
  count_part(sum);
  if (gradients_are_here) device_wait(compute, gradients_are_here);
  count_part(dkv_sum);
}

/* dK and dV of the keys that the rank had in the last step go on, those of `step` come in. */
static void pass_gradients(int step) {
  device_wait(ring.stream, device_moment(compute));
  for (int run = 0; run < RUNS; run++) {
    struct sum *gone = &dkv_sums[(step + 1) % 2][run], *come = &dkv_sums[step % 2][run];
    come->now = 0, come->is_begun = 1;
    ring_shift(data_at(gone, gone->now), data_at(come, 0), 2 * k_size * sizeof(float));
  }
  gradients_are_here = device_moment(ring.stream);
}

/* All steps of one pass: in each the keys and values of one rank. */
static void go_round(int is_backward) {
  void *arrived = gradients_are_here = NULL;
  for (int run = 0; run < RUNS; run++) {
    o_sum[run].is_begun = dq_sum[run].is_begun = 0;
    dkv_sums[0][run].is_begun = 0;
  }
  for (int step = 0; step < ring.ranks; step++) {
    const int from = (ring.rank + ring.ranks - step) % ring.ranks;
    uint16_t *held = kv[step ? 1 + step % 2 : 0], *next = kv[1 + (step + 1) % 2];
    if (arrived) device_wait(compute, arrived);
    if (is_backward && step) pass_gradients(step);
    device_wait(ring.stream, device_moment(compute)); /* `next` is read no more */
    if (step + 1 < ring.ranks) ring_shift(held, next, RUNS * 2 * k_size * sizeof *held);
    arrived = device_moment(ring.stream);
    for (int run = 0; run < RUNS; run++)
      for (int key_run = 0; key_run < RUNS; key_run++) {
        uint16_t *keys = held + (size_t)key_run * 2 * k_size;
        if (chunk(from, key_run) > chunk(ring.rank, run)) continue; /* all of its keys come later */
        if (is_backward)
          part_backward(run, chunk(from, key_run), keys, &dkv_sums[step % 2][key_run]);
        else
          part(run, chunk(from, key_run), keys);
      }
  }
  if (is_backward && ring.ranks > 1)
    pass_gradients(ring.ranks), device_wait(compute, gradients_are_here);
  for (int run = 0; run < RUNS; run++) {
    const size_t at = (size_t)run * q_size;
    if (is_backward) {
      round_sum(&dq_sum[run], dq + at, NULL);
      round_sum(&dkv_sums[ring.ranks > 1 ? ring.ranks % 2 : 0][run], dkv + (size_t)run * 2 * k_size,
                NULL);
    } else {
      round_sum(&o_sum[run], o + at, lse + at / D);
    }
  }
}

static void ring_forward(void) { go_round(0); }
static void ring_both(void) { go_round(0), go_round(1); }

/* ---- the whole sequence in one launch ---- */

enum { Q, K, V, DOUT, O, DQ, DK, DV, TENSORS };
static uint16_t *all[TENSORS];
static float *all_lse;
static int is_of_keys(int t) { return t == K || t == V || t == DK || t == DV; }
static int64_t heads_of(int t) { return is_of_keys(t) ? hk : h; }

static void whole_pass(int op) {
  fg_tensor t[TENSORS];
  for (int i = 0; i < TENSORS; i++) t[i] = tensor(all[i], tokens, heads_of(i));
  launch(op, (fg_shape)FG_INIT(fg_shape, .b = 1, .h = h, .hk = hk, .nq = tokens, .nk = tokens),
         op == WHOLE ? (fg_args)FG_INIT(fg_args, .q = t[Q], .k = t[K], .v = t[V], .o = t[O],
                                        .lse = {.data = all_lse})
                     : (fg_args)FG_INIT(fg_args, .q = t[Q], .k = t[K], .v = t[V], .o = t[O],
                                        .lse = {.data = all_lse}, .dout = t[DOUT], .dq = t[DQ],
                                        .dk = t[DK], .dv = t[DV]));
}
static void whole_forward(void) { whole_pass(WHOLE); }
static void whole_both(void) { whole_pass(WHOLE), whole_pass(WHOLE_BACKWARD); }

/* Where the rank has a run of this tensor. */
static uint16_t *mine(int t, int run) {
  uint16_t *const of[TENSORS] = {q, kv[0], kv[0], dout, o, dq, dkv, dkv};
  if (!is_of_keys(t)) return of[t] + (size_t)run * q_size;
  return of[t] + ((size_t)run * 2 + (t == V || t == DV)) * k_size;
}

/* About normal numbers, the same on every rank. */
static uint16_t *random_numbers(size_t count, uint64_t seed) {
  uint16_t *x = malloc(count * sizeof *x);
  if (!x) device_die("no memory");
  for (size_t i = 0; i < count; i++) {
    float sum = 0;
    for (int j = 0; j < 4; j++)
      seed = seed * 6364136223846793005u + 1442695040888963407u, sum += (float)(seed >> 40);
    x[i] = to_bf16((sum * 0x1p-24f - 2) * 1.7f);
  }
  return x;
}

/* The rank's rows of a result beside those of one launch: the difference, as a share of their size.
 */
static double difference(int t) {
  const size_t count = is_of_keys(t) ? k_size : q_size;
  uint16_t *a = malloc(2 * count), *b = malloc(2 * count);
  double apart = 0, size = 0;
  if (!a || !b) device_die("no memory");
  for (int run = 0; run < RUNS; run++) {
    device_read(a, mine(t, run), 2 * count);
    device_read(b, all[t] + (size_t)chunk(ring.rank, run) * count, 2 * count);
    for (size_t i = 0; i < count; i++) {
      const double x = (double)from_bf16(a[i]), y = (double)from_bf16(b[i]);
      apart += (x - y) * (x - y), size += y * y;
    }
  }
  free(a), free(b);
  return sqrt(apart / size);
}

static void open_rank(const char *where) {
  static char name[16];
  fg_context *context;
  snprintf(name, sizeof name, "cuda:%d", ring.rank);
  must(fg_open(&(fg_config)FG_INIT(fg_config, .device = strcmp(where, "host") ? name : "host"),
               &context));
  for (int i = 0; i < OPS; i++) must(fg_define(context, &specs[i], &ops[i]));
}

static void make_tensors(void) {
  int32_t *numbers = malloc(sizeof *numbers * (size_t)(2 * ring.ranks));
  for (int i = 0; i < 2 * ring.ranks; i++) numbers[i] = i * rows;
  firsts = device_new(numbers, sizeof *numbers * (size_t)(2 * ring.ranks)),
  whole = device_new(&tokens, sizeof tokens);
  uint16_t **const of_queries[] = {&q, &dout, &o, &dq},
                   **const of_keys[] = {&dkv, &kv[0], &kv[1], &kv[2]};
  for (int i = 0; i < 4; i++) {
    *of_queries[i] = device_new(NULL, RUNS * q_size * 2);
    *of_keys[i] = device_new(NULL, RUNS * 2 * k_size * 2);
  }
  lse = device_new(NULL, RUNS * q_size / D * sizeof *lse),
  all_lse = device_new(NULL, sizeof *lse * (size_t)(tokens * h));
  for (int run = 0; run < RUNS; run++) {
    o_sum[run] = new_sum(MERGE, rows, h), dq_sum[run] = new_sum(ADD, rows, h);
    for (int i = 0; i < 2; i++) dkv_sums[i][run] = new_sum(ADD, 2 * rows, hk);
  }
  for (int t = 0; t < TENSORS; t++) {
    const size_t count = is_of_keys(t) ? k_size : q_size, of_all = count * (size_t)(2 * ring.ranks);
    uint16_t *x = t < O ? random_numbers(of_all, (uint64_t)t + 1) : NULL;
    all[t] = device_new(x, of_all * 2);
    for (int run = 0; x && run < RUNS; run++)
      device_write(mine(t, run), x + (size_t)chunk(ring.rank, run) * count, 2 * count);
    free(x);
  }
  free(numbers);
}

int main(int argc, char **argv) {
  if (argc < 6) device_die("ring host|cuda RANKS TOKENS H HK [TIMES]");
  const int ranks = atoi(argv[2]), times = argc > 6 ? atoi(argv[6]) : 0;
  tokens = atoi(argv[3]), h = atoi(argv[4]), hk = atoi(argv[5]);
  if (ranks < 1 || tokens < 1 || tokens % (2 * ranks))
    device_die("TOKENS is not a multiple of 2 RANKS");
  if (h < 1 || hk < 1 || h % hk) device_die("H is not a multiple of HK");
  rows = tokens / (2 * ranks), q_size = (size_t)rows * (size_t)h * D,
  k_size = (size_t)rows * (size_t)hk * D;
  ring_start(ranks, !strcmp(argv[1], "host"), RUNS * 2 * k_size * sizeof(float));
  compute = device_stream();
  open_rank(argv[1]), make_tensors();
  ring_both(), whole_both();
  static const char *const names[TENSORS] = {[O] = "o", [DQ] = "dq", [DK] = "dk", [DV] = "dv"};
  for (int t = O; t < TENSORS; t++) {
    const double apart = difference(t);
    printf("rank %d: %s differs by %.1e\n", ring.rank, names[t], apart);
    if (!(apart <= 0x1p-8 /* two roundings */)) device_die("it is not what one launch gives");
  }
  for (int both = 0; times && both < 2; both++) {
    const double one =
        ring.rank ? 0 : device_median_ms(times, both ? whole_both : whole_forward, compute);
    ring_wait_for_all();
    const double many = device_median_ms(times, both ? ring_both : ring_forward, compute);
    if (ring.rank == 0)
      printf("%s: one %.3f ms, %d in a ring %.3f ms, %.2f of them\n",
             both ? "forward and backward" : "forward", one, ranks, many, one / (many * ranks));
  }
  return 0;
}
