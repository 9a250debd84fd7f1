/* Reads document lengths from a Megatron-LM index; common/index_format.h has the format. */
#ifndef PLANNER_LENGTHS_INDEX_H
#define PLANNER_LENGTHS_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"
#include "planner/length_list.h"

/* The numbers of an index's header: sequences, and documents with the leading 0. */
struct wlb_index_counts {
	uint64_t sequences, documents_and_end;
};

/* Reads them from the first `head_bytes` bytes of an index of `file_bytes`. Returns -1 where the file is no index or is
 * truncated. */
int wlb_index_counts_read(const void *head, size_t head_bytes, uint64_t file_bytes, struct wlb_index_counts *counts,
                          struct wlb_error *error);

/* Checks that the sequences `first` to `end` - 1 of a document are ascending and exist. */
int wlb_index_check_document(uint64_t document, uint64_t first, uint64_t end, uint64_t sequences,
                             struct wlb_error *error);

/* Sums the tokens of the sequences `first` to `end` - 1; `lengths` points at the length of `first` in the index. */
int wlb_index_sum(const void *lengths, uint64_t first, uint64_t end, int64_t *tokens, struct wlb_error *error);

/* Appends the length of each document of the index `data`; `name` is for messages. Returns -1 with the value and the
 * rule where the index is damaged. */
int wlb_length_list_parse_index(const void *data, size_t bytes, const char *name, struct wlb_length_list *list,
                                struct wlb_error *error);

#endif
