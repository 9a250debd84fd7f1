#include "common/element_checksum.h"

#include <endian.h>
#include <string.h>

static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* A function for each size, so that the compiler knows it in the loop. */
#define SUM(bytes, type, to_host)                                                                                      \
	static uint64_t sum_##bytes(const char *elements, uint64_t place, int64_t count)                               \
	{                                                                                                              \
		uint64_t sum = 0;                                                                                      \
		for (int64_t i = 0; i < count; i++) {                                                                  \
			type value;                                                                                    \
			memcpy(&value, elements + i * bytes, bytes);                                                   \
			sum += mix(to_host(value) + place);                                                            \
			place += UINT64_C(0x9e3779b97f4a7c15);                                                         \
		}                                                                                                      \
		return sum;                                                                                            \
	}
SUM(1, uint8_t, )
SUM(2, uint16_t, le16toh)
SUM(4, uint32_t, le32toh)
SUM(8, uint64_t, le64toh)

uint64_t wlb_element_checksum(const void *elements, int element_bytes, int64_t first, int64_t count)
{
	const uint64_t place = (uint64_t)first * UINT64_C(0x9e3779b97f4a7c15);
	switch (element_bytes) {
	case 1:
		return sum_1(elements, place, count);
	case 2:
		return sum_2(elements, place, count);
	case 4:
		return sum_4(elements, place, count);
	default:
		return sum_8(elements, place, count);
	}
}
