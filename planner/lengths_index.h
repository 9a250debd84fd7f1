/* Document lengths out of a Megatron-LM index; common/index_format.h has the format. */
#ifndef PLANNER_LENGTHS_INDEX_H
#define PLANNER_LENGTHS_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"
#include "planner/length_list.h"

enum { WLB_INDEX_HEADER_BYTES = 34 };

/* Where an index of `bytes` bytes has its lists. */
struct wlb_index_lists {
	uint64_t sequences, documents;
	uint64_t lengths_at;   /* byte of the int32 of the first sequence */
	uint64_t documents_at; /* byte of the int64 of the first document: its first sequence; documents + 1 of them */
};

/* Reads the header, WLB_INDEX_HEADER_BYTES bytes, of an index of `bytes` bytes. Returns -1 where it is no index, or too
 * short for what its header says. */
int wlb_index_header_read(const void *header, uint64_t bytes, struct wlb_index_lists *lists, struct wlb_error *error);

/* The tokens of a document whose sequences have the `count` lengths at `lengths`, little-endian int32. Returns -1 with
 * the sequence, counted from `first`, where one is negative. */
int64_t wlb_index_document_tokens(const void *lengths, uint64_t count, uint64_t first, struct wlb_error *error);

/* A number of the list of documents: little-endian int64. */
uint64_t wlb_index_sequence(const void *at);

/* Appends the length of each document of the index `data`; `name` is for messages. -1 with the value and the rule where
 * the index is damaged. */
int wlb_length_list_parse_index(const void *data, size_t bytes, const char *name, struct wlb_length_list *list,
                                struct wlb_error *error);

#endif
