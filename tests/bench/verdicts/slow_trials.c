/* Faults that slow steps, and bad values: planted in the trace of steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/verdicts/step_trace.h"
#include "tests/bench/verdicts/trials.h"

/* A fault begins in one of these steps, and the trial ends so many later. */
enum { FIRST_STEP = 30, FIRST_STEPS = 10, STEPS_AFTER = 50, MOST_VERDICTS = 64 };

struct wlb_verdict_detector *must_detect(const struct cluster *cluster)
{
	struct wlb_verdict_error error;
	struct wlb_verdict_detector *detector = wlb_verdict_new(cluster->world, NULL, &error);
	if (detector == NULL) {
		fprintf(stderr, "wlb-verdicts-bench: %s\n", error.message);
		exit(1);
	}
	return detector;
}

static int32_t every_rank(const struct cluster *cluster)
{
	return cluster->world->ranks;
}

static int32_t every_node(const struct cluster *cluster)
{
	return cluster->world->nodes > 1 && cluster->layout.ranks_per_node > 1 ? cluster->world->nodes : 0;
}

static int32_t every_edge(const struct cluster *cluster)
{
	return cluster->layout.pp > 1 ? cluster->world->group_count : 0;
}

static int32_t every_known_nic(const struct cluster *cluster)
{
	return cluster->world->nodes > 1 && cluster_nic_is_known(cluster, 0) ? cluster->world->nodes : 0;
}

static int32_t once(const struct cluster *cluster)
{
	(void)cluster;
	return 8; /* seeds: all ranks are concerned */
}

/* Plants a fault at a position; returns 0 where there is none such. */
static int plant(const struct cluster *cluster, const struct trial_kind *kind, int32_t position, struct fault *fault)
{
	*fault = (struct fault){.kind = kind->fault,
	                        .rank = -1,
	                        .node = -1,
	                        .group = -1,
	                        .other = -1,
	                        .factor = kind->factor,
	                        .finite = kind->variant};
	switch (kind->fault) {
	case WLB_VERDICT_SLOW_NODE:
	case WLB_VERDICT_SLOW_NIC:
		fault->node = position;
		return fault->node < cluster->world->nodes;
	case WLB_VERDICT_SLOW_LINK:
		fault->group = position;
		fault->other = cluster->world->groups[position].members[0];
		fault->rank = cluster->world->groups[position].members[1];
		return cluster->world->groups[position].kind == WLB_VERDICT_PP;
	case WLB_VERDICT_SLOW_STORAGE:
		return 1;
	default:
		fault->rank = position;
		return fault->rank < cluster->world->ranks;
	}
}

/* Further faults are on other nodes and, of computation, in other replicas' places. */
static int plant_all(const struct cluster *cluster, const struct trial_kind *kind, int32_t position, uint64_t seed,
                     struct fault *faults)
{
	struct chance chance = chance_of(seed, 3);
	int64_t from_step = FIRST_STEP + chance_below(&chance, FIRST_STEPS);
	if (!plant(cluster, kind, position, &faults[0]))
		return 0;
	faults[0].from_step = from_step;
	for (int32_t f = 1; f < kind->faults; f++) {
		int32_t ranks = cluster->world->ranks;
		int32_t other = (position + f * (ranks / kind->faults) + chance_below(&chance, ranks / 8)) % ranks;
		plant(cluster, kind, other, &faults[f]);
		faults[f].from_step = from_step;
	}
	return 1;
}

static void run(const struct cluster *cluster, const struct trial_kind *kind, int32_t position, uint64_t seed,
                struct score *score)
{
	struct fault faults[MOST_FAULTS];
	struct outcome outcome = {.planted = kind->faults, .cost_percent = -1.0};
	if (!plant_all(cluster, kind, position, seed, faults))
		return;
	struct wlb_verdict_detector *detector = must_detect(cluster);
	struct step_trace trace;
	struct wlb_verdict verdicts[MOST_VERDICTS];
	step_trace_init(&trace, cluster, seed);
	trace.faults = faults;
	trace.fault_count = kind->faults;
	trace.noise = kind->noise;
	trace.lasting_times = kind->lasting;
	/* Of very many ranks no report has what the kind of fault does not need, so that the bench ends. */
	int all = cluster->world->ranks <= 1024;
	trace.transfers = all || kind->fault == WLB_VERDICT_SLOW_LINK || kind->fault == WLB_VERDICT_SLOW_NIC;
	trace.loaders = all || kind->fault == WLB_VERDICT_SLOW_LOADER || kind->fault == WLB_VERDICT_SLOW_STORAGE;
	trace.values = all || kind->fault == WLB_VERDICT_BAD_VALUES;
	double with_s = 0.0, without_s = 0.0, now_s = 0.0;
	snprintf(outcome.miss, sizeof(outcome.miss), "position %d, seed %llu, from step %lld", position,
	         (unsigned long long)seed, (long long)faults[0].from_step);
	while (trace.step < faults[0].from_step + STEPS_AFTER) {
		step_trace_next(&trace, 1.0, detector);
		now_s += trace.seconds;
		int64_t after = trace.step - faults[0].from_step;
		if (after > 0) {
			with_s += trace.seconds;
			without_s += trace.healthy_seconds;
		}
		int32_t count = wlb_verdict_judge(detector, now_s, verdicts, MOST_VERDICTS);
		for (int32_t v = 0; v < count && v < MOST_VERDICTS; v++)
			outcome_count(&outcome, faults, kind->faults, &verdicts[v], (double)after);
	}
	score_add(score, &outcome, kind->faults, 100.0 * (with_s / without_s - 1.0));
	step_trace_free(&trace);
	wlb_verdict_free(detector);
}

const struct trial_kind slow_kinds[] = {
	{"slow compute, 10 %", every_rank, run, WLB_VERDICT_SLOW_COMPUTE, 1, 1.1, 1.0, 1.0, "steps", 0, 0},
	{"slow compute, 30 %", every_rank, run, WLB_VERDICT_SLOW_COMPUTE, 1, 1.3, 1.0, 1.0, "steps", 0, 0},
	{"slow compute, 10 %, half as much noise again", every_rank, run, WLB_VERDICT_SLOW_COMPUTE, 1, 1.1, 1.5, 1.0,
         "steps", 0, 1},
	{"slow compute, 10 %, noise as published", every_rank, run, WLB_VERDICT_SLOW_COMPUTE, 1, 1.1, 0.13, 1.0,
         "steps", 0, 0},
	{"slow compute, two ranks, 10 %", every_rank, run, WLB_VERDICT_SLOW_COMPUTE, 2, 1.1, 1.0, 1.0, "steps", 0, 0},
	{"slow node, 10 %", every_node, run, WLB_VERDICT_SLOW_NODE, 1, 1.1, 1.0, 1.0, "steps", 0, 0},
	{"slow link, half the speed", every_edge, run, WLB_VERDICT_SLOW_LINK, 1, 2.0, 1.0, 1.0, "steps", 0, 0},
	{"slow NIC, half the speed", every_known_nic, run, WLB_VERDICT_SLOW_NIC, 1, 2.0, 1.0, 1.0, "steps", 0, 0},
	{"slow loader, 20 % of a step", every_rank, run, WLB_VERDICT_SLOW_LOADER, 1, 0.2, 1.0, 1.0, "steps", 0, 0},
	{"slow file system, 20 % of a step", once, run, WLB_VERDICT_SLOW_STORAGE, 1, 0.2, 1.0, 1.0, "steps", 0, 0},
	{"gradient NaN", every_rank, run, WLB_VERDICT_BAD_VALUES, 1, 0.0, 1.0, 1.0, "steps", 0, 0},
	{"gradient 100 times its peers'", every_rank, run, WLB_VERDICT_BAD_VALUES, 1, 100.0, 1.0, 1.0, "steps", 1, 0},
};
const int32_t slow_kind_count = sizeof(slow_kinds) / sizeof(slow_kinds[0]);
