#include "coordinator/wlb/run/loop/attempts.h"

#include <string.h>

#include "common/command.h"
#include "coordinator/wlb/run/attempt/attempt.h"
#include "coordinator/wlb/run/attempt/step_end.h"
#include "coordinator/wlb/run/loop/ask_attempt.h"
#include "coordinator/wlb/run/loop/finish.h"
#include "coordinator/wlb/run/loop/next.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/stop/grow.h"
#include "coordinator/wlb/run/stop/save_and_requeue.h"

static void ask(struct wlb_run *run, struct wlb_turn *turn)
{
	const struct wlb_attempt *last = wlb_turn_last(turn);
	int unavailable_s = last != NULL && last->exit_code != WLB_EXIT_USAGE ? run->options.wait_s : 0;
	if (last != NULL && turn->answer == WLB_ANSWER_NONE)
		wlb_run_print("attempt %d: %s", last->number, last->end_reason);
	wlb_attempt_free(&turn->next);
	turn->next = (struct wlb_attempt){.number = run->attempts + 1};
	if (wlb_attempt_new_id(turn->next.id, &turn->error) != 0) {
		turn->is_not_started = true;
		return;
	}
	if (run->launcher_id[0] == '\0')
		memcpy(run->launcher_id, turn->next.id, sizeof(run->launcher_id));
	turn->answer = WLB_ANSWER_UNAVAILABLE;
	if (run->connection != NULL)
		wlb_run_ask(run, turn, unavailable_s);
	wlb_run_end_orphaned_step(run);
}

static void start_next(struct wlb_run *run, struct wlb_turn *turn)
{
	turn->growth_failed = false;
	turn->is_not_started = wlb_attempt_run(run, &turn->next, &turn->error) != 0;
	wlb_attempt_free(&turn->next);
	turn->failures += !turn->next.stopped;
	turn->last = turn->next;
	turn->answer = WLB_ANSWER_NONE;
}

static void start_alone(struct wlb_run *run, struct wlb_turn *turn)
{
	if (turn->answer == WLB_ANSWER_REFUSED)
		wlb_run_print("the coordinator refuses this run, which continues without it: %s", turn->error.message);
	else if (run->connection != NULL)
		wlb_run_print("continuing without the coordinator, records wait in %s: %s", run->job.spool_dir,
		              turn->error.message);
	turn->is_not_started = wlb_attempt_decide_alone(run, &turn->next, &turn->error) != 0;
	if (!turn->is_not_started)
		start_next(run, turn);
}

/* Where Slurm does not requeue the job, the run goes on with the nodes that it has. Returns whether it does. */
static bool is_requeued_to_grow(struct wlb_run *run, struct wlb_turn *turn)
{
	bool is_wanted = wlb_run_grow_needs_requeue(run, &turn->last);
	if (is_wanted && wlb_run_requeue(run, &turn->last, &turn->error) == 0)
		return true;
	if (is_wanted)
		wlb_run_print("attempt %d: the job is not requeued to grow: %s", turn->last.number,
		              turn->error.message);
	turn->growth_failed = true;
	return false;
}

int wlb_run_attempts(struct wlb_run *run)
{
	struct wlb_turn turn = {.state = "failed"};
	struct wlb_next next;
	bool is_over = false;
	while (!is_over) {
		next = wlb_run_next(run, &turn);
		switch (next.step) {
		case WLB_NEXT_WAIT:
			ask(run, &turn);
			break;
		case WLB_NEXT_START:
			start_next(run, &turn);
			break;
		case WLB_NEXT_START_ALONE:
			start_alone(run, &turn);
			break;
		case WLB_NEXT_REQUEUE:
			turn.requeue_failed = wlb_run_requeue(run, &turn.last, &turn.error) != 0;
			is_over = !turn.requeue_failed;
			break;
		case WLB_NEXT_REQUEUE_TO_GROW:
			is_over = is_requeued_to_grow(run, &turn);
			break;
		case WLB_NEXT_FINISH:
			wlb_run_finish(run, &turn, &next);
			is_over = true;
			break;
		case WLB_NEXT_LEAVE:
			is_over = true;
			break;
		}
	}
	wlb_attempt_free(&turn.next);
	return next.exit_code;
}
