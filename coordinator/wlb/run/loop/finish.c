#include "coordinator/wlb/run/loop/finish.h"

#include <stdio.h>

#include "common/clock.h"
#include "coordinator/wlb/run/attempt/attempt.h"
#include "coordinator/wlb/run/command/input.h"
#include "coordinator/wlb/run/loop/ask_attempt.h"
#include "coordinator/wlb/run/state/deliver_records.h"
#include "coordinator/wlb/run/state/print.h"

static void write_reason(const struct wlb_run *run, const struct wlb_turn *turn, enum wlb_outcome end, char *reason,
                         size_t size)
{
	const char *last = turn->last.end_reason, *error = turn->error.message;
	struct wlb_error why = {0};
	int part = (int)wlb_text_cut(last, 200);
	reason[0] = '\0';
	switch (end) {
	case WLB_OUTCOME_COMPLETE:
		return;
	case WLB_OUTCOME_CANCELLED:
		if (turn->answer == WLB_ANSWER_NONE)
			wlb_text_format(reason, size, "%s", last);
		return;
	case WLB_OUTCOME_NOT_STARTED:
		wlb_text_format(reason, size, "%s", error);
		return;
	case WLB_OUTCOME_NOT_REQUEUED:
		wlb_text_format(reason, size, "%s; %s", last, error);
		return;
	case WLB_OUTCOME_COMMAND:
		wlb_text_format(reason, size, "%s", last);
		return;
	case WLB_OUTCOME_RESTARTS:
		wlb_text_format(reason, size, "no restart is left: --max-restarts allows no more");
		return;
	case WLB_OUTCOME_INPUT:
		wlb_run_input_check(&run->input, &why);
		wlb_text_format(reason, size, "%.*s, and there is no next attempt: %s", part, last, why.message);
		return;
	case WLB_OUTCOME_COORDINATOR:
		wlb_text_format(reason, size, "%s", turn->next.reason);
		return;
	case WLB_OUTCOME_UNAVAILABLE:
		if (run->connection != NULL)
			wlb_text_format(reason, size, "%.*s, and there is no next attempt: %.*s", part, last,
			                (int)wlb_text_cut(error, 700), error);
		else
			wlb_text_format(reason, size, "%.*s, and without a coordinator there is no next attempt", part,
			                last);
		return;
	}
}

void wlb_run_finish(struct wlb_run *run, const struct wlb_turn *turn, const struct wlb_next *next)
{
	char reason[sizeof(turn->last.end_reason) + 2 + sizeof(turn->error.message)], count[32] = "";
	const char *state = next->end == WLB_OUTCOME_COORDINATOR ? turn->state : next->state;
	if (next->end == WLB_OUTCOME_RESTARTS || next->end == WLB_OUTCOME_INPUT)
		wlb_run_print("attempt %d: %s", turn->last.number, turn->last.end_reason);
	write_reason(run, turn, next->end, reason, sizeof(reason));
	/* How many a job had before it was requeued is known with the next one. */
	if (run->attempts > 0 || run->job.restart_count == 0)
		snprintf(count, sizeof(count), " after %d attempt%s", run->attempts, run->attempts == 1 ? "" : "s");
	if (run->end_until_ms == 0)
		run->end_until_ms = wlb_clock_ms() + WLB_ATTEMPT_END_MS;
	wlb_run_deliver_last(run);
	wlb_run_end(run, wlb_turn_last(turn), state, next->exit_code, reason);
	wlb_run_print("run %s %s%s%s%s", run->id, state, count, *reason ? ": " : "", reason);
}
