/* The lengths of some documents of a dataset, read in a time that does not grow with the dataset. */
#ifndef PLANNER_LENGTHS_SAMPLE_H
#define PLANNER_LENGTHS_SAMPLE_H

#include <stdint.h>

#include "planner/length_list.h"

/* Where an index has more documents, this many of it are read: blocks of neighbours at equal distances from the first
 * document to the last. They are then the same at every call. */
enum { WLB_SAMPLE_DOCUMENTS = 1 << 16 };

/* Appends lengths from PREFIX.idx; *documents receives how many the dataset has. The sequences that are read are
 * bounded too: a document is left out where its block would have more than 2^20. Returns -1 with the file, the value
 * and the rule where the file cannot be read, is damaged, or has no token. */
int wlb_length_list_sample(const char *prefix, struct wlb_length_list *list, int64_t *documents,
                           struct wlb_error *error);

#endif
