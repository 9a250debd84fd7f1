/* Faults after which nothing moves: planted in the program of a step and reported. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/verdicts/branch.h"
#include "tests/bench/verdicts/reporter.h"
#include "tests/bench/verdicts/trials.h"

/* Healthy steps before, and how long the verdict is waited for. */
enum { HEALTHY_STEPS = 5, WAIT_S = 18, MOST_VERDICTS = 64 };

enum variant {
	IN_COMPUTATION,
	IN_LOADER,
	STOPPED_BY_SIGNAL,
	STOPPED_IN_LOADER,
	STOPPED_IN_CHECKPOINT,
	STOPPED_IN_EVALUATION,
	STOPPED_IN_START_UP,
	CALL,
	CALL_WITHOUT_BYTES,
	NIC,
	PROCESS,
	NODE,
	HANG_AND_CRASH,
	HANG_AND_STOP,
};

struct still_trial {
	const struct cluster *cluster;
	struct program program;
	struct reporter reporter;
	struct wlb_verdict_detector *detector;
	struct incident incident;
	struct report_conditions conditions;
	struct fault faults[MOST_FAULTS];
	int32_t fault_count;
	struct outcome outcome;
	double from_s; /* of the fault, the program's time */
};

static int32_t every_rank(const struct cluster *cluster)
{
	return cluster->world->ranks;
}

static int32_t every_group(const struct cluster *cluster)
{
	return cluster->world->group_count;
}

static int32_t every_node(const struct cluster *cluster)
{
	return cluster->world->nodes > 1 ? cluster->world->nodes : 0;
}

static void judge(struct still_trial *trial, double now_s)
{
	struct wlb_verdict verdicts[MOST_VERDICTS];
	int32_t count = wlb_verdict_judge(trial->detector, now_s, verdicts, MOST_VERDICTS);
	for (int32_t v = 0; v < count && v < MOST_VERDICTS; v++)
		outcome_count(&trial->outcome, trial->faults, trial->fault_count, &verdicts[v],
		              trial->reporter.told_s - trial->from_s);
}

/* Reports what the program has done until the step ends, or for WAIT_S where it never does. */
static void report(struct still_trial *trial)
{
	double until_s = fmin(trial->program.ends_s, trial->from_s + WAIT_S);
	while (trial->reporter.told_s < until_s)
		judge(trial, reporter_second(&trial->reporter, &trial->conditions));
	if (isfinite(trial->program.ends_s))
		reporter_end_step(&trial->reporter);
}

/* Returns an operation of the rank in which it can hang: its computations in turn, or its loader. */
static int32_t choose_operation(struct still_trial *trial, int32_t rank, enum operation_kind kind,
                                struct chance *chance)
{
	int32_t count, found = 0, wanted;
	const struct operation *operations = program_operations(&trial->program, rank, &count);
	for (int32_t i = 0; i < count; i++)
		found += operations[i].kind == kind;
	wanted = chance_below(chance, found);
	for (int32_t i = 0; i < count; i++)
		if (operations[i].kind == kind && wanted-- == 0)
			return i;
	return -1;
}

static void add_fault(struct still_trial *trial, enum wlb_verdict_kind kind, int32_t rank, int32_t node)
{
	trial->faults[trial->fault_count++] =
		(struct fault){.kind = kind, .rank = rank, .node = node, .group = -1, .other = -1};
}

static void plant_call(struct still_trial *trial, int32_t g, struct chance *chance)
{
	const struct wlb_verdict_group *group = &trial->cluster->world->groups[g];
	int32_t member = group->kind == WLB_VERDICT_PP ? 1 : chance_below(chance, group->count);
	trial->incident.stuck_group = g;
	trial->conditions.ring_break = group->kind == WLB_VERDICT_PP ? -1 : member;
	add_fault(trial, WLB_VERDICT_HANG_COMMUNICATION, group->members[member], -1);
	trial->faults[0].other = group->members[(member + group->count - 1) % group->count];
}

static void plant_hang(struct still_trial *trial, int32_t f, int32_t rank, enum operation_kind kind,
                       struct chance *chance)
{
	trial->incident.stuck_rank[f] = rank;
	trial->incident.stuck_at[f] = choose_operation(trial, rank, kind, chance);
	add_fault(trial, WLB_VERDICT_HANG, rank, -1);
}

static void plant_stop(struct still_trial *trial, int32_t rank)
{
	trial->incident.stop_rank = trial->conditions.stopped_rank = rank;
	add_fault(trial, WLB_VERDICT_HANG, rank, -1);
}

/* Starts what the step is long for: its ranks are in it from a few seconds after the step's begin on, or at once. */
static void plant_stop_aside(struct still_trial *trial, enum variant variant, int32_t rank, struct chance *chance)
{
	static const double aside_s = 60.0;
	trial->incident.checkpoint_s = variant == STOPPED_IN_CHECKPOINT ? aside_s : 0.0;
	trial->incident.evaluation_s = variant == STOPPED_IN_EVALUATION ? aside_s : 0.0;
	trial->incident.start_s = variant == STOPPED_IN_START_UP ? aside_s : 0.0;
	if (variant != STOPPED_IN_START_UP)
		trial->from_s += chance_between(chance, 4.0, 20.0);
	trial->incident.stop_s = trial->conditions.gone_s = trial->from_s;
	plant_stop(trial, rank);
}

/* Another rank than the one at the position, far from it. */
static int32_t other_rank(const struct still_trial *trial, int32_t position)
{
	int32_t ranks = trial->cluster->world->ranks;
	return (position + ranks / 2) % ranks;
}

static void plant_hangs(struct still_trial *trial, const struct trial_kind *kind, int32_t position,
                        struct chance *chance)
{
	enum operation_kind operation = kind->variant == IN_LOADER ? OPERATION_LOAD : OPERATION_COMPUTE;
	for (int32_t f = 0; f < kind->faults; f++, position = other_rank(trial, position))
		plant_hang(trial, f, position, operation, chance);
}

static void plant_hang_and_other(struct still_trial *trial, enum variant variant, int32_t position,
                                 struct chance *chance)
{
	int32_t other = other_rank(trial, position);
	plant_hang(trial, 0, position, OPERATION_COMPUTE, chance);
	if (variant == HANG_AND_STOP) {
		plant_stop(trial, other);
		return;
	}
	trial->incident.stop_rank = trial->conditions.gone_rank = other;
	add_fault(trial, WLB_VERDICT_CRASH, other, -1);
}

static void plant_nic(struct still_trial *trial, int32_t node)
{
	trial->incident.stop_node = node;
	add_fault(trial, WLB_VERDICT_HANG_COMMUNICATION, -1, node);
	trial->faults[0].ranks_per_node = trial->cluster->layout.ranks_per_node;
}

static void plant_crashes(struct still_trial *trial, const struct trial_kind *kind, int32_t position,
                          struct chance *chance)
{
	trial->incident.stop_rank = trial->conditions.gone_rank = position;
	trial->conditions.abort_s = chance_uniform(chance) < 0.5 ? chance_between(chance, 0.3, 3.0) : INFINITY;
	add_fault(trial, WLB_VERDICT_CRASH, position, -1);
	if (kind->faults == 2) {
		trial->conditions.second_gone_rank = other_rank(trial, position);
		add_fault(trial, WLB_VERDICT_CRASH, trial->conditions.second_gone_rank, -1);
	}
}

static void plant_lost_node(struct still_trial *trial, int32_t node)
{
	trial->incident.stop_node = trial->conditions.silent_node = node;
	trial->incident.dead = 1;
	add_fault(trial, WLB_VERDICT_CRASH, -1, node);
}

/* Plants the faults of a trial at a position, in the step that follows. */
static void plant(struct still_trial *trial, const struct trial_kind *kind, int32_t position, struct chance *chance)
{
	double at_s = trial->program.ends_s + chance_between(chance, 0.1, 1.2);
	trial->from_s = trial->incident.stop_s = trial->conditions.gone_s = at_s;
	switch ((enum variant)kind->variant) {
	case IN_COMPUTATION:
	case IN_LOADER:
		plant_hangs(trial, kind, position, chance);
		break;
	case STOPPED_BY_SIGNAL:
		plant_stop(trial, position);
		break;
	case STOPPED_IN_LOADER:
		plant_hang(trial, 0, position, OPERATION_LOAD, chance);
		trial->conditions.stopped_rank = position;
		trial->conditions.gone_s = trial->program.ends_s;
		break;
	case STOPPED_IN_CHECKPOINT:
	case STOPPED_IN_EVALUATION:
	case STOPPED_IN_START_UP:
		plant_stop_aside(trial, (enum variant)kind->variant, position, chance);
		break;
	case HANG_AND_CRASH:
	case HANG_AND_STOP:
		plant_hang_and_other(trial, (enum variant)kind->variant, position, chance);
		break;
	case CALL_WITHOUT_BYTES:
		plant_call(trial, position, chance);
		trial->conditions.ring_break = -1;
		trial->faults[0].group = position;
		trial->faults[0].other = -1;
		break;
	case CALL:
		plant_call(trial, position, chance);
		break;
	case NIC:
		plant_nic(trial, position);
		break;
	case PROCESS:
		plant_crashes(trial, kind, position, chance);
		break;
	case NODE:
		plant_lost_node(trial, position);
		break;
	}
}

/* Of several ranks that were to hang, those count that came to the operation, before another blocked them. */
static void drop_unreached(struct still_trial *trial)
{
	for (int32_t f = trial->fault_count - 1; f >= 0; f--) {
		int32_t r = trial->incident.stuck_rank[f];
		if (r < 0)
			continue;
		const struct events *events = &trial->program.events[r];
		int32_t last = trial->program.event_count[r] - 1;
		if (events->operation[last] == trial->incident.stuck_at[f])
			trial->from_s = f == 0 ? events->began_s[last] : trial->from_s;
		else
			trial->faults[f] = trial->faults[--trial->fault_count];
	}
	trial->outcome.planted = trial->fault_count;
}

/* What a trial leaves, in memory that branches share. */
struct result {
	struct outcome outcome;
	int32_t fault_count;
};

/* A trial from the end of its healthy steps on. */
struct branch {
	struct still_trial *healthy;
	const struct trial *trial;
	uint64_t seed;
	struct result *result;
};

static void run_faulty(void *of)
{
	const struct branch *branch = of;
	struct still_trial *trial = branch->healthy;
	struct chance chance = chance_of(branch->seed, 4);
	plant(trial, branch->trial->kind, branch->trial->position, &chance);
	program_step(&trial->program, 1.0, &trial->incident);
	drop_unreached(trial);
	snprintf(trial->outcome.miss, sizeof(trial->outcome.miss), "position %d, seed %llu", branch->trial->position,
	         (unsigned long long)branch->seed);
	report(trial);
	branch->result->outcome = trial->outcome;
	branch->result->fault_count = trial->fault_count;
}

static void begin(struct still_trial *trial, const struct cluster *cluster, uint64_t seed)
{
	trial->cluster = cluster;
	trial->detector = must_detect(cluster);
	program_init(&trial->program, cluster, seed);
	reporter_init(&trial->reporter, &trial->program, trial->detector, seed);
	trial->incident = incident_none();
	trial->conditions = report_conditions_none();
	trial->conditions.lost = trial->conditions.repeated = 0.01;
	trial->from_s = INFINITY;
	trial->outcome = outcome_none();
	for (int i = 0; i < HEALTHY_STEPS; i++) {
		program_step(&trial->program, 1.0, &trial->incident);
		report(trial);
	}
}

static void run(const struct cluster *cluster, uint64_t seed, const struct trial *trials, int32_t count)
{
	struct still_trial *healthy = must_allocate(1, sizeof(*healthy));
	struct result *result = branch_memory(sizeof(*result));
	begin(healthy, cluster, seed);
	for (int32_t i = 0; i < count; i++) {
		struct branch branch = {healthy, &trials[i], seed, result};
		branch_run(run_faulty, &branch);
		score_add(trials[i].score, &result->outcome, result->fault_count, NULL);
	}
	branch_memory_free(result, sizeof(*result));
	reporter_free(&healthy->reporter);
	program_free(&healthy->program);
	wlb_verdict_free(healthy->detector);
	free(healthy);
}

static const struct trial_kind kinds[] = {
	{"crash", every_rank, WLB_VERDICT_CRASH, 1, .unit = "s", .variant = PROCESS},
	{"two crashes at once", every_rank, WLB_VERDICT_CRASH, 2, .unit = "s", .variant = PROCESS},
	{"node lost", every_node, WLB_VERDICT_CRASH, 1, .unit = "s", .variant = NODE},
	{"hang in computation", every_rank, WLB_VERDICT_HANG, 1, .unit = "s", .variant = IN_COMPUTATION},
	{"two hangs at once", every_rank, WLB_VERDICT_HANG, 2, .unit = "s", .variant = IN_COMPUTATION},
	{"hang in the loader", every_rank, WLB_VERDICT_HANG, 1, .unit = "s", .variant = IN_LOADER},
	{"stopped by a signal", every_rank, WLB_VERDICT_HANG, 1, .unit = "s", .variant = STOPPED_BY_SIGNAL},
	{"stopped in the loader", every_rank, WLB_VERDICT_HANG, 1, .unit = "s", .variant = STOPPED_IN_LOADER},
	{"stopped in a checkpoint", every_rank, WLB_VERDICT_HANG, 1, .unit = "s", .variant = STOPPED_IN_CHECKPOINT},
	{"stopped in an evaluation", every_rank, WLB_VERDICT_HANG, 1, .unit = "s", .variant = STOPPED_IN_EVALUATION},
	{"stopped in start-up", every_rank, WLB_VERDICT_HANG, 1, .unit = "s", .variant = STOPPED_IN_START_UP},
	{"a hang and a crash", every_rank, WLB_VERDICT_HANG, 2, .unit = "s", .variant = HANG_AND_CRASH},
	{"a hang, a rank stopped by a signal", every_rank, WLB_VERDICT_HANG, 2, .unit = "s", .variant = HANG_AND_STOP},
	{"hang in a call", every_group, WLB_VERDICT_HANG_COMMUNICATION, 1, .unit = "s", .variant = CALL},
	{"hang in a call, bytes not told: its group", every_group, WLB_VERDICT_HANG_COMMUNICATION, 1, .unit = "s",
         .variant = CALL_WITHOUT_BYTES},
	{"NIC stops", every_node, WLB_VERDICT_HANG_COMMUNICATION, 1, .unit = "s", .variant = NIC},
};
const struct trial_family still_family = {"still", kinds, sizeof(kinds) / sizeof(kinds[0]), run};
