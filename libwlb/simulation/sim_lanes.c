/* The ranks that divide a micro-batch of all replicas: those that exchange keys take equally long in each layer, and
 * the others go on without them. */
#include "libwlb/simulation/sim_state.h"

#include <math.h>

/* Sets of each rank the first of those that it exchanges keys with: of its largest group, since groups lie in each
 * other. A group that has no document is none. Where replicas wait for each other in every pass all ranks do. */
static void set_groups(const struct wlb_sim *sim, size_t count, int32_t *first)
{
	for (int32_t r = 0; r < sim->ranks; r++)
		first[r] = wlb_sim_shards_each_pass(sim) ? 0 : r;
	for (size_t i = 0; i < count; i++) {
		const struct wlb_place *place = &sim->places[i];
		for (int32_t r = place->first_rank; sim->tokens[i] > 0 && r < place->first_rank + place->ranks; r++)
			first[r] = place->first_rank < first[r] ? place->first_rank : first[r];
	}
}

/* Returns the rank's own computation and what it waits for keys. */
static struct wlb_sim_lane own_seconds(const struct wlb_sim *sim, int32_t rank)
{
	double tokens = (double)sim->rank_loads[rank].tokens;
	struct wlb_sim_lane own = {.compute = sim->rank_s[rank]};
	wlb_sim_scale(&own.compute, wlb_slowest_rank(&sim->cost));
	if (sim->rank_keys[rank].bytes > 0.0)
		own.cp = wlb_sim_worker_keys_s(sim, tokens, &sim->rank_keys[rank]);
	return own;
}

static struct wlb_seconds longer(struct wlb_seconds a, struct wlb_seconds b)
{
	return (struct wlb_seconds){fmax(a.forward, b.forward), fmax(a.backward, b.backward)};
}

/* Sets the lane of each group's first rank: the longest computation, and what the slowest rank takes beyond it. */
static void set_first_lanes(const struct wlb_sim *sim, const int32_t *first, struct wlb_sim_lane *lanes)
{
	for (int32_t r = 0; r < sim->ranks; r++) {
		struct wlb_sim_lane own = own_seconds(sim, r), *lane = &lanes[first[r]];
		wlb_sim_add(&own.cp, own.compute);
		lane->compute = first[r] == r ? own.compute : longer(lane->compute, own.compute);
		lane->cp = first[r] == r ? own.cp : longer(lane->cp, own.cp);
	}
	for (int32_t r = 0; r < sim->ranks; r++) {
		if (first[r] != r)
			continue;
		lanes[r].cp.forward -= lanes[r].compute.forward;
		lanes[r].cp.backward -= lanes[r].compute.backward;
	}
}

/* Sets what the load has of a layer to a lane's. */
static void take_lane(const struct wlb_sim *sim, struct wlb_sim_load *load, const struct wlb_sim_lane *lane)
{
	if (sim->options.plan.recompute == WLB_RECOMPUTE_FULL)
		load->recompute_s += lane->compute.forward - load->compute.forward;
	load->cp_recompute_s = wlb_sim_recomputes_keys(sim) ? lane->cp.forward : 0.0;
	load->compute = lane->compute;
	load->cp = lane->cp;
	load->beyond_cp_s = lane->cp.forward;
}

void wlb_sim_set_lanes(struct wlb_sim *sim, int32_t number, size_t count, struct wlb_sim_load *load)
{
	int32_t *first = sim->pipeline.first_lane + (size_t)number * (size_t)sim->ranks;
	struct wlb_sim_lane *lanes = sim->lanes + (size_t)number * (size_t)sim->ranks, mean = {0};
	set_groups(sim, count, first);
	set_first_lanes(sim, first, lanes);
	for (int32_t r = 0; r < sim->ranks; r++) {
		lanes[r] = lanes[first[r]];
		wlb_sim_add(&mean.compute, lanes[r].compute);
		wlb_sim_add(&mean.cp, lanes[r].cp);
	}
	wlb_sim_scale(&mean.compute, 1.0 / sim->ranks);
	wlb_sim_scale(&mean.cp, 1.0 / sim->ranks);
	take_lane(sim, load, &mean);
}

struct wlb_sim_load wlb_sim_lane_load(const struct wlb_sim *sim, int32_t number, int32_t lane)
{
	struct wlb_sim_load load = sim->loads[number];
	if (load.tokens > 0)
		take_lane(sim, &load, &sim->lanes[(size_t)number * (size_t)sim->ranks + (size_t)lane]);
	return load;
}
