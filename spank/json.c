#include "spank/json.h"

#include <string.h>

/* Length of the UTF-8 character at `text` (RFC 3629: shortest form, no surrogates, at most U+10FFFF); 0 if it is not
 * one. */
static size_t utf8_length(const unsigned char *text)
{
	unsigned char first = text[0];
	size_t length = first < 0x80   ? 1
	                : first < 0xc2 ? 0
	                : first < 0xe0 ? 2
	                : first < 0xf0 ? 3
	                : first < 0xf5 ? 4
	                               : 0;
	for (size_t i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
	    (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f))
		return 0;
	return length;
}

void wlb_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
		size_t length = utf8_length(at);
		if (length == 0)
			fputs("\\ufffd", out);
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at < 0x20 || *at == 0x7f)
			fprintf(out, "\\u%04x", *at);
		else
			fwrite(at, 1, length, out);
		at += length ? length : 1;
	}
	fputc('"', out);
}
