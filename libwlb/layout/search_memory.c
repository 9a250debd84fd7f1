#include "libwlb/layout/search_memory.h"

#include <math.h>

/* Charges the stage where it needs more than those before. */
static void set_stage_memory(const struct wlb_search *search, struct wlb_candidate *c, int32_t stage)
{
	const struct wlb_search_options *o = &search->options;
	struct wlb_memory memory = wlb_memory_stage_of(&c->plan, &search->model, &search->machine, &o->cost, stage,
	                                               c->micro_batch_tokens, search->longest, o->memory_margin);
	if (stage > 0 && memory.total <= c->memory.total)
		return;
	c->memory = memory;
	c->stage = stage;
}

void wlb_search_set_memory(const struct wlb_search *search, struct wlb_candidate *c)
{
	int32_t last = c->plan.layout.pp - 1;
	set_stage_memory(search, c, 0);
	/* Where the embedding counts as a layer, the second stage has a layer more than the first. */
	if (c->plan.account_for_embedding && last > 1)
		set_stage_memory(search, c, 1);
	if (last > 0)
		set_stage_memory(search, c, last);
	c->missing_bytes = fmax(0.0, c->memory.total - search->machine.memory_bytes);
}
