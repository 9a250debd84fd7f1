#include "planner/lengths_index.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

static const char magic[] = "MMIDIDX\0"; /* with the literal's own NUL */
enum { VERSION = 1, VERSION_AT = 9, COUNTS_AT = 18, LENGTH_BYTES = 4, SEQUENCE_BYTES = 12, DOCUMENT_BYTES = 8 };

uint64_t wlb_index_sequence(const void *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

static int32_t read_i32(const unsigned char *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return (int32_t)le32toh(value);
}

int wlb_index_header_read(const void *header, uint64_t bytes, struct wlb_index_lists *lists, struct wlb_error *error)
{
	const unsigned char *data = header;
	if (bytes < WLB_INDEX_HEADER_BYTES || memcmp(data, magic, sizeof(magic)) != 0)
		return wlb_fail(error, "is not the index of a Megatron-LM dataset");
	if (wlb_index_sequence(data + VERSION_AT) != VERSION)
		return wlb_fail(error, "version %" PRIu64 ": only %d is known", wlb_index_sequence(data + VERSION_AT),
		                VERSION);
	uint64_t sequences = wlb_index_sequence(data + COUNTS_AT);
	uint64_t documents_and_end = wlb_index_sequence(data + COUNTS_AT + 8);
	uint64_t space = bytes - WLB_INDEX_HEADER_BYTES;
	if (sequences > space / SEQUENCE_BYTES ||
	    documents_and_end > (space - SEQUENCE_BYTES * sequences) / DOCUMENT_BYTES)
		return wlb_fail(error,
		                "is of %" PRIu64 " bytes, too short for %" PRIu64 " sequences and %" PRIu64
		                " documents: it was cut",
		                bytes, sequences, documents_and_end);
	*lists = (struct wlb_index_lists){
		.sequences = sequences,
		.documents = documents_and_end > 0 ? documents_and_end - 1 : 0,
		.lengths_at = WLB_INDEX_HEADER_BYTES,
		.documents_at = WLB_INDEX_HEADER_BYTES + SEQUENCE_BYTES * sequences,
	};
	return 0;
}

int64_t wlb_index_document_tokens(const void *lengths, uint64_t count, uint64_t first, struct wlb_error *error)
{
	int64_t tokens = 0;
	for (uint64_t s = 0; s < count; s++) {
		int32_t length = read_i32((const unsigned char *)lengths + LENGTH_BYTES * s);
		if (length < 0)
			return wlb_fail(error, "sequence %" PRIu64 " has %d tokens: must not be negative", first + s,
			                length);
		tokens += length;
	}
	return tokens;
}

static int add_document(const unsigned char *data, const struct wlb_index_lists *lists, uint64_t document,
                        struct wlb_length_list *list, struct wlb_error *error)
{
	const unsigned char *at = data + lists->documents_at + DOCUMENT_BYTES * document;
	uint64_t first = wlb_index_sequence(at), end = wlb_index_sequence(at + DOCUMENT_BYTES);
	if (first > end || end > lists->sequences)
		return wlb_fail(error,
		                "document %" PRIu64 " has the sequences from %" PRIu64 " to %" PRIu64
		                ": they must rise, to %" PRIu64 " at most",
		                document, first, end, lists->sequences);
	int64_t tokens =
		wlb_index_document_tokens(data + lists->lengths_at + LENGTH_BYTES * first, end - first, first, error);
	return tokens < 0 ? -1 : wlb_length_list_add(list, tokens, error);
}

int wlb_length_list_parse_index(const void *data, size_t bytes, const char *name, struct wlb_length_list *list,
                                struct wlb_error *error)
{
	struct wlb_index_lists lists = {0};
	int rc = wlb_index_header_read(data, bytes, &lists, error);
	for (uint64_t d = 0; rc == 0 && d < lists.documents; d++)
		rc = add_document(data, &lists, d, list, error);
	return rc < 0 ? wlb_fail_in(error, "%s", name) : 0;
}
