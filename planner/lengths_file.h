/* Reads document lengths for the calculators: from a file, a pipe, a dataset's index or the generator. */
#ifndef PLANNER_LENGTHS_FILE_H
#define PLANNER_LENGTHS_FILE_H

#include <stdio.h>

#include "common/options.h"
#include "libwlb/wlb.h"
#include "planner/length_list.h"

/* The row of --lengths in a table of options; `field` is the offset of a const char *. */
#define WLB_LENGTHS_OPTION(field)                                                                                      \
	.name = "lengths", .kind = WLB_OPTION_TEXT, .offset = (field), .value = "FROM",                                \
	.help = "documents: a file of one length a line, or '-' for standard input; the PREFIX of a dataset; or "      \
		"gen:skewed[,seed=S][,tail=X][,count=N], a seeded stream as skewed as a public corpus"

/* Reads what --lengths names; at least one document. The list starts zeroed; free it in any case. -1 with the file,
 * the line, the value and the rule. */
int wlb_length_list_read(const char *from, struct wlb_length_list *list, struct wlb_error *error);

/* The same for what needs no more than a sample: a dataset's index as wlb_length_list_sample_index reads it. */
int wlb_length_list_sample(const char *from, struct wlb_length_list *list, struct wlb_error *error);

/* The text and the generator by themselves; an index is read by lengths_index.h. `name` is for messages. */
int wlb_length_list_read_text(FILE *in, const char *name, struct wlb_length_list *list, struct wlb_error *error);
int wlb_length_list_generate(const char *how, struct wlb_length_list *list, struct wlb_error *error);

#endif
