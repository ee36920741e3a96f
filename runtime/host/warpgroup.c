/* warpgroup.c - wgmma: products by four warps, each of which holds 16 rows of d.
 *
 * Sums of 16-bit numbers are float32 throughout; those of e4m3 lose what they lose on Hopper
 * (product_e4m3.c).
 *
 * A warp computes its rows when its last lane has called; what it reads may not change from then
 * until it waits. Until then d holds a signalling NaN, which arithmetic turns into another, and a
 * in registers is kept to be compared: both must be as they were when the wait comes. Warps retire
 * by themselves, each behind the calls of all four. */
#include "warpgroup.h"

#include "block.h"
#include "number.h"
#include "shadow.h"

enum {
  ROWS = FGH_ROWS,
  WARPS = 4,    /* of a group */
  FLOATS = 128, /* of a lane's d */
  WORDS = 64,   /* of a lane's a */
  RING = 8,     /* products in flight */
  SUMS = 4,     /* different d in flight */
  POISON = 0x7fa0dead
};

typedef struct args {
  const fgh_product *product;
  u32 a, b;
  int sum, from_registers;
} args;

/* A product of a warp in flight. */
typedef struct product {
  args is;
  const fgh_path *path;
  const u32 *a[32];
  float *d[32];
  u32 words[32][WORDS];
} product;

/* Registers that products in flight add to. */
typedef struct sum {
  float *at;
  int n, products;
  float value[FLOATS];
} sum;

typedef struct warp_state {
  product ring[RING];
  u32 issued, retired;
  u32 brought; /* lanes that have made the call that the warp meets in */
  u32 waits;   /* lanes: for the other warps' calls */
  sum sums[32][SUMS];
} warp_state;

static warp_state states[FGH_MAX_SEATS][FGH_MAX_WARPS], *state = states[0];

void fgh_wgmma_seat(u32 seat) { state = states[seat]; }

void fgh_wgmma_block(void) {
  for (u32 w = 0; w < fgh_shared_warps; w++) {
    state[w].issued = state[w].retired = state[w].brought = state[w].waits = 0;
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < SUMS; i++) state[w].sums[lane][i].products = 0;
  }
}

void fgh_wgmma_return(void) {
  const warp_state *w = &state[fgh_self->warp];
  if (w->issued == w->retired) return;
  fgh_self->path = w->ring[w->retired % RING].path;
  fgh_fault("the thread ends with a wgmma in flight: it never waits for it");
}

/* ---- calls ---- */

static int same(const args *a, const args *b) {
  return a->product == b->product && a->a == b->a && a->b == b->b && a->sum == b->sum &&
         a->from_registers == b->from_registers;
}

/* The lane's registers d, new or in flight already; their values become the engine's. */
static void take_sum(sum sums[SUMS], float *d, int n, int counts) {
  sum *free = NULL;
  for (int i = 0; i < SUMS; i++) {
    sum *s = &sums[i];
    if (!s->products) free = s;
    if (!s->products || s->at != d) continue;
    if (s->n != n) fgh_fault("wgmma adds %d columns to a d of %d in flight", 2 * n, 2 * s->n);
    s->products++;
    return;
  }
  if (!free) fgh_fault("wgmma: more than %d different d in flight", SUMS);
  *free = (sum){.at = d, .n = n, .products = 1};
  if (counts) memcpy(free->value, d, (size_t)n * sizeof *d);
  for (u32 i = 0, poison = POISON; i < (u32)n; i++) memcpy(d + i, &poison, sizeof poison);
}

static sum *sum_of(u32 warp, u32 lane, const float *d) {
  sum *s = state[warp].sums[lane];
  while (!s->products || s->at != d) s++;
  return s;
}

/* All four warps make the same calls in the same order. */
static void check_group(u32 number, const args *mine) {
  u32 first = fgh_self->warp - fgh_self->local / 32 % WARPS;
  for (u32 w = first; w < first + WARPS; w++) {
    const product *other = &state[w].ring[number % RING];
    if (w == fgh_self->warp || state[w].issued <= number || number < state[w].retired) continue;
    if (!same(&other->is, mine))
      fgh_fault("wgmma: warp %u of the warpgroup made another call",
                fgh_threads[w * 32].local / 32);
  }
}

static void begin_read(u32 granule, const char *what) {
  fgh_async_read_begin(granule, FGH_UNIT, what);
}

static void visit(const product *p, fgh_unit_visitor see) {
  const fgh_product *is = p->is.product;
  u32 row = fgh_self->local / 32 % WARPS * ROWS;
  fgh_operand_visit(&is->b, p->is.b, is->steps, 0, (u32)is->n, "wgmma's b", see);
  if (!p->is.from_registers)
    fgh_operand_visit(&is->a, p->is.a, is->steps, row, ROWS, "wgmma's a", see);
}

/* ---- the product of a warp's rows ---- */

typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

/* c += a b: four rows and eight columns at a time. */
__attribute__((target_clones("avx2,fma", "default"))) static void
multiply(float *c, const float *a, const float *b, int n, int depth) {
  for (int j = 0; j < n; j += 8)
    for (int i = 0; i < ROWS; i += 4) {
      eight s[4];
      for (int r = 0; r < 4; r++) s[r] = *(eight *)(c + (i + r) * n + j);
      for (int k = 0; k < depth; k++) {
        eight x = *(const eight *)(b + k * n + j);
        for (int r = 0; r < 4; r++) s[r] += a[(i + r) * depth + k] * x;
      }
      for (int r = 0; r < 4; r++) *(eight *)(c + (i + r) * n + j) = s[r];
    }
}

/* As the warp's a of mma.m16n8k32, of one step. */
static void read_bytes(const product *p, int step, float *a) {
  for (u32 lane = 0; lane < 32; lane++)
    for (u32 i = 0; i < 16; i++) {
      const u32 row = lane / 4 + 8 * (i / 4 % 2), k = 4 * (lane % 4) + 16 * (i / 8) + i % 4;
      const u32 word = p->words[lane][4 * step + (int)(i / 4)];
      a[row * FGH_DEPTH_MAX + k] = fgh_e4m3_to_f32(word >> 8 * (i % 4) & 0xff);
    }
}

/* The same of 16-bit numbers, as of mma.m16n8k16. */
static void read_registers(const product *p, int step, float *a) {
  const int type = p->is.product->type;
  if (type == FGH_TYPE_E4M3) {
    read_bytes(p, step, a);
    return;
  }
  for (u32 lane = 0; lane < 32; lane++)
    for (u32 i = 0; i < 4; i++) {
      u32 row = lane / 4 + 8 * (i % 2), k = 2 * (lane % 4) + 8 * (i / 2);
      u32 word = p->words[lane][4 * step + (int)i];
      for (u32 half = 0; half < 2; half++) {
        u16 x = (u16)(word >> 16 * half);
        a[row * FGH_STEP + k + half] =
            type == FGH_TYPE_F16 ? fgh_f16_to_f32(x) : fgh_bf16_to_f32(x);
      }
    }
}

/* Lane l holds columns 8 j + 2 (l % 4), + 1 of the rows l / 4 and l / 4 + 8. */
static void move_sums(const product *p, float *c, int out) {
  int n = p->is.product->n;
  for (u32 lane = 0; lane < 32; lane++) {
    float *value = sum_of(fgh_self->warp, lane, p->d[lane])->value;
    for (int i = 0; i < n / 2; i++) {
      int row = (int)lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + (int)lane % 4 * 2 + i % 2;
      float *at = c + row * n + column;
      if (out)
        value[i] = *at;
      else
        *at = value[i];
    }
  }
}

static void compute(const product *p) {
  static float a[ROWS * FGH_DEPTH_MAX], b[FGH_DEPTH_MAX * 2 * FLOATS], c[ROWS * 2 * FLOATS];
  const fgh_product *is = p->is.product;
  const int depth = fgh_depth(is->type);
  u32 row = fgh_self->local / 32 % WARPS * ROWS;
  if (p->is.sum)
    move_sums(p, c, 0);
  else
    memset(c, 0, sizeof c);
  for (int s = 0; s < is->steps; s++) {
    fgh_operand_read(&is->b, p->is.b, s, 0, (u32)is->n, is->type, b, 1, (u32)is->n);
    if (p->is.from_registers)
      read_registers(p, s, a);
    else
      fgh_operand_read(&is->a, p->is.a, s, row, ROWS, is->type, a, (u32)depth, 1);
    if (is->type == FGH_TYPE_E4M3)
      fgh_multiply_e4m3(c, a, b, is->n);
    else
      multiply(c, a, b, is->n, depth);
  }
  move_sums(p, c, 1);
}

static void wake_group(void) {
  u32 first = fgh_self->warp - fgh_self->local / 32 % WARPS;
  for (u32 w = first; w < first + WARPS; w++) {
    fgh_wake(w, state[w].waits);
    state[w].waits = 0;
  }
}

/* The lane's part before the warp has met. */
static void bring(float *d, const u32 *registers, const args *mine) {
  warp_state *w = &state[fgh_self->warp];
  u32 lane = fgh_self->lane;
  product *p = &w->ring[w->issued % RING];
  const fgh_product *is = mine->product;
  if (fgh_table.block_dim.x % (WARPS * 32)) fgh_fault("wgmma in a block of no whole warpgroups");
  if (w->issued - w->retired == RING) fgh_fault("more than %d wgmma in flight", RING);
  p->a[lane] = registers;
  p->d[lane] = d;
  if (registers) memcpy(p->words[lane], registers, (size_t)is->steps * 4 * sizeof *registers);
  take_sum(w->sums[lane], d, is->n / 2, mine->sum);
}

/* An operand's word is its address / 16, of which the hardware takes 14 bits: what lies above would
 * be the leading offset. In a cluster the rank of the block does. */
static void check_operand(u32 word, const char *which) {
  if (word >> 14)
    fgh_fault(
        "wgmma: %s is named by %#x, more than 14 bits of an address / 16: matrix_at takes the "
        "rank of the block away",
        which, word);
}

void fgh_wgmma(float *d, const u32 *registers, u32 a, u32 b, int counts, const fgh_product *is) {
  FGH_ENTER();
  fgh_preempt();
  warp_state *w = &state[fgh_self->warp];
  args mine = {is, registers ? 0 : a, b, counts != 0, registers != NULL};
  check_operand(mine.a, "its a");
  check_operand(mine.b, "its b");
  u32 number = w->issued;
  product *p = &w->ring[number % RING];
  bring(d, registers, &mine);
  if (!w->brought++) p->is = mine;
  if (!same(&p->is, &mine)) fgh_fault("wgmma: the lanes of the warp make different calls");
  if (!fgh_meet((fgh_call){.kind = FGH_WGMMA, .lanes = ~0u})) return;
  w->brought = 0;
  p->path = fgh_place(fgh_self);
  check_group(number, &mine);
  visit(p, begin_read);
  compute(p);
  w->issued++;
  wake_group();
  fgh_wake_others(~0u);
}

/* ---- waits ---- */

static u32 retire_stamp;

static void end_read(u32 granule, const char *what) {
  (void)what;
  fgh_async_read_end(granule, FGH_UNIT, retire_stamp, FGH_WHOLE_WARP);
}

static void keep_reading(u32 granule, const char *what) {
  (void)what;
  fgh_async_read_again(granule, FGH_UNIT);
}

__attribute__((noreturn)) static void changed(u32 lane, const char *what, const fgh_path *path) {
  fgh_self = &fgh_threads[fgh_self->warp * 32 + lane];
  fgh_self->path = path;
  fgh_fault("wgmma: %s changed before the wait for it", what);
}

static void retire_lane(const product *p, u32 lane) {
  size_t bytes = (size_t)p->is.product->steps * 4 * sizeof(u32);
  const u32 poison = POISON;
  if (p->is.from_registers && memcmp(p->a[lane], p->words[lane], bytes))
    changed(lane, "its a in registers was", p->path);
  sum *s = sum_of(fgh_self->warp, lane, p->d[lane]);
  for (int i = 0; i < s->n; i++)
    if (memcmp(s->at + i, &poison, sizeof poison)) changed(lane, "its d was", p->path);
  if (--s->products == 0) memcpy(s->at, s->value, (size_t)s->n * sizeof *s->value);
}

/* Waits for the other warps' calls too: the hardware runs them as one. */
static void wait_for_group(u32 number) {
  u32 first = fgh_self->warp - fgh_self->local / 32 % WARPS;
  for (u32 w = first; w < first + WARPS; w++)
    while (state[w].issued <= number) {
      state[fgh_self->warp].waits |= 1u << fgh_self->lane;
      fgh_wait();
    }
}

static void retire(void) {
  warp_state *w = &state[fgh_self->warp];
  const product *p = &w->ring[w->retired % RING];
  wait_for_group(w->retired);
  for (u32 lane = 0; lane < 32; lane++) retire_lane(p, lane);
  retire_stamp = fgh_clocks[fgh_self->warp].last;
  visit(p, end_read);
  w->retired++;
  for (u32 i = w->retired; i != w->issued; i++) visit(&w->ring[i % RING], keep_reading);
}

void fgh_wgmma_wait(int in_flight) {
  FGH_ENTER();
  fgh_preempt();
  warp_state *w = &state[fgh_self->warp];
  if (!fgh_meet((fgh_call){.kind = FGH_WGMMA_WAIT, .lanes = ~0u, .id = in_flight})) return;
  while (w->issued - w->retired > (u32)in_flight) retire();
  fgh_wake_others(~0u);
}
