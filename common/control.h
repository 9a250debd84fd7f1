/* Control characters in UTF-8 texts (ISO 6429), which a terminal would execute. */
#ifndef COMMON_CONTROL_H
#define COMMON_CONTROL_H

#include <stddef.h>

/* Returns how many bytes the control character at the beginning of `text` has: 1 for 0 to 31 and 127, 2 for 128 to 159;
 * 0 where there is none. */
static inline size_t wlb_control_bytes(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	if (*c < 0x20 || *c == 0x7f)
		return 1;
	return c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
}

#endif
