/* Document lengths out of a Megatron-LM index; common/index_format.h has the format. */
#ifndef PLANNER_LENGTHS_INDEX_H
#define PLANNER_LENGTHS_INDEX_H

#include <stddef.h>

#include "libwlb/wlb.h"
#include "planner/length_list.h"

/* Appends the length of each document of the index `data`; `name` is for messages. -1 with the value and the rule where
 * the index is damaged. */
int wlb_length_list_parse_index(const void *data, size_t bytes, const char *name, struct wlb_length_list *list,
                                struct wlb_error *error);

#endif
