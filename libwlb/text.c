/*
 * Texts of any origin, character by character of UTF-8 (RFC 3629).
 *
 * A text that is stored or shown passes one function at its border: wlb_json_text (common) and wlb_json_string (spank)
 * into JSON; wlbd_params_texts into parameters of SQL; wlb_fail, wlb_show_line, wlb_run_print and wlbd_log into errors,
 * logs and lines on a terminal; wlb_make_printable into what `wlb` prints of a reply, or with --json
 * wlb_printable_json, which escapes control characters. A program that compares a stored text with one of its own
 * brings its own into the stored form first.
 */
#include "libwlb/wlb.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { FORMATTED_MAX = 4096 };

/* Bytes of the character at the beginning; 0 where they are none: only the shortest form, no surrogates, at most
 * U+10FFFF. */
static size_t character_bytes(const unsigned char *text, size_t length)
{
	unsigned char first = text[0];
	size_t bytes = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
	if (bytes > length)
		return 0;
	for (size_t i = 1; i < bytes; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
	    (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f))
		return 0;
	return bytes;
}

/* The first byte has a bit for each byte, and a 0 behind them, where there is more than one. */
static uint32_t character_code(const unsigned char *text, size_t bytes)
{
	uint32_t code = bytes == 1 ? text[0] : text[0] & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++)
		code = code << 6 | (text[i] & 0x3f);
	return code;
}

size_t wlb_text_first(const char *text, size_t length, uint32_t *code)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t bytes = character_bytes(c, length);
	*code = bytes > 0 ? character_code(c, bytes) : WLB_TEXT_INVALID;
	return bytes > 0 ? bytes : 1;
}

int wlb_text_is_control(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x7f, 0x9f},     {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},     {0x115f, 0x1160},
		{0x17b4, 0x17b5}, {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
		{0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
		{0xfffe, 0xffff}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	};
	if (code < 0x7f)
		return code < ' ';
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return 1;
	return 0;
}

static size_t copy(char *to, size_t size, const char *from, bool is_shown)
{
	size_t used = 0,
	       end = 0; /* end: after the last character that is no space in the place of a control character */
	for (size_t length = strlen(from); length > 0;) {
		uint32_t code;
		size_t bytes = wlb_text_first(from, length, &code), put_bytes = bytes;
		bool is_space = is_shown && wlb_text_is_control(code);
		const char *put = from;
		if (code == WLB_TEXT_INVALID) {
			put = WLB_TEXT_REPLACEMENT;
			put_bytes = strlen(WLB_TEXT_REPLACEMENT);
		} else if (is_space) {
			put = " ";
			put_bytes = 1;
		}
		if (used + put_bytes >= size)
			break;
		memcpy(to + used, put, put_bytes);
		used += put_bytes;
		end = is_space ? end : used;
		from += bytes;
		length -= bytes;
	}
	to[end] = '\0';
	return end;
}

size_t wlb_text_store(char *to, size_t size, const char *from)
{
	return copy(to, size, from, false);
}

size_t wlb_text_show(char *to, size_t size, const char *from)
{
	return copy(to, size, from, true);
}

size_t wlb_text_cut(const char *text, size_t most)
{
	enum { CHARACTER_BYTES_MAX = 4 };
	size_t used = 0;
	while (used < most && text[used] != '\0') {
		uint32_t code;
		size_t bytes = wlb_text_first(text + used, strnlen(text + used, CHARACTER_BYTES_MAX), &code);
		if (used + bytes > most)
			break;
		used += bytes;
	}
	return used;
}

size_t wlb_text_vformat(char *to, size_t size, const char *format, va_list args)
{
	char raw[FORMATTED_MAX];
	vsnprintf(raw, sizeof(raw), format, args);
	return wlb_text_show(to, size, raw);
}

size_t wlb_text_format(char *to, size_t size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t length = wlb_text_vformat(to, size, format, args);
	va_end(args);
	return length;
}
