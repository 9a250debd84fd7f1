#include "worker/load/deal.h"

#include <stdlib.h>

static int reserve(struct wlb_deal *deal, int count, struct wlb_error *error)
{
	if (count <= deal->capacity)
		return 0;
	/* Twice what is needed: the number of pieces differs from step to step. */
	size_t capacity = 2 * (size_t)count;
	int32_t *lengths = realloc(deal->lengths, capacity * sizeof(*lengths));
	if (lengths != NULL)
		deal->lengths = lengths;
	int32_t *bin_of = realloc(deal->bin_of, capacity * sizeof(*bin_of));
	if (bin_of != NULL)
		deal->bin_of = bin_of;
	if (lengths == NULL || bin_of == NULL)
		return wlb_fail(error, "out of memory for dealing %d pieces", count);
	deal->capacity = (int)capacity;
	return 0;
}

int wlb_deal_pieces(struct wlb_deal *deal, const struct wlb_model *model, const struct wlb_piece *pieces, int count,
                    int dp, int64_t max_tokens, struct wlb_error *error)
{
	if (reserve(deal, count, error) < 0)
		return -1;
	int64_t tokens = 0;
	for (int i = 0; i < count; i++) {
		deal->lengths[i] = pieces[i].length;
		tokens += pieces[i].length;
	}
	int64_t room = (int64_t)dp * max_tokens;
	deal->micro_batches = (int)((tokens + room - 1) / room);
	/* One piece to a micro-batch always fits where any number does. */
	int most = (count + dp - 1) / dp;
	while (wlb_pack_greedy(model, deal->lengths, count, deal->micro_batches * dp, max_tokens, deal->bin_of, error) <
	       0) {
		if (deal->micro_batches >= most)
			return -1;
		deal->micro_batches++;
	}
	return 0;
}

void wlb_deal_free(struct wlb_deal *deal)
{
	free(deal->lengths);
	free(deal->bin_of);
	*deal = (struct wlb_deal){0};
}
