/* Any text or JSON, also what claims to be gzip, under a name that promises JSON lines and under one that promises
 * nothing: documents come until the end or an error, and both come. */
#include "tests/fuzz/scratch.h"
#include "worker/data/source.h"

static void read_all(const char *path)
{
	struct wlb_error error;
	volatile sig_atomic_t interrupted = 0;
	const struct wlb_source_options options = {"text", 1 << 16, &interrupted};
	struct wlb_source *source = wlb_source_open(path, &options, &error);
	must(source != NULL);
	const char *text;
	int64_t length;
	while (wlb_source_next(source, &text, &length, &error) == WLB_SOURCE_DOCUMENT)
		scratch_touch(text, (size_t)length);
	wlb_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	read_all(scratch_write("x.jsonl", data, bytes));
	read_all(scratch_write("x", data, bytes));
	return 0;
}
