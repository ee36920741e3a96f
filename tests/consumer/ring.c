/* ring.c - causal attention over a sequence that several GPUs share, forward and backward, through
 * flashgen.h and NCCL.
 *
 *   ring host|cuda RANKS TOKENS H HK [TIMES [SM_MARGIN]]
 *
 * Tokens are cut into 2 RANKS chunks, of which rank r holds the chunks r and 2 RANKS - 1 - r, one
 * behind the other, so that each rank has as much to do (zigzag). K and V go round the ring: a rank
 * computes with those of one rank while it receives those of the next. Each step is one launch, of
 * the rows and the keys that the mask shows. In backward the sums of dK and dV follow their keys,
 * and one step more brings them home. Results of steps are float32; their sums are rounded once.
 *
 * Each rank compares its rows with those of one launch over the whole sequence. With TIMES the
 * program prints the median times of both, and how much of all GPUs the ring makes use of.
 * SM_MARGIN multiprocessors are left to NCCL, which has to run beside the kernels. */
#include "ring.h"

#include <flashgen.h>

enum { D = 128 };
static int tokens, own, h, hk, sm_margin; /* own: tokens of a rank */
static void *compute;                     /* the stream of kernels */

static void must(fg_status status) {
  if (status) device_die(fg_error());
}

/* ---- kernels, in pairs: forward and backward, or a sum in float32 and one rounded ---- */

enum { WHOLE, OWN = 2, OTHER = 4, MERGE = 6, ADD = 8, OPS = 10 };
#define ATTENTION .head_dim = "128", .dtype = "bf16"
#define STEP      ATTENTION, .q_layout = "packed", .kv_layout = "packed"
#define COMBINE   .kernel = "combine", .head_dim = "128", .parts_dtype = "f32"
static const fg_spec specs[OPS] = {
    [WHOLE] = FG_INIT(fg_spec, ATTENTION, .mask = "causal"),
    [WHOLE + 1] = FG_INIT(fg_spec, ATTENTION, .mask = "causal", .pass = "backward"),
    [OWN] = FG_INIT(fg_spec, STEP, .mask = "causal", .o_dtype = "f32"),
    [OWN + 1] = FG_INIT(fg_spec, STEP, .mask = "causal", .pass = "backward", .dqkv_dtype = "f32"),
    [OTHER] = FG_INIT(fg_spec, STEP, .o_dtype = "f32"),
    [OTHER + 1] = FG_INIT(fg_spec, STEP, .pass = "backward", .dqkv_dtype = "f32"),
    [MERGE] = FG_INIT(fg_spec, COMBINE, .dtype = "f32"),
    [MERGE + 1] = FG_INIT(fg_spec, COMBINE, .dtype = "bf16"),
    [ADD] = FG_INIT(fg_spec, COMBINE, .dtype = "f32", .normalizer = "none"),
    [ADD + 1] = FG_INIT(fg_spec, COMBINE, .dtype = "bf16", .normalizer = "none")};
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

/* Tensors [n, heads, D]. V lies behind K, dV behind dK: both are sent in one piece. */
enum { Q, K, V, DOUT, O, DQ, DK, DV, TENSORS };
static int heads_of(int t) { return t == K || t == V || t == DK || t == DV ? hk : h; }
static size_t count_of(int t, int n) { return (size_t)n * (size_t)heads_of(t) * D; }

static fg_tensor tensor(void *data, int64_t heads) {
  return (fg_tensor){data, {0, D, heads * D, 1}}; /* one batch: its stride is not used */
}

static fg_args attention_args(uint16_t *const t[], float *lse) {
  return (fg_args)FG_INIT(fg_args, .q = tensor(t[Q], h), .k = tensor(t[K], hk),
                          .v = tensor(t[V], hk), .o = tensor(t[O], h), .lse = {.data = lse},
                          .dout = tensor(t[DOUT], h), .dq = tensor(t[DQ], h),
                          .dk = tensor(t[DK], hk), .dv = tensor(t[DV], hk));
}

/* ---- sums ---- */

/* A sum of results [n, heads, D] in float32, of attention's with their lse, over steps. It has
 * three places: what two neighbours hold is added up in the third one. */
typedef struct {
  int op, n, heads;
  float *data, *lse;
} sum;
static sum o_sum, dq_sum, dkv_sum;

static float *data_of(const sum *s, int place) {
  return s->data + (int64_t)place * s->n * s->heads * D;
}
static float *lse_of(const sum *s, int place) { return s->lse + (int64_t)place * s->n * s->heads; }
static sum new_sum(int op, int n, int heads) {
  const size_t places = 3 * (size_t)n * (size_t)heads * sizeof(float);
  return (sum){op, n, heads, device_new(NULL, places * D), device_new(NULL, places)};
}

static void combine(const sum *s, int op, int parts, int first, void *data, float *to_lse) {
  const int64_t n = s->n, all = n * s->heads;
  launch(op, (fg_shape)FG_INIT(fg_shape, .b = 1, .h = s->heads, .nq = n, .parts = parts),
         (fg_args)FG_INIT(fg_args, .o = tensor(data, s->heads), .lse = {to_lse, {0}},
                          .o_parts = {data_of(s, first), {all * D, 0, D, s->heads * D}},
                          .lse_parts = {lse_of(s, first), {all, 0, n, 1}}));
}
static void add_up(const sum *s, int first) {
  const int third = first ? 0 : 2;
  combine(s, s->op, 2, first, data_of(s, third), lse_of(s, third));
}

/* ---- a rank ---- */

static uint16_t *mine[TENSORS], *kv[3]; /* kv: a rank's own keys and values, and two received */
static float *lse;
enum { BOTH, FIRST, SECOND }; /* chunks of a rank */
static int32_t *bounds;       /* where they begin and end, two numbers each */

/* The rank's rows beside the keys of another rank, or its own. Packed sequences say which chunks a
 * launch has: other rows get o = 0 and lse = -inf, and other rows and keys gradients of 0. The sums
 * of rows are in place 0 after even steps, in 2 after odd ones; what a step gives is in 1. */
static void attend(int is_backward, int step, int from, uint16_t *keys) {
  const int op = from == ring.rank ? OWN : OTHER, place = step > 0;
  const int row_run = from > ring.rank ? SECOND : BOTH, key_run = from < ring.rank ? FIRST : BOTH;
  fg_args args = attention_args(mine, lse);
  args.k = tensor(keys, hk), args.v = tensor(keys + count_of(K, own), hk);
  args.starts_q.data = bounds + 2 * row_run, args.starts_k.data = bounds + 2 * key_run;
  args.sm_margin = sm_margin;
  if (is_backward) {
    float *dk = data_of(&dkv_sum, step ? 1 : 2);
    args.dq = tensor(data_of(&dq_sum, place), h);
    args.dk = tensor(dk, hk), args.dv = tensor(dk + count_of(DK, own), hk);
  } else {
    args.o = tensor(data_of(&o_sum, place), h), args.lse.data = lse_of(&o_sum, place);
  }
  launch(op + is_backward,
         (fg_shape)FG_INIT(fg_shape, .b = 1, .h = h, .hk = hk, .nq = row_run ? own / 2 : own,
                           .nk = key_run ? own / 2 : own, .tokens_q = own, .tokens_k = own),
         args);
  if (step) add_up(is_backward ? &dq_sum : &o_sum, step % 2 ? 0 : 1);
}

/* The sum of dK and dV goes on from place 2, that of the next keys comes to place 0; the moment. */
static void *pass_gradients(void) {
  ring_shift(data_of(&dkv_sum, 2), data_of(&dkv_sum, 0), 2 * count_of(DK, own) * sizeof(float));
  return device_moment(ring.stream);
}

/* All steps of one pass: in each the keys and values of one rank. */
static void go_round(int is_backward) {
  void *keys_are_here = NULL, *gradients_are_here = NULL;
  for (int step = 0; step < ring.ranks; step++) {
    uint16_t *held = kv[step ? 1 + step % 2 : 0], *next = kv[1 + (step + 1) % 2];
    device_wait(ring.stream, device_moment(compute)); /* which reads no more what is overwritten */
    if (step) device_wait(compute, keys_are_here);
    if (is_backward && step) gradients_are_here = pass_gradients();
    if (step + 1 < ring.ranks) {
      ring_shift(held, next, 2 * count_of(K, own) * sizeof *held);
      keys_are_here = device_moment(ring.stream);
    }
    attend(is_backward, step, (ring.rank + ring.ranks - step) % ring.ranks, held);
    if (is_backward && step) device_wait(compute, gradients_are_here), add_up(&dkv_sum, 0);
  }
  const int last = ring.ranks % 2 ? 0 : 2; /* place */
  if (is_backward) {
    device_wait(ring.stream, device_moment(compute));
    device_wait(compute, pass_gradients());
    combine(&dq_sum, ADD + 1, 1, last, mine[DQ], NULL);
    combine(&dkv_sum, ADD + 1, 1, 0, mine[DK], NULL);
  } else {
    combine(&o_sum, MERGE + 1, 1, last, mine[O], lse);
  }
}
static void ring_forward(void) { go_round(0); }
static void ring_both(void) { go_round(0), go_round(1); }

/* ---- the whole sequence in one launch, and what is compared ---- */

static uint16_t *all[TENSORS];
static float *all_lse;

static void whole_pass(int is_backward) {
  launch(WHOLE + is_backward,
         (fg_shape)FG_INIT(fg_shape, .b = 1, .h = h, .hk = hk, .nq = tokens, .nk = tokens),
         attention_args(all, all_lse));
}
static void whole_forward(void) { whole_pass(0); }
static void whole_both(void) { whole_pass(0), whole_pass(1); }

/* Where a chunk of the rank begins in the whole tensor. */
static size_t chunk_at(int t, int is_second) {
  return (size_t)(is_second ? 2 * ring.ranks - 1 - ring.rank : ring.rank) * count_of(t, own / 2);
}

/* The tensor of all tokens, and the rank's chunks of it; its numbers are those of every rank. */
static void new_tensor(int t, int is_input) {
  const size_t count = count_of(t, tokens), half = count_of(t, own / 2);
  const int is_behind = t == V || t == DV; /* the one before it has room for both */
  uint16_t *x = calloc(count, sizeof *x);
  if (!x) device_die("no memory");
  for (size_t i = 0; i < count && is_input; i++)
    x[i] = to_bf16((float)(rand() % 2001 - 1000) / 500.0f);
  all[t] = device_new(x, count * sizeof *x);
  mine[t] = is_behind ? mine[t - 1] + 2 * half : device_new(NULL, 4 * half * sizeof *x);
  for (int i = 0; i < 2; i++)
    device_write(mine[t] + (size_t)i * half, x + chunk_at(t, i), half * sizeof *x);
  free(x);
}

/* The rank's rows of a result beside those of one launch. */
static void compare(int t, const char *name) {
  const size_t half = count_of(t, own / 2);
  for (int i = 0; i < 2; i++) {
    const double apart =
        device_difference(mine[t] + (size_t)i * half, all[t] + chunk_at(t, i), half);
    printf("rank %d, chunk %d: %s differs by %.1e\n", ring.rank, i, name, apart);
    if (!(apart <= 0x1p-8 /* two roundings */)) device_die("it is not what one launch gives");
  }
}

static void open_rank(int is_host) {
  const int32_t numbers[] = {0, own, 0, own / 2, own / 2, own};
  char name[16];
  fg_context *context;
  snprintf(name, sizeof name, "cuda:%d", ring.rank);
  must(fg_open(&(fg_config)FG_INIT(fg_config, .device = is_host ? "host" : name), &context));
  for (int i = 0; i < OPS; i++) must(fg_define(context, &specs[i], &ops[i]));
  compute = device_stream(), bounds = device_new(numbers, sizeof numbers);
  for (int t = 0; t < TENSORS; t++) new_tensor(t, t < O);
  kv[0] = mine[K];
  for (int i = 1; i < 3; i++) kv[i] = device_new(NULL, 2 * count_of(K, own) * sizeof *kv[i]);
  lse = device_new(NULL, (size_t)own * (size_t)h * sizeof *lse);
  all_lse = device_new(NULL, (size_t)tokens * (size_t)h * sizeof *all_lse);
  o_sum = new_sum(MERGE, own, h), dq_sum = new_sum(ADD, own, h),
  dkv_sum = new_sum(ADD, 2 * own, hk);
}

int main(int argc, char **argv) {
  if (argc < 6) device_die("ring host|cuda RANKS TOKENS H HK [TIMES [SM_MARGIN]]");
  const int is_host = !strcmp(argv[1], "host"), ranks = atoi(argv[2]);
  const int times = argc > 6 ? atoi(argv[6]) : 0;
  tokens = atoi(argv[3]), h = atoi(argv[4]), hk = atoi(argv[5]);
  sm_margin = argc > 7 ? atoi(argv[7]) : 0;
  if (ranks < 1 || tokens < 1 || tokens % (2 * ranks) || h < 1 || hk < 1 || h % hk)
    device_die("TOKENS is not a multiple of 2 RANKS, or H is not one of HK");
  own = tokens / ranks;
  ring_start(ranks, is_host, 2 * count_of(DK, own) * sizeof(float));
  open_rank(is_host), ring_both(), whole_both();
  compare(O, "o"), compare(DQ, "dq"), compare(DK, "dk"), compare(DV, "dv");
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
