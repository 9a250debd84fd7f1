/* FNV-1a of 64 bits, of numbers and of bytes; internal. Checksums of checkpoints, the numbers of random streams and
 * files of a job hold its results: they must never change. */
#ifndef LIBWLB_HASH_H
#define LIBWLB_HASH_H

#include <stddef.h>
#include <stdint.h>

#define WLB_HASH_OF_NOTHING UINT64_C(0xcbf29ce484222325)

/* Each returns the hash of what `hash` is of, and of one item more. */
static inline uint64_t wlb_hash_number(uint64_t hash, uint64_t number)
{
	return (hash ^ number) * UINT64_C(0x100000001b3);
}

static inline uint64_t wlb_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = wlb_hash_number(hash, ((const unsigned char *)bytes)[i]);
	return hash;
}

/* Of its bytes without the NUL at its end. */
static inline uint64_t wlb_hash_text(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = wlb_hash_number(hash, (unsigned char)*text);
	return hash;
}

#endif
