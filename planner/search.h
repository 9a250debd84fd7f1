/* Searches a layout for samples of a stream of documents. */
#ifndef PLANNER_SEARCH_H
#define PLANNER_SEARCH_H

#include "libwlb/wlb.h"
#include "planner/length_list.h"

/* wlb_search() for the documents of a stream, which starts over at its end: sets the samples of `options`, whose
 * other members the caller has set. Returns NULL with a message; free the result with wlb_search_free. */
struct wlb_search_result *wlb_plan_search(const struct wlb_model *model, const struct wlb_machine *machine,
                                          struct wlb_length_stream *stream, const struct wlb_search_options *options,
                                          struct wlb_error *error);

#endif
