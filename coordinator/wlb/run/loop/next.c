#include "coordinator/wlb/run/loop/next.h"

#include "coordinator/wlb/run/command/input.h"
#include "coordinator/wlb/run/stop/time_limit.h"

static void add_attempt(struct wlb_next_facts *facts, const struct wlb_attempt *last)
{
	facts->has_attempt = true;
	facts->exit_code = last->exit_code;
	facts->stop = last->stop;
	facts->stopped = last->stopped;
	facts->has_saved = last->has_saved;
	facts->is_refused = last->is_refused;
}

/* A run that is over does not wait for slurmctld's answer. */
static bool may_go_on(const struct wlb_next_facts *facts)
{
	return facts->has_attempt && !facts->is_abandoned && !facts->is_cancelled &&
	       (facts->exit_code != 0 || facts->stopped);
}

struct wlb_next wlb_run_next(struct wlb_run *run, const struct wlb_turn *turn)
{
	const struct wlb_attempt *last = wlb_turn_last(turn);
	struct wlb_next_facts facts = {.is_abandoned = run->abandoned,
	                               .is_cancelled = run->cancelled,
	                               .has_coordinator = run->connection != NULL,
	                               .answer = turn->answer,
	                               .is_not_started = turn->is_not_started,
	                               .failures = turn->failures,
	                               .max_restarts = run->options.max_restarts,
	                               .has_input = wlb_run_input_check(&run->input, NULL) == 0,
	                               .is_grown_by_job = run->grow.way == WLB_GROW_REQUEUE,
	                               .requeue_failed = turn->requeue_failed,
	                               .growth_failed = turn->growth_failed};
	if (last != NULL)
		add_attempt(&facts, last);
	if (may_go_on(&facts)) {
		facts.is_late = wlb_run_limit_check(run) != WLB_RUN_STOP_NONE;
		facts.left_s = wlb_run_limit_left_s(run);
	}
	return wlb_next_decide(&facts);
}
