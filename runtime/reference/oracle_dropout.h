/* oracle_dropout.h - which weights dropout keeps: 16-bit lanes of Philox 4x32-10 (Salmon, Moraes,
 * Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011), mathematics.md section 3. */
#ifndef FG_ORACLE_DROPOUT_H
#define FG_ORACLE_DROPOUT_H

#include <stdint.h>

typedef struct oracle_dropout {
  uint32_t words[4]; /* seed and offset, low words first */
  uint32_t below;    /* a weight is kept where its lane is below: of 65536 */
} oracle_dropout;

/* The four words of a counter, in its place. */
void oracle_philox(const uint32_t key[2], uint32_t counter[4]);

/* The nearest multiple of 2^-16 to a probability, times 65536. */
uint32_t oracle_dropout_below(float keep);

/* head: the batch's number times the heads, and the head. */
int oracle_dropout_keeps(const oracle_dropout *dropout, int64_t head, int64_t q, int64_t k);

#endif
