#include "tests/bench/verdicts/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/verdicts/constants.h"

/* Messages and calls take so long after their last member has come. */
static const double message_s = 0.002;

struct incident incident_none(void)
{
	struct incident none = {
		.stuck_group = -1, .stop_node = -1, .stop_rank = -1, .paused_rank = -1, .stop_s = INFINITY};
	for (int i = 0; i < MOST_FAULTS; i++)
		none.stuck_rank[i] = -1;
	return none;
}

static void add(struct program *program, int32_t stage, enum operation_kind kind, enum cluster_slot slot, double share)
{
	program->operations[stage][program->operation_count[stage]++] = (struct operation){kind, slot, share};
}

static void add_pass(struct program *program, int32_t stage, int backward, double share)
{
	int32_t last = program->cluster->layout.pp - 1;
	if (backward ? stage < last : stage > 0)
		add(program, stage, OPERATION_RECEIVE, backward ? SLOT_BACKWARD_IN : SLOT_FORWARD_IN, 0.0);
	add(program, stage, OPERATION_COMPUTE, SLOTS, share / 2.0);
	if (program->cluster->layout.tp > 1)
		add(program, stage, OPERATION_CALL, SLOT_TP, 0.0);
	add(program, stage, OPERATION_COMPUTE, SLOTS, share / 2.0);
	if (program->cluster->layout.cp > 1)
		add(program, stage, OPERATION_CALL, SLOT_CP, 0.0);
	if (backward ? stage > 0 : stage < last)
		add(program, stage, OPERATION_SEND, backward ? SLOT_BACKWARD_OUT : SLOT_FORWARD_OUT, 0.0);
}

/* One forward, one backward (Narayanan et al. 2019). */
static void make_operations(struct program *program, int32_t stage)
{
	int32_t pp = program->cluster->layout.pp, micro_batches = pp > 4 ? pp : 4, forward = 0, backward = 0;
	double forward_share = 0.32 / micro_batches, backward_share = 0.64 / micro_batches;
	add(program, stage, OPERATION_START, SLOTS, 0.0);
	add(program, stage, OPERATION_LOAD, SLOTS, 0.0);
	while (forward < micro_batches && forward < pp - 1 - stage) {
		add_pass(program, stage, 0, forward_share);
		forward++;
	}
	while (backward < micro_batches) {
		if (forward < micro_batches) {
			add_pass(program, stage, 0, forward_share);
			forward++;
		}
		add_pass(program, stage, 1, backward_share);
		backward++;
	}
	if (program->cluster->layout.dp > 1)
		add(program, stage, OPERATION_CALL, SLOT_DP, 0.0);
	add(program, stage, OPERATION_COMPUTE, SLOTS, 0.04);
	add(program, stage, OPERATION_CHECKPOINT, SLOTS, 0.0);
	add(program, stage, OPERATION_EVALUATION, SLOTS, 0.0);
	add(program, stage, OPERATION_CALL, SLOT_WORLD, 0.0);
}

void program_init(struct program *program, const struct cluster *cluster, uint64_t seed)
{
	size_t ranks = (size_t)cluster->world->ranks, groups = (size_t)cluster->world->group_count;
	memset(program, 0, sizeof(*program));
	program->cluster = cluster;
	step_trace_init(&program->trace, cluster, seed, (struct step_reports){0});
	for (int32_t s = 0; s < cluster->layout.pp; s++)
		make_operations(program, s);
	program->concerned = must_allocate(ranks, sizeof(*program->concerned));
	program->events = must_allocate(ranks, sizeof(*program->events));
	program->event_count = must_allocate(ranks, sizeof(*program->event_count));
	program->now_s = must_allocate(ranks, sizeof(*program->now_s));
	program->at = must_allocate(ranks, sizeof(*program->at));
	program->entered = must_allocate(groups, sizeof(*program->entered));
	program->last_s = must_allocate(groups, sizeof(*program->last_s));
	program->sent = must_allocate(groups, sizeof(*program->sent));
	program->received = must_allocate(groups, sizeof(*program->received));
	program->sent_s = must_allocate(groups, sizeof(*program->sent_s));
	program->ready = must_allocate(ranks, sizeof(*program->ready));
}

void program_free(struct program *program)
{
	step_trace_free(&program->trace);
	free(program->concerned);
	free(program->events);
	free(program->event_count);
	free(program->now_s);
	free(program->at);
	free(program->entered);
	free(program->last_s);
	free(program->sent);
	free(program->received);
	free(program->sent_s);
	free(program->ready);
}

const struct operation *program_operations(const struct program *program, int32_t rank, int32_t *count)
{
	int32_t stage = program->cluster->stage[rank];
	*count = program->operation_count[stage];
	return program->operations[stage];
}

static int touches(const struct program *program, int32_t g, int32_t node)
{
	const struct wlb_verdict_group *group = &program->cluster->world->groups[g];
	for (int32_t m = 0; m < group->count; m++)
		if (program->cluster->world->node_of[group->members[m]] == node)
			return 1;
	return 0;
}

/* 1 where a call or message of the group that would end at `ends_s` never does. */
static int never_ends(const struct program *program, int32_t g, double ends_s)
{
	const struct incident *incident = &program->incident;
	return g == incident->stuck_group || (incident->stop_node >= 0 && ends_s > incident->stop_s &&
	                                      program->cluster->crosses[g] && touches(program, g, incident->stop_node));
}

/* 1 where the rank does nothing more from stop_s on. */
static int stops(const struct program *program, int32_t r)
{
	const struct incident *incident = &program->incident;
	return r == incident->stop_rank ||
	       (incident->dead && program->cluster->world->node_of[r] == incident->stop_node);
}

/* Returns how long an operation that is no call takes, INFINITY where it never ends. */
static double length_of(struct program *program, int32_t r, const struct operation *operation)
{
	const struct incident *incident = &program->incident;
	double length_s = 0.0;
	if (operation->kind == OPERATION_COMPUTE)
		length_s = program->trace.computed_s[r] * operation->share;
	else if (operation->kind == OPERATION_LOAD)
		length_s = -loader_mean * step_s * log1p(-chance_uniform(&program->trace.chance));
	else if (operation->kind == OPERATION_START)
		length_s = incident->start_s * chance_uniform(&program->trace.chance);
	else if (operation->kind == OPERATION_CHECKPOINT && (r == 0 || !incident->checkpoint_alone))
		length_s = incident->checkpoint_s * chance_between(&program->trace.chance, 0.5, 1.0);
	else if (operation->kind == OPERATION_EVALUATION)
		length_s = incident->evaluation_s * chance_between(&program->trace.chance, 0.9, 1.0);
	if (!program->concerned[r])
		return length_s;
	for (int i = 0; i < MOST_FAULTS; i++)
		if (r == incident->stuck_rank[i] && program->at[r] == incident->stuck_at[i])
			length_s = INFINITY;
	if (r == incident->paused_rank && program->at[r] == incident->paused_at)
		length_s += incident->paused_s;
	return stops(program, r) && program->now_s[r] + length_s > incident->stop_s ? INFINITY : length_s;
}

static void begin(struct program *program, int32_t r)
{
	struct events *events = &program->events[r];
	int32_t number = program->event_count[r]++;
	events->began_s[number] = program->now_s[r];
	events->operation[number] = (unsigned char)program->at[r];
}

static void resume(struct program *program, int32_t r, double now_s)
{
	program->now_s[r] = now_s;
	program->at[r]++;
	program->ready[program->ready_count++] = r;
}

/* The rank enters a call. The last member lets all continue. */
static void enter_call(struct program *program, int32_t r, int32_t g)
{
	const struct wlb_verdict_group *group = &program->cluster->world->groups[g];
	program->last_s[g] = program->entered[g] == 0 ? program->now_s[r] : fmax(program->last_s[g], program->now_s[r]);
	if (++program->entered[g] < group->count)
		return;
	program->entered[g] = 0;
	double ends_s = program->last_s[g] + message_s;
	if (never_ends(program, g, ends_s))
		return;
	for (int32_t m = 0; m < group->count; m++)
		resume(program, group->members[m], ends_s);
}

static void send(struct program *program, int32_t r, int32_t g)
{
	int32_t receiver = program->cluster->world->groups[g].members[1];
	uint64_t message = program->sent[g]++;
	program->sent_s[g][message % SENT] = program->now_s[r];
	/* The receiver may have waited for it. */
	int32_t count;
	const struct operation *operations = program_operations(program, receiver, &count);
	int32_t at = program->at[receiver];
	int waits = program->entered[g] && at < count && operations[at].kind == OPERATION_RECEIVE &&
	            program->received[g] == message;
	double ends_s = fmax(program->now_s[receiver], program->now_s[r]) + message_s;
	if (waits && !never_ends(program, g, ends_s)) {
		program->received[g]++;
		program->entered[g] = 0;
		resume(program, receiver, ends_s);
	}
}

/* Returns 1 where the message was there. */
static int receive(struct program *program, int32_t r, int32_t g)
{
	uint64_t message = program->received[g];
	if (message >= program->sent[g]) {
		program->entered[g] = 1;
		return 0;
	}
	double ends_s = fmax(program->now_s[r], program->sent_s[g][message % SENT]) + message_s;
	if (never_ends(program, g, ends_s))
		return 0;
	program->received[g]++;
	program->now_s[r] = ends_s;
	return 1;
}

/* 1 where the rank does nothing more. */
static int has_stopped(const struct program *program, int32_t r)
{
	return program->concerned[r] && stops(program, r) && program->now_s[r] >= program->incident.stop_s;
}

/* Runs a rank until it is blocked. */
static void run_rank(struct program *program, int32_t r)
{
	int32_t count;
	const struct operation *operations = program_operations(program, r, &count);
	while (program->at[r] < count && !has_stopped(program, r)) {
		const struct operation *operation = &operations[program->at[r]];
		double length_s = 0.0;
		if (operation->kind != OPERATION_CALL && operation->kind != OPERATION_SEND &&
		    operation->kind != OPERATION_RECEIVE) {
			length_s = length_of(program, r, operation);
			if (length_s > 0.0)
				begin(program, r);
			if (isinf(length_s))
				return;
			program->now_s[r] += length_s;
			program->at[r]++;
			continue;
		}
		int32_t g = program->cluster->group[r][operation->slot];
		begin(program, r);
		if (operation->kind == OPERATION_CALL) {
			enter_call(program, r, g);
			return;
		}
		if (operation->kind == OPERATION_SEND)
			send(program, r, g);
		else if (!receive(program, r, g))
			return;
		program->at[r]++;
	}
}

static void mark_concerned(struct program *program)
{
	const struct incident *incident = &program->incident;
	for (int32_t r = 0; r < program->cluster->world->ranks; r++) {
		program->concerned[r] = r == incident->paused_rank || stops(program, r);
		for (int i = 0; i < MOST_FAULTS; i++)
			program->concerned[r] |= r == incident->stuck_rank[i];
	}
}

void program_step(struct program *program, double times, const struct incident *incident)
{
	int32_t ranks = program->cluster->world->ranks;
	size_t groups = (size_t)program->cluster->world->group_count;
	program->begins_s = program->trace.step == 0 ? 0.0 : program->ends_s;
	program->incident = *incident;
	mark_concerned(program);
	step_trace_next(&program->trace, times, NULL);
	memset(program->entered, 0, groups * sizeof(*program->entered));
	memset(program->sent, 0, groups * sizeof(*program->sent));
	memset(program->received, 0, groups * sizeof(*program->received));
	program->ready_count = 0;
	for (int32_t r = 0; r < ranks; r++) {
		program->now_s[r] = program->begins_s;
		program->at[r] = 0;
		program->event_count[r] = 0;
		program->ready[program->ready_count++] = r;
	}
	while (program->ready_count > 0)
		run_rank(program, program->ready[--program->ready_count]);
	program->ends_s = program->begins_s;
	for (int32_t r = 0; r < ranks; r++) {
		int32_t count;
		program_operations(program, r, &count);
		program->ends_s = program->at[r] < count ? INFINITY : fmax(program->ends_s, program->now_s[r]);
	}
}

void program_report_step(struct program *program, struct wlb_verdict_detector *detector)
{
	struct step_trace *trace = &program->trace;
	double aside_s = program->incident.start_s + program->incident.checkpoint_s + program->incident.evaluation_s;
	for (int32_t r = 0; r < program->cluster->world->ranks; r++) {
		int32_t node = program->cluster->world->node_of[r];
		double drift = trace->clocks.drift[node];
		struct wlb_verdict_step step = {
			.rank = r,
			.step = trace->step - 1,
			.seconds = node_clocks_length_s(&trace->clocks, node, program->begins_s, program->ends_s),
			.aside_s = fmin(aside_s, program->ends_s - program->begins_s),
			.computed_s = trace->computed_s[r] * (1.0 + drift),
			.work = trace->work[program->cluster->replica[r]],
			.loader_s = 0.001,
			.has_loss = 1,
			.loss = 3.0 + 0.1 * chance_normal(&trace->chance)};
		wlb_verdict_take_step(detector, &step, NULL);
	}
}
