#include "common/output_tail.h"

#include <string.h>

void wlb_output_tail_add(struct wlb_output_tail *tail, const char *bytes, size_t count)
{
	if (tail->is_closing) {
		count = count < tail->left ? count : tail->left;
		tail->left -= count;
	}
	for (size_t i = 0; i < count; i++) {
		tail->bytes[tail->next] = bytes[i];
		tail->next = (tail->next + 1) % sizeof(tail->bytes);
	}
	tail->count = count < sizeof(tail->bytes) - tail->count ? tail->count + count : sizeof(tail->bytes);
}

void wlb_output_tail_close(struct wlb_output_tail *tail)
{
	if (!tail->is_closing)
		tail->left = sizeof(tail->bytes) / 2;
	tail->is_closing = true;
}

size_t wlb_output_tail_copy(const struct wlb_output_tail *tail, char *to, size_t size)
{
	size_t count = tail->count < size ? tail->count : size, length = 0;
	size_t at = (tail->next + sizeof(tail->bytes) - count) % sizeof(tail->bytes);
	bool is_cut = count < tail->count || tail->count == sizeof(tail->bytes);
	for (size_t i = 0; i < count; i++) {
		char byte = tail->bytes[(at + i) % sizeof(tail->bytes)];
		if (!is_cut)
			to[length++] = byte;
		is_cut = is_cut && byte != '\n';
	}
	return length;
}
