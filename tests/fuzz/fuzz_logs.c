/* Any output of a program, in parts of any length: a terminal gets no control character but for colours, the lines of a
 * rank are lines of the output, and neither depends on the parts. Any name of an output. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlb/logs/output_path.h"
#include "coordinator/wlb/logs/rank_lines.h"
#include "coordinator/wlb/logs/terminal_text.h"
#include "libwlb/wlb.h"
#include "tests/fuzz/scratch.h"

static void check_shown(const char *text, size_t left)
{
	while (left > 0) {
		uint32_t code;
		size_t bytes = wlb_text_first(text, left, &code);
		must(code != WLB_TEXT_INVALID);
		if (*text == '\x1b') {
			must(left > 2 && text[1] == '[');
			for (bytes = 2; strchr("0123456789;:", text[bytes]) != NULL; bytes++)
				must(bytes + 1 < left);
			must(text[bytes++] == 'm');
		} else {
			must(strchr("\n\r\t", *text) != NULL || !wlb_text_is_control(code));
		}
		text += bytes;
		left -= bytes;
	}
}

/* Returns the bytes written to `to`. */
static size_t show(const char *text, size_t bytes, size_t part, char *to)
{
	struct wlb_terminal_text shown = {.held_bytes = 0};
	size_t used = 0;
	for (size_t at = 0; at < bytes; at += part)
		used += wlb_terminal_text_pass(&shown, text + at, bytes - at < part ? bytes - at : part, to + used);
	return used;
}

static size_t choose(const char *text, size_t bytes, size_t part, char *to)
{
	struct wlb_rank_lines lines = {.rank = 3};
	size_t used = 0;
	for (size_t at = 0; at < bytes; at += part)
		used += wlb_rank_lines_pass(&lines, text + at, bytes - at < part ? bytes - at : part, to + used);
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct wlb_output_facts facts = {
		.job_id = 17, .step = "17.0", .user = "u", .job_name = "j", .rank = 3, .node = "n1"};
	const char *text = (const char *)data;
	size_t part = bytes > 0 ? 1 + data[0] % 7 : 1;
	char *whole = malloc(WLB_TERMINAL_ROOM(bytes)), *parts = malloc(WLB_TERMINAL_ROOM(bytes) * 2);
	char path[64], *pattern = malloc(bytes + 1);
	must(whole != NULL && parts != NULL && pattern != NULL);
	size_t count = show(text, bytes, bytes + 1, whole);
	check_shown(whole, count);
	must(show(text, bytes, part, parts) == count && memcmp(whole, parts, count) == 0);
	count = choose(text, bytes, bytes + 1, whole);
	must(count <= bytes);
	must(choose(text, bytes, part, parts) == count && memcmp(whole, parts, count) == 0);
	memcpy(pattern, text, bytes);
	pattern[bytes] = '\0';
	if (wlb_output_path(pattern, &facts, path, sizeof(path), NULL) == 0)
		must(strlen(path) < sizeof(path));
	free(pattern);
	free(parts);
	free(whole);
	return 0;
}
