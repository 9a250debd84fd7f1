#include "coordinator/wlbd/verdicts/detect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/detection/detection.h"
#include "coordinator/wlbd/incident/attempt_end.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/verdicts/found_verdicts.h"
#include "coordinator/wlbd/verdicts/outliers.h"
#include "coordinator/wlbd/verdicts/past_evictions.h"
#include "coordinator/wlbd/verdicts/process_faults.h"
#include "coordinator/wlbd/verdicts/rank_samples.h"
#include "coordinator/wlbd/verdicts/stacks.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	PAUSE_JUDGEMENTS = 4, /* between two of a suspected hang there are so many times the length of one */
	MAKING_MAX_MS = 250,  /* in a tick: ranks of other attempts are watched from the next one on */
};

/* Whether nodes are left for the run without the slow one. A run that hangs is ended in any case. */
static bool can_do_without(const struct wlbd_attempt *attempt)
{
	int left = attempt->nodes.started_on.count - 1 + attempt->policy.spares;
	return left >= 1 && left >= attempt->policy.min_nodes;
}

static bool is_to_end(const struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found)
{
	const struct wlb_verdict *verdict = &found->verdict;
	if (verdict->stage != WLB_VERDICT_CONFIRMED || wlbd_verdict_action(attempt, verdict->kind) != WLB_FAULT_EVICT)
		return false;
	return wlbd_verdict_stands_still(verdict->kind) ||
	       (wlbd_verdict_node(attempt, found) != NULL && attempt->excluded.is_known && can_do_without(attempt));
}

/* The verdict is stored again where it was found while the run's settings said `report`. */
static void evict(struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found, int64_t now_ms)
{
	char text[WLBD_VERDICT_TEXT_SIZE];
	wlbd_verdict_text(attempt, found, text);
	if (!found->is_changed)
		wlbd_verdict_store(attempt, found, now_ms);
	wlbd_verdict_store_fault(attempt, found);
	wlbd_attempt_end_evict(attempt, text);
	attempt->wlbd->counters.evictions++;
}

/* Stacks show what the ranks of a run that hangs do. The stacks are gathered as soon as the hang is suspected, since
 * the ranks are ended when the hang is confirmed. */
static void gather_stacks(struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found)
{
	if (wlbd_verdict_stands_still(found->verdict.kind) && found->verdict.stage != WLB_VERDICT_OVER)
		wlbd_stacks_ask(attempt);
}

/* The symptoms say how a process ended, so a process that is gone is judged by them (attempt_end.h). */
static bool is_found_otherwise(const struct wlbd_found_verdict *found)
{
	return found->verdict.kind == WLB_VERDICT_CRASH;
}

static const struct wlbd_found_verdict *judge_reports(struct wlbd_attempt *attempt, int64_t now_ms, int *count)
{
	const struct wlbd_attempt_ranks ranks = {.layout = &attempt->layout,
	                                         .count = attempt->nodes.mapped_ranks,
	                                         .node_of = attempt->nodes.node_of_rank,
	                                         .nodes = attempt->nodes.started_on.count,
	                                         .node_names = attempt->nodes.started_on.list,
	                                         .activities = &attempt->activities};
	const struct wlbd_detection_limits limits = {.hang_after_s = attempt->policy.on_fault.hang_after_s,
	                                             .slow_share = attempt->policy.on_fault.slow_by_percent / 100,
	                                             .known_step_s = attempt->past_steps.length_s};
	const struct wlbd_found_verdict *found =
		wlbd_detection_judge(attempt->watch.detection, &ranks, &limits, now_ms, count);
	const char *refusal = wlbd_detection_refusal(attempt->watch.detection, now_ms);
	if (refusal != NULL)
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_ACTIVITIES,
		                 "run %s of uid %u: its %d ranks are not watched for hangs and stragglers: %s",
		                 attempt->run, attempt->uid, ranks.count, refusal);
	return found;
}

static const struct wlbd_found_verdict *judge_in_time(struct wlbd_attempt *attempt, int64_t now_ms, int *count)
{
	struct wlbd_attempts *attempts = attempt->wlbd->attempts;
	bool is_watched = wlbd_detection_watches(attempt->watch.detection);
	int64_t began_ms = wlb_clock_ms();
	if (!is_watched && attempts->making_ms >= MAKING_MAX_MS)
		return NULL;
	const struct wlbd_found_verdict *found = judge_reports(attempt, now_ms, count);
	if (!is_watched)
		attempts->making_ms += wlb_clock_ms() - began_ms;
	return found;
}

/* The activities of ranks come from wlb-worker; of other trainers there are none. */
static bool can_judge(const struct wlbd_attempt *attempt)
{
	return attempt->layout.tp > 0 && attempt->nodes.mapped_ranks > 0 && attempt->activities.size > 0 &&
	       attempt->nodes.mapped_ranks <= WLBD_ACTIVITY_RANKS_MAX;
}

static void store_change(struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found, int64_t now_ms)
{
	if (!found->is_changed)
		return;
	wlbd_verdict_store(attempt, found, now_ms);
	gather_stacks(attempt, found);
}

/* Whether ranks that report what they do may hang: that is confirmed soon after its bound. */
static bool has_suspected_standstill(const struct wlbd_found_verdict *found, int count)
{
	for (int i = 0; i < count; i++)
		if (wlbd_verdict_stands_still(found[i].verdict.kind) && found[i].verdict.stage == WLB_VERDICT_SUSPECTED)
			return true;
	return false;
}

/* What a judgement has found so far. */
struct judgement {
	bool is_named;                          /* somebody, as the cause of a standstill */
	const struct wlbd_found_verdict *worst; /* for which the attempt is ended; NULL: none */
};

static void take_found(struct wlbd_attempt *attempt, const struct wlbd_found_verdict *found, int count,
                       struct judgement *judgement, int64_t now_ms)
{
	for (int i = 0; i < count; i++) {
		if (is_found_otherwise(&found[i]))
			continue;
		store_change(attempt, &found[i], now_ms);
		judgement->is_named |=
			wlbd_verdict_stands_still(found[i].verdict.kind) && found[i].verdict.stage != WLB_VERDICT_OVER;
		if (judgement->worst == NULL && is_to_end(attempt, &found[i]))
			judgement->worst = &found[i];
	}
}

static void judge(struct wlbd_attempt *attempt, int64_t now_ms)
{
	int count = 0;
	struct judgement judgement = {false, NULL};
	const struct wlbd_found_verdict *found = NULL;
	if (attempt->watch.detection != NULL && can_judge(attempt))
		found = judge_in_time(attempt, now_ms, &count);
	attempt->watch.is_standstill_suspected = has_suspected_standstill(found, count);
	take_found(attempt, found, count, &judgement, now_ms);
	found = wlbd_process_faults_look(attempt, now_ms, &count);
	take_found(attempt, found, count, &judgement, now_ms);
	found = wlbd_outliers_judge(attempt, judgement.is_named, now_ms);
	if (found != NULL)
		store_change(attempt, found, now_ms);
	if (found != NULL && judgement.worst == NULL && is_to_end(attempt, found))
		judgement.worst = found;
	/* A process that is gone, or a node that is lost, explains why the others hang. */
	if (judgement.worst != NULL && !wlbd_attempt_end_is_pending(attempt))
		evict(attempt, judgement.worst, now_ms);
}

/*
 * The steps that an attempt had ended before this start of wlbd watches it, as PostgreSQL has them. Their length bounds
 * what is a healthy wait: after a restart of wlbd the waits that it saw before are forgotten.
 */
static void on_past_steps(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_attempt *attempt = wlbd_attempt_ref_find(context);
	double known_s = result->status == WLBD_DB_OK && result->value != NULL ? strtod(result->value, NULL) : 0;
	if (attempt != NULL && result->status != WLBD_DB_OK)
		attempt->past_steps.is_asked = false;
	else if (attempt != NULL && isfinite(known_s) && known_s > 0)
		attempt->past_steps.length_s = known_s;
	free(context);
}

/* Asks the database, once for each attempt, how long nine of ten of its newest 256 steps were at most, since some may
 * have hung; it answers where there are more steps than those of a warm-up. */
static void ask_past_steps(struct wlbd_attempt *attempt)
{
	struct wlbd_params params = {0};
	struct wlbd_attempt_ref *ref = attempt->past_steps.is_asked ? NULL : malloc(sizeof(*ref));
	if (ref == NULL)
		return;
	*ref = wlbd_attempt_ref(attempt);
	attempt->past_steps.is_asked = true;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_db_execute(attempt->wlbd->writes,
	                "select percentile_disc(0.9) within group (order by step_time_s) from (select step_time_s from "
	                "steps where attempt_id = $1 order by step desc limit 256) as newest having count(*) > 3",
	                &params, on_past_steps, ref);
}

static void ask_past(struct wlbd_attempt *attempt)
{
	ask_past_steps(attempt);
	wlbd_past_evictions_ask(attempt);
}

void wlbd_detect(struct wlbd_attempt *attempt, int64_t now_ms)
{
	const struct wlbd_attempt_life *life = &attempt->incident.life;
	bool is_over = wlbd_attempt_end_is_known(life) || wlbd_attempt_is_ordered(life);
	if (is_over) { /* the database ends its verdicts */
		wlbd_detection_free(attempt->watch.detection);
		attempt->watch.detection = NULL;
		wlbd_outliers_forget(attempt);
		wlbd_process_faults_forget(attempt);
		attempt->watch.is_standstill_suspected = false;
		return;
	}
	if (attempt->watch.detection == NULL && can_judge(attempt))
		attempt->watch.detection = wlbd_detection_new(&attempt->activities);
	if (attempt->watch.detection != NULL)
		ask_past(attempt);
	judge(attempt, now_ms);
	if (attempt->watch.detection != NULL)
		wlbd_rank_samples_take(attempt, now_ms);
	attempt->watch.judged_ms = wlb_clock_ms();
	attempt->watch.judging_ms = attempt->watch.judged_ms - now_ms;
}

void wlbd_detect_suspected(struct wlbd_attempt *attempt, int64_t now_ms)
{
	if (attempt->watch.is_standstill_suspected &&
	    now_ms >= attempt->watch.judged_ms + PAUSE_JUDGEMENTS * attempt->watch.judging_ms)
		wlbd_detect(attempt, now_ms);
}
