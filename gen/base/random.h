/* random.h - SplitMix64: numbers that look random, the same ones for the same seed on every
 * machine. */
#ifndef FG_RANDOM_H
#define FG_RANDOM_H

#include <math.h>
#include <stdint.h>

/* 64 bits of x, each of which depends on all of x. */
static inline uint64_t fg_random_mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/* The next number of the sequence that *state is at; any state begins one. */
static inline uint64_t fg_random_next(uint64_t *state) {
  return fg_random_mix(*state += 0x9e3779b97f4a7c15u);
}

/* Uniform in (0, 1). */
static inline double fg_random_uniform(uint64_t *state) {
  return ((double)(fg_random_next(state) >> 11) + 0.5) * 0x1p-53;
}

/* Normal, with mean 0 and variance 1 (Box and Muller). */
static inline double fg_random_normal(uint64_t *state) {
  double radius = sqrt(-2 * log(fg_random_uniform(state)));
  return radius * cos(6.283185307179586 * fg_random_uniform(state));
}

#endif
