#include "coordinator/wlb/asked_save.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL ? text : "";
}

static int64_t number_of(const json_t *object, const char *key)
{
	const json_t *number = json_object_get(object, key);
	return json_is_integer(number) ? (int64_t)json_integer_value(number) : -1;
}

/* The newest checkpoint of the attempt that its trainer has recorded; NULL: there is none. */
static const json_t *newest_checkpoint(const json_t *run, int64_t attempt)
{
	const json_t *checkpoint, *newest = NULL;
	size_t i;
	json_array_foreach(json_object_get(run, "checkpoints"), i, checkpoint)
	{
		if (number_of(checkpoint, "attempt") == attempt &&
		    !json_is_true(json_object_get(checkpoint, "is_seen")) &&
		    number_of(checkpoint, "step") >= number_of(newest, "step"))
			newest = checkpoint;
	}
	return newest;
}

/* Counts the attempt's saves that failed. *detail is that of the newest. */
static size_t count_failures(const json_t *run, int64_t attempt, const char **detail)
{
	const json_t *event;
	size_t i, count = 0;
	json_array_foreach(json_object_get(run, "events"), i, event)
	{
		if (number_of(event, "attempt") != attempt || strcmp(text_of(event, "kind"), "checkpoint_failed") != 0)
			continue;
		count++;
		*detail = text_of(event, "detail");
	}
	return count;
}

static const json_t *newest_attempt(const json_t *run)
{
	const json_t *attempts = json_object_get(run, "attempts");
	return json_array_get(attempts, json_array_size(attempts) - 1);
}

/* Only a trainer that says so saves at the signal, and the reply has `output` for the owner, SlurmUser and root alone.
 */
static int check(const json_t *run, const json_t *attempt, struct wlb_error *error)
{
	const char *name = text_of(run, "run_id"), *state = text_of(attempt, "state");
	long long number = (long long)number_of(attempt, "attempt");
	if (json_is_string(json_object_get(run, "ended_at")))
		return wlb_fail(error, "run %s: it has ended (%s): its checkpoints are in 'wlb show %s'", name,
		                text_of(run, "state"), name);
	if (strcmp(state, "running") != 0)
		return wlb_fail(error, "run %s: no attempt of it trains now (%s): ask again once one does", name,
		                attempt != NULL ? state : text_of(run, "state"));
	if (!json_is_true(json_object_get(attempt, "saves_on_request")))
		return wlb_fail(
			error,
			"run %s: attempt %lld has not said that it saves at SIGUSR2, which would end a program that "
			"does not expect it. wlb-worker says so where it has --save DIR and srun starts it without a "
			"script between; another trainer saves by its own rules, or where wlb.should_stop() asks it",
			name, number);
	if (!json_is_object(json_object_get(attempt, "output")))
		return wlb_fail(
			error,
			"run %s: only its owner, SlurmUser and root may have it saved, and only where wlb run has "
			"started it",
			name);
	return 0;
}

int wlb_asked_save_find(const json_t *run, struct wlb_asked_save *asked, struct wlb_error *error)
{
	const json_t *attempt = newest_attempt(run);
	const char *detail, *step = text_of(json_object_get(attempt, "output"), "slurm_step");
	*asked = (struct wlb_asked_save){.attempt = number_of(attempt, "attempt")};
	if (check(run, attempt, error) != 0)
		return -1;
	if (sscanf(step, "%" SCNu32 ".%" SCNu32, &asked->job_id, &asked->step_id) != 2)
		return wlb_fail(error,
		                "run %s: the Slurm step of attempt %" PRId64
		                " is not known yet: ask again in some seconds",
		                text_of(run, "run_id"), asked->attempt);
	/* A save of the last step may be under way. */
	int64_t saved = number_of(newest_checkpoint(run, asked->attempt), "step");
	int64_t before_last = number_of(attempt, "last_step") - 1;
	asked->after_step = saved > before_last ? saved : before_last;
	asked->failures = count_failures(run, asked->attempt, &detail);
	return 0;
}

enum wlb_asked_save_state wlb_asked_save_look(const json_t *run, const struct wlb_asked_save *asked,
                                              const json_t **saved, struct wlb_error *error)
{
	const char *name = text_of(run, "run_id"), *detail = "";
	const json_t *attempt = newest_attempt(run);
	*saved = newest_checkpoint(run, asked->attempt);
	if (number_of(*saved, "step") > asked->after_step)
		return WLB_ASKED_SAVE_DONE;
	if (count_failures(run, asked->attempt, &detail) > asked->failures)
		wlb_fail(error, "run %s: %s", name, detail);
	else if (number_of(attempt, "attempt") != asked->attempt || strcmp(text_of(attempt, "state"), "running") != 0)
		wlb_fail(error, "run %s: attempt %" PRId64 " has ended before it saved: 'wlb show %s' says why", name,
		         asked->attempt, name);
	else
		return WLB_ASKED_SAVE_WAITS;
	return WLB_ASKED_SAVE_FAILED;
}
