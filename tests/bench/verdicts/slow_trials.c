/* Faults that slow steps, and bad values: planted in the trace of steps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/verdicts/branch.h"
#include "tests/bench/verdicts/step_trace.h"
#include "tests/bench/verdicts/trials.h"

/* A fault begins in one of these steps, and the trial ends so many later. */
enum { FIRST_STEP = 30, FIRST_STEPS = 10, STEPS_AFTER = 50, MOST_VERDICTS = 64, MOST_DRAWS = 1000 };

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

/* A value that is finite is compared with those of four peers at least. */
static int32_t every_rank_with_peers(const struct cluster *cluster)
{
	const struct wlb_verdict_layout *layout = &cluster->layout;
	return layout->tp * layout->cp * layout->dp >= 4 ? cluster->world->ranks : 0;
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

/* Two NICs or nodes of at least four, so that not all are slow. */
static int32_t every_node_of_four(const struct cluster *cluster)
{
	return cluster->world->nodes >= 4 ? every_node(cluster) : 0;
}

static int32_t every_known_nic_of_four(const struct cluster *cluster)
{
	return cluster->world->nodes >= 4 ? every_known_nic(cluster) : 0;
}

/* A link beside a NIC. */
static int32_t every_known_nic_and_edge(const struct cluster *cluster)
{
	return cluster->layout.pp > 1 ? every_known_nic_of_four(cluster) : 0;
}

/* How many positions a fault of a kind has, with those at which there is none. */
static int32_t count_positions(const struct cluster *cluster, enum wlb_verdict_kind kind)
{
	if (kind == WLB_VERDICT_SLOW_NODE || kind == WLB_VERDICT_SLOW_NIC)
		return cluster->world->nodes;
	return kind == WLB_VERDICT_SLOW_LINK ? cluster->world->group_count : cluster->world->ranks;
}

/* Plants a fault at a position; returns 0 where there is none such. */
static int plant(const struct cluster *cluster, enum wlb_verdict_kind kind, double factor, int finite, int32_t position,
                 struct fault *fault)
{
	*fault = (struct fault){
		.kind = kind, .rank = -1, .node = -1, .group = -1, .other = -1, .factor = factor, .finite = finite};
	if (position >= count_positions(cluster, kind))
		return 0;
	switch (kind) {
	case WLB_VERDICT_SLOW_NODE:
	case WLB_VERDICT_SLOW_NIC:
		fault->node = position;
		return 1;
	case WLB_VERDICT_SLOW_LINK:
		fault->group = position;
		fault->other = cluster->world->groups[position].members[0];
		fault->rank = cluster->world->groups[position].members[1];
		return cluster->world->groups[position].kind == WLB_VERDICT_PP;
	case WLB_VERDICT_SLOW_STORAGE:
		return 1;
	default:
		fault->rank = position;
		return 1;
	}
}

static int is_on(const struct cluster *cluster, int32_t rank, int32_t node)
{
	return rank >= 0 && node >= 0 && cluster->world->node_of[rank] == node;
}

/* 1 where two faults are one: the same place, a rank or link of a node that is at fault itself, or two ranks of one
 * node, which may be all that it has. */
static int are_one(const struct cluster *cluster, const struct fault *a, const struct fault *b)
{
	int ranks = a->rank >= 0 && b->rank >= 0 && a->other < 0 && b->other < 0;
	return (ranks && is_on(cluster, a->rank, cluster->world->node_of[b->rank])) ||
	       (a->rank >= 0 && a->rank == b->rank && a->other == b->other) || (a->node >= 0 && a->node == b->node) ||
	       is_on(cluster, a->rank, b->node) || is_on(cluster, a->other, b->node) ||
	       is_on(cluster, b->rank, a->node) || is_on(cluster, b->other, a->node);
}

/* Plants the faults of a trial, further ones at random; returns 0 where the position has none. */
static int plant_all(const struct cluster *cluster, const struct trial *trial, uint64_t seed, struct fault *faults)
{
	const struct trial_kind *kind = trial->kind;
	struct chance chance = chance_of(seed, 3);
	int64_t from_step = FIRST_STEP + chance_below(&chance, FIRST_STEPS);
	if (!plant(cluster, kind->fault, kind->factor, kind->variant, trial->position, &faults[0]))
		return 0;
	faults[0].from_step = from_step;
	for (int32_t f = 1; f < kind->faults; f++) {
		enum wlb_verdict_kind second = kind->mixed ? kind->second : kind->fault;
		double factor = kind->mixed ? kind->second_factor : kind->factor;
		int planted = 0;
		for (int i = 0; i < MOST_DRAWS && !planted; i++) {
			int32_t other = chance_below(&chance, count_positions(cluster, second));
			planted = plant(cluster, second, factor, kind->variant, other, &faults[f]) &&
			          !are_one(cluster, &faults[0], &faults[f]);
		}
		faults[f].from_step = from_step;
		if (!planted)
			return 0;
	}
	return 1;
}

/* Of very many ranks no report has what the kinds of faults do not need, so that the bench ends. */
static struct step_reports choose_reports(const struct cluster *cluster, const struct fault *faults, int32_t count)
{
	int all = cluster->world->ranks <= 1024;
	struct step_reports reports = {.transfers = all, .loaders = all, .values = all};
	for (int32_t f = 0; f < count; f++) {
		enum wlb_verdict_kind kind = faults[f].kind;
		reports.transfers |= kind == WLB_VERDICT_SLOW_LINK || kind == WLB_VERDICT_SLOW_NIC;
		reports.loaders |= kind == WLB_VERDICT_SLOW_LOADER || kind == WLB_VERDICT_SLOW_STORAGE;
		reports.values |= kind == WLB_VERDICT_BAD_VALUES;
	}
	return reports;
}

/* A trial whose faults are planted. */
struct planted {
	const struct trial *trial;
	struct fault faults[MOST_FAULTS];
	struct step_reports reports;
	int done;
};

/* What a trial leaves, in memory that branches share. */
struct result {
	struct outcome outcome;
	double true_percent[FAULT_SORTS];
};

/* A verdict of the healthy steps. */
struct told {
	struct wlb_verdict verdict;
	double after;
};

/* A run up to the step of the fault, and what is drawn of the steps after. */
struct start {
	struct step_trace trace;
	struct wlb_verdict_detector *detector;
	double now_s;
	int64_t from_step;
	struct step_draws draws[STEPS_AFTER];
	struct told *told;
	int32_t told_count;
};

static void note_verdicts(struct start *start, const struct wlb_verdict *verdicts, int32_t count)
{
	if (count == 0)
		return;
	start->told = reallocarray(start->told, (size_t)(start->told_count + count), sizeof(*start->told));
	if (start->told == NULL) {
		fprintf(stderr, "wlb-verdicts-bench: out of memory\n");
		exit(1);
	}
	for (int32_t v = 0; v < count; v++)
		start->told[start->told_count++] =
			(struct told){verdicts[v], (double)(start->trace.step - start->from_step)};
}

static int32_t judge(struct start *start, struct wlb_verdict *verdicts)
{
	start->now_s += start->trace.seconds;
	int32_t count = wlb_verdict_judge(start->detector, start->now_s, verdicts, MOST_VERDICTS);
	return count < MOST_VERDICTS ? count : MOST_VERDICTS;
}

static void begin(struct start *start, const struct cluster *cluster, uint64_t seed, const struct planted *first)
{
	struct wlb_verdict verdicts[MOST_VERDICTS];
	*start = (struct start){.detector = must_detect(cluster), .from_step = first->faults[0].from_step};
	step_trace_init(&start->trace, cluster, seed, first->reports);
	start->trace.noise = first->trial->kind->noise;
	if (first->trial->kind->other_work)
		step_trace_leave_out_fixed_time(&start->trace);
	while (start->trace.step < start->from_step) {
		step_trace_next(&start->trace, 1.0, start->detector);
		note_verdicts(start, verdicts, judge(start, verdicts));
	}
	for (int i = 0; i < STEPS_AFTER; i++) {
		start->draws[i] = step_draws_new(&start->trace);
		step_trace_draw(&start->trace, 1.0, &start->draws[i]);
	}
}

static void end(struct start *start)
{
	for (int i = 0; i < STEPS_AFTER; i++)
		step_draws_free(&start->draws[i]);
	free(start->told);
	step_trace_free(&start->trace);
	wlb_verdict_free(start->detector);
}

/* A trial from the step of the fault on. */
struct branch {
	struct start *start;
	const struct planted *planted;
	uint64_t seed;
	struct result *result;
};

static void run_faulty(void *of)
{
	const struct branch *branch = of;
	const struct planted *planted = branch->planted;
	struct start *start = branch->start;
	struct step_trace *trace = &start->trace;
	struct outcome *outcome = &branch->result->outcome;
	struct wlb_verdict verdicts[MOST_VERDICTS];
	int32_t faults = planted->trial->kind->faults;
	double with_s = 0.0, without_s[FAULT_SORTS] = {0.0};
	*outcome = outcome_none();
	snprintf(outcome->miss, sizeof(outcome->miss), "position %d, seed %llu, from step %lld",
	         planted->trial->position, (unsigned long long)branch->seed, (long long)start->from_step);
	for (int32_t i = 0; i < start->told_count; i++)
		outcome_count(outcome, planted->faults, faults, &start->told[i].verdict, start->told[i].after);
	step_trace_plant(trace, planted->faults, faults);
	for (int after = 1; after <= STEPS_AFTER; after++) {
		step_trace_take(trace, &start->draws[after - 1], start->detector);
		with_s += trace->seconds;
		for (int i = 0; i < FAULT_SORTS; i++)
			without_s[i] += trace->without_s[i];
		int32_t count = judge(start, verdicts);
		for (int32_t v = 0; v < count; v++)
			outcome_count(outcome, planted->faults, faults, &verdicts[v], (double)after);
	}
	for (int i = 0; i < FAULT_SORTS; i++)
		branch->result->true_percent[i] = 100.0 * (with_s / without_s[i] - 1.0);
}

/* 1 where two trials of a seed have the same healthy steps. */
static int are_alike(const struct planted *a, const struct planted *b)
{
	return a->trial->kind->noise == b->trial->kind->noise &&
	       a->trial->kind->other_work == b->trial->kind->other_work &&
	       a->reports.transfers == b->reports.transfers && a->reports.loaders == b->reports.loaders &&
	       a->reports.values == b->reports.values;
}

/* Runs the first of the trials and those that are alike. */
static void run_alike(const struct cluster *cluster, uint64_t seed, struct planted *planted, int32_t count,
                      struct result *result)
{
	struct start *start = must_allocate(1, sizeof(*start));
	begin(start, cluster, seed, &planted[0]);
	for (int32_t i = 0; i < count; i++) {
		if (planted[i].done || !are_alike(&planted[0], &planted[i]))
			continue;
		struct branch branch = {start, &planted[i], seed, result};
		branch_run(run_faulty, &branch);
		score_add(planted[i].trial->score, &result->outcome, planted[i].trial->kind->faults,
		          result->true_percent);
		planted[i].done = 1;
	}
	end(start);
	free(start);
}

static void run(const struct cluster *cluster, uint64_t seed, const struct trial *trials, int32_t count)
{
	struct planted *planted = must_allocate((size_t)count, sizeof(*planted));
	struct result *result = branch_memory(sizeof(*result));
	for (int32_t i = 0; i < count; i++) {
		planted[i].trial = &trials[i];
		planted[i].done = !plant_all(cluster, &trials[i], seed, planted[i].faults);
		planted[i].reports = choose_reports(cluster, planted[i].faults, trials[i].kind->faults);
	}
	for (int32_t i = 0; i < count; i++)
		if (!planted[i].done)
			run_alike(cluster, seed, &planted[i], count - i, result);
	branch_memory_free(result, sizeof(*result));
	free(planted);
}

static const struct trial_kind kinds[] = {
	{"slow compute, 10 %", every_rank, WLB_VERDICT_SLOW_COMPUTE, 1, 1.1, 1.0, .unit = "steps"},
	{"slow compute, 30 %", every_rank, WLB_VERDICT_SLOW_COMPUTE, 1, 1.3, 1.0, .unit = "steps"},
	{"slow compute, 10 %, half as much noise again", every_rank, WLB_VERDICT_SLOW_COMPUTE, 1, 1.1, 1.5,
         .unit = "steps", .beyond = 1},
	{"slow compute, 10 %, noise as published", every_rank, WLB_VERDICT_SLOW_COMPUTE, 1, 1.1, 0.13, .unit = "steps"},
	{"slow compute, 10 %, fixed time not predicted", every_rank, WLB_VERDICT_SLOW_COMPUTE, 1, 1.1, 1.0,
         .unit = "steps", .other_work = 1},
	{"slow node, 10 %", every_node, WLB_VERDICT_SLOW_NODE, 1, 1.1, 1.0, .unit = "steps"},
	{"slow link, half the speed", every_edge, WLB_VERDICT_SLOW_LINK, 1, 2.0, 1.0, .unit = "steps"},
	{"slow NIC, half the speed", every_known_nic, WLB_VERDICT_SLOW_NIC, 1, 2.0, 1.0, .unit = "steps"},
	{"slow loader, 20 % of a step", every_rank, WLB_VERDICT_SLOW_LOADER, 1, 0.2, 1.0, .unit = "steps"},
	{"slow file system, 20 % of a step", once, WLB_VERDICT_SLOW_STORAGE, 1, 0.2, 1.0, .unit = "steps"},
	{"gradient NaN", every_rank, WLB_VERDICT_BAD_VALUES, 1, 0.0, 1.0, .unit = "steps"},
	{"gradient 100 times its peers'", every_rank_with_peers, WLB_VERDICT_BAD_VALUES, 1, 100.0, 1.0, .unit = "steps",
         .variant = 1},
	/* Of two, slow computation is 10 % longer, links and NICs have half the speed, loaders take 20 % of a step. */
	{"two: slow ranks", every_rank, WLB_VERDICT_SLOW_COMPUTE, 2, 1.1, 1.0, .unit = "steps"},
	{"two: slow nodes", every_node_of_four, WLB_VERDICT_SLOW_NODE, 2, 1.1, 1.0, .unit = "steps"},
	{"two: slow links", every_edge, WLB_VERDICT_SLOW_LINK, 2, 2.0, 1.0, .unit = "steps"},
	{"two: slow NICs", every_known_nic_of_four, WLB_VERDICT_SLOW_NIC, 2, 2.0, 1.0, .unit = "steps"},
	{"two: slow loaders", every_rank, WLB_VERDICT_SLOW_LOADER, 2, 0.2, 1.0, .unit = "steps"},
	{"two: gradients NaN", every_rank, WLB_VERDICT_BAD_VALUES, 2, 0.0, 1.0, .unit = "steps"},
	{"slow rank, slow loader", every_rank, WLB_VERDICT_SLOW_COMPUTE, 2, 1.1, 1.0, .unit = "steps", .mixed = 1,
         .second = WLB_VERDICT_SLOW_LOADER, .second_factor = 0.2},
	{"slow rank, gradient NaN", every_rank, WLB_VERDICT_SLOW_COMPUTE, 2, 1.1, 1.0, .unit = "steps", .mixed = 1,
         .second = WLB_VERDICT_BAD_VALUES},
	{"slow link, slow rank", every_edge, WLB_VERDICT_SLOW_LINK, 2, 2.0, 1.0, .unit = "steps", .mixed = 1,
         .second = WLB_VERDICT_SLOW_COMPUTE, .second_factor = 1.1},
	{"slow NIC, slow link", every_known_nic_and_edge, WLB_VERDICT_SLOW_NIC, 2, 2.0, 1.0, .unit = "steps",
         .mixed = 1, .second = WLB_VERDICT_SLOW_LINK, .second_factor = 2.0},
	{"slow NIC, slow node", every_known_nic_of_four, WLB_VERDICT_SLOW_NIC, 2, 2.0, 1.0, .unit = "steps", .mixed = 1,
         .second = WLB_VERDICT_SLOW_NODE, .second_factor = 1.1},
};
const struct trial_family slow_family = {"slow", kinds, sizeof(kinds) / sizeof(kinds[0]), run};
