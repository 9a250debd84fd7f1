/*
 * Computes a seeded permutation of 0 .. count - 1 without storing it: any position costs a few dozen multiplications
 * and no memory, so that a run resumes in the middle of an epoch of billions of documents without replaying it.
 *
 * The permutation is a Feistel network over the smallest even number of bits that holds `count`, applied again until
 * the result is below `count` (Black & Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). The round function is
 * the finalizer of SplitMix64 (Steele, Lea & Flood, "Fast Splittable Pseudorandom Number Generators", 2014). It is a
 * shuffle, not a secure cipher.
 */
#ifndef WORKER_DATA_SHUFFLE_H
#define WORKER_DATA_SHUFFLE_H

#include <stdint.h>

enum { WLB_SHUFFLE_ROUNDS = 8 };

struct wlb_shuffle {
	uint64_t keys[WLB_SHUFFLE_ROUNDS];
	uint64_t count;
	int half_bits;
};

/* Sets the permutation of this seed and epoch; count >= 1. */
void wlb_shuffle_init(struct wlb_shuffle *shuffle, uint64_t seed, uint64_t epoch, int64_t count);
/* Returns the position to which `index`, in [0, count), is permuted. */
int64_t wlb_shuffle_at(const struct wlb_shuffle *shuffle, int64_t index);

#endif
