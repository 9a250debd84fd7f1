#include "follow/lines.h"

#include <string.h>

void wlb_lines_begin(struct wlb_lines *lines, int64_t offset, bool ends_at_return)
{
	lines->ends_at_return = ends_at_return;
	lines->line_at = lines->next_at = lines->fed_at = offset;
	lines->skipped_lines = 0;
	lines->is_skipping = false;
	lines->used = 0;
}

/* Bytes before the end of the line, or `count` where it does not end in them. */
static size_t bytes_of_line(const struct wlb_lines *lines, const char *bytes, size_t count)
{
	const char *newline = memchr(bytes, '\n', count);
	size_t length = newline != NULL ? (size_t)(newline - bytes) : count;
	const char *ret = lines->ends_at_return ? memchr(bytes, '\r', length) : NULL;
	return ret != NULL ? (size_t)(ret - bytes) : length;
}

static void keep(struct wlb_lines *lines, const char *bytes, size_t count)
{
	if (lines->used + count >= sizeof(lines->line))
		lines->is_skipping = true;
	if (lines->is_skipping)
		return;
	memcpy(lines->line + lines->used, bytes, count);
	lines->used += count;
}

/* The line is complete. Returns whether it is one to return. */
static bool end_line(struct wlb_lines *lines)
{
	bool is_whole = !lines->is_skipping;
	lines->line_at = lines->next_at;
	lines->next_at = lines->fed_at;
	lines->skipped_lines += lines->is_skipping;
	lines->is_skipping = false;
	lines->line[is_whole ? lines->used : 0] = '\0';
	return is_whole;
}

char *wlb_lines_next(struct wlb_lines *lines, const char **bytes, size_t *count, size_t *length)
{
	while (*count > 0) {
		size_t taken = bytes_of_line(lines, *bytes, *count);
		bool is_end = taken < *count;
		keep(lines, *bytes, taken);
		taken += is_end;
		*bytes += taken;
		*count -= taken;
		lines->fed_at += (int64_t)taken;
		if (!is_end)
			break;
		*length = lines->used;
		bool is_whole = end_line(lines);
		lines->used = 0;
		if (is_whole)
			return lines->line;
	}
	return NULL;
}
