/* Makes and frees detectors. */
#include <math.h>
#include <stdlib.h>

#include "libverdict/bounds.h"
#include "libverdict/cost.h"
#include "libverdict/delays.h"
#include "libverdict/detector_state.h"
#include "libverdict/error.h"
#include "libverdict/fixed_time.h"
#include "libverdict/kinds.h"
#include "libverdict/steps.h"

/* The limits of the sequential tests; shares of time are logarithms where they are ratios. */
static const double usual_of_slow = 0.1; /* GPUs of one type differ by a tenth of what is looked for */
static const double noise_floor = 0.005; /* of computation */
static const double slow_loader = 0.1;   /* of a step is waited for the loader */
static const double link_noise_floor = 0.03;
static const double loader_noise_floor = 0.02; /* of a step */

void wlb_verdict_options_init(struct wlb_verdict_options *options)
{
	*options = (struct wlb_verdict_options){.suspect_s = 5.0,
	                                        .confirm_s = 8.0,
	                                        .times_longest = 3.0,
	                                        .patience_s = 1800.0,
	                                        .warm_up_steps = 3,
	                                        .slow_share = 0.1,
	                                        .slow_link = 0.3,
	                                        .false_alarms = 0.01,
	                                        .run_steps = 10000.0};
}

static int check_options(const struct wlb_verdict_options *options, struct wlb_verdict_error *error)
{
	if (!(options->suspect_s > 0.0) || !(options->confirm_s >= options->suspect_s) ||
	    !(options->times_longest >= 1.0) || !(options->patience_s >= options->confirm_s) ||
	    !isfinite(options->patience_s) || !isfinite(options->times_longest))
		return verdict_fail(
			error,
			"suspect_s %g, confirm_s %g, times_longest %g, patience_s %g: they must be 0 < suspect_s "
			"<= confirm_s <= patience_s, times_longest at least 1",
			options->suspect_s, options->confirm_s, options->times_longest, options->patience_s);
	if (!(options->slow_share >= 0.01) || !(options->slow_share <= 10.0) || options->warm_up_steps < 0)
		return verdict_fail(error, "slow_share %g: must be 0.01 to 10; warm_up_steps %d: must be at least 0",
		                    options->slow_share, options->warm_up_steps);
	if (!(options->known_step_s >= 0.0) || !isfinite(options->known_step_s))
		return verdict_fail(error, "known_step_s %g: it must be 0 or more", options->known_step_s);
	if (!(options->slow_link >= 0.02) || !(options->slow_link <= 10.0))
		return verdict_fail(error, "slow_link %g: it must be 0.02 to 10", options->slow_link);
	if (!(options->false_alarms > 0.0) || !(options->false_alarms < 1.0) || !(options->run_steps >= 1.0) ||
	    !isfinite(options->run_steps))
		return verdict_fail(error, "false_alarms %g: must be between 0 and 1; run_steps %g: must be at least 1",
		                    options->false_alarms, options->run_steps);
	return 0;
}

static int init_values(struct verdict_values *values, size_t ranks)
{
	values->off = calloc(ranks, sizeof(*values->off));
	values->fine = calloc(ranks, sizeof(*values->fine));
	values->bad_step = calloc(ranks, sizeof(*values->bad_step));
	values->bad_value = calloc(ranks, sizeof(*values->bad_value));
	values->peers = calloc(ranks, sizeof(*values->peers));
	if (values->off == NULL || values->fine == NULL || values->bad_step == NULL || values->bad_value == NULL ||
	    values->peers == NULL)
		return -1;
	for (size_t r = 0; r < ranks; r++)
		values->bad_step[r] = -1;
	return 0;
}

static int init_tests(struct wlb_verdict_detector *detector)
{
	const struct wlb_verdict_options *options = &detector->options;
	const struct verdict_world *world = &detector->world;
	double slow = log1p(options->slow_share), slow_link = log1p(options->slow_link);
	struct verdict_shift_limits compute = {1,           usual_of_slow * slow,  slow,
	                                       noise_floor, options->false_alarms, options->run_steps};
	struct verdict_shift_limits link = {
		1, usual_of_slow * slow_link, slow_link, link_noise_floor, options->false_alarms, options->run_steps};
	struct verdict_shift_limits loader = {0,
	                                      usual_of_slow * slow_loader,
	                                      slow_loader,
	                                      loader_noise_floor,
	                                      options->false_alarms,
	                                      options->run_steps};
	size_t most = (size_t)(world->memberships > world->ranks ? world->memberships : world->ranks) + 1;
	int32_t *set_of = calloc(most, sizeof(*set_of));
	if (set_of == NULL)
		return -1;
	int failed =
		verdict_fixed_time_init(&detector->fixed_time, world->ranks, world->peer_sets) < 0 ||
		verdict_shift_init(&detector->compute, &compute, world->ranks, world->peers_of, world->peer_sets) < 0 ||
		verdict_shift_init(&detector->loader, &loader, world->ranks, set_of, 1) < 0;
	int32_t sets = verdict_links_sets(world, set_of);
	failed = failed || verdict_shift_init(&detector->link, &link, world->memberships, set_of, sets) < 0 ||
	         verdict_delays_init(&detector->delays, world, sets) < 0;
	free(set_of);
	return failed ? -1 : 0;
}

static int init_ranks(struct wlb_verdict_detector *detector)
{
	size_t ranks = (size_t)detector->world.ranks, groups = (size_t)detector->world.groups + 1;
	struct verdict_waits *waits = &detector->waits;
	detector->rank = calloc(ranks, sizeof(*detector->rank));
	detector->come = calloc((size_t)detector->world.memberships + 1, sizeof(*detector->come));
	detector->clock = calloc(ranks, sizeof(*detector->clock));
	detector->corruption = calloc(ranks, sizeof(*detector->corruption));
	detector->nic = calloc((size_t)detector->world.nodes, sizeof(*detector->nic));
	detector->storage_share = calloc(ranks, sizeof(*detector->storage_share));
	detector->scratch = calloc(ranks, sizeof(*detector->scratch));
	detector->scratch_more = calloc(ranks, sizeof(*detector->scratch_more));
	waits->wanted = calloc(groups, sizeof(*waits->wanted));
	waits->waiter = calloc(groups, sizeof(*waits->waiter));
	waits->behind = calloc(groups, sizeof(*waits->behind));
	waits->oldest = calloc(groups, sizeof(*waits->oldest));
	waits->oldest_waiter = calloc(groups, sizeof(*waits->oldest_waiter));
	waits->oldest_behind = calloc(groups, sizeof(*waits->oldest_behind));
	waits->complete = calloc(groups, sizeof(*waits->complete));
	waits->complete_job_s = calloc(groups, sizeof(*waits->complete_job_s));
	waits->for_call = calloc(ranks, sizeof(*waits->for_call));
	if (detector->rank == NULL || detector->come == NULL || detector->clock == NULL ||
	    detector->corruption == NULL || detector->nic == NULL || detector->storage_share == NULL ||
	    detector->scratch == NULL || detector->scratch_more == NULL || waits->wanted == NULL ||
	    waits->waiter == NULL || waits->behind == NULL || waits->oldest == NULL || waits->oldest_waiter == NULL ||
	    waits->oldest_behind == NULL || waits->complete == NULL || waits->complete_job_s == NULL ||
	    waits->for_call == NULL)
		return -1;
	for (size_t r = 0; r < ranks; r++) {
		detector->rank[r].group = -1;
		detector->rank[r].first_step = -1;
		detector->clock[r].ahead_s = detector->clock[r].late_s = NAN;
	}
	return 0;
}

struct wlb_verdict_detector *wlb_verdict_new(const struct wlb_verdict_world *world,
                                             const struct wlb_verdict_options *options, struct wlb_verdict_error *error)
{
	struct wlb_verdict_options defaults;
	wlb_verdict_options_init(&defaults);
	options = options != NULL ? options : &defaults;
	if (check_options(options, error) < 0)
		return NULL;
	struct wlb_verdict_detector *detector = calloc(1, sizeof(*detector));
	if (detector == NULL) {
		verdict_fail(error, "out of memory");
		return NULL;
	}
	detector->options = *options;
	if (verdict_world_copy(&detector->world, world, error) < 0) {
		wlb_verdict_free(detector);
		return NULL;
	}
	if (init_ranks(detector) < 0 || init_tests(detector) < 0 ||
	    init_values(&detector->values[0], (size_t)detector->world.ranks) < 0 ||
	    init_values(&detector->values[1], (size_t)detector->world.ranks) < 0 ||
	    verdict_step_model_init(&detector->model, &detector->world, world->micro_batches) < 0 ||
	    verdict_cost_init(&detector->cost, &detector->model) < 0 ||
	    verdict_steps_init(&detector->steps, &detector->world) < 0) {
		verdict_fail(error, "out of memory for %d ranks", detector->world.ranks);
		wlb_verdict_free(detector);
		return NULL;
	}
	verdict_bounds_init(detector);
	return detector;
}

static void free_values(struct verdict_values *values)
{
	free(values->off);
	free(values->fine);
	free(values->bad_step);
	free(values->bad_value);
	free(values->peers);
}

void wlb_verdict_free(struct wlb_verdict_detector *detector)
{
	if (detector == NULL)
		return;
	verdict_world_free(&detector->world);
	verdict_steps_free(&detector->steps);
	verdict_step_model_free(&detector->model);
	verdict_cost_free(&detector->cost);
	verdict_fixed_time_free(&detector->fixed_time);
	verdict_shift_free(&detector->compute);
	verdict_shift_free(&detector->link);
	verdict_shift_free(&detector->loader);
	verdict_delays_free(&detector->delays);
	free_values(&detector->values[0]);
	free_values(&detector->values[1]);
	free(detector->rank);
	free(detector->come);
	free(detector->clock);
	free(detector->corruption);
	free(detector->nic);
	free(detector->storage_share);
	free(detector->scratch);
	free(detector->scratch_more);
	free(detector->waits.wanted);
	free(detector->waits.waiter);
	free(detector->waits.behind);
	free(detector->waits.oldest);
	free(detector->waits.oldest_waiter);
	free(detector->waits.oldest_behind);
	free(detector->waits.complete);
	free(detector->waits.complete_job_s);
	free(detector->waits.for_call);
	free(detector);
}
