/* Any bytes as a file of WLB_METRICS_FILE, in pieces of any size: every line is a record in its bounds, or refused by a
 * message; where each line begins does not depend on the pieces. */
#include <string.h>

#include "follow/lines.h"
#include "follow/metrics_line.h"
#include "tests/fuzz/scratch.h"

static void check_record(const struct wlb_followed *record)
{
	must(record->count >= 0 && record->count <= WLB_FOLLOWED_VALUES_MOST);
	must(record->step >= 0 && record->step <= WLB_FOLLOWED_STEP_MOST);
	must(record->time_s >= 0 && record->time_s < 1e11);
	for (int i = 0; i < record->count; i++) {
		const char *name = record->values[i].name;
		size_t length = strlen(name);
		must(length > 0 && length < WLB_VALUE_NAME_SIZE);
		must(wlb_followed_find(record, name) == &record->values[i].value);
		for (uint32_t code; *name != '\0';) {
			name += wlb_text_first(name, strlen(name), &code);
			must(code != WLB_TEXT_INVALID && !wlb_text_is_control(code));
		}
	}
}

/* Returns a sum over the lines, which the pieces must not change. */
static int64_t read_all(const char *bytes, size_t count, size_t piece)
{
	static struct wlb_lines lines;
	static struct wlb_metrics_line line;
	int64_t sum = 0;
	wlb_lines_begin(&lines, 7, false);
	for (size_t at = 0; at < count; at += piece) {
		const char *next = bytes + at, *text;
		size_t left = count - at < piece ? count - at : piece, length;
		while ((text = wlb_lines_next(&lines, &next, &left, &length)) != NULL) {
			struct wlb_error error = {0};
			int rc = wlb_metrics_line_read(&line, text, length, &error);
			must(rc >= 0 || error.message[0] != '\0');
			check_record(&line.record);
			must(strlen(line.checkpoint) < sizeof(line.checkpoint));
			must(lines.line_at < lines.next_at && lines.next_at <= lines.fed_at);
			sum = sum * 31 + lines.line_at + rc + line.record.count;
			sum &= INT32_MAX;
		}
	}
	must(lines.fed_at == 7 + (int64_t)count);
	return sum + lines.skipped_lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	must(read_all((const char *)data, bytes, 4096) == read_all((const char *)data, bytes, 7));
	return 0;
}
