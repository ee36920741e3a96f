/* t_wgmma_order.c - the order in which a deterministic kernel of wgmma sums dQ: whatever blocks
 * come first, the bits are the same; and bugs planted in the order, which show as other bits or as
 * a launch that cannot end. */
#include "launch_case.h"
#include "planted.h"
#include "scratch.h"

#include "host/engine.h"

#include <stdlib.h>
#include <string.h>

#define BWD    "family=wgmma pass=backward deterministic=true "
#define ROWS   BWD "head_dim=64 block_q=128 mask=causal"
#define WIDE   BWD "head_dim=128 mask=full"
#define WINDOW BWD "head_dim=24 mask=window(150,7)"
#define WIDER  BWD "head_dim=136/24 mask=causal"
#define GAPS   BWD "head_dim=24 mask=k<128||k>=512||q>=128&&k>=256"

enum { TILE = 128 }; /* keys */

/* Keys and values for which the order shows: the first tile of keys is large, the last one is the
 * same with the other sign and has the same values, and scores are so small that all weights of a
 * row are equal. What both add is nothing, and what lies between is rounded as it comes. */
static launch make(const kernel *k, fg_shape shape) {
  launch l = launch_new(k, shape, 11);
  const int64_t d = shape.hk * k->variant.point.d, dv = shape.hk * k->variant.point.dv;
  const int64_t apart = shape.nk - TILE; /* keys from a first one to the last one like it */
  float *keys = launch_get(&l, "k"), *values = launch_get(&l, "v");
  for (int64_t b = 0; b < shape.b; b++) {
    float *key = keys + b * shape.nk * d, *value = values + b * shape.nk * dv;
    for (int64_t i = 0; i < TILE * d; i++) key[apart * d + i] = -(key[i] *= 0x1p20f);
    memcpy(value + apart * dv, value, (size_t)(TILE * dv) * sizeof *value);
  }
  if (launch_has(&l, "ids")) { /* documents of 100 keys */
    float *ids = launch_get(&l, "ids");
    for (int64_t i = 0; i < launch_count(&l, "ids"); i++) ids[i] = (float)(i % shape.nk / 100);
    launch_set(&l, "ids", ids);
    free(ids);
  }
  launch_set(&l, "k", keys);
  launch_set(&l, "v", values);
  l.problem->args.scale = 0x1p-60f, l.problem->args.given = FG_GIVEN_SCALE;
  free(keys);
  free(values);
  return l;
}

/* ---- right ---- */

/* Some rows see all tiles of keys, some few, some none between two that they see. */
static const char *const masks[] = {"full",
                                    "causal",
                                    "window(150,7)",
                                    "chunked(200)",
                                    "k<=p||k<300",
                                    "q<=k&&k<=3*q",
                                    "k%2==0",
                                    "k<128||k>=512||q>=128&&k>=256",
                                    "k<=p&&h%2==0",
                                    "k<=p&&doc[b,q]==doc[b,k] inputs.doc=i32[b,nq+nk]",
                                    "k<=p&&document(ids) inputs.ids=i32[b,k]monotone"};
enum { MASKS = sizeof masks / sizeof *masks };

/* Few heads of keys, so that blocks that begin together add to the same rows; more rows than keys,
 * and fewer. */
static const fg_shape shapes[] = {{.b = 1, .h = 2, .hk = 1, .nq = 200, .nk = 640},
                                  {.b = 2, .h = 1, .hk = 1, .nq = 450, .nk = 384}};

/* Of the decisions that a deterministic kernel has more of, the other ones. */
static const char *const switches[] = {
    "", "tells_late=0", "keys_from_last=0", "keys_from_last=1", "stays=0", "background=0"};
enum { SWITCHES = sizeof switches / sizeof *switches };

static void same(const kernel *k, fg_shape shape) {
  launch a = make(k, shape), b = make(k, shape);
  launch_run(&a, 0);
  for (uint64_t seed = 1; seed < 5; seed++) {
    launch_run(&b, seed);
    launch_same_outputs(&a, &b);
  }
  launch_free(&a);
  launch_free(&b);
}

/* Each mask as it is usually made, then with one of the switches, then by clusters for wide heads.
 */
TEST_TENTH(test_same, 3 * MASKS) {
  const char *mask = masks[_i % MASKS];
  setenv("FLASHGEN_SWITCH", _i / MASKS != 1 ? "" : switches[_i % SWITCHES], 1);
  kernels made = kernels_new(BWD "head_dim=%s mask=%s", _i / MASKS == 2 ? "136/24" : "24", mask);
  for (int i = 0; i < made.n * 2; i++) same(&made.list[i / 2], shapes[i % 2]);
  kernels_free(&made);
}

/* ---- bugs ---- */

/* Each shows as other bits of dQ, or as a deadlock. */
static const planted_bug bugs[] = {
    /* a block waits for one that began before it only if jobs are claimed */
    {"wgmma.backward_jobs.claim", "elseif order.is_claimed then", "elseif false then",
     .words = BWD "head_dim=24 mask=k%2==0"},
    /* who comes before whom */
    {"wgmma.backward_order.place", "cdiv(%s, BLOCK_KV) - ", "0 * %s + ", .words = ROWS},
    {"wgmma.backward_order.place", "/ BLOCK_KV + 1", "/ BLOCK_KV", .words = WIDE},
    {"wgmma.backward_order.find", "while ($(back.is_there) && !($(visits))) {", "while (0) {",
     .words = ROWS ";" WINDOW ";" GAPS},
    {"wgmma.backward_order.find", "$(back.has_more) && (", "0 && (", .words = GAPS},
    /* which word tells it, and what is known of the rows before */
    {"wgmma.backward_order.keep", "part = $(word(number))", "part = 0 * $(word(number))",
     .words = WIDE},
    {"wgmma.backward_order.keep", "$(word(number))", "$(word(\"0\"))", .words = WIDE ";" ROWS},
    {"wgmma.backward_order.keep", "awaited = place_before", "awaited = 0 * place_before",
     .words = WIDE ";" ROWS ";" GAPS},
    /* nobody waits; what will be added next is told */
    {"wgmma.backward_order.wait", "flag_wait(", "(void)sizeof(", .words = WIDE ";" ROWS ";" WIDER},
    {"wgmma.backward_order.tell_before", "part_before", "part", .words = WIDE ";" WIDER},
    /* it is told before all lanes have added */
    {"wgmma.backward_order.tell", "warp_sync(ALL_LANES);", "", .words = WIDE},
};
enum { BUGS = sizeof bugs / sizeof *bugs, AT_ONCE = BUGS - 1, SEEDS = 24 };

/* Other bits than those of `right`, or a launch that does not end. */
static int is_caught(const planted_bug *bug, launch *l, const float *right, uint64_t seed) {
  l->problem->device->seed = seed;
  if (fg_problem_run(l->problem, l->kernel->module) != FG_OK) {
    ck_assert_msg(strstr(fg_error(), "deadlock") != NULL, "%s: %s", bug->where, fg_error());
    return 1;
  }
  float *dq = launch_get(l, "dq");
  const int same = !memcmp(dq, right, (size_t)launch_count(l, "dq") * sizeof *dq);
  free(dq);
  return !same;
}

/* Is it caught at one of the shapes, under one of the seeds? */
static int try_kernel(const planted_bug *bug, const kernel *right, const kernel *wrong) {
  int caught = 0;
  for (int i = 0; i < 2 && !caught; i++) {
    launch a = make(right, shapes[i]), b = make(wrong, shapes[i]);
    launch_run(&a, 0);
    float *dq = launch_get(&a, "dq");
    for (uint64_t seed = 0; seed < SEEDS && !caught; seed++) caught = is_caught(bug, &b, dq, seed);
    free(dq);
    launch_free(&a);
    launch_free(&b);
  }
  return caught;
}

TEST_TENTH(test_bug, BUGS) {
  const planted_bug *bug = &bugs[_i];
  char *words = strdup(bug->words), *rest;
  ck_assert_ptr_nonnull(words);
  setenv("FLASHGEN_SWITCH", _i == AT_ONCE ? "tells_late=0" : "", 1);
  planted_plant(bug);
  for (char *grid = strtok_r(words, ";", &rest); grid; grid = strtok_r(NULL, ";", &rest)) {
    kernels right = kernels_new("%s", grid), wrong;
    GOOD(kernels_make(".", grid, &wrong));
    ck_assert_msg(try_kernel(bug, right.list, wrong.list), "%s, \"%s\", %s: not caught", bug->where,
                  bug->text, wrong.list->name);
    kernels_free(&right);
    kernels_free(&wrong);
  }
  free(words);
}

TEST_FIXTURE(scratch_enter, scratch_leave)
TEST_BEGIN { fg_host_watchdog_seconds = 1; }
