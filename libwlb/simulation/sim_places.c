/* The load of a micro-batch whose documents are each on ranks of their own. */
#include "libwlb/simulation/sim_state.h"

#include <math.h>
#include <string.h>

/* Most tokens on a rank, in equal shares, where no limit is given. Memory bounds it. */
static const double most_rank_share = 1.25;

static const int64_t any_tokens = (int64_t)1 << 60;

static int64_t rank_limit(const struct wlb_sim *sim, int64_t tokens, int32_t micro_batches)
{
	double equal = (double)tokens / ((double)sim->ranks * micro_batches);
	return sim->options.rank_tokens > 0 ? sim->options.rank_tokens : (int64_t)(most_rank_share * equal) + 1;
}

int wlb_sim_place_step(struct wlb_sim *sim, size_t count, struct wlb_placement *placement, struct wlb_error *error)
{
	const struct wlb_plan *plan = &sim->options.plan;
	int64_t tokens = 0;
	for (size_t i = 0; i < count; i++)
		tokens += sim->tokens[i];
	/* wlb_sim_document_s has a share of a document, as if it were on all ranks of a replica. */
	double key_s = wlb_machine_key_s(&sim->machine, &sim->model, &plan->layout) / plan->layout.cp;
	struct wlb_rank_space space = {.ranks = sim->ranks,
	                               .key_work = key_s,
	                               .key_ranks = plan->dynamic_cp < sim->ranks ? plan->dynamic_cp : sim->ranks,
	                               .rank_tokens = rank_limit(sim, tokens, plan->micro_batches)};
	for (int tries = 0; tries < 2; tries++, space.rank_tokens = any_tokens / space.key_ranks) {
		wlb_placer_free(sim->placer);
		sim->placer = wlb_placer_new(&space, wlb_sim_document_s, sim, error);
		int rc = sim->placer != NULL ? wlb_placer_place(sim->placer, sim->tokens, count, plan->micro_batches,
		                                                placement, error)
		                             : -1;
		/* A sample of a step may have more tokens than a step can have, by rounding. */
		if (rc <= 0)
			return rc;
	}
	return -1;
}

/* Assigns each document to 1, 2, 4 ... or cp ranks. Returns -1 where the documents do not fit. */
static int assign_ranks(struct wlb_sim *sim, size_t count, int64_t tokens)
{
	int32_t cp = sim->options.plan.layout.cp;
	int64_t most = (int64_t)(most_rank_share * (double)tokens / cp) + 1;
	if (sim->options.attention == WLB_SIM_HYBRID)
		return wlb_hybrid_cp(sim->tokens, count, cp, 1, tokens / cp + 1, sim->places, sim->rank_loads, NULL);
	return wlb_dynamic_cp(&sim->model, sim->tokens, count, cp, 1, most, sim->places, sim->rank_loads, NULL);
}

/* Adds the attention of each rank. */
static void add_attention(struct wlb_sim *sim, size_t count)
{
	memset(sim->rank_s, 0, (size_t)sim->ranks * sizeof(*sim->rank_s));
	for (size_t i = 0; i < count; i++) {
		const struct wlb_place *place = &sim->places[i];
		struct wlb_seconds attention = wlb_sim_attention_share_s(sim, (double)sim->tokens[i], place->ranks);
		for (int32_t r = place->first_rank; r < place->first_rank + place->ranks; r++)
			wlb_sim_add(&sim->rank_s[r], attention);
	}
}

/* Keys and values as if all cp ranks gathered as many as the one that gathers the most. */
static struct wlb_sim_keys most_keys(struct wlb_sim *sim, size_t count)
{
	int32_t cp = sim->ranks;
	double bytes = 0.0;
	memset(sim->rank_bytes, 0, (size_t)cp * sizeof(*sim->rank_bytes));
	for (size_t i = 0; i < count; i++) {
		const struct wlb_place *place = &sim->places[i];
		for (int32_t r = place->first_rank; r < place->first_rank + place->ranks; r++)
			sim->rank_bytes[r] +=
				(double)sim->tokens[i] * sim->kv_token_bytes * (place->ranks - 1) / place->ranks;
	}
	for (int32_t r = 0; r < cp; r++)
		bytes = fmax(bytes, sim->rank_bytes[r]);
	return wlb_sim_group_keys(sim, cp, bytes * cp / (cp - 1));
}

/* Adds to the keys of a rank those that it exchanges with a group, after those with larger groups. Each group has a
 * communicator of its own: its exchange runs beside the others, and shares the links with them, so that what they wait
 * for before they move is that of the largest group alone. */
static void add_keys(struct wlb_sim_keys *sum, const struct wlb_sim_keys *keys, const struct wlb_sim_keys *empty)
{
	int is_first = sum->bytes == 0.0;
	sum->gather_s += keys->gather_s - (is_first ? 0.0 : empty->gather_s);
	sum->reduce_s += keys->reduce_s - (is_first ? 0.0 : empty->reduce_s);
	sum->copy_s += keys->copy_s;
	sum->bytes += keys->bytes;
}

/* Adds to the keys of each rank those that it exchanges with groups of `size` ranks: one exchange for all documents of
 * a group. Documents of one rank take part where others of it are exchanged: their keys are copied to these. */
static void add_exchanges(struct wlb_sim *sim, size_t count, int32_t size)
{
	struct wlb_sim_keys empty = wlb_sim_group_keys(sim, size, 0.0);
	memset(sim->rank_bytes, 0, (size_t)sim->ranks * sizeof(*sim->rank_bytes));
	for (size_t i = 0; i < count; i++)
		if (sim->places[i].ranks == size)
			sim->rank_bytes[sim->places[i].first_rank] += (double)sim->tokens[i] * sim->kv_token_bytes;
	for (int32_t first = 0; first + size <= sim->ranks; first += size) {
		if (sim->rank_bytes[first] == 0.0 || (size == 1 && sim->rank_keys[first].bytes == 0.0))
			continue;
		struct wlb_sim_keys keys = wlb_sim_group_keys(sim, size, sim->rank_bytes[first]);
		for (int32_t r = first; r < first + size; r++)
			add_keys(&sim->rank_keys[r], &keys, &empty);
	}
}

/* Sets the keys and values of wlb-worker, which a rank exchanges with each group that it is in. */
static void set_rank_keys(struct wlb_sim *sim, size_t count)
{
	memset(sim->rank_keys, 0, (size_t)sim->ranks * sizeof(*sim->rank_keys));
	for (int32_t size = sim->ranks; size > 1; size = wlb_dynamic_cp_smaller(size))
		add_exchanges(sim, count, size);
	add_exchanges(sim, count, 1);
}

/* Adds to the attention of each rank its other computation; sets that of the slowest rank and of the mean one. Returns
 * the most tokens on a rank. */
static double load_ranks(struct wlb_sim *sim, struct wlb_sim_load *load)
{
	double most_tokens = 0.0;
	for (int32_t r = 0; r < sim->ranks; r++) {
		double rank_tokens = (double)sim->rank_loads[r].tokens;
		struct wlb_seconds products, linear = wlb_sim_linear_s(sim, rank_tokens, &products);
		load->attention.forward = fmax(load->attention.forward, sim->rank_s[r].forward);
		load->attention.backward = fmax(load->attention.backward, sim->rank_s[r].backward);
		wlb_sim_add(&sim->rank_s[r], linear);
		struct wlb_seconds rank = sim->rank_s[r];
		load->compute.forward = fmax(load->compute.forward, rank.forward);
		load->compute.backward = fmax(load->compute.backward, rank.backward);
		wlb_sim_add(&load->mean, (struct wlb_seconds){rank.forward / sim->ranks, rank.backward / sim->ranks});
		most_tokens = fmax(most_tokens, rank_tokens);
	}
	load->per_document = 1;
	return most_tokens;
}

int wlb_sim_load_places(struct wlb_sim *sim, size_t count, struct wlb_sim_load *load, double *rank_tokens,
                        struct wlb_sim_keys *keys)
{
	int are_placed = sim->options.plan.dynamic_cp > 0;
	int chosen = sim->options.attention == WLB_SIM_DYNAMIC || sim->options.attention == WLB_SIM_HYBRID;
	if (sim->ranks == 1 || (!are_placed && (!chosen || assign_ranks(sim, count, load->tokens) < 0)))
		return 0;
	add_attention(sim, count);
	if (are_placed)
		set_rank_keys(sim, count);
	*keys = are_placed ? (struct wlb_sim_keys){0} : most_keys(sim, count); /* those of lanes are set afterwards */
	*rank_tokens = load_ranks(sim, load);
	return 1;
}
