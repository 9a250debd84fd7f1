#include "planner/lengths_index.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

static const char magic[] = "MMIDIDX\0"; /* with the literal's own NUL */
enum { VERSION = 1, HEADER_BYTES = 34, VERSION_AT = 9, COUNTS_AT = 18 };

struct index {
	const unsigned char *lengths;   /* int32 of each sequence */
	const unsigned char *documents; /* int64, the first sequence of each document, and the end */
	uint64_t sequences, documents_and_end;
};

static uint64_t read_u64(const unsigned char *at)
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

static int open_index(struct index *index, const unsigned char *data, size_t bytes, struct wlb_error *error)
{
	if (bytes < HEADER_BYTES || memcmp(data, magic, sizeof(magic)) != 0)
		return wlb_fail(error, "is not the index of a Megatron-LM dataset");
	if (read_u64(data + VERSION_AT) != VERSION)
		return wlb_fail(error, "version %" PRIu64 ": only %d is known", read_u64(data + VERSION_AT), VERSION);
	index->sequences = read_u64(data + COUNTS_AT);
	index->documents_and_end = read_u64(data + COUNTS_AT + 8);
	uint64_t space = bytes - HEADER_BYTES;
	if (index->sequences > space / 12 || index->documents_and_end > (space - 12 * index->sequences) / 8)
		return wlb_fail(error,
		                "is of %zu bytes, too short for %" PRIu64 " sequences and %" PRIu64 " documents: "
		                "it was cut",
		                bytes, index->sequences, index->documents_and_end);
	index->lengths = data + HEADER_BYTES;
	index->documents = index->lengths + 12 * index->sequences;
	return 0;
}

static int add_document(const struct index *index, uint64_t document, struct wlb_length_list *list,
                        struct wlb_error *error)
{
	uint64_t first = read_u64(index->documents + 8 * document);
	uint64_t end = read_u64(index->documents + 8 * (document + 1));
	if (first > end || end > index->sequences)
		return wlb_fail(error,
		                "document %" PRIu64 " has the sequences from %" PRIu64 " to %" PRIu64
		                ": they must rise, to %" PRIu64 " at most",
		                document, first, end, index->sequences);
	int64_t tokens = 0;
	for (uint64_t s = first; s < end; s++) {
		int32_t length = read_i32(index->lengths + 4 * s);
		if (length < 0)
			return wlb_fail(error, "sequence %" PRIu64 " has %d tokens: must not be negative", s, length);
		tokens += length;
	}
	return wlb_length_list_add(list, tokens, error);
}

int wlb_length_list_parse_index(const void *data, size_t bytes, const char *name, struct wlb_length_list *list,
                                struct wlb_error *error)
{
	struct index index = {0};
	int rc = open_index(&index, data, bytes, error);
	for (uint64_t d = 0; rc == 0 && d + 1 < index.documents_and_end; d++)
		rc = add_document(&index, d, list, error);
	return rc < 0 ? wlb_fail_in(error, "%s", name) : 0;
}
