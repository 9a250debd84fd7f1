/* Document lengths for the calculators: from a file, a pipe, a dataset's index or the generator. */
#ifndef COORDINATOR_WLB_CALCULATORS_LENGTHS_FILE_H
#define COORDINATOR_WLB_CALCULATORS_LENGTHS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libwlb/wlb.h"

struct wlb_length_list {
	int64_t *tokens; /* of each document; owned */
	size_t count, capacity;
	int64_t total_tokens;
};

/* What --lengths may name, for help texts. */
#define WLB_LENGTHS_HELP                                                                                               \
	"  --lengths FROM          one length a line in a file, or from standard input for '-'; a dataset's\n"         \
	"                          PREFIX; or gen:skewed[,seed=S][,tail=X][,count=N], a seeded stream as skewed\n"     \
	"                          as a public corpus\n"

/* Reads what --lengths names; at least one document. The list starts zeroed; free it in any case. -1 with the file,
 * the line, the value and the rule. */
int wlb_length_list_read(const char *from, struct wlb_length_list *list, struct wlb_error *error);

/* The three forms by themselves. `name` is for messages. An index holds what common/index_format.h describes. */
int wlb_length_list_read_text(FILE *in, const char *name, struct wlb_length_list *list, struct wlb_error *error);
int wlb_length_list_parse_index(const void *data, size_t bytes, const char *name, struct wlb_length_list *list,
                                struct wlb_error *error);
int wlb_length_list_generate(const char *how, struct wlb_length_list *list, struct wlb_error *error);

/* Appends one; -1 for a length below 0 or above 2^40, and without memory. */
int wlb_length_list_add(struct wlb_length_list *list, int64_t tokens, struct wlb_error *error);
void wlb_length_list_free(struct wlb_length_list *list);

/* The documents of a list one after the other, as wlb_batches asks for them. */
struct wlb_length_stream {
	const struct wlb_length_list *list;
	size_t taken;
	bool again; /* from the start when it ends */
};
bool wlb_length_stream_next(void *stream, int64_t *tokens);

#endif
