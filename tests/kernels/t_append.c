/* t_append.c - new rows of a cache on a device: pages of every size against the oracle, and that
 * what is not written stays as it was, bit for bit. The design judges layouts and rotations. */
#include "launch_case.h"

#include <stdlib.h>

#define LAYOUTS "kernel=append q_layout=dense,packed kv_layout=cached,paged "

TEST(pages) {
  static const int sizes[] = {1, 3, 16, 64};
  kernels made = kernels_first(
      "kernel=append q_layout=dense,packed head_dim=16 kv_layout=paged rotary=halves");
  for (int n = 0; n < made.n; n++)
    for (int i = 0; i < 4; i++)
      for (int seed = 0; seed < 3; seed++) {
        fg_shape shape = {.b = 4, .h = 4, .hk = 2, .nq = 9, .nk = 130, .positions = 130};
        shape.page = sizes[i], shape.pages = 4 * (130 / sizes[i] + 1) + 1;
        kernel_verify(&made.list[n], &(verify_case){.shape = shape,
                                                    .far = seed == 2 && kernel_device_is_host(),
                                                    .seed = (uint64_t)(70 + 3 * i + seed)});
      }
  kernels_free(&made);
}

/* ---- bits ---- */

enum { B = 3, NEW = 4, HEADS = 2, WIDTH = 16, MOST = 10, PAGE = 3, COLUMNS = 4, TOKENS = 11 };
static const int used[B] = {2, 8, 0}; /* the second one's last two rows have no slot */

/* The tensor's elements as they are in memory; any bits, NaNs of all kinds among them. */
static uint16_t *random_bits(launch *l, const char *name, uint64_t state) {
  fg_problem *p = l->problem;
  const int i = fg_problem_find(p, name);
  uint16_t *bits = malloc(p->bytes[i]);
  ck_assert_ptr_nonnull(bits);
  for (size_t at = 0; at < p->bytes[i] / 2; at++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    bits[at] = (uint16_t)(state >> 48 | (at % 5 ? 0 : 0x7f80));
  }
  GOOD(p->device->class->upload(p->device, p->buffer[i], bits, p->bytes[i]));
  return bits;
}

static uint16_t *bits_of(const launch *l, const char *name) {
  const fg_problem *p = l->problem;
  const int i = fg_problem_find(p, name);
  uint16_t *bits = malloc(p->bytes[i]);
  ck_assert_ptr_nonnull(bits);
  GOOD(p->device->class->download(p->device, bits, p->buffer[i], p->bytes[i]));
  return bits;
}

static void set_ints(const launch *l, const char *name, int n, const int *values) {
  const int i = fg_problem_find(l->problem, name);
  int64_t wide[64];
  if (i < 0) return;
  ck_assert_int_eq(fg_problem_count(l->problem, i), n);
  for (int k = 0; k < n; k++) wide[k] = values[k];
  GOOD(fg_problem_set_ints(l->problem, i, wide));
}

static const int starts[B + 1] = {1, 5, 9, 10}, rows[B] = {4, 0, 2};
static const int table[B * COLUMNS] = {7, 2, -1, 99, 99, -5, 3, 8, 0, 5, 99, 99};

/* The new row that goes to row `at` of a place of the cache; -1: none. */
static int source(bool packed, bool paged, int place, int at) {
  for (int b = 0; b < B; b++)
    for (int i = 0; i < (packed ? starts[b + 1] - starts[b] : NEW); i++) {
      const int slot = used[b] + i;
      const int own = slot >= MOST ? -1 : paged ? table[b * COLUMNS + slot / PAGE] : rows[b];
      if (own == place && at == (paged ? slot % PAGE : slot))
        return packed ? starts[b] + i : b * NEW + i;
    }
  return -1;
}

/* Slots that get no row have the bits that they had; columns that pass have those of the new row.
 */
TEST(bits) {
  kernels made = kernels_first(LAYOUTS "head_dim=16 rotary=none,halves rotary_dim=8");
  ck_assert_int_eq(made.n, 8);
  for (int n = 0; n < made.n; n++) {
    const fg_point *point = &made.list[n].variant.point;
    const bool packed = point->q_layout == FG_PACKED, paged = point->kv_layout == FG_PAGED;
    const int passes_from = point->rotary ? 8 : 0, places = paged ? 9 : 5;
    const int each = paged ? PAGE : MOST;
    launch l = launch_new(&made.list[n],
                          (fg_shape){.b = B,
                                     .h = HEADS,
                                     .hk = HEADS,
                                     .nq = NEW,
                                     .nk = MOST,
                                     .tokens_q = packed ? TOKENS : 0,
                                     .pages = places,
                                     .page = paged ? PAGE : 0,
                                     .positions = MOST},
                          1);
    set_ints(&l, "used_k", B, used);
    set_ints(&l, "rows", B, rows);
    set_ints(&l, "table", B * COLUMNS, table);
    set_ints(&l, "starts_q", B + 1, starts);
    const char *const optional[] = {"used_q", "row_positions", "q"};
    for (int i = 0; i < 3; i++)
      if (launch_has(&l, optional[i]))
        fg_problem_drop(l.problem, fg_problem_find(l.problem, optional[i]));
    const char *const names[][2] = {{"k", "k_new"}, {"v", "v_new"}};
    uint16_t *before[2], *fresh[2];
    for (int t = 0; t < 2; t++) {
      before[t] = random_bits(&l, names[t][0], (uint64_t)(3 + t));
      fresh[t] = random_bits(&l, names[t][1], (uint64_t)(5 + t));
    }
    launch_run(&l, 2);
    int written = 0;
    for (int t = 0; t < 2; t++) {
      uint16_t *after = bits_of(&l, names[t][0]);
      for (int at = 0; at < places * each * HEADS * WIDTH; at++) {
        const int column = at % WIDTH, row = at / WIDTH / HEADS;
        const int from = source(packed, paged, row / each, row % each);
        if (from >= 0 && t == 0 && column < passes_from) continue;
        const uint16_t is =
            from < 0 ? before[t][at] : fresh[t][from * HEADS * WIDTH + at % (HEADS * WIDTH)];
        ck_assert_msg(after[at] == is, "%s: %s, row %d, column %d: %04x, expected %04x",
                      made.list[n].name, names[t][0], row, column, after[at], is);
        written += from >= 0;
      }
      free(after), free(before[t]), free(fresh[t]);
    }
    ck_assert_int_gt(written, 0);
    launch_free(&l);
  }
  kernels_free(&made);
}

/* Each byte of a new row is its number, divided by the descale of its sequence and head, to nearest
 * even and 448 at most, as a program would make it. */
TEST(quantized_bytes) {
  static const float descales[] = {1, 0.75F, 0x1p-9F, 3};
  kernels made = kernels_first("kernel=append kv_layout=cached head_dim=16 kv_dtype=e4m3");
  const fg_shape shape = {.b = 2, .h = 2, .hk = 2, .nq = 3, .nk = 5, .pages = 2};
  static const int lengths[] = {1, 2}, caches[] = {1, 0};
  launch l = launch_new(&made.list[0], shape, 2);
  set_ints(&l, "used_k", 2, lengths);
  set_ints(&l, "rows", 2, caches);
  GOOD(fg_problem_set(l.problem, fg_problem_find(l.problem, "k_descale"), descales));
  fg_problem_drop(l.problem, fg_problem_find(l.problem, "v_descale"));
  const char *const names[][2] = {{"k", "k_new"}, {"v", "v_new"}};
  uint16_t *before[2];
  for (int t = 0; t < 2; t++) {
    before[t] = random_bits(&l, names[t][0], (uint64_t)(3 + t));
    free(random_bits(&l, names[t][1], (uint64_t)(5 + t)));
  }
  launch_run(&l, 2);
  for (int t = 0; t < 2; t++) {
    uint8_t *after = (uint8_t *)bits_of(&l, names[t][0]), *old = (uint8_t *)before[t];
    uint16_t *fresh = bits_of(&l, names[t][1]);
    for (int at = 0; at < 2 * 5 * HEADS * WIDTH; at++) {
      const int column = at % WIDTH, head = at / WIDTH % HEADS, slot = at / WIDTH / HEADS % 5;
      const int b = caches[at / WIDTH / HEADS / 5], i = slot - lengths[b];
      uint8_t is = old[at];
      if (i >= 0 && i < 3) {
        const float x =
            fg_elem_load(FG_ELEM_BF16, fresh, ((b * 3 + i) * HEADS + head) * WIDTH + column);
        fg_elem_store(FG_ELEM_E4M3, &is, 0, x / (t ? 1 : descales[b * HEADS + head]));
      }
      ck_assert_msg(after[at] == is, "%s %d: %#x, not %#x", names[t][0], at, after[at], is);
    }
    free(after), free(fresh), free(old);
  }
  launch_free(&l);
  kernels_free(&made);
}

/* Queries whose positions the tables do not have are 0; keys are not written then, values are. */
TEST(positions) {
  kernels made = kernels_first("kernel=append kv_layout=cached head_dim=8 rotary=interleaved");
  const fg_shape shape = {.b = 1, .h = 1, .hk = 1, .nq = 3, .nk = 4, .positions = 5};
  const int first = 0, places[] = {-1, 5, 4};
  launch l = launch_new(&made.list[0], shape, 3);
  set_ints(&l, "used_k", 1, &first);
  set_ints(&l, "rows", 1, &first);
  set_ints(&l, "row_positions", 3, places);
  launch_fill(&l, "k", 77);
  launch_fill(&l, "v", 77);
  launch_fill(&l, "rotary_cos", 0);
  launch_fill(&l, "rotary_sin", 1); /* (x, y) becomes (-y, x) */
  launch_run(&l, 1);
  float *q = launch_get(&l, "q"), *q_out = launch_get(&l, "q_out"), *k = launch_get(&l, "k");
  float *k_new = launch_get(&l, "k_new"), *v = launch_get(&l, "v"),
        *v_new = launch_get(&l, "v_new");
  for (int i = 0; i < 24; i++) {
    const bool turns = i >= 16;
    const int partner = i ^ 1;
    const double sign = i % 2 ? 1 : -1;
    ck_assert_double_eq((double)q_out[i], turns ? sign * (double)q[partner] : 0);
    ck_assert_double_eq((double)k[i], turns ? sign * (double)k_new[partner] : 77);
    ck_assert_double_eq((double)v[i], (double)v_new[i]);
  }
  free(q), free(q_out), free(k), free(k_new), free(v), free(v_new);
  launch_free(&l);
  kernels_free(&made);
}

/* Starts that fall or lie beyond the tokens, lengths beyond the cache: no access is out of bounds,
 * and rows that no sequence has go nowhere. */
TEST(wild_starts) {
  static const int wild[][B + 1] = {{8, 3, 20, 5}, {-9, 7, 7, 2}, {99, 99, 99, 99}, {0, 0, 0, 0}};
  static const int lengths[] = {INT32_MAX, INT32_MIN, 1};
  kernels made = kernels_first("kernel=append q_layout=packed kv_layout=cached,paged head_dim=16 "
                               "rotary=halves");
  for (int n = 0; n < made.n; n++)
    for (int i = 0; i < 4; i++) {
      const bool paged = made.list[n].variant.point.kv_layout == FG_PAGED;
      launch l = launch_new(&made.list[n],
                            (fg_shape){.b = B,
                                       .h = HEADS,
                                       .hk = HEADS,
                                       .nk = MOST,
                                       .tokens_q = TOKENS,
                                       .pages = paged ? 9 : 5,
                                       .page = paged ? PAGE : 0,
                                       .positions = MOST},
                            1);
      set_ints(&l, "used_k", B, i % 2 ? used : lengths);
      set_ints(&l, "used_q", B, lengths);
      set_ints(&l, "rows", B, rows);
      set_ints(&l, "table", B * COLUMNS, table);
      set_ints(&l, "starts_q", B + 1, wild[i]);
      fg_problem_drop(l.problem, fg_problem_find(l.problem, "row_positions"));
      uint16_t *before = random_bits(&l, "v", 7);
      launch_run(&l, 3);
      uint16_t *after = bits_of(&l, "v");
      const size_t bytes = (size_t)launch_count(&l, "v") * sizeof *after;
      if (i >= 2) ck_assert_mem_eq(after, before, bytes);
      free(before), free(after);
      launch_free(&l);
    }
  kernels_free(&made);
}

TEST(refused) {
  kernels made = kernels_first("kernel=append kv_layout=paged head_dim=16 rotary=halves");
  const fg_shape shape = {
      .b = 1, .h = 2, .hk = 1, .nq = 2, .nk = 8, .pages = 4, .page = 4, .positions = 8};
  launch l = launch_new(&made.list[0], shape, 1);
  launch_fill(&l, "used_k", 0);
  launch_fill(&l, "table", 1);
  launch_run(&l, 1);
  l.problem->args.k_new.data = NULL;
  ck_assert_int_eq(fg_problem_run(l.problem, l.kernel->module), FG_EARGUMENT);
  ck_assert_str_eq(fg_error(), "k_new is missing");
  l.problem->args.k_new.data = l.problem->args.k.data;
  ck_assert_int_eq(fg_problem_run(l.problem, l.kernel->module), FG_EARGUMENT);
  ck_assert_str_eq(fg_error(), "k lies over k_new, and it is an output");
  launch_free(&l);
  kernels_free(&made);
}

TEST_TIMEOUT(300)
