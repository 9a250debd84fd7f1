#include "libwlb/packing/bins.h"

#include <string.h>

int wlb_bins_init(struct wlb_bins *bins, int32_t count, int64_t max_tokens)
{
	bins->count = count;
	bins->max_tokens = max_tokens;
	bins->loads = wlb_buffer_zeroed(&bins->loads_buffer, (size_t)count, sizeof(*bins->loads));
	bins->heap = wlb_buffer_zeroed(&bins->heap_buffer, (size_t)count, sizeof(*bins->heap));
	if (bins->loads == NULL || bins->heap == NULL)
		return -1;
	wlb_bins_reset(bins);
	return 0;
}

void wlb_bins_free(struct wlb_bins *bins)
{
	wlb_buffer_free(&bins->loads_buffer);
	wlb_buffer_free(&bins->heap_buffer);
	*bins = (struct wlb_bins){0};
}

void wlb_bins_reset(struct wlb_bins *bins)
{
	memset(bins->loads, 0, (size_t)bins->count * sizeof(*bins->loads));
	for (int32_t b = 0; b < bins->count; b++)
		bins->heap[b] = b;
}

/* Returns 1 where the bin at place x of the heap is before the bin at place y. */
static int before(const struct wlb_bins *bins, int32_t x, int32_t y)
{
	int32_t a = bins->heap[x], b = bins->heap[y];
	if (bins->loads[a].work != bins->loads[b].work)
		return bins->loads[a].work < bins->loads[b].work;
	return a < b;
}

static void sift_down(struct wlb_bins *bins, int32_t index)
{
	for (;;) {
		int32_t least = index;
		for (int32_t child = 2 * index + 1; child <= 2 * index + 2 && child < bins->count; child++)
			if (before(bins, child, least))
				least = child;
		if (least == index)
			return;
		int32_t bin = bins->heap[index];
		bins->heap[index] = bins->heap[least];
		bins->heap[least] = bin;
		index = least;
	}
}

/* Place in the heap, at or below `at`, of the lightest bin with space, if lighter than `best`; a bin with space
 * hides all below it. */
static int32_t find_space(const struct wlb_bins *bins, int32_t index, int64_t tokens, int32_t best)
{
	if (index >= bins->count || (best >= 0 && !before(bins, index, best)))
		return best;
	if (tokens <= bins->max_tokens - bins->loads[bins->heap[index]].tokens)
		return index;
	best = find_space(bins, 2 * index + 1, tokens, best);
	return find_space(bins, 2 * index + 2, tokens, best);
}

int32_t wlb_bins_put(struct wlb_bins *bins, int64_t tokens, double work)
{
	int32_t index = find_space(bins, 0, tokens, -1);
	if (index < 0)
		return -1;
	int32_t bin = bins->heap[index];
	wlb_bins_add(bins, bin, tokens, work);
	sift_down(bins, index);
	return bin;
}

void wlb_bins_add(struct wlb_bins *bins, int32_t bin, int64_t tokens, double work)
{
	bins->loads[bin].tokens += tokens;
	bins->loads[bin].work += work;
}

void wlb_bins_heapify(struct wlb_bins *bins)
{
	for (int32_t index = bins->count / 2; index >= 0; index--)
		sift_down(bins, index);
}
