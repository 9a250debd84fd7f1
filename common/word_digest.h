/* A digest of 64 bits that finds damage of stored data; it is none against forgery. It is computed faster than data are
 * written to disks. */
#ifndef COMMON_WORD_DIGEST_H
#define COMMON_WORD_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { WLB_WORD_DIGEST_LANES = 4, WLB_WORD_DIGEST_STRIDE = 8 * WLB_WORD_DIGEST_LANES };

/* Of the data so far; zeroed: of none. Words enter the lanes in turn, so that a processor computes them together. */
struct wlb_word_digest {
	uint64_t lanes[WLB_WORD_DIGEST_LANES];
	uint64_t bytes;
};

/* Returns the digest after one more word. The result is a bijection of either argument, so that data with one different
 * word never have the same digest. */
static inline uint64_t wlb_word_digest_mix(uint64_t digest, uint64_t word)
{
	digest = (digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return digest ^ digest >> 32;
}

/* Adds data, whose size is a multiple of WLB_WORD_DIGEST_STRIDE in all calls but the last. */
void wlb_word_digest_add(struct wlb_word_digest *digest, const void *data, size_t bytes);
/* Returns the digest, never 0. */
uint64_t wlb_word_digest_value(const struct wlb_word_digest *digest);
/* Reads what "%016" PRIx64 writes. Returns -1 where the text is anything else. */
int wlb_word_digest_parse(const char *text, uint64_t *digest);

#endif
