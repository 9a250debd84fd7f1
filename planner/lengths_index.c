#include "planner/lengths_index.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "common/index_format.h"

enum { VERSION_AT = 9, COUNTS_AT = 18 };

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

int wlb_index_counts_read(const void *head, size_t head_bytes, uint64_t file_bytes, struct wlb_index_counts *counts,
                          struct wlb_error *error)
{
	const unsigned char *data = head;
	if (head_bytes < WLB_INDEX_HEADER_BYTES || memcmp(data, WLB_INDEX_MAGIC, WLB_INDEX_MAGIC_BYTES) != 0)
		return wlb_fail(error, "is not the index of a Megatron-LM dataset");
	if (read_u64(data + VERSION_AT) != WLB_INDEX_VERSION)
		return wlb_fail(error, "version %" PRIu64 ": only %d is known", read_u64(data + VERSION_AT),
		                WLB_INDEX_VERSION);
	counts->sequences = read_u64(data + COUNTS_AT);
	counts->documents_and_end = read_u64(data + COUNTS_AT + 8);
	uint64_t space = file_bytes - WLB_INDEX_HEADER_BYTES;
	if (counts->sequences > space / 12 || counts->documents_and_end > (space - 12 * counts->sequences) / 8)
		return wlb_fail(error,
		                "is of %" PRIu64 " bytes, too short for %" PRIu64 " sequences and %" PRIu64
		                " documents: it was cut",
		                file_bytes, counts->sequences, counts->documents_and_end);
	return 0;
}

int wlb_index_check_document(uint64_t document, uint64_t first, uint64_t end, uint64_t sequences,
                             struct wlb_error *error)
{
	if (first <= end && end <= sequences)
		return 0;
	return wlb_fail(error,
	                "document %" PRIu64 " has the sequences from %" PRIu64 " to %" PRIu64
	                ": they must rise, to %" PRIu64 " at most",
	                document, first, end, sequences);
}

int wlb_index_sum(const void *lengths, uint64_t first, uint64_t end, int64_t *tokens, struct wlb_error *error)
{
	*tokens = 0;
	for (uint64_t s = first; s < end; s++) {
		int32_t length = read_i32((const unsigned char *)lengths + 4 * (s - first));
		if (length < 0)
			return wlb_fail(error, "sequence %" PRIu64 " has %d tokens: must not be negative", s, length);
		*tokens += length;
	}
	return 0;
}

static int add_documents(const unsigned char *data, const struct wlb_index_counts *counts, struct wlb_length_list *list,
                         struct wlb_error *error)
{
	const unsigned char *lengths = data + WLB_INDEX_HEADER_BYTES;
	const unsigned char *documents = lengths + 12 * counts->sequences;
	for (uint64_t d = 0; d + 1 < counts->documents_and_end; d++) {
		uint64_t first = read_u64(documents + 8 * d), end = read_u64(documents + 8 * (d + 1));
		int64_t tokens;
		if (wlb_index_check_document(d, first, end, counts->sequences, error) < 0 ||
		    wlb_index_sum(lengths + 4 * first, first, end, &tokens, error) < 0 ||
		    wlb_length_list_add(list, tokens, error) < 0)
			return -1;
	}
	return 0;
}

int wlb_length_list_parse_index(const void *data, size_t bytes, const char *name, struct wlb_length_list *list,
                                struct wlb_error *error)
{
	struct wlb_index_counts counts;
	int rc = wlb_index_counts_read(data, bytes, bytes, &counts, error);
	if (rc == 0 && counts.documents_and_end > (uint64_t)WLB_LENGTHS_MOST + 1)
		rc = wlb_fail(error,
		              "%" PRIu64 " documents: at most %d are read; give the lengths of some of them as a text, "
		              "one a line (wlb plan takes a sample of an index of any size)",
		              counts.documents_and_end - 1, WLB_LENGTHS_MOST);
	if (rc == 0)
		rc = add_documents(data, &counts, list, error);
	return rc < 0 ? wlb_fail_in(error, "%s", name) : 0;
}
