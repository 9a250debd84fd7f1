/* Packs steps of a stream and keeps them in memory, for the search and the simulator. */
#ifndef PLANNER_SAMPLES_H
#define PLANNER_SAMPLES_H

#include "libwlb/wlb.h"
#include "planner/length_list.h"

struct wlb_samples {
	struct wlb_step *steps; /* each owns its spans and loads */
	size_t count;
	int64_t arrived_tokens; /* of the batches of these steps; some documents may be held for later steps */
	double more_held_work;  /* held after these steps than before, in the unit of their loads; may be negative */
};

/* Packs the stream from its start, skips `skip` steps and keeps the next `count`. A micro-batch, of options->seq_length
 * tokens, has `windows` windows, 1 at least, which divide it: documents are cut at the windows, and plain and fixed
 * pack each by itself. The samples start zeroed; free them in any case. */
int wlb_samples_take(struct wlb_samples *samples, const struct wlb_model *model, struct wlb_length_stream *stream,
                     const struct wlb_packer_options *options, int32_t windows, size_t skip, size_t count,
                     struct wlb_error *error);
void wlb_samples_free(struct wlb_samples *samples);

#endif
