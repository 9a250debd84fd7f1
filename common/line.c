#include "common/line.h"

#include <errno.h>
#include <string.h>

int wlb_line_read(FILE *file, char *line, size_t size, size_t *length, struct wlb_error *error)
{
	size_t used = 0;
	int c;
	while ((c = getc_unlocked(file)) != EOF && c != '\n') {
		if (used + 1 == size)
			return wlb_fail(error, "the line has more than %zu bytes: shorten it", size - 1);
		line[used++] = (char)c;
	}
	if (c == EOF && ferror(file))
		return wlb_fail(error, "cannot be read: %s", strerror(errno));
	line[used] = '\0';
	if (length != NULL)
		*length = used;
	return c == '\n' || used > 0;
}
