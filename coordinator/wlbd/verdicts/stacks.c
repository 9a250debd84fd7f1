#include "coordinator/wlbd/verdicts/stacks.h"

#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/wlbd.h"

/* `wlb run` and trainers that report themselves gather no stacks. */
static bool can_gather(const struct wlbd_reporter *reporter)
{
	return reporter->agent && !reporter->goodbye && reporter->connection != NULL;
}

static int count_agents(const struct wlbd_attempt *attempt)
{
	const struct wlbd_reporter *reporter;
	int count = 0;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	count += can_gather(reporter);
	return count;
}

static void record(const struct wlbd_attempt *attempt)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_integer(&params, attempt->stacks.id);
	wlbd_params_add_integer(&params, attempt->stacks.nodes);
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->uid, attempt->run_pk,
	                "select wlb_stacks_begin($1, $2, $3::integer)", &params);
}

int64_t wlbd_stacks_ask(struct wlbd_attempt *attempt)
{
	struct wlbd_stacks *stacks = &attempt->stacks;
	int64_t now_ms = wlb_clock_ms(), now_s = (int64_t)wlb_clock_unix_s();
	if (wlbd_attempt_has_ended(&attempt->incident.life))
		return 0;
	if (stacks->id != 0 && now_ms - stacks->asked_ms < WLBD_STACKS_PERIOD_MS)
		return stacks->id;
	int nodes = count_agents(attempt);
	if (nodes == 0)
		return 0;
	/* Also after a restart of wlbd the id is greater than the ids before, unless the clock was set back. */
	*stacks = (struct wlbd_stacks){
		.id = now_s > stacks->id ? now_s : stacks->id + 1, .asked_ms = now_ms, .nodes = nodes};
	attempt->wlbd->counters.stacks_asked++;
	record(attempt);
	return stacks->id;
}

bool wlbd_stacks_ask_reporter(struct wlbd_reporter *reporter)
{
	const struct wlbd_stacks *stacks = &reporter->attempt->stacks;
	if (!can_gather(reporter) || stacks->id == 0 || reporter->stacks_id == stacks->id ||
	    wlb_clock_ms() - stacks->asked_ms > WLBD_STACKS_ASK_MS)
		return false;
	reporter->stacks_id = stacks->id;
	return true;
}

void wlbd_stacks_note_stored(struct wlbd_attempt *attempt, const char *node, int64_t stacks_id)
{
	struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->agent && strcmp(reporter->node, node) == 0)
		reporter->stacks_stored_id = stacks_id;
}

bool wlbd_stacks_are_complete(const struct wlbd_attempt *attempt, int64_t now_ms)
{
	const struct wlbd_reporter *reporter;
	if (now_ms - attempt->stacks.asked_ms > WLBD_STACKS_ANSWER_MS)
		return true;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (can_gather(reporter) && reporter->stacks_stored_id != attempt->stacks.id)
		return false;
	return true;
}
