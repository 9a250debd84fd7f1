/* Takes the states of ranks. */
#include <math.h>
#include <stddef.h>

#include "libverdict/bounds.h"
#include "libverdict/error.h"
#include "libverdict/job_time.h"

/* A reporter that starts anew counts its reports from 1: after this silence, or where the caller's clock was set, its
 * numbers may be less. It is measured by that clock: the job's time stands still while no report is taken. */
static const double new_reporter_s = 10.0;

/* Longer than from a report until the next judgement, which uses the gap before it. */
static const double gap_kept_s = 60.0;

static int check_state(const struct wlb_verdict_detector *detector, const struct wlb_verdict_state *state,
                       struct wlb_verdict_error *error)
{
	const struct verdict_world *world = &detector->world;
	if (state->rank < 0 || state->rank >= world->ranks)
		return verdict_fail(error, "state of rank %d: ranks are 0 to %d", state->rank, world->ranks - 1);
	if (!isfinite(state->arrived_s) || !isfinite(state->activity_s) || state->activity_s < 0.0 ||
	    !isfinite(state->work) || isnan(state->received_bytes))
		return verdict_fail(error,
		                    "state of rank %d: arrived_s %g, activity_s %g, work %g: they must be finite, "
		                    "activity_s at least 0, received_bytes not NaN",
		                    state->rank, state->arrived_s, state->activity_s, state->work);
	if (state->activity < WLB_VERDICT_STARTING || state->activity > WLB_VERDICT_ENDED ||
	    state->process < WLB_VERDICT_UNKNOWN || state->process > WLB_VERDICT_GONE)
		return verdict_fail(error,
		                    "state of rank %d: activity %d, process %d: use values of enum "
		                    "wlb_verdict_activity and enum wlb_verdict_process",
		                    state->rank, (int)state->activity, (int)state->process);
	if (state->step < -1 || state->step > INT64_MAX / 2 || state->call_count < 0 ||
	    (state->call_count > 0 && state->calls == NULL))
		return verdict_fail(error,
		                    "state of rank %d: step %lld, call_count %d: step must be -1 to 2^62 - 1, "
		                    "call_count at least 0, and calls not NULL if call_count is above 0",
		                    state->rank, (long long)state->step, state->call_count);
	if (state->group != -1 && verdict_world_find(world, state->rank, state->group) < 0)
		return verdict_fail(error,
		                    "state of rank %d: group %d: must be -1 or a group of which the rank is a member",
		                    state->rank, state->group);
	for (int32_t i = 0; i < state->call_count; i++) {
		const struct wlb_verdict_call *call = &state->calls[i];
		if (verdict_world_find(world, state->rank, call->group) < 0 || call->left > call->entered)
			return verdict_fail(error,
			                    "state of rank %d: call of group %d, entered %llu, left %llu: the rank "
			                    "must be a member, and left at most entered",
			                    state->rank, call->group, (unsigned long long)call->entered,
			                    (unsigned long long)call->left);
	}
	return 0;
}

/* A rank has entered the call that it is blocked in, whatever it reports of its calls. */
static uint64_t entered_of(const struct wlb_verdict_state *state, const struct wlb_verdict_call *call)
{
	int blocked = state->activity == WLB_VERDICT_CALLING && state->group == call->group;
	return blocked && call->entered < state->sequence ? state->sequence : call->entered;
}

/* Where it does not report of them, too. */
static void take_blocked(struct wlb_verdict_detector *detector, const struct wlb_verdict_state *state)
{
	if (state->activity != WLB_VERDICT_CALLING || state->group < 0)
		return;
	int32_t membership = verdict_world_find(&detector->world, state->rank, state->group);
	struct verdict_come *come = &detector->come[membership];
	if (come->entered < state->sequence)
		come->entered = state->sequence;
}

/* Takes how far the rank has come in its groups. Returns 1 where that has changed. Where numbers of calls begin anew,
 * the calls are new ones. */
static int take_calls(struct wlb_verdict_detector *detector, const struct wlb_verdict_state *state)
{
	int changed = 0;
	for (int32_t i = 0; i < state->call_count; i++) {
		int32_t membership = verdict_world_find(&detector->world, state->rank, state->calls[i].group);
		struct verdict_come now = {entered_of(state, &state->calls[i]), state->calls[i].left};
		struct verdict_come *come = &detector->come[membership];
		if (now.entered < come->entered)
			detector->waits.complete[state->calls[i].group] = 0;
		changed |= now.entered != come->entered || now.left != come->left;
		*come = now;
	}
	take_blocked(detector, state);
	return changed;
}

/* 1 where the rank has left its activity since its last report and is in the same again, outside calls: it has been in
 * it for clearly less than since then. Half of that, since reports are delayed by more or less. */
static int has_begun_anew(const struct wlb_verdict_state *state, const struct verdict_rank *rank, double since_report_s)
{
	return rank->seen && state->activity == rank->activity && state->activity != WLB_VERDICT_CALLING &&
	       state->activity_s > 0.0 && state->activity_s < 0.5 * since_report_s;
}

static void count_process(struct verdict_job_time *time, const struct verdict_rank *rank, int change)
{
	if (!rank->seen)
		return;
	int over = rank->process == WLB_VERDICT_GONE || rank->activity == WLB_VERDICT_ENDED;
	time->over += over ? change : 0;
	time->stopped += !over && rank->process == WLB_VERDICT_STOPPED ? change : 0;
	time->traced += !over && rank->process == WLB_VERDICT_TRACED ? change : 0;
}

/* Learns what work the steps of a rank usually have, as a geometric mean of the last ones, when a step has ended. */
static void learn_work(struct verdict_rank *rank)
{
	if (!(rank->work > 0.0))
		return;
	if (!(rank->usual_work > 0.0))
		rank->usual_work = rank->work;
	rank->usual_work *= pow(rank->work / rank->usual_work, 1.0 / 16.0);
}

/* The rank has begun something since its last report. */
static void take_progress(struct wlb_verdict_detector *detector, struct verdict_rank *rank,
                          const struct wlb_verdict_state *state)
{
	struct verdict_job_time *time = &detector->time;
	double since_report_s = rank->seen ? time->job_s - rank->seen_job_s : time->job_s;
	double ago_s = state->activity_s < since_report_s ? state->activity_s : since_report_s;
	double began_job_s = time->job_s - ago_s;
	if (rank->seen && rank->process != WLB_VERDICT_STOPPED)
		verdict_bounds_learn(detector, rank, began_job_s - rank->progress_job_s);
	rank->progress_job_s = began_job_s;
	rank->progress_s = time->now_s - ago_s;
	if (began_job_s > time->progress_job_s)
		time->progress_job_s = began_job_s;
}

/* A process that a signal has continued did not hang while it was stopped. */
static void discount_stop(const struct verdict_job_time *time, struct verdict_rank *rank, enum wlb_verdict_process now)
{
	if (rank->process == WLB_VERDICT_STOPPED && now != WLB_VERDICT_STOPPED && now != WLB_VERDICT_GONE)
		rank->progress_job_s += time->job_s - rank->stopped_job_s;
}

/* A process that is stopped again and again has begun something between two reports that show it as stopped. */
static void take_process(struct wlb_verdict_detector *detector, struct verdict_rank *rank,
                         const struct wlb_verdict_state *state, int changed)
{
	if (state->process == WLB_VERDICT_STOPPED && (changed || rank->process != WLB_VERDICT_STOPPED))
		rank->stopped_job_s = detector->time.job_s;
	if (state->process == WLB_VERDICT_GONE && rank->process != WLB_VERDICT_GONE) {
		rank->gone_seen_s = detector->time.now_s;
		rank->gone_s = detector->time.now_s - (state->activity_s < 60.0 ? state->activity_s : 60.0);
	}
	rank->process = state->process;
}

int wlb_verdict_take_state(struct wlb_verdict_detector *detector, const struct wlb_verdict_state *state,
                           struct wlb_verdict_error *error)
{
	if (check_state(detector, state, error) < 0)
		return -1;
	struct verdict_job_time *time = &detector->time;
	verdict_time_advance(time, state->arrived_s);
	struct verdict_rank *rank = &detector->rank[state->rank];
	double silence_s = time->job_s - rank->seen_job_s;
	if (rank->seen && state->report <= rank->report && fabs(time->now_s - rank->seen_s) < new_reporter_s)
		return 0;
	verdict_time_report(time);
	count_process(time, rank, -1);
	int gone = state->process == WLB_VERDICT_GONE;
	int changed = take_calls(detector, state) || !rank->seen || state->activity != rank->activity ||
	              state->step != rank->step || state->group != rank->group || state->sequence != rank->sequence ||
	              has_begun_anew(state, rank, silence_s);
	discount_stop(time, rank, state->process);
	if (changed && !gone)
		take_progress(detector, rank, state);
	if (rank->seen && (silence_s >= rank->gap_s || time->job_s - rank->gap_to_job_s > gap_kept_s)) {
		rank->gap_s = silence_s;
		rank->gap_to_job_s = time->job_s;
	}
	if (rank->seen && silence_s > detector->longest_silence_s &&
	    !verdict_has_stood_still(detector, rank->seen_job_s))
		detector->longest_silence_s = silence_s;
	if (rank->seen && state->step != rank->step)
		learn_work(rank);
	take_process(detector, rank, state, changed);
	if (state->process <= WLB_VERDICT_RUNNING && state->activity != WLB_VERDICT_ENDED)
		time->running_job_s = time->job_s;
	if (state->process == WLB_VERDICT_TRACED)
		time->traced_s = time->now_s;
	time->seen += !rank->seen;
	rank->seen = 1;
	rank->report = state->report;
	rank->seen_job_s = time->job_s;
	rank->seen_s = time->now_s;
	rank->activity = state->activity;
	rank->step = state->step;
	if (rank->first_step < 0)
		rank->first_step = state->step;
	rank->work = state->work;
	rank->group = state->activity == WLB_VERDICT_CALLING ? state->group : -1;
	rank->sequence = state->sequence;
	rank->received_bytes = state->received_bytes;
	count_process(time, rank, 1);
	return 0;
}
