#include "coordinator/wlb/logs/terminal_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "libwlb/wlb.h"

/* Whether the bytes may be the beginning of a character whose end is missing. */
static bool is_part_of_character(const char *bytes, size_t count)
{
	unsigned char first = (unsigned char)bytes[0];
	size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
	return first <= 0xf4 && count < length;
}

/* Returns the length of the sequence for a colour that begins the bytes; 0: it is none; *is_part: its end is missing.
 */
static size_t colour_length(const char *bytes, size_t count, bool *is_part)
{
	size_t most = count < WLB_TERMINAL_HELD_BYTES ? count : WLB_TERMINAL_HELD_BYTES, at = 2;
	*is_part = count == 1;
	if (count == 1 || bytes[1] != '[')
		return 0;
	while (at < most && (isdigit((unsigned char)bytes[at]) || bytes[at] == ';' || bytes[at] == ':'))
		at++;
	*is_part = at == count && count < WLB_TERMINAL_HELD_BYTES;
	return at < most && bytes[at] == 'm' ? at + 1 : 0;
}

/* Writes what begins the bytes; returns how many bytes it was, 0 where its end is missing. */
static size_t pass_one(const char *bytes, size_t count, char *to, size_t *used)
{
	uint32_t code;
	bool is_part = false;
	const char *put = bytes;
	size_t length = bytes[0] == '\x1b' ? colour_length(bytes, count, &is_part) : 0, put_bytes;
	if (is_part || (length == 0 && is_part_of_character(bytes, count)))
		return 0;
	if (length == 0) {
		length = wlb_text_first(bytes, count, &code);
		bool is_kept = bytes[0] == '\n' || bytes[0] == '\r' || bytes[0] == '\t';
		put = code == WLB_TEXT_INVALID                ? WLB_TEXT_REPLACEMENT
		      : !is_kept && wlb_text_is_control(code) ? " "
		                                              : bytes;
	}
	put_bytes = put == bytes ? length : strlen(put);
	memcpy(to + *used, put, put_bytes);
	*used += put_bytes;
	return length;
}

/* Completes what was held with the next bytes, and returns how many of these it took. Where the end is still missing
 * all of them are held. */
static size_t pass_held(struct wlb_terminal_text *text, const char *bytes, size_t count, char *to, size_t *used)
{
	char joined[2 * WLB_TERMINAL_HELD_BYTES];
	size_t more = count < WLB_TERMINAL_HELD_BYTES ? count : WLB_TERMINAL_HELD_BYTES;
	while (text->held_bytes > 0) {
		memcpy(joined, text->held, text->held_bytes);
		memcpy(joined + text->held_bytes, bytes, more);
		size_t length = pass_one(joined, text->held_bytes + more, to, used);
		if (length == 0) {
			memcpy(text->held + text->held_bytes, bytes, more);
			text->held_bytes += more;
			return more;
		}
		if (length >= text->held_bytes) {
			length -= text->held_bytes;
			text->held_bytes = 0;
			return length;
		}
		text->held_bytes -= length;
		memmove(text->held, text->held + length, text->held_bytes);
	}
	return 0;
}

size_t wlb_terminal_text_pass(struct wlb_terminal_text *text, const char *bytes, size_t count, char *to)
{
	size_t used = 0, taken = pass_held(text, bytes, count, to, &used);
	while (taken < count) {
		size_t length = pass_one(bytes + taken, count - taken, to, &used);
		if (length == 0) {
			text->held_bytes = count - taken;
			memcpy(text->held, bytes + taken, text->held_bytes);
			break;
		}
		taken += length;
	}
	return used;
}
