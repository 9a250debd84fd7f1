#include "tests/bench/verdicts/reporter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct report_conditions report_conditions_none(void)
{
	return (struct report_conditions){.gone_rank = -1,
	                                  .second_gone_rank = -1,
	                                  .silent_node = -1,
	                                  .stopped_rank = -1,
	                                  .gone_s = INFINITY,
	                                  .abort_s = INFINITY,
	                                  .suspended_at_s = INFINITY,
	                                  .ring_break = -1};
}

void reporter_init(struct reporter *reporter, struct program *program, struct wlb_verdict_detector *detector,
                   uint64_t seed)
{
	size_t ranks = (size_t)program->cluster->world->ranks;
	*reporter = (struct reporter){.program = program,
	                              .detector = detector,
	                              .chance = chance_of(seed, 2),
	                              .ahead_s = 1000.0,
	                              .told_s = 0.0};
	reporter->position = must_allocate(ranks, sizeof(*reporter->position));
	reporter->calls = must_allocate(ranks, sizeof(*reporter->calls));
	for (size_t r = 0; r < ranks; r++) {
		reporter->position[r] = -1;
		for (int s = 0; s < SLOTS; s++)
			reporter->calls[r][s].group = program->cluster->group[r][s];
	}
}

void reporter_free(struct reporter *reporter)
{
	free(reporter->position);
	free(reporter->calls);
}

/* An operation that a rank has begun in this step. */
struct begun {
	double began_s;
	int32_t number;
	const struct operation *operation;
};

static struct begun begun_at(const struct reporter *reporter, int32_t r, int32_t position)
{
	const struct program *program = reporter->program;
	const struct events *events = &program->events[r];
	int32_t number = events->operation[position];
	return (struct begun){events->began_s[position], number,
	                      &program->operations[program->cluster->stage[r]][number]};
}

/* The rank ends the operation that it is in. */
static void end_operation(struct reporter *reporter, int32_t r)
{
	if (reporter->position[r] < 0)
		return;
	struct begun now = begun_at(reporter, r, reporter->position[r]);
	if (now.operation->slot != SLOTS)
		reporter->calls[r][now.operation->slot].left = reporter->calls[r][now.operation->slot].entered;
}

/* Moves the rank to the operation that it is in at a time. */
static void advance(struct reporter *reporter, int32_t r, double at_s)
{
	int32_t count = reporter->program->event_count[r];
	while (reporter->position[r] + 1 < count) {
		struct begun next = begun_at(reporter, r, reporter->position[r] + 1);
		if (next.began_s > at_s)
			return;
		end_operation(reporter, r);
		reporter->position[r]++;
		if (next.operation->slot != SLOTS)
			reporter->calls[r][next.operation->slot].entered++;
	}
}

void reporter_end_step(struct reporter *reporter)
{
	for (int32_t r = 0; r < reporter->program->cluster->world->ranks; r++) {
		advance(reporter, r, INFINITY);
		end_operation(reporter, r);
		reporter->position[r] = -1;
	}
}

static enum wlb_verdict_activity activity_of(enum operation_kind kind)
{
	static const enum wlb_verdict_activity activities[] = {
		[OPERATION_LOAD] = WLB_VERDICT_LOADING,          [OPERATION_COMPUTE] = WLB_VERDICT_COMPUTING,
		[OPERATION_CALL] = WLB_VERDICT_CALLING,          [OPERATION_SEND] = WLB_VERDICT_CALLING,
		[OPERATION_RECEIVE] = WLB_VERDICT_CALLING,       [OPERATION_CHECKPOINT] = WLB_VERDICT_CHECKPOINT,
		[OPERATION_EVALUATION] = WLB_VERDICT_EVALUATION, [OPERATION_START] = WLB_VERDICT_STARTING};
	return activities[kind];
}

/* Returns the member of a ring that receives nothing more: that of the conditions, or the first on the node whose NIC
 * has stopped; -1 where there is none. */
static int32_t broken_member(const struct reporter *reporter, const struct report_conditions *conditions, int32_t g)
{
	const struct wlb_verdict_world *world = reporter->program->cluster->world;
	const struct wlb_verdict_group *group = &world->groups[g];
	int32_t stop_node = reporter->program->incident.stop_node;
	if (g == reporter->program->incident.stuck_group)
		return conditions->ring_break;
	for (int32_t m = 0; stop_node >= 0 && m < group->count; m++) {
		int32_t before = group->members[(m + group->count - 1) % group->count];
		if (world->node_of[group->members[m]] == stop_node && world->node_of[before] != stop_node)
			return m;
	}
	return -1;
}

/* What a ring that broke before a member has brought a rank: the less, the nearer it follows that member. */
static double received(const struct reporter *reporter, const struct report_conditions *conditions, int32_t r,
                       int32_t g)
{
	const struct wlb_verdict_group *group = &reporter->program->cluster->world->groups[g];
	int32_t broken = broken_member(reporter, conditions, g);
	for (int32_t m = 0; broken >= 0 && m < group->count; m++)
		if (group->members[m] == r)
			return 1e6 * (1 + (m - broken + group->count) % group->count);
	return -1.0;
}

static enum wlb_verdict_process process_of(const struct reporter *reporter, const struct report_conditions *conditions,
                                           int32_t r, double at_s)
{
	const struct incident *incident = &reporter->program->incident;
	if (at_s >= conditions->gone_s && (r == conditions->gone_rank || r == conditions->second_gone_rank ||
	                                   at_s >= conditions->gone_s + conditions->abort_s))
		return WLB_VERDICT_GONE;
	if (at_s >= conditions->gone_s && r == conditions->stopped_rank)
		return WLB_VERDICT_STOPPED;
	if (r == incident->paused_rank && incident->paused_s > 0.0 &&
	    begun_at(reporter, r, reporter->position[r]).number == incident->paused_at)
		return WLB_VERDICT_TRACED;
	return WLB_VERDICT_RUNNING;
}

/* The length of time that the monotonic clock of a rank's node shows: it drifts, and nobody sets it. */
static double shown_s(const struct reporter *reporter, int32_t r, double from_s, double to_s)
{
	int32_t node = reporter->program->cluster->world->node_of[r];
	return (to_s - from_s) * (1.0 + reporter->program->trace.clocks.drift[node]);
}

/* Since when the process of a rank is gone: of its own, or as the launcher has ended it. */
static double gone_since_s(const struct report_conditions *conditions, int32_t r)
{
	int first = r == conditions->gone_rank || r == conditions->second_gone_rank;
	return conditions->gone_s + (first ? 0.0 : conditions->abort_s);
}

static void tell(struct reporter *reporter, const struct report_conditions *conditions, int32_t r, double at_s,
                 double late_s, enum wlb_verdict_process process)
{
	struct program *program = reporter->program;
	struct begun now = begun_at(reporter, r, reporter->position[r]);
	const struct operation *operation = now.operation;
	struct wlb_verdict_call calls[SLOTS];
	int32_t call_count = 0;
	for (int s = 0; s < SLOTS; s++)
		if (reporter->calls[r][s].group >= 0)
			calls[call_count++] = reporter->calls[r][s];
	enum wlb_verdict_activity activity = activity_of(operation->kind);
	struct wlb_verdict_state state = {
		.rank = r,
		.report = reporter->report,
		.arrived_s = at_s + late_s + reporter->ahead_s,
		.activity = activity,
		.activity_s = fmax(0.0, shown_s(reporter, r, now.began_s, at_s)) +
	                      (now.began_s <= conditions->suspended_at_s ? reporter->suspended_s : 0.0),
		.process = process,
		.step = program->trace.step - 1,
		.work = program->trace.work[program->cluster->replica[r]],
		.group = -1,
		.received_bytes = -1.0,
		.calls = calls,
		.call_count = call_count};
	if (process == WLB_VERDICT_GONE)
		state.activity_s = fmax(0.0, shown_s(reporter, r, gone_since_s(conditions, r), at_s));
	if (activity == WLB_VERDICT_CALLING) {
		state.group = program->cluster->group[r][operation->slot];
		state.sequence = reporter->calls[r][operation->slot].entered;
		state.received_bytes = received(reporter, conditions, r, state.group);
	}
	if (chance_uniform(&reporter->chance) < conditions->lost)
		return;
	wlb_verdict_take_state(reporter->detector, &state, NULL);
	if (chance_uniform(&reporter->chance) < conditions->repeated)
		wlb_verdict_take_state(reporter->detector, &state, NULL);
}

/* All are stopped for a second, in which the program's time stands still. The signal reaches the nodes within the first
 * one. */
static void tell_suspended(struct reporter *reporter, const struct report_conditions *conditions)
{
	const struct wlb_verdict_world *world = reporter->program->cluster->world;
	for (int32_t r = 0; r < world->ranks && !conditions->reporters_too; r++) {
		int stopped = reporter->suspended_s >= 1.0 || 2 * r >= world->ranks;
		reporter->report++;
		advance(reporter, r, reporter->told_s);
		if (reporter->position[r] >= 0)
			tell(reporter, conditions, r, reporter->told_s, (double)world->node_of[r] / world->nodes,
			     stopped ? WLB_VERDICT_STOPPED : WLB_VERDICT_RUNNING);
	}
	reporter->suspended_s += 1.0;
	reporter->ahead_s += 1.0;
}

double reporter_second(struct reporter *reporter, const struct report_conditions *conditions)
{
	const struct cluster *cluster = reporter->program->cluster;
	int32_t ranks = cluster->world->ranks;
	if (reporter->told_s >= conditions->suspended_at_s && reporter->suspended_s < conditions->suspended_s) {
		tell_suspended(reporter, conditions);
		return reporter->told_s + reporter->ahead_s;
	}
	for (int32_t r = 0; r < ranks; r++) {
		int32_t node = cluster->world->node_of[r];
		double at_s = reporter->told_s + (double)node / cluster->world->nodes;
		if (node == conditions->silent_node && at_s >= conditions->gone_s)
			continue;
		advance(reporter, r, at_s);
		reporter->report++;
		if (reporter->position[r] >= 0)
			tell(reporter, conditions, r, at_s, 0.0, process_of(reporter, conditions, r, at_s));
	}
	reporter->told_s += 1.0;
	return reporter->told_s + reporter->ahead_s;
}
