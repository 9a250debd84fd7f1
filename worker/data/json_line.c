#include "worker/data/json_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The code of the escape \uXXXX at `at`, or -1 where there is none. The text ends with a NUL. */
static long escaped_code(const char *cursor)
{
	if (cursor[0] != '\\' || cursor[1] != 'u' || strspn(cursor + 2, "0123456789abcdefABCDEF") < 4)
		return -1;
	const char digits[] = {cursor[2], cursor[3], cursor[4], cursor[5], '\0'};
	return strtol(digits, NULL, 16);
}

/* Returns the bytes of the escape at `at`. */
static int64_t repair_escape(char *cursor, int64_t left)
{
	long code = escaped_code(cursor);
	if (code < 0)
		return left < 2 ? left : 2;
	if (code >= 0xd800 && code <= 0xdbff) {
		long next = escaped_code(cursor + 6);
		if (next >= 0xdc00 && next <= 0xdfff)
			return 12;
	}
	if (code >= 0xd800 && code <= 0xdfff)
		memcpy(cursor, "\\ufffd", 6);
	return 6;
}

/* Returns the bytes of what begins at `at` outside of a string: a number or a word, or one other character. */
static int64_t repair_word(char *cursor)
{
	size_t bytes = strcspn(cursor, "\"{}[],: \t\r\n");
	if (bytes == 0)
		return 1;
	char *end;
	double value = strtod(cursor, &end);
	if (end == cursor + bytes && !isfinite(value)) {
		memset(cursor, ' ', bytes);
		cursor[0] = '0';
	}
	return (int64_t)bytes;
}

void wlb_json_line_repair(char *line, int64_t bytes)
{
	int in_string = 0;
	for (int64_t i = 0; i < bytes;) {
		if (line[i] == '"') {
			in_string = !in_string;
			i++;
		} else if (!in_string) {
			i += repair_word(line + i);
		} else {
			i += line[i] == '\\' ? repair_escape(line + i, bytes - i) : 1;
		}
	}
}
