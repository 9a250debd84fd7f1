/* Any text or JSON, also what claims to be gzip, under a name that promises JSON lines and under one that promises
 * nothing: documents come until the end or an error, and both come. */
#include "tests/fuzz/scratch.h"
#include "worker/data/source.h"

/* Gives the text to what tokenizers are sent. */
static void touch(const struct wlb_text *text)
{
	struct wlb_text_batch batch = {0};
	struct wlb_error error;
	must(wlb_text_batch_add(&batch, text, 1, &error) == 0);
	must(batch.byte_count <= (size_t)text->length && batch.document_count == 1);
	scratch_touch(batch.bytes, batch.byte_count);
	wlb_text_batch_free(&batch);
}

static void read_all(const char *path)
{
	struct wlb_error error;
	volatile sig_atomic_t interrupted = 0;
	const struct wlb_source_options options = {
		.json_key = "text", .largest_bytes = 1 << 16, .takes_sentences = 1, .interrupted = &interrupted};
	struct wlb_source *source = wlb_source_open(path, &options, &error);
	must(source != NULL);
	struct wlb_text text;
	enum wlb_source_result result;
	while ((result = wlb_source_next(source, &text, &error)) <= WLB_SOURCE_NO_TEXT)
		if (result == WLB_SOURCE_DOCUMENT)
			touch(&text);
	wlb_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	read_all(scratch_write("x.jsonl", data, bytes));
	read_all(scratch_write("x", data, bytes));
	return 0;
}
