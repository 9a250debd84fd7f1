#include "worker/data/text_batch.h"

#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"

enum { FULL_BYTES = 1 << 20, FULL_TEXTS = 1 << 12 };

static int add_text(struct wlb_text_batch *b, const char *text, int64_t bytes, struct wlb_error *error)
{
	size_t total = b->byte_count + (size_t)bytes;
	if (wlb_grow((void **)&b->bytes, &b->byte_capacity, total + 1, 1) < 0 ||
	    wlb_grow((void **)&b->lengths, &b->text_capacity, b->text_count + 1, sizeof(*b->lengths)) < 0)
		return wlb_fail(error, "out of memory for %zu bytes of text", total);
	memcpy(b->bytes + b->byte_count, text, (size_t)bytes);
	b->byte_count = total;
	b->lengths[b->text_count++] = (uint32_t)bytes;
	return 0;
}

static int add_lines(struct wlb_text_batch *b, const char *text, int64_t bytes, struct wlb_error *error)
{
	for (int64_t at = 0; at < bytes;) {
		const char *end = memchr(text + at, '\n', (size_t)(bytes - at));
		int64_t line_bytes = end != NULL ? end - (text + at) : bytes - at;
		if (line_bytes > 0 && add_text(b, text + at, line_bytes, error) < 0)
			return -1;
		at += line_bytes + 1;
	}
	return 0;
}

static int add_sentences(struct wlb_text_batch *b, const json_t *sentences, struct wlb_error *error)
{
	for (size_t i = 0; i < json_array_size(sentences); i++) {
		const json_t *sentence = json_array_get(sentences, i);
		if (add_text(b, json_string_value(sentence), (int64_t)json_string_length(sentence), error) < 0)
			return -1;
	}
	return 0;
}

int wlb_text_batch_add(struct wlb_text_batch *b, const struct wlb_text *text, int is_split, struct wlb_error *error)
{
	size_t before = b->text_count;
	if (wlb_grow((void **)&b->document_texts, &b->document_capacity, b->document_count + 1,
	             sizeof(*b->document_texts)) < 0)
		return wlb_fail(error, "out of memory for %zu documents", b->document_count + 1);
	if (text->sentences != NULL ? add_sentences(b, text->sentences, error) < 0
	                            : (is_split ? add_lines : add_text)(b, text->bytes, text->length, error) < 0)
		return -1;
	b->document_texts[b->document_count++] = (uint32_t)(b->text_count - before);
	return 0;
}

int wlb_text_batch_is_full(const struct wlb_text_batch *b)
{
	return b->byte_count >= FULL_BYTES || b->text_count >= FULL_TEXTS || b->document_count >= FULL_TEXTS;
}

void wlb_text_batch_clear(struct wlb_text_batch *b)
{
	b->byte_count = b->text_count = b->document_count = 0;
}

void wlb_text_batch_free(struct wlb_text_batch *b)
{
	free(b->bytes);
	free(b->lengths);
	free(b->document_texts);
	*b = (struct wlb_text_batch){0};
}
