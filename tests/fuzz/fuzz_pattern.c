/* The first line is a pattern, the rest a line: refused by a message, or matched with spans in the line, and with those
 * alone that the syntax has. */
#include <string.h>

#include "follow/pattern.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char text[2048];
	const uint8_t *newline = memchr(data, '\n', bytes);
	size_t length = newline != NULL ? (size_t)(newline - data) : bytes;
	if (length >= sizeof(text))
		return 0;
	memcpy(text, data, length);
	text[length] = '\0';
	struct wlb_error error = {0};
	struct wlb_pattern_span spans[WLB_PATTERN_GROUPS_MOST];
	struct wlb_pattern *pattern = wlb_pattern_compile(text, &error);
	must(pattern != NULL || error.message[0] != '\0');
	if (pattern == NULL)
		return 0;
	const char *line = newline != NULL ? (const char *)newline + 1 : "";
	int line_length = newline != NULL ? (int)(bytes - length - 1) : 0;
	must(wlb_pattern_groups(pattern) >= 1 && wlb_pattern_groups(pattern) <= WLB_PATTERN_GROUPS_MOST);
	if (wlb_pattern_match(pattern, line, (size_t)line_length, spans)) {
		must(spans[0].begin >= 0 && spans[0].begin <= spans[0].end && spans[0].end <= line_length);
		for (int i = 1; i < wlb_pattern_groups(pattern); i++)
			must(spans[i].begin == -1 || spans[i].end == -1 ||
			     (spans[i].begin >= spans[0].begin && spans[i].begin <= spans[i].end &&
			      spans[i].end <= spans[0].end));
	}
	wlb_pattern_free(pattern);
	return 0;
}
