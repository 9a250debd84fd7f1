#include "coordinator/wlb/logs/rank_lines.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Takes a byte of a label; false where it can belong to none. */
static bool take_label(struct wlb_rank_lines *lines, char byte)
{
	bool has_colon = lines->label_bytes > 0 && lines->label[lines->label_bytes - 1] == ':';
	bool has_digit = lines->label_bytes > 0 && isdigit((unsigned char)lines->label[lines->label_bytes - 1]);
	bool is_pad = byte == ' ' && !has_digit;
	bool belongs = has_colon ? byte == ' ' : isdigit((unsigned char)byte) || is_pad || (byte == ':' && has_digit);
	if (!belongs || lines->label_bytes + 1 >= sizeof(lines->label))
		return false;
	lines->label[lines->label_bytes++] = byte;
	lines->label[lines->label_bytes] = '\0';
	if (has_colon)
		lines->state = atoi(lines->label) == lines->rank ? WLB_LINE_PASS : WLB_LINE_SKIP;
	return true;
}

size_t wlb_rank_lines_pass(struct wlb_rank_lines *lines, const char *bytes, size_t count, char *to)
{
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		bool was_label = lines->state == WLB_LINE_LABEL;
		if (was_label && !take_label(lines, bytes[i]))
			lines->state = WLB_LINE_SKIP;
		if (was_label && lines->state == WLB_LINE_PASS) {
			memcpy(to + used, lines->label, lines->label_bytes);
			used += lines->label_bytes;
		} else if (lines->state == WLB_LINE_PASS) {
			to[used++] = bytes[i];
		}
		if (bytes[i] != '\n')
			continue;
		lines->state = WLB_LINE_LABEL;
		lines->label_bytes = 0;
	}
	return used;
}
