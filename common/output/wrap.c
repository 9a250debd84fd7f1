#include "common/output/wrap.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <wchar.h>

#include "libwlb/wlb.h"

enum { WIDTH_MIN = 20, BYTES_MAX = 4 /* of a character */ };

struct character {
	size_t bytes;
	int columns; /* 0: it is drawn over the one before */
};

/* Returns the first character of a text that is not empty. A character that the locale does not know takes one column.
 */
static struct character first_character(const char *text)
{
	uint32_t code;
	size_t bytes = wlb_text_first(text, strnlen(text, BYTES_MAX), &code);
	int columns = wcwidth((wchar_t)code);
	return (struct character){bytes, columns >= 0 ? columns : 1};
}

size_t wlb_text_fit(const char *text, int columns, int *used)
{
	size_t bytes = 0;
	*used = 0;
	while (text[bytes] != '\0') {
		struct character next = first_character(text + bytes);
		if (*used + next.columns > columns)
			break;
		*used += next.columns;
		bytes += next.bytes;
	}
	return bytes;
}

int wlb_text_width(const char *text)
{
	int width;
	wlb_text_fit(text, INT_MAX / 2, &width);
	return width;
}

/* Returns the bytes of a line, without spaces at its end: up to the last space that lets it fit, or as many characters
 * as fit. */
static size_t line_bytes(const char *text, int width)
{
	int used;
	size_t fit = wlb_text_fit(text, width, &used), end = fit;
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
	int width = columns - indent > WIDTH_MIN ? columns - indent : WIDTH_MIN;
	do {
		text += strspn(text, " ");
		size_t bytes = line_bytes(text, width);
		fprintf(out, "%*s%.*s\n", indent, "", (int)bytes, text);
		text += bytes;
	} while (text[strspn(text, " ")] != '\0');
}
