#include "coordinator/wlbd/incident/older_attempts.h"

#include "common/clock.h"
#include "coordinator/wlbd/incident/attempt_end.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/wlbd.h"

static int64_t newest_number(const struct wlbd_attempts *attempts, int64_t run_pk)
{
	const struct wlbd_attempt *attempt;
	int64_t newest = 0;
	TAILQ_FOREACH(attempt, &attempts->list, link)
	if (attempt->run_pk == run_pk && attempt->number > newest)
		newest = attempt->number;
	return newest;
}

/* As the database has ended it; how it ended is in records, should they arrive. */
static void end_now(struct wlbd_attempt *attempt)
{
	wlbd_attempt_end(&attempt->incident.life, WLBD_EXIT_UNKNOWN, 0, wlb_clock_ms());
	attempt->incident.settled = true;
	if (TAILQ_EMPTY(&attempt->questions) && !wlbd_attempt_end_is_pending(attempt))
		wlbd_attempts_remove(attempt->wlbd, attempt);
}

void wlbd_older_attempts_end(struct wlbd *wlbd, const struct wlbd_attempt *added)
{
	int64_t last = newest_number(wlbd->attempts, added->run_pk) - WLBD_RUN_ATTEMPTS_MOST;
	struct wlbd_attempt *next;
	for (struct wlbd_attempt *attempt = TAILQ_FIRST(&wlbd->attempts->list); attempt != NULL; attempt = next) {
		next = TAILQ_NEXT(attempt, link);
		if (attempt != added && attempt->run_pk == added->run_pk && attempt->number <= last)
			end_now(attempt);
	}
}
