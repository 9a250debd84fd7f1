#include "coordinator/wlbd/main/tick.h"

#include "common/clock.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/incident/attempt_end.h"
#include "coordinator/wlbd/incident/requeued.h"
#include "coordinator/wlbd/incident/step_end.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/incident/unreported_nodes.h"
#include "coordinator/wlbd/verdicts/detect.h"
#include "coordinator/wlbd/wlbd.h"

/* While the database does not answer, the launcher's report of the end is stored in this memory alone. */
static bool has_recorded_for(const struct wlbd *wlbd, int64_t now_ms, int64_t ms)
{
	return wlbd->database_was_up && now_ms - wlbd->recording_since_ms >= ms;
}

static bool may_be_removed(const struct wlbd_attempt *attempt, int64_t now_ms)
{
	const struct wlbd_reporter *reporter;
	if (!TAILQ_EMPTY(&attempt->questions) || wlbd_attempt_end_is_pending(attempt))
		return false;
	if (attempt->is_run_over)
		return true;
	if (!wlbd_attempt_ended_long_ago(&attempt->incident.life, now_ms) ||
	    !has_recorded_for(attempt->wlbd, now_ms, WLBD_ENDED_KEPT_MS))
		return false;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->connection != NULL)
		return false;
	return true;
}

void wlbd_tick(struct wlbd *wlbd)
{
	int64_t now_ms = wlb_clock_ms();
	struct wlbd_attempt *next;
	wlbd->attempts->making_ms = 0;
	for (struct wlbd_attempt *attempt = TAILQ_FIRST(&wlbd->attempts->list); attempt != NULL; attempt = next) {
		next = TAILQ_NEXT(attempt, link);
		if (!wlbd_attempt_has_ended(&attempt->incident.life)) {
			wlbd_symptom_silent_reporters(attempt, now_ms);
			wlbd_unreported_nodes_check(attempt, now_ms);
			wlbd_attempt_end_kill_overdue(attempt, now_ms);
			wlbd_requeued_end(attempt, now_ms);
		}
		wlbd_step_end_check(attempt, now_ms);
		wlbd_detect(attempt, now_ms);
		if (may_be_removed(attempt, now_ms))
			wlbd_attempts_remove(wlbd, attempt);
	}
}

void wlbd_tick_suspected(struct wlbd *wlbd)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	wlbd_detect_suspected(attempt, wlb_clock_ms());
}
