/* Numbers that follow from a seed. */
#ifndef CHECKS_NODE_RANDOM_H
#define CHECKS_NODE_RANDOM_H

#include <stdint.h>

/* The next number of a sequence that the state begins (SplitMix64; Steele et al. 2014). */
uint64_t wlb_next_random(uint64_t *state);

/* Fills words[count] with block `block` of the seed's numbers: two blocks differ in nearly every word. */
void wlb_fill_random(uint64_t *words, int count, uint64_t seed, int64_t block);

#endif
