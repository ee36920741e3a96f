/* mma_planted.c - cases for bugs in the tensor-core templates. */
#include "mma_planted.h"

/* The first one's lengths differ by 2 less than a tile: the edge of a causal mask lies at a
 * corner. */
static const verify_case cases[] = {
    {.shape = {.b = 2, .h = 2, .hk = 1, .nq = 150, .nk = 212}},
    {.shape = {.b = 1, .h = 2, .hk = 2, .nq = 70, .nk = 90},
     .given = FG_GIVEN_SCALE,
     .scale = -0.2f},
    {.shape = {.b = 1, .h = 4, .hk = 2, .nq = 230, .nk = 40}},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 0, .nk = 70}},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 90, .nk = 150}, .style = VERIFY_LARGE},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 300, .nk = 2}, .style = VERIFY_LARGE},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 300, .nk = 1}, .style = VERIFY_LARGE},
    {.shape = {.b = 1, .h = 2, .hk = 1, .nq = 90, .nk = 104}, .contiguous = 1},
    {.seed = 0}};

void mma_planted_try(planted_bug bug) {
  bug.cases = cases;
  planted_try(&bug);
}

void mma_planted_try_none(const char *words) {
  planted_try_none(&(planted_bug){.words = words, .cases = cases, .seeds = 3});
}

int mma_planted_calls(int n, const planted_bug *bugs) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += planted_count(&bugs[i]);
  return sum;
}

planted_bug mma_planted_call(const planted_bug *bugs, int index) {
  for (int n; index >= (n = planted_count(bugs)); bugs++) index -= n;
  planted_bug bug = *bugs;
  bug.nth = index;
  return bug;
}
