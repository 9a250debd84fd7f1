#include "follow/crc32c.h"

enum { POLYNOMIAL_REFLECTED = 0x82f63b78 };

/* Eight shifts a byte: a scalar's event has 50 bytes, so that a table of 1 KiB would not pay. */
uint32_t wlb_crc32c(uint32_t crc, const void *data, size_t length)
{
	const unsigned char *bytes = data;
	crc = ~crc;
	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? (uint32_t)POLYNOMIAL_REFLECTED : 0);
	}
	return ~crc;
}
