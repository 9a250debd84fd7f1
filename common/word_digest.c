#include "common/word_digest.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static void add_stride(struct wlb_word_digest *digest, const char *stride)
{
	for (int i = 0; i < WLB_WORD_DIGEST_LANES; i++) {
		uint64_t word;
		memcpy(&word, stride + 8 * i, sizeof(word));
		digest->lanes[i] = wlb_word_digest_mix(digest->lanes[i], le64toh(word));
	}
}

void wlb_word_digest_add(struct wlb_word_digest *digest, const void *data, size_t bytes)
{
	struct wlb_word_digest d = *digest; /* a copy stays in registers */
	const char *cursor = data, *end = cursor + bytes;
	d.bytes += bytes;
	for (; end - cursor >= WLB_WORD_DIGEST_STRIDE; cursor += WLB_WORD_DIGEST_STRIDE)
		add_stride(&d, cursor);
	if (cursor < end) {
		char last[WLB_WORD_DIGEST_STRIDE] = {0};
		memcpy(last, cursor, (size_t)(end - cursor));
		add_stride(&d, last);
	}
	*digest = d;
}

uint64_t wlb_word_digest_value(const struct wlb_word_digest *digest)
{
	uint64_t value = digest->bytes;
	for (int i = 0; i < WLB_WORD_DIGEST_LANES; i++)
		value = wlb_word_digest_mix(value, digest->lanes[i]);
	return value != 0 ? value : 1;
}

int wlb_word_digest_parse(const char *text, uint64_t *digest)
{
	if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return -1;
	*digest = strtoull(text, NULL, 16);
	return 0;
}
