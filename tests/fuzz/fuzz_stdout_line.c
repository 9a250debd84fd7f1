/* Any output of a trainer: the records are in their bounds, and begin where lines do, at or behind what is held. */
#include <string.h>

#include "follow/lines.h"
#include "follow/stdout_line.h"
#include "tests/fuzz/scratch.h"

static void check(const struct wlb_followed *record, int64_t at)
{
	must(record->count >= 0 && record->count <= WLB_FOLLOWED_VALUES_MOST);
	must(record->step >= 0 && record->step <= WLB_FOLLOWED_STEP_MOST);
	must(record->at >= 0 && record->at <= at);
	for (int i = 0; i < record->count; i++)
		must(record->values[i].name[0] != '\0' && strchr(record->values[i].name, '\x1b') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct wlb_lines lines;
	struct wlb_followed record;
	struct wlb_stdout *reader = wlb_stdout_open(NULL, NULL);
	const char *next = (const char *)data, *line;
	size_t length;
	must(reader != NULL);
	wlb_lines_begin(&lines, 0, true);
	while ((line = wlb_lines_next(&lines, &next, &bytes, &length)) != NULL) {
		if (wlb_stdout_read(reader, line, length, lines.line_at, &record))
			check(&record, lines.line_at);
		must(wlb_stdout_held_at(reader) <= lines.line_at);
	}
	if (wlb_stdout_flush(reader, &record))
		check(&record, lines.line_at);
	must(wlb_stdout_held_at(reader) == -1);
	wlb_stdout_close(reader);
	return 0;
}
