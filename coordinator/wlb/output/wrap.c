#include "coordinator/wlb/output/wrap.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { WIDTH_LEAST = 20 };

static bool begins_character(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

int wlb_text_width(const char *text)
{
	int width = 0;
	for (; *text != '\0'; text++)
		width += begins_character(*text);
	return width;
}

/* Returns the bytes of the first `most` characters. */
static size_t bytes_of(const char *text, int most)
{
	size_t bytes = 0;
	for (int width = 0; text[bytes] != '\0'; bytes++) {
		width += begins_character(text[bytes]);
		if (width > most)
			break;
	}
	return bytes;
}

/* Returns the bytes of a line, without spaces at its end: up to the last space that lets it fit, or as many characters
 * as fit. */
static size_t line_bytes(const char *text, int width)
{
	size_t fit = bytes_of(text, width), end = fit;
	if (text[fit] != '\0')
		while (end > 0 && text[end] != ' ')
			end--;
	if (end == 0)
		return fit;
	while (end > 0 && text[end - 1] == ' ')
		end--;
	return end;
}

void wlb_wrap_print(const char *text, int indent, int columns, FILE *out)
{
	int width = columns - indent > WIDTH_LEAST ? columns - indent : WIDTH_LEAST;
	do {
		text += strspn(text, " ");
		size_t bytes = line_bytes(text, width);
		fprintf(out, "%*s%.*s\n", indent, "", (int)bytes, text);
		text += bytes;
	} while (text[strspn(text, " ")] != '\0');
}
