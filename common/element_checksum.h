/* A checksum of 64 bits of stored elements: the sum, modulo 2^64, of a mix of each element's bits with its place. So
 * readers that each read some of the elements know together, by the sum of theirs, whether one is damaged. One element
 * that differs always changes the checksum; it is none against forgery. */
#ifndef COMMON_ELEMENT_CHECKSUM_H
#define COMMON_ELEMENT_CHECKSUM_H

#include <stdint.h>

/* Returns what `count` elements of `element_bytes` bytes, 1, 2, 4 or 8, add to the checksum; the first one has the
 * place `first`. An element's bits are little-endian and extended by zeros to 64; they and the place times
 * 0x9e3779b97f4a7c15 are added, and mixed by the finalizer of splitmix64 (Steele, Lea and Flood 2014). */
uint64_t wlb_element_checksum(const void *elements, int element_bytes, int64_t first, int64_t count);

#endif
