#include "coordinator/wlbd/detection/standstill.h"

#include "common/rank_trace.h"
#include "libwlb/hash.h"

enum { MOVES_MIN = 3 }; /* the first steps take longer */
static const double times_longest = 3, aside_s = 1800;

static bool is_aside(const struct wlbd_activity *activity)
{
	return activity->kind == WLB_ACTIVITY_STARTING || activity->kind == WLB_ACTIVITY_SAVING ||
	       activity->kind == WLB_ACTIVITY_EVALUATING || activity->kind == WLB_ACTIVITY_ENDING ||
	       activity->is_traced;
}

static uint64_t hash_rank(uint64_t hash, const struct wlbd_kept_activity *kept)
{
	const struct wlbd_activity *activity = &kept->activity;
	hash = wlb_hash_number(wlb_hash_number(hash, (uint64_t)activity->step), (uint64_t)activity->kind);
	for (int i = 0; i < activity->group_count; i++)
		hash = wlb_hash_number(wlb_hash_number(hash, (uint64_t)kept->groups[i].entered),
		                       (uint64_t)kept->groups[i].left);
	return hash;
}

static uint64_t hash_progress(const struct wlbd_progress *progress, bool *someone_is_aside)
{
	uint64_t hash = wlb_hash_number(WLB_HASH_OF_NOTHING, progress->steps);
	*someone_is_aside = false;
	for (int rank = 0; rank < progress->activities->size; rank++) {
		const struct wlbd_kept_activity *kept = wlbd_activities_of(progress->activities, rank);
		if (kept == NULL)
			continue;
		*someone_is_aside = *someone_is_aside || is_aside(&kept->activity);
		hash = hash_rank(hash, kept);
	}
	return hash;
}

static double stood_s(const struct wlbd_standstill *still, int64_t now_ms)
{
	return 1e-3 * (double)(now_ms - still->since_ms);
}

double wlbd_standstill_take(struct wlbd_standstill *still, const struct wlbd_progress *progress, int64_t now_ms)
{
	uint64_t now = hash_progress(progress, &still->is_aside);
	if (still->since_ms != 0 && now == still->seen)
		return stood_s(still, now_ms);
	if (still->since_ms != 0) {
		if (still->moves >= MOVES_MIN && stood_s(still, now_ms) > still->longest_s)
			still->longest_s = stood_s(still, now_ms);
		still->moves++;
	}
	still->seen = now;
	still->since_ms = now_ms;
	return 0;
}

bool wlbd_standstill_is_long(const struct wlbd_standstill *still, double min_s, int64_t now_ms)
{
	double bound_s = times_longest * still->longest_s;
	bound_s = bound_s > min_s ? bound_s : min_s;
	bound_s = still->is_aside && bound_s < aside_s ? aside_s : bound_s;
	return still->moves >= MOVES_MIN && stood_s(still, now_ms) > bound_s;
}
