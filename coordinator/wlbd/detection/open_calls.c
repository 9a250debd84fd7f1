#include "coordinator/wlbd/detection/open_calls.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What is known of the call of a communicator that is reported: the oldest in which a member is blocked, or the newest.
 */
struct tally {
	int32_t group;
	int64_t sequence;
	int64_t newest, blocked; /* 0: none */
	int inside, missing;
	int kind;
	struct wlbd_open_call *call; /* where it is reported; NULL: it is not */
};

/* One communicator of a rank, as it was last reported. */
struct membership {
	int rank;
	struct tally *tally;
	const struct wlbd_activity *activity;
	const struct wlbd_activity_group *group;
	int index; /* of the group, of those of the rank */
};

typedef void visit_fn(const struct membership *membership);

static void visit_all(const struct wlbd_world *world, const struct wlbd_activities *activities, struct tally *tallies,
                      visit_fn *visit)
{
	for (int rank = 0; rank < world->verdict.ranks; rank++) {
		const struct wlbd_kept_activity *kept = wlbd_activities_of(activities, rank);
		int known = (int)(world->first[rank + 1] - world->first[rank]);
		for (int i = 0; kept != NULL && i < kept->activity.group_count && i < known; i++) {
			int32_t group = world->group_of[world->first[rank] + (size_t)i];
			if (group >= 0)
				visit(&(struct membership){rank, &tallies[group], &kept->activity, &kept->groups[i],
				                           i});
		}
	}
}

static bool is_inside(const struct membership *m)
{
	return m->group->entered >= m->tally->sequence && m->group->left < m->tally->sequence;
}

/* Started calls follow each other before the first of them has ended. */
static void find_call(const struct membership *m)
{
	const struct wlbd_activity *activity = m->activity;
	struct tally *tally = m->tally;
	if (m->group->entered > tally->newest)
		tally->newest = m->group->entered;
	if (activity->is_in_call && activity->call.group == m->index &&
	    (tally->blocked == 0 || activity->call.seq < tally->blocked))
		tally->blocked = activity->call.seq;
	tally->sequence = tally->blocked > 0 ? tally->blocked : tally->newest;
}

static void count(const struct membership *m)
{
	const struct wlbd_activity *activity = m->activity;
	m->tally->inside += is_inside(m);
	m->tally->missing += m->group->entered < m->tally->sequence;
	if (activity->is_in_call && activity->call.group == m->index && activity->call.seq == m->tally->sequence)
		m->tally->kind = activity->call.kind;
}

static void add_rank(struct wlbd_open_call_ranks *ranks, int rank)
{
	if (ranks->count < WLBD_OPEN_CALL_RANKS)
		ranks->list[ranks->count] = rank;
	ranks->count++;
}

static void list_ranks(const struct membership *m)
{
	struct wlbd_open_call *call = m->tally->call;
	if (call != NULL && is_inside(m))
		add_rank(&call->inside, m->rank);
	else if (call != NULL && m->group->entered < m->tally->sequence)
		add_rank(&call->missing, m->rank);
}

/* Whether a call says more than another about what is waited for. */
static bool says_more(const struct tally *a, const struct tally *b)
{
	if ((a->missing > 0) != (b->missing > 0))
		return a->missing > 0;
	return a->inside > b->inside;
}

/* Returns the best call of those that are open and not reported yet; NULL: there is none. */
static struct tally *choose(struct tally *tallies, int32_t group_count)
{
	struct tally *best = NULL;
	for (int32_t g = 0; g < group_count; g++)
		if (tallies[g].inside > 0 && tallies[g].call == NULL && (best == NULL || says_more(&tallies[g], best)))
			best = &tallies[g];
	return best;
}

int wlbd_open_calls_find(const struct wlbd_world *world, const struct wlbd_activities *activities,
                         struct wlbd_open_call calls[WLBD_OPEN_CALLS_MAX])
{
	int32_t group_count = world->verdict.group_count;
	struct tally *tallies = calloc((size_t)group_count + 1, sizeof(*tallies)), *chosen;
	int found = 0;
	if (tallies == NULL)
		return 0;
	for (int32_t g = 0; g < group_count; g++)
		tallies[g] = (struct tally){.group = g, .kind = -1};
	visit_all(world, activities, tallies, find_call);
	visit_all(world, activities, tallies, count);
	while (found < WLBD_OPEN_CALLS_MAX && (chosen = choose(tallies, group_count)) != NULL) {
		chosen->call = &calls[found++];
		*chosen->call = (struct wlbd_open_call){.kind = chosen->kind, .sequence = chosen->sequence};
		memcpy(chosen->call->communicator, world->names[chosen->group], sizeof(chosen->call->communicator));
	}
	visit_all(world, activities, tallies, list_ranks);
	free(tallies);
	return found;
}
