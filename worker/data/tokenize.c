#include "worker/data/tokenize.h"

int64_t wlb_tokenize_bytes(const char *text, int64_t length, uint16_t *tokens)
{
	for (int64_t i = 0; i < length; i++)
		tokens[i] = (unsigned char)text[i];
	tokens[length] = WLB_BYTES_END_OF_DOCUMENT;
	return length + 1;
}
