#include "coordinator/wlbd/detection/calls.h"

#include <math.h>
#include <stdlib.h>

/* Calls of a group that are collected at a time. The reports of two nodes are up to two seconds apart, and in that time
 * the members of a small run report up to 8 calls a second, the members of a large run fewer (common/call_choice.h). */
enum { CALLS_OF_SMALL = 24, CALLS_OF_LARGE = 4, SMALL_MEMBERSHIPS = 4096 };

/* A rank that does nothing between entering a call and waiting in it waits within this time. */
static const double at_once_s = 1e-3;

struct collected {
	uint64_t seq;
	uint64_t order; /* in which calls of the group began to be reported */
	double bytes;
	int32_t reported; /* members; 0: the place is free */
	int32_t usable;   /* of the members that reported it: members with times */
};

struct wlbd_calls {
	const struct wlb_verdict_world *world;
	size_t group_max; /* calls of a group */
	uint64_t order;
	struct collected *collected; /* [groups][group_max] */
	size_t *first;               /* [groups] memberships of the groups before */
	/* [memberships][group_max]: the times of a call are side by side. NaN: not reported; entered_s and left_s are
	 * NaN also where they tell nothing. */
	double *entered_s, *blocked_s, *left_s;
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t count_memberships(const struct wlb_verdict_world *world)
{
	size_t count = 0;
	for (int32_t g = 0; g < world->group_count; g++)
		count += (size_t)world->groups[g].count;
	return count;
}

static size_t group_calls_max(size_t memberships)
{
	return memberships <= SMALL_MEMBERSHIPS ? CALLS_OF_SMALL : CALLS_OF_LARGE;
}

size_t wlbd_calls_bytes(const struct wlb_verdict_world *world)
{
	size_t memberships = count_memberships(world), groups = (size_t)world->group_count,
	       max = group_calls_max(memberships);
	return memberships * max * 3 * sizeof(double) + groups * (sizeof(size_t) + max * sizeof(struct collected));
}

struct wlbd_calls *wlbd_calls_new(const struct wlb_verdict_world *world)
{
	struct wlbd_calls *calls = calloc(1, sizeof(*calls));
	if (calls == NULL)
		return NULL;
	size_t memberships = count_memberships(world), groups = (size_t)world->group_count;
	calls->world = world;
	calls->group_max = group_calls_max(memberships);
	calls->collected = calloc(groups * calls->group_max + 1, sizeof(*calls->collected));
	calls->first = calloc(groups + 1, sizeof(*calls->first));
	calls->entered_s = calloc(memberships * calls->group_max + 1, sizeof(*calls->entered_s));
	calls->blocked_s = calloc(memberships * calls->group_max + 1, sizeof(*calls->blocked_s));
	calls->left_s = calloc(memberships * calls->group_max + 1, sizeof(*calls->left_s));
	if (calls->collected == NULL || calls->first == NULL || calls->entered_s == NULL || calls->blocked_s == NULL ||
	    calls->left_s == NULL) {
		wlbd_calls_free(calls);
		return NULL;
	}
	for (size_t g = 1; g < groups; g++)
		calls->first[g] = calls->first[g - 1] + (size_t)world->groups[g - 1].count;
	return calls;
}

void wlbd_calls_free(struct wlbd_calls *calls)
{
	if (calls == NULL)
		return;
	free(calls->collected);
	free(calls->first);
	free(calls->entered_s);
	free(calls->blocked_s);
	free(calls->left_s);
	free(calls);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Where the times of the members of the call in a place are. */
static size_t times_at(const struct wlbd_calls *calls, int32_t group, size_t place)
{
	return calls->first[group] * calls->group_max + place * (size_t)calls->world->groups[group].count;
}

static void give_message(const struct wlbd_calls *calls, int32_t group, size_t start, double bytes,
                         const struct wlbd_calls_taker *taker)
{
	const struct wlbd_call_times ends[2] = {
		{calls->entered_s[start], calls->blocked_s[start], calls->left_s[start]},
		{calls->entered_s[start + 1], calls->blocked_s[start + 1], calls->left_s[start + 1]}};
	taker->take_message(taker->context, group, bytes, ends);
}

static void give(const struct wlbd_calls *calls, int32_t group, size_t place, const struct wlbd_calls_taker *taker)
{
	const struct wlb_verdict_group *of = &calls->world->groups[group];
	size_t start = times_at(calls, group, place);
	const struct collected *collected = &calls->collected[(size_t)group * calls->group_max + place];
	if (of->kind == WLB_VERDICT_PP) {
		if (collected->reported == of->count)
			give_message(calls, group, start, collected->bytes, taker);
		return;
	}
	const struct wlbd_seen_call call = {.group = group,
	                                    .seq = collected->seq,
	                                    .bytes = collected->bytes,
	                                    .entered_s = &calls->entered_s[start],
	                                    .blocked_s = &calls->blocked_s[start],
	                                    .left_s = &calls->left_s[start]};
	if (collected->usable >= 2)
		taker->take_collective(taker->context, &call);
}

/* Returns the place of the call. A call without a place takes a free one, or else the place of the oldest call, which
 * is given to the taker first. */
static size_t place_of(struct wlbd_calls *calls, int32_t group, uint64_t seq, const struct wlbd_calls_taker *taker)
{
	struct collected *list = &calls->collected[(size_t)group * calls->group_max];
	size_t best = 0;
	for (size_t i = 0; i < calls->group_max; i++) {
		if (list[i].reported > 0 && list[i].seq == seq)
			return i;
		if ((list[i].reported > 0 ? list[i].order : 0) < (list[best].reported > 0 ? list[best].order : 0))
			best = i;
	}
	if (list[best].reported > 0)
		give(calls, group, best, taker);
	list[best] = (struct collected){.seq = seq, .order = ++calls->order};
	size_t start = times_at(calls, group, best);
	for (size_t i = start; i < start + (size_t)calls->world->groups[group].count; i++)
		calls->entered_s[i] = calls->blocked_s[i] = calls->left_s[i] = NAN;
	return best;
}

bool wlbd_call_is_awaited_at_once(double entered_s, double blocked_s)
{
	return blocked_s - entered_s <= at_once_s;
}

void wlbd_calls_add(struct wlbd_calls *calls, int32_t group, int32_t member, const struct wlbd_rank_call *call,
                    const struct wlbd_calls_taker *taker)
{
	const struct wlb_verdict_group *of = &calls->world->groups[group];
	size_t place = place_of(calls, group, (uint64_t)call->seq, taker);
	size_t start = times_at(calls, group, place) + (size_t)member;
	struct collected *collected = &calls->collected[(size_t)group * calls->group_max + place];
	if (!isnan(calls->blocked_s[start]))
		return;
	collected->reported++;
	collected->bytes = (double)call->bytes;
	calls->blocked_s[start] = call->blocked_s;
	if (of->kind == WLB_VERDICT_PP || wlbd_call_is_awaited_at_once(call->entered_s, call->blocked_s)) {
		collected->usable++;
		calls->entered_s[start] = call->entered_s;
		calls->left_s[start] = call->left_s;
	}
	if (collected->reported < of->count)
		return;
	give(calls, group, place, taker);
	collected->reported = 0;
}
