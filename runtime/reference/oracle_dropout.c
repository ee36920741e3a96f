/* oracle_dropout.c - which weights dropout keeps: mathematics.md section 3. */
#include "oracle_dropout.h"

#include <math.h>

void oracle_philox(const uint32_t key[2], uint32_t counter[4]) {
  uint32_t round_key[2] = {key[0], key[1]};
  for (int round = 0; round < 10; round++) {
    const uint64_t first = (uint64_t)0xd2511f53 * counter[0];
    const uint64_t second = (uint64_t)0xcd9e8d57 * counter[2];
    const uint32_t next[4] = {(uint32_t)(second >> 32) ^ counter[1] ^ round_key[0],
                              (uint32_t)second, (uint32_t)(first >> 32) ^ counter[3] ^ round_key[1],
                              (uint32_t)first};
    for (int i = 0; i < 4; i++) counter[i] = next[i];
    round_key[0] += 0x9e3779b9, round_key[1] += 0xbb67ae85;
  }
}

uint32_t oracle_dropout_below(float keep) { return (uint32_t)floorf(65536.0F * keep + 0.5F); }

int oracle_dropout_keeps(const oracle_dropout *x, int64_t head, int64_t q, int64_t k) {
  const uint32_t key[2] = {x->words[0], x->words[1] ^ x->words[3]};
  uint32_t counter[4] = {(uint32_t)(k >> 3), (uint32_t)q, (uint32_t)head, x->words[2]};
  oracle_philox(key, counter);
  return (counter[(k & 7) >> 1] >> (k & 1) * 16 & 0xffff) < x->below;
}
