#include "coordinator/wlbd/detection/detection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rank_trace.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/detection/calls.h"
#include "coordinator/wlbd/detection/transfers.h"
#include "libwlb/hash.h"

enum {
	/* Communicators are opened at the start; a rank that reports others again and again is not followed. */
	WORLDS_MAX = 256,
	TELL_AGAIN_MS = 30000,
	/* Where the ranks could not be watched: making their world takes a part of a second. */
	MAKE_AGAIN_MS = 30000,
	/* Of memory that libverdict holds for each rank, and for each rank of each communicator. */
	RANK_BYTES = 2048,
	MEMBER_BYTES = 384,
};
static const double cost_change = 0.2;
/* What else a network carries makes messages longer for a while: a link is slow that takes twice as long. */
static const double slow_link = 1.0;

struct wlbd_detection {
	const struct wlbd_activities *activities;
	struct wlb_verdict_detector *detector; /* NULL: the ranks are not known */
	struct wlbd_world world;
	struct wlb_layout layout; /* of that world */
	struct wlbd_detection_limits limits;
	int worlds;         /* that were made */
	char refusal[256];  /* why they could not be watched; empty: they could */
	int64_t refused_ms; /* when that was found */
	int64_t last_number;
	int64_t *fed_ms;  /* [world.verdict.ranks] when the last report that was taken had arrived */
	bool *stopped;    /* [world.verdict.ranks] a signal had stopped the process in the last report that was taken */
	uint64_t *groups; /* [world.verdict.ranks] a hash of the communicators that the rank had reported */
	uint64_t nodes;   /* a hash of the nodes of the ranks */
	struct wlbd_calls *calls;
	struct wlbd_transfers *transfers;
	size_t charged_bytes; /* of the detector */
	/* What a detector of so many ranks was found to need; 0: none was made yet. */
	size_t needed_bytes;
	int needed_ranks;
	struct wlbd_found_verdict list[2 * WLBD_VERDICTS_MAX];
	int count;
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int charge(struct wlbd_detection *detection, size_t bytes)
{
	const struct wlbd_activities *activities = detection->activities;
	if (wlbd_budget_take(activities->budget, activities->uid, bytes) != WLBD_BUDGET_TAKEN)
		return -1;
	detection->charged_bytes += bytes;
	return 0;
}

static void give_back(struct wlbd_detection *detection)
{
	wlbd_budget_give(detection->activities->budget, detection->activities->uid, detection->charged_bytes);
	detection->charged_bytes = 0;
}

struct wlbd_detection *wlbd_detection_new(const struct wlbd_activities *activities)
{
	struct wlbd_detection *detection = NULL;
	if (wlbd_budget_take(activities->budget, activities->uid, sizeof(*detection)) != WLBD_BUDGET_TAKEN)
		return NULL;
	detection = calloc(1, sizeof(*detection));
	if (detection != NULL)
		detection->activities = activities;
	else
		wlbd_budget_give(activities->budget, activities->uid, sizeof(*detection));
	return detection;
}

static void clear_world(struct wlbd_detection *detection)
{
	wlb_verdict_free(detection->detector);
	detection->detector = NULL;
	wlbd_world_free(&detection->world);
	free(detection->fed_ms);
	free(detection->stopped);
	free(detection->groups);
	wlbd_calls_free(detection->calls);
	wlbd_transfers_free(detection->transfers);
	detection->fed_ms = NULL;
	detection->stopped = NULL;
	detection->groups = NULL;
	detection->calls = NULL;
	detection->transfers = NULL;
	give_back(detection);
}

void wlbd_detection_free(struct wlbd_detection *detection)
{
	if (detection == NULL)
		return;
	clear_world(detection);
	wlbd_budget_give(detection->activities->budget, detection->activities->uid, sizeof(*detection));
	free(detection);
}

/* ---- the ranks and their communicators --------------------------------------------------------------------------- */

/* A hash of the names and sizes of the communicators that a rank reports; 0: it has not reported. */
static uint64_t hash_groups(const struct wlbd_kept_activity *kept)
{
	uint64_t hash = WLB_HASH_OF_NOTHING;
	for (int i = 0; kept != NULL && i < kept->activity.group_count; i++)
		hash = wlb_hash_text(wlb_hash_number(hash, (uint64_t)kept->groups[i].ranks), kept->groups[i].name);
	return kept != NULL ? hash : 0;
}

/* The nodes of the ranks are known from the attempt's JSON, and again from the record of its rank 0, which is the
 * user's and may differ. */
static uint64_t hash_nodes(const struct wlbd_attempt_ranks *ranks)
{
	uint64_t hash = WLB_HASH_OF_NOTHING;
	for (int node = 0; node < ranks->nodes; node++)
		hash = wlb_hash_number(wlb_hash_text(hash, ranks->node_names[node]), UINT64_C(1) << 32);
	for (int rank = 0; rank < ranks->count; rank++)
		hash = wlb_hash_number(hash, (uint64_t)ranks->node_of[rank]);
	return hash;
}

/* Whether the detector is of these ranks, as far as they have reported. */
static bool is_current(const struct wlbd_detection *detection, const struct wlbd_attempt_ranks *ranks,
                       const struct wlbd_detection_limits *limits)
{
	if (detection->detector == NULL || detection->world.verdict.ranks != ranks->count ||
	    memcmp(&detection->layout, ranks->layout, sizeof(detection->layout)) != 0 ||
	    memcmp(&detection->limits, limits, sizeof(*limits)) != 0)
		return false;
	if (detection->worlds >= WORLDS_MAX)
		return true;
	if (hash_nodes(ranks) != detection->nodes)
		return false;
	for (int rank = 0; rank < ranks->count; rank++)
		if (hash_groups(wlbd_activities_of(ranks->activities, rank)) != detection->groups[rank])
			return false;
	return true;
}

static size_t bytes_of(const struct wlbd_world *world)
{
	size_t members = 0, ranks = (size_t)world->verdict.ranks;
	for (int32_t g = 0; g < world->verdict.group_count; g++)
		members += (size_t)world->groups[g].count;
	return world->bytes + wlbd_calls_bytes(&world->verdict) + wlbd_transfers_bytes(world->verdict.group_count) +
	       ranks * RANK_BYTES + members * MEMBER_BYTES;
}

/* Makes the world of the ranks, which takes a part of a second, only where there is memory for it, as far as its need
 * is known: the need of the ranks alone or, where the world was made before, its whole need. */
static int make_world(struct wlbd_detection *detection, const struct wlbd_attempt_ranks *ranks)
{
	size_t min_bytes = (size_t)ranks->count * RANK_BYTES;
	if (detection->needed_ranks == ranks->count)
		min_bytes = detection->needed_bytes;
	if (charge(detection, min_bytes) != 0 || wlbd_world_make(ranks, &detection->world) != 0)
		return -1;
	detection->needed_ranks = ranks->count;
	detection->needed_bytes = bytes_of(&detection->world);
	give_back(detection);
	return charge(detection, detection->needed_bytes);
}

/* Leaves in `error` why there is none. */
static int make_detector(struct wlbd_detection *detection, const struct wlbd_attempt_ranks *ranks,
                         const struct wlbd_detection_limits *limits, struct wlb_verdict_error *error)
{
	struct wlbd_world *world = &detection->world;
	struct wlb_verdict_options options;
	size_t count = (size_t)ranks->count;
	snprintf(error->message, sizeof(error->message),
	         "its user's runs, or those of all users, hold as much memory as they may");
	if (make_world(detection, ranks) != 0)
		return -1;
	wlb_verdict_options_init(&options);
	options.confirm_s = limits->hang_after_s;
	options.suspect_s = fmin(options.suspect_s, limits->hang_after_s);
	options.patience_s = fmax(options.patience_s, limits->hang_after_s);
	options.slow_share = limits->slow_share;
	options.known_step_s = limits->known_step_s;
	options.slow_link = slow_link;
	detection->detector = wlb_verdict_new(&world->verdict, &options, error);
	detection->fed_ms = calloc(count + 1, sizeof(*detection->fed_ms));
	detection->stopped = calloc(count + 1, sizeof(*detection->stopped));
	detection->groups = calloc(count + 1, sizeof(*detection->groups));
	detection->calls = wlbd_calls_new(&world->verdict);
	detection->transfers = wlbd_transfers_new(world->verdict.group_count);
	return detection->detector == NULL || detection->fed_ms == NULL || detection->stopped == NULL ||
	                       detection->groups == NULL || detection->calls == NULL || detection->transfers == NULL
	               ? -1
	               : 0;
}

/* Returns -1 where there is no detector then. */
static int make_current(struct wlbd_detection *detection, const struct wlbd_attempt_ranks *ranks,
                        const struct wlbd_detection_limits *limits, int64_t now_ms)
{
	if (is_current(detection, ranks, limits))
		return 0;
	clear_world(detection);
	if (wlb_layout_ranks(ranks->layout) > ranks->count ||
	    (detection->refusal[0] != '\0' && now_ms - detection->refused_ms < MAKE_AGAIN_MS))
		return -1;
	detection->worlds++;
	struct wlb_verdict_error error;
	if (make_detector(detection, ranks, limits, &error) != 0) {
		memcpy(detection->refusal, error.message, sizeof(detection->refusal));
		detection->refused_ms = now_ms;
		clear_world(detection);
		return -1;
	}
	detection->refusal[0] = '\0';
	detection->layout = *ranks->layout;
	detection->limits = *limits;
	detection->nodes = hash_nodes(ranks);
	for (int rank = 0; rank < ranks->count; rank++)
		detection->groups[rank] = hash_groups(wlbd_activities_of(ranks->activities, rank));
	return 0;
}

/* ---- what ranks report ------------------------------------------------------------------------------------------- */

static enum wlb_verdict_activity activity_of(const struct wlbd_activity *activity)
{
	static const enum wlb_verdict_activity kinds[] = {
		[WLB_ACTIVITY_STARTING] = WLB_VERDICT_STARTING,     [WLB_ACTIVITY_LOADING] = WLB_VERDICT_LOADING,
		[WLB_ACTIVITY_COMPUTING] = WLB_VERDICT_COMPUTING,   [WLB_ACTIVITY_SAVING] = WLB_VERDICT_CHECKPOINT,
		[WLB_ACTIVITY_EVALUATING] = WLB_VERDICT_EVALUATION, [WLB_ACTIVITY_ENDING] = WLB_VERDICT_ENDED,
	};
	return kinds[activity->kind];
}

static enum wlb_verdict_process process_of(const struct wlbd_activity *activity)
{
	if (activity->process == WLBD_PROCESS_GONE)
		return WLB_VERDICT_GONE;
	if (activity->process == WLBD_PROCESS_STOPPED)
		return activity->is_traced ? WLB_VERDICT_TRACED : WLB_VERDICT_STOPPED;
	return WLB_VERDICT_RUNNING;
}

/* A process that a signal has continued counts as stopped for one report more: the process may still be inside the call
 * in which it was stopped, and the call then seems to hang although all its members run. */
static enum wlb_verdict_process continued_process(struct wlbd_detection *detection, int rank,
                                                  const struct wlbd_activity *activity)
{
	enum wlb_verdict_process process = process_of(activity);
	bool was_stopped = detection->stopped[rank];
	detection->stopped[rank] = process == WLB_VERDICT_STOPPED;
	return was_stopped && process == WLB_VERDICT_RUNNING ? WLB_VERDICT_STOPPED : process;
}

static void feed(struct wlbd_detection *detection, int rank, const struct wlbd_kept_activity *kept)
{
	const struct wlbd_activity *activity = &kept->activity;
	const struct wlbd_world *world = &detection->world;
	struct wlb_verdict_call calls[WLBD_ACTIVITY_GROUPS_MAX];
	struct wlb_verdict_state state = {.rank = rank,
	                                  .report = (uint64_t)kept->arrived_ms,
	                                  .arrived_s = 1e-3 * (double)kept->arrived_ms,
	                                  .activity = activity_of(activity),
	                                  .activity_s = activity->for_s,
	                                  .process = continued_process(detection, rank, activity),
	                                  .step = activity->step,
	                                  .work = activity->work,
	                                  .group = -1,
	                                  .received_bytes = -1,
	                                  .calls = calls};
	int known = (int)(world->first[rank + 1] - world->first[rank]);
	for (int i = 0; i < activity->group_count && i < known; i++) {
		int32_t group = world->group_of[world->first[rank] + (size_t)i];
		if (group < 0)
			continue;
		calls[state.call_count++] = (struct wlb_verdict_call){group, (uint64_t)kept->groups[i].entered,
		                                                      (uint64_t)kept->groups[i].left};
		if (!activity->is_in_call || activity->call.group != i)
			continue;
		state.activity = WLB_VERDICT_CALLING;
		state.activity_s = activity->call.for_s;
		state.group = group;
		state.sequence = (uint64_t)activity->call.seq;
	}
	wlb_verdict_take_state(detection->detector, &state, NULL);
	if (activity->corruption.suspects == 0)
		return;
	const struct wlb_verdict_corruption corruption = {.rank = rank,
	                                                  .step = activity->corruption.step,
	                                                  .suspects = activity->corruption.suspects,
	                                                  .first = activity->corruption.first,
	                                                  .other = activity->corruption.other};
	wlb_verdict_take_corruption(detection->detector, &corruption, NULL);
}

/* In the order in which they arrived, as far as libverdict needs it: its clock advances by the newest. */
static void feed_all(struct wlbd_detection *detection, const struct wlbd_attempt_ranks *ranks)
{
	for (int rank = 0; rank < ranks->count; rank++) {
		const struct wlbd_kept_activity *kept = wlbd_activities_of(ranks->activities, rank);
		if (kept == NULL || kept->arrived_ms <= detection->fed_ms[rank])
			continue;
		detection->fed_ms[rank] = kept->arrived_ms;
		feed(detection, rank, kept);
	}
}

/* A communicator of a rank. */
struct part_in_group {
	int32_t group; /* -1: none that has other members */
	int32_t member;
};

static struct part_in_group find_part(const struct wlbd_detection *detection, int rank, const char *name)
{
	const struct wlbd_world *world = &detection->world;
	for (size_t i = world->first[rank]; i < world->first[rank + 1]; i++)
		if (world->group_of[i] >= 0 && strcmp(world->names[world->group_of[i]], name) == 0)
			return (struct part_in_group){world->group_of[i], world->member_of[i]};
	return (struct part_in_group){-1, -1};
}

static void take_collective(void *context, const struct wlbd_seen_call *call)
{
	struct wlbd_detection *detection = context;
	const struct wlb_verdict_sample sample = {.group = call->group,
	                                          .sequence = call->seq,
	                                          .bytes = call->bytes,
	                                          .entered_s = call->entered_s,
	                                          .left_s = call->left_s,
	                                          .count = detection->world.groups[call->group].count};
	wlb_verdict_take_sample(detection->detector, &sample, NULL);
	wlbd_transfers_add(detection->transfers, call->group, wlbd_collective_transfer_s(call, sample.count),
	                   call->bytes);
}

static void take_message(void *context, int32_t group, double bytes, const struct wlbd_call_times ends[2])
{
	struct wlbd_detection *detection = context;
	const int32_t *members = detection->world.groups[group].members;
	double ahead_s[2];
	for (int i = 0; i < 2; i++)
		ahead_s[i] = wlb_verdict_clock_ahead_s(detection->detector, members[i]);
	wlbd_transfers_add(detection->transfers, group, wlbd_message_transfer_s(ends, ahead_s[0], ahead_s[1]), bytes);
}

void wlbd_detection_take_call(struct wlbd_detection *detection, const struct wlbd_rank_call *call)
{
	const struct wlbd_calls_taker taker = {detection, take_collective, take_message};
	if (detection == NULL || detection->detector == NULL || call->rank >= detection->world.verdict.ranks)
		return;
	struct part_in_group part = find_part(detection, call->rank, call->group);
	if (part.group >= 0)
		wlbd_calls_add(detection->calls, part.group, part.member, call, &taker);
}

double wlbd_detection_late_s(const struct wlbd_detection *detection, int rank)
{
	if (detection == NULL || detection->detector == NULL)
		return NAN;
	return wlb_verdict_lateness_s(detection->detector, rank);
}

void wlbd_detection_take_step(struct wlbd_detection *detection, const struct wlbd_rank_step *step)
{
	struct wlb_verdict_transfer transfers[WLBD_ACTIVITY_GROUPS_MAX];
	struct wlb_verdict_step taken = step->ended;
	if (detection == NULL || detection->detector == NULL || taken.rank >= detection->world.verdict.ranks)
		return;
	taken.transfers = transfers;
	taken.transfer_count = 0;
	for (int i = 0; i < step->transfer_count; i++) {
		struct part_in_group part = find_part(detection, taken.rank, step->transfers[i].group);
		if (part.group < 0)
			continue;
		struct wlb_verdict_transfer *transfer = &transfers[taken.transfer_count++];
		*transfer = step->transfers[i].transfer;
		transfer->group = part.group;
		/* The time for which the calls of a step blocked the rank includes its wait for other ranks. Calls of
		 * which all members have reported the times show the transfer alone. */
		double byte_s = wlbd_transfers_take(detection->transfers, part.group, taken.step);
		transfer->transfer_s = isnan(byte_s) ? -1.0 : byte_s * transfer->bytes;
	}
	wlb_verdict_take_step(detection->detector, &taken, NULL);
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

static struct wlbd_found_verdict *find_verdict(struct wlbd_detection *detection, uint64_t id)
{
	for (int i = 0; i < detection->count; i++)
		if (detection->list[i].verdict.id == id && detection->list[i].reported.world == detection->worlds)
			return &detection->list[i];
	return NULL;
}

static struct wlbd_found_verdict *add_verdict(struct wlbd_detection *detection)
{
	if (detection->count == 2 * WLBD_VERDICTS_MAX)
		return NULL;
	struct wlbd_found_verdict *found = &detection->list[detection->count++];
	*found = (struct wlbd_found_verdict){.number = ++detection->last_number, .reported.world = detection->worlds};
	return found;
}

static int given_node(const struct wlbd_detection *detection, int32_t node)
{
	return node >= 0 ? detection->world.given_node[node] : -1;
}

static void describe(const struct wlbd_detection *detection, const struct wlb_verdict *verdict,
                     struct wlbd_found_verdict *found)
{
	const struct wlbd_world *world = &detection->world;
	found->verdict = *verdict;
	found->verdict.node = given_node(detection, verdict->node);
	found->collective[0] = '\0';
	if (verdict->group >= 0)
		memcpy(found->collective, world->names[verdict->group], sizeof(found->collective));
	for (int i = 0; i < verdict->rank_count && i < WLB_VERDICT_RANKS; i++)
		found->node_of[i] = given_node(detection, world->node_of[verdict->ranks[i]]);
}

static bool is_other_cost(double reported, double now)
{
	if (reported < 0 || now < 0)
		return (reported < 0) != (now < 0);
	return fabs(now - reported) > cost_change * fmax(now, reported);
}

static void note_change(struct wlbd_found_verdict *found, bool is_new, int64_t now_ms)
{
	const struct wlb_verdict *verdict = &found->verdict;
	found->is_changed = is_new || verdict->stage != found->reported.stage ||
	                    verdict->rank_count != found->reported.rank_count ||
	                    now_ms - found->reported.at_ms > TELL_AGAIN_MS ||
	                    is_other_cost(found->reported.cost_percent, verdict->cost_percent);
	if (!found->is_changed)
		return;
	found->reported.at_ms = now_ms;
	found->reported.stage = verdict->stage;
	found->reported.rank_count = verdict->rank_count;
	found->reported.cost_percent = verdict->cost_percent;
}

static void take_verdict(struct wlbd_detection *detection, const struct wlb_verdict *verdict, int64_t now_ms)
{
	struct wlbd_found_verdict *found = find_verdict(detection, verdict->id);
	bool is_new = found == NULL;
	if (is_new)
		found = add_verdict(detection);
	if (found == NULL)
		return;
	describe(detection, verdict, found);
	note_change(found, is_new, now_ms);
}

/* Verdicts of a detector that is there no more. */
static void end_all(struct wlbd_detection *detection)
{
	for (int i = 0; i < detection->count; i++) {
		detection->list[i].verdict.stage = WLB_VERDICT_OVER;
		detection->list[i].is_changed = true;
	}
}

static void forget_over(struct wlbd_detection *detection)
{
	int kept = 0;
	for (int i = 0; i < detection->count; i++)
		if (detection->list[i].verdict.stage != WLB_VERDICT_OVER)
			detection->list[kept++] = detection->list[i];
	detection->count = kept;
}

const struct wlbd_found_verdict *wlbd_detection_judge(struct wlbd_detection *detection,
                                                      const struct wlbd_attempt_ranks *ranks,
                                                      const struct wlbd_detection_limits *limits, int64_t now_ms,
                                                      int *count)
{
	struct wlb_verdict verdicts[WLBD_VERDICTS_MAX];
	forget_over(detection);
	if (!is_current(detection, ranks, limits))
		end_all(detection);
	if (make_current(detection, ranks, limits, now_ms) == 0) {
		feed_all(detection, ranks);
		int32_t found =
			wlb_verdict_judge(detection->detector, 1e-3 * (double)now_ms, verdicts, WLBD_VERDICTS_MAX);
		for (int32_t i = 0; i < found && i < WLBD_VERDICTS_MAX; i++)
			take_verdict(detection, &verdicts[i], now_ms);
	}
	*count = detection->count;
	return detection->list;
}

bool wlbd_detection_watches(const struct wlbd_detection *detection)
{
	return detection->detector != NULL;
}

const char *wlbd_detection_refusal(const struct wlbd_detection *detection, int64_t now_ms)
{
	return detection->refusal[0] != '\0' && detection->refused_ms == now_ms ? detection->refusal : NULL;
}

const struct wlbd_found_verdict *wlbd_detection_open(const struct wlbd_detection *detection, int *count)
{
	*count = detection != NULL ? detection->count : 0;
	return detection != NULL ? detection->list : NULL;
}

int wlbd_detection_open_calls(const struct wlbd_detection *detection, struct wlbd_open_call calls[WLBD_OPEN_CALLS_MAX])
{
	if (detection == NULL || detection->detector == NULL)
		return 0;
	return wlbd_open_calls_find(&detection->world, detection->activities, calls);
}
