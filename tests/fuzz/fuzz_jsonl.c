/* Any text or JSON, also what claims to be gzip, under a name that promises JSON lines and under one that promises
 * nothing: documents come until the end or an error, and both come. */
#include <string.h>

#include "tests/fuzz/scratch.h"
#include "worker/data/source.h"

/* Gives the text to what tokenizers are sent. */
static void touch(const struct wlb_text *text, int is_conversation)
{
	struct wlb_text_batch batch = {0};
	struct wlb_error error;
	must(wlb_text_batch_add(&batch, text, 1, &error) == 0);
	must(batch.byte_count <= (size_t)text->length && batch.document_count == 1);
	/* Of a conversation the place, NUL, and an object as JSON. */
	must(!is_conversation || memchr(text->bytes, '\0', (size_t)text->length) == text->bytes + strlen(text->bytes));
	must(!is_conversation || text->bytes[strlen(text->bytes) + 1] == '{');
	scratch_touch(batch.bytes, batch.byte_count);
	wlb_text_batch_free(&batch);
}

static void read_all(const char *path, int takes_messages)
{
	struct wlb_error error;
	volatile sig_atomic_t interrupted = 0;
	const struct wlb_source_options options = {
		.json_key = "text",
		.largest_bytes = 1 << 16,
		.takes_sentences = !takes_messages,
		.takes_messages = takes_messages,
		.interrupted = &interrupted,
	};
	struct wlb_source *source = wlb_source_open(path, &options, &error);
	must(source != NULL);
	struct wlb_text text;
	enum wlb_source_result result;
	while ((result = wlb_source_next(source, &text, &error)) <= WLB_SOURCE_NO_TEXT)
		if (result == WLB_SOURCE_DOCUMENT)
			touch(&text, takes_messages);
	wlb_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	for (int takes_messages = 0; takes_messages <= 1; takes_messages++) {
		read_all(scratch_write("x.jsonl", data, bytes), takes_messages);
		read_all(scratch_write("x", data, bytes), takes_messages);
	}
	return 0;
}
