#include "worker/load/places.h"

#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"

int wlb_placer_init(struct wlb_placer *p, const struct wlb_loader_options *options,
                    const struct wlb_document_time *time, struct wlb_error *error)
{
	size_t slots = (size_t)wlb_loader_ranks(options) * (size_t)options->micro_batches;
	*p = (struct wlb_placer){
		.options = *options,
		.time = time,
		.balancer = wlb_balancer_new(wlb_document_s, time, error),
		.loads = calloc(slots, sizeof(*p->loads)),
		.exchanged = calloc(slots, sizeof(*p->exchanged)),
	};
	if (p->balancer != NULL && p->loads != NULL && p->exchanged != NULL)
		return 0;
	wlb_placer_free(p);
	return wlb_fail(error, "out of memory while placing spans on ranks in %zu places", slots);
}

void wlb_placer_free(struct wlb_placer *p)
{
	wlb_balancer_free(p->balancer);
	free(p->loads);
	free(p->exchanged);
	free(p->places);
	free(p->bin_of);
	*p = (struct wlb_placer){0};
}

/* Returns whether no rank exchanges more rows than are reserved: of each span as many for each of its ranks as its
 * first one has, which has the remainder. */
static int fits_exchanges(struct wlb_placer *p, const int64_t *tokens, size_t count, int32_t micro_batches)
{
	int32_t ranks = wlb_loader_ranks(&p->options);
	int64_t most = wlb_loader_max_keys(&p->options);
	memset(p->exchanged, 0, (size_t)ranks * (size_t)micro_batches * sizeof(*p->exchanged));
	for (size_t i = 0; i < count; i++) {
		const struct wlb_place *place = &p->places[i];
		int64_t *exchanged = p->exchanged + place->micro_batch * ranks + place->first_rank;
		for (int32_t r = 0; r < place->ranks; r++) {
			exchanged[r] += (tokens[i] + place->ranks - 1) / place->ranks * place->ranks;
			if (exchanged[r] > most)
				return 0;
		}
	}
	return 1;
}

static int place_in_groups(struct wlb_placer *p, const int64_t *tokens, size_t count, int32_t micro_batches,
                           struct wlb_error *error)
{
	int32_t ranks = wlb_loader_key_ranks(&p->options), groups = wlb_loader_ranks(&p->options) / ranks;
	if (wlb_balancer_pack(p->balancer, tokens, count, groups * micro_batches, wlb_loader_max_keys(&p->options),
	                      p->bin_of, error) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		p->places[i] = (struct wlb_place){.micro_batch = p->bin_of[i] / groups,
		                                  .first_rank = p->bin_of[i] % groups * ranks,
		                                  .ranks = ranks};
	return 0;
}

int wlb_placer_place(struct wlb_placer *p, const int64_t *tokens, size_t count, int32_t micro_batches,
                     struct wlb_error *error)
{
	if (wlb_grow((void **)&p->places, &p->places_capacity, count, sizeof(*p->places)) < 0 ||
	    wlb_grow((void **)&p->bin_of, &p->bin_of_capacity, count, sizeof(*p->bin_of)) < 0)
		return wlb_fail(error, "out of memory for the places of %zu spans", count);
	int rc = wlb_dynamic_cp_by_work(wlb_document_s, p->time, tokens, count, wlb_loader_ranks(&p->options),
	                                micro_batches, wlb_loader_rank_tokens(&p->options), p->places, p->loads, error);
	p->in_groups = rc > 0 || (rc == 0 && !fits_exchanges(p, tokens, count, micro_batches));
	return p->in_groups ? place_in_groups(p, tokens, count, micro_batches, error) : rc;
}
