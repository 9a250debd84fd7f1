#include "libverdict/wait_for.h"

#include <math.h>

#include "libverdict/bounds.h"

int verdict_is_calling(const struct verdict_rank *rank)
{
	return rank->seen && rank->group >= 0 && rank->process != WLB_VERDICT_GONE;
}

double verdict_stuck_s(const struct wlb_verdict_detector *detector, int32_t rank)
{
	return detector->time.job_s - detector->rank[rank].progress_job_s;
}

double verdict_silent_s(const struct wlb_verdict_detector *detector, int32_t rank)
{
	return detector->time.job_s - detector->rank[rank].seen_job_s;
}

int32_t verdict_count_calling(const struct wlb_verdict_detector *detector)
{
	int32_t calling = 0;
	for (int32_t r = 0; r < detector->world.ranks; r++)
		calling += verdict_is_calling(&detector->rank[r]);
	return calling;
}

/* Takes the call in which rank r is blocked, as *call, and as *waiter the rank that has waited in it longest.
 * `replaces`: it is another call than *call. */
static void take_waiter(const struct wlb_verdict_detector *detector, int32_t r, int replaces, uint64_t *call,
                        int32_t *waiter)
{
	const struct verdict_rank *rank = &detector->rank[r];
	if (*waiter < 0 || replaces || rank->progress_job_s < detector->rank[*waiter].progress_job_s)
		*waiter = r;
	*call = rank->sequence;
}

/* Finds the latest and the earliest call of each group in which a member is blocked, and who has waited in it longest.
 */
static void find_wanted(struct wlb_verdict_detector *detector)
{
	struct verdict_waits *waits = &detector->waits;
	for (int32_t g = 0; g < detector->world.groups; g++) {
		waits->wanted[g] = waits->oldest[g] = 0;
		waits->waiter[g] = waits->oldest_waiter[g] = -1;
		waits->behind[g] = waits->oldest_behind[g] = 0;
	}
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		const struct verdict_rank *rank = &detector->rank[r];
		int32_t g = rank->group;
		waits->for_call[r] = -1;
		if (!verdict_is_calling(rank))
			continue;
		if (rank->sequence >= waits->wanted[g])
			take_waiter(detector, r, rank->sequence > waits->wanted[g], &waits->wanted[g],
			            &waits->waiter[g]);
		if (waits->oldest[g] == 0 || rank->sequence <= waits->oldest[g])
			take_waiter(detector, r, rank->sequence < waits->oldest[g], &waits->oldest[g],
			            &waits->oldest_waiter[g]);
	}
}

static void find_behind(struct wlb_verdict_detector *detector)
{
	struct verdict_waits *waits = &detector->waits;
	for (int32_t m = 0; m < detector->world.memberships; m++) {
		int32_t r = detector->world.membership[m].rank, g = detector->world.membership[m].group;
		if (waits->wanted[g] == 0 || detector->come[m].entered >= waits->wanted[g])
			continue;
		waits->oldest_behind[g] += detector->come[m].entered < waits->oldest[g];
		waits->behind[g]++;
		int32_t before = waits->for_call[r];
		if (before < 0 || detector->rank[waits->waiter[g]].progress_job_s <
		                          detector->rank[waits->waiter[before]].progress_job_s)
			waits->for_call[r] = g;
	}
}

/* Returns when the last member of the group began what it does. */
static double last_progress_job_s(const struct wlb_verdict_detector *detector, int32_t g)
{
	const struct verdict_group *group = &detector->world.group[g];
	double last_s = 0.0;
	for (int32_t m = group->first; m < group->first + group->count; m++)
		last_s = fmax(last_s, detector->rank[detector->world.membership[m].rank].progress_job_s);
	return fmin(last_s, detector->time.job_s);
}

/* A call that all members had entered is over when no member is blocked in it any more, as far as they have reported:
 * from then on it is a healthy one, which teaches how long calls may take. */
static void forget_over(struct wlb_verdict_detector *detector, int32_t g)
{
	struct verdict_waits *waits = &detector->waits;
	if (waits->complete[g] == 0 || waits->oldest[g] == waits->complete[g])
		return;
	waits->complete[g] = 0;
	verdict_bounds_learn_transfer(detector, g, waits->complete_job_s[g],
	                              last_progress_job_s(detector, g) - waits->complete_job_s[g]);
}

/* Notes since when the oldest call of a group has all its members: since the last one entered it, which was reported
 * later. Members may have left the call since then and not yet have reported it, for a second or two. In some
 * collectives a member may leave before others have received all, and is blocked in the next call then. */
static void note_complete(struct wlb_verdict_detector *detector)
{
	struct verdict_waits *waits = &detector->waits;
	for (int32_t g = 0; g < detector->world.groups; g++) {
		forget_over(detector, g);
		if (waits->oldest[g] == 0 || waits->oldest_behind[g] > 0 || waits->complete[g] == waits->oldest[g])
			continue;
		waits->complete[g] = waits->oldest[g];
		waits->complete_job_s[g] = last_progress_job_s(detector, g);
	}
}

void verdict_waits_find(struct wlb_verdict_detector *detector)
{
	find_wanted(detector);
	find_behind(detector);
	note_complete(detector);
	/* A process that is stopped inside a call keeps the others in it. */
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		const struct verdict_rank *rank = &detector->rank[r];
		if (rank->process == WLB_VERDICT_STOPPED && detector->waits.for_call[r] < 0 &&
		    verdict_is_calling(rank) && detector->waits.behind[rank->group] == 0)
			detector->waits.for_call[r] = rank->group;
	}
}

int32_t verdict_waits_for(const struct wlb_verdict_detector *detector, int32_t rank)
{
	const struct verdict_rank *waiting = &detector->rank[rank];
	if (!verdict_is_calling(waiting))
		return -1;
	const struct verdict_group *group = &detector->world.group[waiting->group];
	for (int32_t m = group->first; m < group->first + group->count; m++)
		if (detector->come[m].entered < waiting->sequence)
			return detector->world.membership[m].rank;
	return -1;
}
