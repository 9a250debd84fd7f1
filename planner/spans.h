/* The spans of documents that wlb-worker trains. */
#ifndef PLANNER_SPANS_H
#define PLANNER_SPANS_H

#include "libwlb/wlb.h"
#include "planner/length_list.h"

enum { WLB_SPANS_MOST = 65536 }; /* of a list */

/* Appends the lengths of the spans of a list of documents, as wlb-worker has them (worker/data/schedule.h): each
 * document is cut at the multiples of seq_length, its last token is a target alone, and spans come in an order of their
 * own, so that the parts of a document are in different steps. Of more than WLB_SPANS_MOST spans it takes so many at
 * equal distances. The order is seeded. Returns -1 where no document has two tokens, or if out of memory. */
int wlb_spans_of_documents(const struct wlb_length_list *documents, int64_t seq_length, struct wlb_length_list *spans,
                           struct wlb_error *error);

#endif
