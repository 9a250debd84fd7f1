/* wlb save: asks a run for a checkpoint now. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/output/printable.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/asked_save.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/run_name.h"

enum { PERIOD_MS = 1000, WAIT_MAX_S = 3600 };

struct request {
	const char *name;
	int wait_s;
};

static json_t *read_run(const struct request *request, struct wlb_error *error)
{
	char path[128];
	snprintf(path, sizeof(path), "/v1/runs/%s", request->name);
	json_t *run = wlb_api_get(path, error);
	if (run != NULL && wlb_make_printable(run) != 0) {
		json_decref(run);
		run = NULL;
		wlb_fail(error, "out of memory for the run");
	}
	return run;
}

static int find(const struct request *request, struct wlb_asked_save *asked, struct wlb_error *error)
{
	json_t *run = read_run(request, error);
	int rc = run != NULL ? wlb_asked_save_find(run, asked, error) : -1;
	json_decref(run);
	return rc;
}

static int print(const struct request *request, const json_t *saved, struct wlb_error *error)
{
	if (printf("run %s: step %" JSON_INTEGER_FORMAT " is saved: %s\n", request->name,
	           json_integer_value(json_object_get(saved, "step")),
	           json_string_value(json_object_get(saved, "path"))) < 0)
		return wlb_fail(error, "standard output cannot be written");
	return 0;
}

static int await(const struct request *request, const struct wlb_asked_save *asked, struct wlb_error *error)
{
	int64_t until_ms = wlb_clock_ms() + INT64_C(1000) * request->wait_s;
	for (;;) {
		const json_t *saved = NULL;
		json_t *run = read_run(request, error);
		if (run == NULL)
			return wlb_fail_in(error, "its ranks were asked, and what has come of it is not known");
		enum wlb_asked_save_state state = wlb_asked_save_look(run, asked, &saved, error);
		int rc = state == WLB_ASKED_SAVE_DONE ? print(request, saved, error) : -1;
		json_decref(run);
		if (state != WLB_ASKED_SAVE_WAITS)
			return rc;
		if (wlb_clock_left_ms(until_ms) == 0)
			return wlb_fail(
				error,
				"run %s: its ranks were asked, and no checkpoint is recorded after %d s: 'wlb show "
				"%s' lists it once it is durable; --wait N waits longer",
				request->name, request->wait_s, request->name);
		wlb_clock_sleep_ms(PERIOD_MS);
	}
}

static int save(void *values, struct wlb_error *error)
{
	struct request *request = values;
	struct wlb_asked_save asked;
	char name[WLB_RUN_NAME_BYTES];
	int found = wlb_run_name_find(request->name, name, error);
	if (found != WLB_EXIT_DONE)
		return found;
	request->name = name;
	if (find(request, &asked, error) != 0 || wlb_slurm_open(error) != 0 ||
	    wlb_slurm_step_kill(asked.job_id, asked.step_id, SIGUSR2, error) != 0)
		return WLB_EXIT_FAILED;
	if (request->wait_s > 0)
		return await(request, &asked, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	printf("run %s: the ranks of attempt %" PRId64 " were asked\n", name, asked.attempt);
	return WLB_EXIT_DONE;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(name), "RUN", WLB_RUN_NAME_HELP), .required = true},
	{WLB_OPTION(INT, "wait", FIELD(wait_s), "SECONDS",
                    "how long to wait until the checkpoint is durable and recorded; 0: only ask"),
         .max = WAIT_MAX_S, .initial = "60"},
};

static const struct wlb_option_table table = {
	.command = "wlb save",
	.about = "Asks a run of wlb-worker to save a checkpoint after the step that it is at, and prints where it is "
		 "once it is "
		 "durable. Training goes on.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_save = {
	.name = "save",
	.summary = "Ask a run for a checkpoint now",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = save,
};
