#include "tests/bench/coordinator/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/seconds.h"
#include "tests/bench/verdicts/constants.h"

/* The communicators of wlb-worker (worker/parallel/groups.c), and what is called on them. */
static const struct {
	const char *name; /* NULL: an edge of the pipeline */
	enum wlb_comm_kind kind;
	uint64_t bytes;
} slots[SLOTS] = {
	[SLOT_TP] = {"tp", WLB_COMM_ALL_GATHER, 67108864},
	[SLOT_CP] = {"cp", WLB_COMM_ALL_GATHER, 16777216},
	[SLOT_FORWARD_IN] = {NULL, WLB_COMM_RECV, 33554432},
	[SLOT_FORWARD_OUT] = {NULL, WLB_COMM_SEND, 33554432},
	[SLOT_BACKWARD_IN] = {NULL, WLB_COMM_RECV, 33554432},
	[SLOT_BACKWARD_OUT] = {NULL, WLB_COMM_SEND, 33554432},
	[SLOT_DP] = {"dp", WLB_COMM_REDUCE_SCATTER, 1073741824},
	[SLOT_WORLD] = {"world", WLB_COMM_ALL_REDUCE_DOUBLE, 96},
};

/* ---- the areas --------------------------------------------------------------------------------------------------- */

static void name_edge(const struct cluster *cluster, int32_t group, char name[WLB_TRACE_NAME_SIZE])
{
	const int32_t *members = cluster->world->groups[group].members;
	int from = cluster->stage[members[0]], to = cluster->stage[members[1]];
	snprintf(name, WLB_TRACE_NAME_SIZE, "%s %d>%d", from < to ? "pp" : "pp_back", from % 100, to % 100);
}

static void open_rank(struct ranks *ranks, int32_t r)
{
	const struct cluster *cluster = &ranks->cluster;
	struct progress *progress = &ranks->progress[r];
	struct wlb_rank_trace *area = wlb_node_page_take_area(ranks->page[cluster->world->node_of[r]], r);
	ranks->area[r] = area;
	*progress = (struct progress){.position = -1, .blocked = -1};
	for (int s = 0; s < SLOTS; s++) {
		char edge[WLB_TRACE_NAME_SIZE];
		int32_t g = cluster->group[r][s];
		progress->group[s] = -1;
		if (g < 0)
			continue;
		name_edge(cluster, g, edge);
		progress->group[s] = wlb_rank_trace_add_group(area, slots[s].name != NULL ? slots[s].name : edge,
		                                              cluster->world->groups[g].count);
	}
}

static void open_pages(struct ranks *ranks, const char *attempt_id)
{
	const struct wlb_verdict_world *world = ranks->cluster.world;
	struct wlb_error error;
	ranks->page = must_allocate((size_t)world->nodes, sizeof(struct wlb_node_page *));
	ranks->area = must_allocate((size_t)world->ranks, sizeof(struct wlb_rank_trace *));
	ranks->progress = must_allocate((size_t)world->ranks, sizeof(*ranks->progress));
	for (int32_t node = 0; node < world->nodes; node++) {
		int fd;
		ranks->page[node] = wlb_node_page_create(attempt_id, ranks->cluster.layout.ranks_per_node, &fd, &error);
		if (ranks->page[node] == NULL) {
			fprintf(stderr, "%s\n", error.message);
			exit(EXIT_FAILURE);
		}
		close(fd);
	}
	for (int32_t r = 0; r < world->ranks; r++)
		open_rank(ranks, r);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void open_planned(struct planned *planned, const struct cluster *cluster)
{
	size_t count = (size_t)cluster->world->ranks;
	planned->events = must_allocate(count, sizeof(*planned->events));
	planned->event_count = must_allocate(count, sizeof(*planned->event_count));
	planned->computed_s = must_allocate(count, sizeof(*planned->computed_s));
	planned->work = must_allocate((size_t)cluster->layout.dp, sizeof(*planned->work));
}

void ranks_open(struct ranks *ranks, const struct wlb_verdict_layout *layout, double wanted_s, const char *attempt_id)
{
	double micro_batches = layout->pp > 4 ? layout->pp : 4;
	*ranks = (struct ranks){.cluster = cluster_new(layout), .chance = chance_of(1, 3)};
	program_init(&ranks->program, &ranks->cluster, 1);
	/* 1F1B: a stage computes for step_s times the work, and waits in a bubble. */
	ranks->times = wanted_s / (step_s * (micro_batches + layout->pp - 1) / micro_batches);
	open_planned(&ranks->shown, &ranks->cluster);
	open_planned(&ranks->next, &ranks->cluster);
	open_pages(ranks, attempt_id);
	ranks->begins_s = wlb_now_s();
}

/* Returns the computation in the middle of a rank's step. */
static int32_t middle_of(const struct program *program, int32_t rank)
{
	int32_t count, at;
	const struct operation *operations = program_operations(program, rank, &count);
	for (at = count / 2; at > 0 && operations[at].kind != OPERATION_COMPUTE;)
		at--;
	return at;
}

static const struct events *events_of(const struct planned *planned, int32_t r)
{
	return &planned->events[r];
}

static void find_pause(struct planned *planned, int32_t operation)
{
	struct pause *pause = &planned->pause;
	for (int32_t i = 0; pause->rank >= 0 && i + 1 < planned->event_count[pause->rank]; i++) {
		const struct events *events = events_of(planned, pause->rank);
		if (events->operation[i] != operation)
			continue;
		pause->began_s = events->began_s[i];
		pause->ends_s = events->began_s[i + 1];
	}
}

/* The arrays of the program become those of the plan, and the other way round. */
static void take_plan(struct planned *planned, struct program *program)
{
	struct events *events = planned->events;
	int32_t *event_count = planned->event_count;
	double *computed_s = planned->computed_s, *work = planned->work;
	planned->events = program->events;
	planned->event_count = program->event_count;
	planned->computed_s = program->trace.computed_s;
	planned->work = program->trace.work;
	program->events = events;
	program->event_count = event_count;
	program->trace.computed_s = computed_s;
	program->trace.work = work;
	planned->begins_s = program->begins_s;
	planned->ends_s = program->ends_s;
}

void ranks_plan(struct ranks *ranks, struct pause pause)
{
	struct incident incident = incident_none();
	incident.paused_rank = pause.rank;
	incident.paused_at = pause.rank >= 0 ? middle_of(&ranks->program, pause.rank) : -1;
	incident.paused_s = pause.seconds;
	program_step(&ranks->program, ranks->times, &incident);
	take_plan(&ranks->next, &ranks->program);
	ranks->next.pause = pause;
	find_pause(&ranks->next, incident.paused_at);
	if (pause.rank >= 0)
		ranks->next.computed_s[pause.rank] += pause.seconds;
}

void ranks_show(struct ranks *ranks)
{
	struct planned planned = ranks->shown;
	ranks->shown = ranks->next;
	ranks->next = planned;
	ranks->step++;
	for (int32_t r = 0; r < ranks->cluster.world->ranks; r++) {
		ranks->progress[r].position = -1;
		ranks->progress[r].computes = 0;
		wlb_rank_trace_set_step(ranks->area[r], ranks->step, ranks->shown.work[ranks->cluster.replica[r]]);
	}
}

/* ---- what a rank does -------------------------------------------------------------------------------------------- */

static const struct operation *operation_of(const struct ranks *ranks, int32_t r, int32_t position)
{
	int32_t count;
	return &program_operations(&ranks->program, r, &count)[events_of(&ranks->shown, r)->operation[position]];
}

static int is_call(const struct operation *operation)
{
	return operation->kind == OPERATION_CALL || operation->kind == OPERATION_SEND ||
	       operation->kind == OPERATION_RECEIVE;
}

static void begin_event(struct ranks *ranks, int32_t r, const struct operation *operation, double began_s)
{
	struct progress *progress = &ranks->progress[r];
	if (is_call(operation)) {
		progress->entered[operation->slot]++;
		return;
	}
	if (operation->kind == OPERATION_COMPUTE && progress->computes)
		return;
	progress->computes |= operation->kind == OPERATION_COMPUTE;
	wlb_rank_trace_set_activity(ranks->area[r],
	                            operation->kind == OPERATION_LOAD ? WLB_ACTIVITY_LOADING : WLB_ACTIVITY_COMPUTING,
	                            ranks->begins_s + began_s);
}

static void end_event(struct progress *progress, const struct operation *operation, double began_s, double ended_s)
{
	if (!is_call(operation))
		return;
	progress->left[operation->slot] = progress->entered[operation->slot];
	progress->began_s[operation->slot] = began_s;
	progress->ended_s[operation->slot] = ended_s;
}

/* The area shows which calls the rank has left, and the one that blocks it now (-1: none). */
static void show_calls(struct ranks *ranks, int32_t r, int blocked, double since_s)
{
	struct progress *progress = &ranks->progress[r];
	struct wlb_rank_trace *area = ranks->area[r];
	for (int s = 0; s < SLOTS; s++) {
		struct wlb_trace_event ended = {.kind = slots[s].kind,
		                                .group = progress->group[s],
		                                .seq = progress->left[s],
		                                .bytes = slots[s].bytes,
		                                .entered_s = ranks->begins_s + progress->began_s[s],
		                                .blocked_s = ranks->begins_s + progress->began_s[s],
		                                .left_s = ranks->begins_s + progress->ended_s[s]};
		if (progress->group[s] < 0 || progress->left[s] == progress->shown_left[s])
			continue;
		progress->shown_left[s] = progress->left[s];
		wlb_rank_trace_started(area, progress->group[s], progress->entered[s]);
		if (s == progress->blocked)
			wlb_rank_trace_leave(area, &ended);
		else
			wlb_rank_trace_ended(area, &ended);
	}
	progress->blocked = blocked;
	if (blocked < 0)
		return;
	struct wlb_trace_event entered = {.kind = slots[blocked].kind,
	                                  .group = progress->group[blocked],
	                                  .seq = progress->entered[blocked],
	                                  .bytes = slots[blocked].bytes,
	                                  .entered_s = ranks->begins_s + since_s,
	                                  .blocked_s = ranks->begins_s + since_s};
	wlb_rank_trace_enter(area, &entered);
}

/* Moves a rank to the event that it is in at a time of the run; INFINITY: the step has ended. */
static void advance(struct ranks *ranks, int32_t r, double at_s)
{
	struct progress *progress = &ranks->progress[r];
	const struct events *events = events_of(&ranks->shown, r);
	int32_t count = ranks->shown.event_count[r], before = progress->position;
	while (progress->position + 1 < count && events->began_s[progress->position + 1] <= at_s) {
		if (progress->position >= 0)
			end_event(progress, operation_of(ranks, r, progress->position),
			          events->began_s[progress->position], events->began_s[progress->position + 1]);
		progress->position++;
		begin_event(ranks, r, operation_of(ranks, r, progress->position), events->began_s[progress->position]);
	}
	if (progress->position < 0)
		return;
	const struct operation *now = operation_of(ranks, r, progress->position);
	if (isinf(at_s))
		end_event(progress, now, events->began_s[progress->position], ranks->shown.ends_s);
	if (progress->position != before || isinf(at_s))
		show_calls(ranks, r, is_call(now) && !isinf(at_s) ? (int)now->slot : -1,
		           events->began_s[progress->position]);
}

void ranks_advance(struct ranks *ranks, int32_t node)
{
	int32_t first = node * ranks->cluster.layout.ranks_per_node;
	for (int32_t r = first; r < first + ranks->cluster.layout.ranks_per_node; r++)
		advance(ranks, r, wlb_now_s() - ranks->begins_s);
}

/* ---- the end of a step ------------------------------------------------------------------------------------------- */

static void add_transfers(const struct ranks *ranks, int32_t r, struct wlb_trace_step *step)
{
	const struct events *events = events_of(&ranks->shown, r);
	int32_t count = ranks->shown.event_count[r];
	struct wlb_trace_transfer of_slot[SLOTS] = {0};
	for (int32_t i = 0; i < count; i++) {
		const struct operation *operation = operation_of(ranks, r, i);
		double ended_s = i + 1 < count ? events->began_s[i + 1] : ranks->shown.ends_s;
		if (operation->kind == OPERATION_LOAD)
			step->loader_s = ended_s - events->began_s[i];
		if (!is_call(operation))
			continue;
		of_slot[operation->slot].calls++;
		of_slot[operation->slot].bytes += slots[operation->slot].bytes;
		of_slot[operation->slot].blocked_s += ended_s - events->began_s[i];
	}
	for (int s = 0; s < SLOTS; s++) {
		if (of_slot[s].calls == 0)
			continue;
		step->transfers[step->transfer_count] = of_slot[s];
		step->transfers[step->transfer_count++].group = ranks->progress[r].group[s];
	}
}

static void end_step(struct ranks *ranks, int32_t r)
{
	const struct wlb_verdict_layout *layout = &ranks->cluster.layout;
	struct wlb_trace_step step = {.step = ranks->step,
	                              .seconds = ranks->shown.ends_s - ranks->shown.begins_s,
	                              .computed_s = ranks->shown.computed_s[r],
	                              .work = ranks->shown.work[ranks->cluster.replica[r]],
	                              .has_loss = ranks->cluster.stage[r] == layout->pp - 1 && r % layout->tp == 0};
	if (step.has_loss)
		step.loss = 3.0 * exp(0.03 * chance_normal(&ranks->chance));
	advance(ranks, r, INFINITY);
	add_transfers(ranks, r, &step);
	wlb_rank_trace_add_step(ranks->area[r], &step);
}

void ranks_end_step(struct ranks *ranks)
{
	for (int32_t r = 0; r < ranks->cluster.world->ranks; r++)
		end_step(ranks, r);
	for (int32_t node = 0; node < ranks->cluster.world->nodes; node++)
		wlb_node_page_set_step(ranks->page[node], ranks->step);
}
