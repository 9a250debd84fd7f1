/* Hashes by which a change is noticed (FNV-1a, of numbers and of the bytes of texts). */
#ifndef COORDINATOR_WLBD_DETECTION_HASH_H
#define COORDINATOR_WLBD_DETECTION_HASH_H

#include <stdint.h>

#define WLBD_HASH_OF_NOTHING UINT64_C(14695981039346656037)

/* Each returns the hash of what `hash` is of, and of one item more. */
uint64_t wlbd_hash_number(uint64_t hash, uint64_t number);
uint64_t wlbd_hash_text(uint64_t hash, const char *text);

#endif
