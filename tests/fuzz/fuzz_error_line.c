/* Any bytes on stderr, and in an error file: what is found is a line to be shown. A tail has the last bytes. */
#include <string.h>

#include "common/error_line.h"
#include "common/output_tail.h"
#include "libwlb/wlb.h"
#include "tests/fuzz/scratch.h"

static void check(const struct wlb_error_line *found)
{
	char shown[sizeof(found->text)];
	must(found->known || (found->text[0] == '\0' && found->rank == -1));
	must(found->rank >= -1);
	wlb_text_show(shown, sizeof(shown), found->text);
	must(strcmp(shown, found->text) == 0);
	wlb_text_show(shown, sizeof(shown), found->cause);
	must(strcmp(shown, found->cause) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const char *text = (const char *)data;
	struct wlb_error_line found;
	static struct wlb_output_tail tail;
	tail.count = tail.next = tail.left = 0;
	tail.is_closing = false;
	static char copy[WLB_OUTPUT_TAIL_BYTES];
	wlb_error_line_find(text, bytes, &found);
	check(&found);
	wlb_error_file_read(text, bytes, &found);
	check(&found);
	for (size_t at = 0; at < bytes; at += 7)
		wlb_output_tail_add(&tail, text + at, bytes - at < 7 ? bytes - at : 7);
	size_t count = wlb_output_tail_copy(&tail, copy, sizeof(copy));
	must(count <= bytes && memcmp(copy, text + bytes - count, count) == 0);
	must(bytes >= sizeof(copy) || count == bytes);
	return 0;
}
