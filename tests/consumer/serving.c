/* serving.c - sequences that come and go over a pool of pages, as a server of a language model has
 * them (continuous batching).
 *
 *   serving [host|cuda:N]
 *
 * A request joins when there is a slot for it and pages for all of its keys. Prompts of those that
 * join are packed: their keys go into the pages, and each row attends to the keys of its own
 * sequence there. Then all slots take a row each, step after step; on a GPU a step is one CUDA
 * graph, replayed while lengths and pages change. What is finished leaves its slot and pages.
 *
 * A step attends to all keys at once, and again to parts of the keys, which kernel=combine puts
 * together: the way to fill a GPU with few sequences of many keys. Each row is compared with a loop
 * in plain C. */
#include "device.h"

#include <flashgen.h>
#include <math.h>

enum { H = 8, HK = 2, D = 64 };          /* query heads, key/value heads, their width */
enum { PAGE = 16, PAGES = 13 };          /* keys of a page, pages of the pool */
enum { SLOTS = 4, MOST = 96 };           /* sequences at a time, keys of one */
enum { PARTS = 3, PART = MOST / PARTS }; /* of the keys */
enum { TOKENS = SLOTS * MOST, REQUESTS = 9 };

/* What the device is told of sequences. A slot that is idle has no new rows and no keys. */
static struct places {
  int32_t starts[SLOTS + 1];                      /* of their new rows */
  int32_t before[SLOTS], after[SLOTS];            /* keys without and with the new rows */
  int32_t first[PARTS][SLOTS], end[PARTS][SLOTS]; /* keys of each part */
  int32_t table[SLOTS][MOST / PAGE];              /* their pages */
} places, *there;                                 /* the same on the device */

/* keys: that it has now; total: that it will have, 0: the slot is idle. */
static struct slot { int request, keys, total; } slots[SLOTS];
static int32_t free_pages[PAGES];
static int n_free, waiting; /* the request that is next */

static float cosines[MOST][D / 2], sines[MOST][D / 2];
static uint16_t new_rows[3][TOKENS * H * D], results[TOKENS * H * D];

static void *stream, *graph, *workspace;
static size_t workspace_bytes;
static fg_args append, attend, combine;

enum { APPEND, PREFILL, DECODE, COMBINE, OPS };
static fg_op *ops[OPS];
static const fg_spec specs[OPS] = {
    [APPEND] = FG_INIT(fg_spec, .kernel = "append", .head_dim = "64", .q_layout = "packed",
                       .kv_layout = "paged", .rotary = "halves", .rotary_dtype = "f32"),
    [PREFILL] = FG_INIT(fg_spec, .head_dim = "64", .mask = "causal", .q_layout = "packed",
                        .kv_layout = "paged"),
    [DECODE] = FG_INIT(fg_spec, .head_dim = "64", .kv_layout = "paged"),
    [COMBINE] = FG_INIT(fg_spec, .kernel = "combine", .head_dim = "64", .parts_dtype = "spec")};

static void good(fg_status status) {
  if (status != FG_OK) device_die(fg_error());
}

/* ---- what a model would compute ---- */

enum { Q, K, V };
static const int heads[] = {H, HK, HK};

/* A number of bf16, of queries from -4 to 4, of others from -1 to 1. */
static float number(int tensor, int request, int position, int i) {
  uint32_t x = (uint32_t)(((request * MOST + position) * 3 + tensor) * H * D + i) * 2654435761u;
  x = (x ^ x >> 15) * 2246822519u;
  return (float)((int)(x >> 24) - 128) / (tensor == Q ? 32 : 128);
}

/* Row `row` of the new rows is that position of the request. */
static void compute(int row, int request, int position) {
  for (int t = Q; t <= V; t++)
    for (int i = 0, n = heads[t] * D; i < n; i++)
      new_rows[t][row * n + i] = to_bf16(number(t, request, position, i));
}

/* ---- the same attention in plain C ---- */

/* An element of a query or key, turned by its position. */
static float turned(int tensor, int request, int position, int head, int column) {
  const int pair = column % (D / 2), other = column < D / 2 ? column + D / 2 : pair;
  const float x = number(tensor, request, position, head * D + column);
  const float y = number(tensor, request, position, head * D + other);
  return x * cosines[position][pair] + (column < D / 2 ? -y : y) * sines[position][pair];
}

/* A row's o [H, D] against the sum over all keys up to its own. */
static void compare(const char *what, int request, int position, const uint16_t *o) {
  for (int h = 0; h < H; h++) {
    const int g = h / (H / HK);
    double sum = 0, want[D] = {0};
    for (int j = 0; j <= position; j++) {
      double s = 0;
      for (int i = 0; i < D; i++)
        s += (double)turned(Q, request, position, h, i) * (double)turned(K, request, j, g, i);
      const double weight = exp(s / sqrt(D));
      sum += weight;
      for (int i = 0; i < D; i++) want[i] += weight * (double)number(V, request, j, g * D + i);
    }
    for (int i = 0; i < D; i++) {
      const double got = (double)from_bf16(o[h * D + i]), expected = want[i] / sum;
      if (fabs(got - expected) <= 0.02) continue;
      fprintf(stderr, "%s: request %d, row %d, head %d, column %d: %g, expected %g\n", what,
              request, position, h, i, got, expected);
      exit(1);
    }
  }
}

/* ---- launches, one after another, so that they share a workspace ---- */

static void launch(int op, const fg_shape *shape, const fg_args *args) {
  fg_kernel *kernel;
  good(fg_select(ops[op], shape, stream, &kernel));
  const size_t bytes = fg_workspace_bytes(kernel, shape);
  if (bytes > workspace_bytes) workspace = device_new(NULL, workspace_bytes = bytes);
  good(fg_launch(kernel, shape, args, workspace, stream));
}

static void launch_append(int rows, int longest) {
  const fg_shape shape = FG_INIT(fg_shape, .b = SLOTS, .h = H, .hk = HK, .nq = longest, .nk = MOST,
                                 .tokens_q = rows, .pages = PAGES, .page = PAGE, .positions = MOST);
  launch(APPEND, &shape, &append);
}

static void launch_prefill(int rows, int longest) {
  const fg_shape shape = FG_INIT(fg_shape, .b = SLOTS, .h = H, .hk = HK, .nq = longest, .nk = MOST,
                                 .tokens_q = rows, .pages = PAGES, .page = PAGE);
  fg_args packed = attend;
  packed.starts_q = append.starts_q;
  launch_append(rows, longest);
  launch(PREFILL, &shape, &packed);
}

/* A row of each slot sees all keys: [SLOTS, 1, H, D], dense, needs no mask. */
static void launch_step(void) {
  const fg_shape shape = FG_INIT(fg_shape, .b = SLOTS, .h = H, .hk = HK, .nq = 1, .nk = MOST,
                                 .pages = PAGES, .page = PAGE);
  const fg_shape parts = FG_INIT(fg_shape, .parts = PARTS, .b = SLOTS, .h = H, .nq = 1);
  launch_append(SLOTS, 1);
  launch(DECODE, &shape, &attend);
  for (int p = 0; p < PARTS; p++) {
    fg_args part = attend;
    part.o.data = (uint16_t *)combine.o_parts.data + p * combine.o_parts.stride[0];
    part.lse.data = (float *)combine.lse_parts.data + p * combine.lse_parts.stride[0];
    part.first_k = (fg_tensor){.data = there->first[p]};
    part.used_k = (fg_tensor){.data = there->end[p]};
    launch(DECODE, &shape, &part);
  }
  launch(COMBINE, &parts, &combine);
}

/* Launched plainly the first time, which compiles and loads; then captured, and replayed. */
static void run_step(void) {
  if (graph) {
    device_replay(graph, stream);
    return;
  }
  launch_step();
  if (!device.driver) return; /* the host device has no graphs */
  device_capture(stream);
  launch_step();
  graph = device_captured(stream);
}

/* ---- the server ---- */

/* The device gets new rows, and where they and all keys are. */
static void send(int rows) {
  void *const to[] = {append.q.data, append.k_new.data, append.v_new.data};
  for (int i = 0; i < PARTS * SLOTS; i++) {
    const int p = i / SLOTS, s = i % SLOTS, keys = places.after[s];
    places.first[p][s] = p * PART;
    places.end[p][s] = keys < (p + 1) * PART ? keys : (p + 1) * PART;
  }
  device_write(there, &places, sizeof places);
  for (int t = Q; t <= V; t++)
    device_write(to[t], new_rows[t], sizeof **new_rows * (size_t)(rows * heads[t] * D));
}

static void receive(fg_tensor o, int rows) {
  device_read(results, o.data, sizeof *results * (size_t)(rows * H * D));
}

/* Requests join while there is room, and their prompts are computed. */
static void join(void) {
  int rows = 0, longest = 1;
  for (int s = 0; s < SLOTS; s++) {
    const int prompt = 5 + waiting * 37 % 60, total = prompt + 3 + waiting * 5 % 11;
    const int pages = (total + PAGE - 1) / PAGE;
    places.starts[s] = rows;
    places.before[s] = places.after[s] = slots[s].keys;
    if (slots[s].total || waiting == REQUESTS || pages > n_free) continue;
    slots[s] = (struct slot){waiting++, prompt, total};
    for (int i = 0; i < pages; i++) places.table[s][i] = free_pages[--n_free];
    for (int i = 0; i < prompt; i++) compute(rows++, slots[s].request, i);
    places.after[s] = prompt;
    longest = prompt > longest ? prompt : longest;
  }
  places.starts[SLOTS] = rows;
  if (!rows) return;
  send(rows);
  launch_prefill(rows, longest);
  receive(attend.o, rows);
  for (int s = 0; s < SLOTS; s++)
    for (int row = places.starts[s]; row < places.starts[s + 1]; row++)
      compare("prefill", slots[s].request, row - places.starts[s], results + row * H * D);
}

/* A row of each sequence; those that have all of theirs leave. Returns how many do. */
static int step(void) {
  int left = 0;
  places.starts[SLOTS] = SLOTS;
  for (int s = 0; s < SLOTS; s++) {
    const int is_idle = !slots[s].total;
    places.starts[s] = s;
    places.before[s] = is_idle ? -1 : slots[s].keys; /* -1: its row is not written */
    places.after[s] = is_idle ? 0 : slots[s].keys + 1;
    compute(s, slots[s].request, slots[s].keys);
  }
  send(SLOTS);
  run_step();
  for (int is_combined = 0; is_combined < 2; is_combined++) {
    receive(is_combined ? combine.o : attend.o, SLOTS);
    for (int s = 0; s < SLOTS; s++)
      if (slots[s].total)
        compare(is_combined ? "parts" : "step", slots[s].request, slots[s].keys,
                results + s * H * D);
  }
  for (int s = 0; s < SLOTS; s++) {
    if (!slots[s].total || ++slots[s].keys < slots[s].total) continue;
    for (int i = 0; i * PAGE < slots[s].total; i++) free_pages[n_free++] = places.table[s][i];
    slots[s] = (struct slot){0, 0, 0};
    left++;
  }
  return left;
}

/* [n, rows, heads, D] on the device, NaN all over. One of [TOKENS, 1, heads, D] is [TOKENS, heads,
 * D] too: its stride of a batch is that of a row. */
static fg_tensor tensor(int n, int rows, int n_heads) {
  const int64_t row = n_heads * D;
  const size_t bytes = sizeof(uint16_t) * (size_t)(n * rows * row);
  void *nan = malloc(bytes);
  if (!nan) device_die("no memory");
  const fg_tensor t = {device_new(memset(nan, 0xff, bytes), bytes), {rows * row, D, row, 1}};
  free(nan);
  return t;
}

static void make_tensors(void) {
  append = attend = combine = (fg_args)FG_INIT(fg_args);
  there = device_new(NULL, sizeof places);
  append.k = attend.k = tensor(PAGES, PAGE, HK), append.v = attend.v = tensor(PAGES, PAGE, HK);
  append.table = attend.table = (fg_tensor){there->table, {MOST / PAGE, 0, 0, 1}};
  append.used_k = (fg_tensor){.data = there->before};
  attend.used_k = (fg_tensor){.data = there->after};
  append.starts_q = (fg_tensor){.data = there->starts};
  append.k_new = tensor(TOKENS, 1, HK), append.v_new = tensor(TOKENS, 1, HK);
  append.q = tensor(TOKENS, 1, H), append.q_out = attend.q = tensor(TOKENS, 1, H);
  append.rotary_cos = (fg_tensor){device_new(cosines, sizeof cosines), {0, 0, D / 2, 1}};
  append.rotary_sin = (fg_tensor){device_new(sines, sizeof sines), {0, 0, D / 2, 1}};
  attend.o = tensor(TOKENS, 1, H), combine.o = tensor(SLOTS, 1, H);
  combine.o_parts = tensor(PARTS * SLOTS, 1, H);
  combine.o_parts = (fg_tensor){combine.o_parts.data, {SLOTS * H * D, H * D, D, H * D}};
  combine.lse_parts =
      (fg_tensor){device_new(NULL, sizeof(float) * PARTS * SLOTS * H), {SLOTS * H, H, 1, 1}};
}

int main(int argc, char **argv) {
  fg_config config = FG_INIT(fg_config);
  fg_context *context;
  int steps = 0;
  config.device = argc > 1 ? argv[1] : "host";
  device_open(config.device);
  stream = device_stream();
  good(fg_open(&config, &context));
  for (int op = 0; op < OPS; op++) good(fg_define(context, &specs[op], &ops[op]));
  for (int i = 0; i < MOST * D / 2; i++) {
    const double angle = i / (D / 2) * pow(10000, -2.0 * (i % (D / 2)) / D);
    cosines[i / (D / 2)][i % (D / 2)] = (float)cos(angle);
    sines[i / (D / 2)][i % (D / 2)] = (float)sin(angle);
  }
  make_tensors();
  while (n_free < PAGES) free_pages[n_free] = n_free * 7 % PAGES, n_free++;
  for (int finished = 0; finished < REQUESTS; steps++) {
    join();
    finished += step();
  }
  printf("%d requests in %d steps%s: right\n", REQUESTS, steps, graph ? " of a CUDA graph" : "");
  fg_close(context);
  return 0;
}
