#include "coordinator/wlb/run/rules/next_rule.h"

#include <signal.h>

#include "common/command.h"
#include "common/exit_saved.h"

/* Until so long before the job's end the coordinator may decide on an attempt that has failed and saved nothing. */
static const double ASK_S = 20.0;

static int nonzero(int exit_code, int otherwise)
{
	return exit_code != 0 ? exit_code : otherwise;
}

static int last_code(const struct wlb_next_facts *facts)
{
	return facts->has_attempt ? facts->exit_code : 0;
}

static struct wlb_next finish(enum wlb_outcome end, const char *state, int exit_code)
{
	return (struct wlb_next){.step = WLB_NEXT_FINISH, .end = end, .state = state, .exit_code = exit_code};
}

static struct wlb_next fail(const struct wlb_next_facts *facts, enum wlb_outcome end)
{
	return finish(end, "failed", nonzero(last_code(facts), WLB_EXIT_FAILED));
}

static struct wlb_next requeue(const struct wlb_next_facts *facts, enum wlb_next_step step)
{
	return (struct wlb_next){.step = step, .exit_code = nonzero(last_code(facts), WLB_EXIT_SAVED)};
}

/* A signal that comes while the next attempt is decided is not how the attempt before ended. */
static struct wlb_next cancel(const struct wlb_next_facts *facts)
{
	int exit_code = facts->answer == WLB_ANSWER_NONE ? last_code(facts) : 0;
	return finish(WLB_OUTCOME_CANCELLED, "cancelled", nonzero(exit_code, 128 + SIGTERM));
}

/* The first attempt starts however late it is: a requeue would not change how much time is left then. */
static struct wlb_next start(const struct wlb_next_facts *facts, enum wlb_next_step step)
{
	if (facts->has_attempt && facts->is_late)
		return requeue(facts, WLB_NEXT_REQUEUE);
	return (struct wlb_next){.step = step};
}

/* A run begins without a coordinator that does not answer. After a fault nobody else knows which nodes are usable. */
static struct wlb_next without_coordinator(const struct wlb_next_facts *facts)
{
	if (!facts->has_attempt || (!facts->has_coordinator && facts->stopped))
		return start(facts, WLB_NEXT_START_ALONE);
	return fail(facts, WLB_OUTCOME_UNAVAILABLE);
}

/* Whether this job has no time for a next attempt, so that the coordinator need not decide on one. An attempt that has
 * failed and saved nothing may fail as often as the job is requeued. The coordinator counts such attempts, so it is
 * asked as long as there is time. */
static bool is_last_of_job(const struct wlb_next_facts *facts)
{
	if (facts->stopped && facts->stop != WLB_RUN_STOP_GROW)
		return true;
	if (!facts->stopped && (facts->exit_code == 0 || facts->exit_code == WLB_EXIT_USAGE))
		return false;
	return facts->is_late && (facts->stopped || facts->has_saved || facts->left_s <= ASK_S);
}

static bool grows_by_requeue(const struct wlb_next_facts *facts)
{
	return facts->stopped && facts->stop == WLB_RUN_STOP_GROW && facts->is_grown_by_job && !facts->growth_failed;
}

/* The coordinator has not decided. An attempt that has stopped so that the run can grow has not failed. */
static struct wlb_next after_attempt(const struct wlb_next_facts *facts)
{
	if (is_last_of_job(facts))
		return requeue(facts, WLB_NEXT_REQUEUE);
	if (grows_by_requeue(facts))
		return requeue(facts, WLB_NEXT_REQUEUE_TO_GROW);
	if (facts->exit_code == 0 && !facts->stopped)
		return finish(WLB_OUTCOME_COMPLETE, "complete", 0);
	if (facts->is_refused)
		return fail(facts, WLB_OUTCOME_COMMAND);
	if (facts->failures > facts->max_restarts)
		return fail(facts, WLB_OUTCOME_RESTARTS);
	if (!facts->has_input)
		return fail(facts, WLB_OUTCOME_INPUT);
	return (struct wlb_next){.step = WLB_NEXT_WAIT};
}

struct wlb_next wlb_next_decide(const struct wlb_next_facts *facts)
{
	if (facts->is_abandoned)
		return (struct wlb_next){.step = WLB_NEXT_LEAVE, .exit_code = WLB_EXIT_FAILED};
	if (facts->requeue_failed)
		return finish(WLB_OUTCOME_NOT_REQUEUED, facts->stopped ? "cancelled" : "failed",
		              nonzero(last_code(facts), WLB_EXIT_SAVED));
	if (facts->is_cancelled)
		return cancel(facts);
	if (facts->is_not_started)
		return fail(facts, WLB_OUTCOME_NOT_STARTED);
	switch (facts->answer) {
	case WLB_ANSWER_START:
		return start(facts, WLB_NEXT_START);
	case WLB_ANSWER_STOP:
		return fail(facts, WLB_OUTCOME_COORDINATOR);
	case WLB_ANSWER_UNAVAILABLE:
	case WLB_ANSWER_REFUSED:
		return without_coordinator(facts);
	case WLB_ANSWER_NONE:
	case WLB_ANSWER_WAIT:
		break;
	}
	return facts->has_attempt ? after_attempt(facts) : (struct wlb_next){.step = WLB_NEXT_WAIT};
}
