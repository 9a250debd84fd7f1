/* Fills micro-batches: keeps their loads, and a heap to find the lightest that has space. */
#ifndef LIBWLB_PACKING_BINS_H
#define LIBWLB_PACKING_BINS_H

#include "libwlb/capacity.h"
#include "libwlb/wlb.h"

struct wlb_bins {
	struct wlb_load *loads;
	int32_t *heap; /* numbers of the bins, least work at the root; equal work by number */
	int32_t count;
	int64_t max_tokens;
	struct wlb_buffer loads_buffer, heap_buffer;
};

/* Makes `count` empty bins in the memory of the last use; zero them before the first use. Returns -1 if out of memory;
 * the bins may then be freed or initialized again. Zeroed bins may be freed. */
int wlb_bins_init(struct wlb_bins *bins, int32_t count, int64_t max_tokens);
void wlb_bins_free(struct wlb_bins *bins);
void wlb_bins_reset(struct wlb_bins *bins);

/* Puts a span into the lightest bin that has space for it. Returns the bin, or -1 where none has space. */
int32_t wlb_bins_put(struct wlb_bins *bins, int64_t tokens, double work);

/* Adds to one bin without regard to its limit; both may be negative. The heap is invalid until wlb_bins_heapify(). */
void wlb_bins_add(struct wlb_bins *bins, int32_t bin, int64_t tokens, double work);
void wlb_bins_heapify(struct wlb_bins *bins);

#endif
