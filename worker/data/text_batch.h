/* Texts that are tokenized together. A document is one text, or several: its sentences. */
#ifndef WORKER_DATA_TEXT_BATCH_H
#define WORKER_DATA_TEXT_BATCH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

struct wlb_text {
	const char *bytes;       /* NULL where it is in sentences */
	int64_t length;          /* bytes, of all sentences */
	const json_t *sentences; /* an array of strings; NULL: it is in one piece */
};

struct wlb_text_batch {
	char *bytes; /* of all texts, one behind the other */
	size_t byte_count, byte_capacity;
	uint32_t *lengths; /* [text_count], bytes */
	size_t text_count, text_capacity;
	uint32_t *document_texts; /* [document_count] */
	size_t document_count, document_capacity;
};

/* Appends a document: a text for each of its sentences or, where `is_split`, for each of its lines that is not empty,
 * else one. */
int wlb_text_batch_add(struct wlb_text_batch *batch, const struct wlb_text *text, int is_split,
                       struct wlb_error *error);
/* Whether it has enough for the cost of a request to be small. */
int wlb_text_batch_is_full(const struct wlb_text_batch *batch);
/* Keeps the memory. */
void wlb_text_batch_clear(struct wlb_text_batch *batch);
void wlb_text_batch_free(struct wlb_text_batch *batch);

#endif
