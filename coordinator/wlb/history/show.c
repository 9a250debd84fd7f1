/* wlb show: one run. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlb/api.h"
#include "coordinator/wlb/command.h"
#include "coordinator/wlb/history/steps.h"
#include "coordinator/wlb/history/story.h"
#include "coordinator/wlb/output/terminal.h"

enum { STEPS_A_COLUMN = 4 }; /* of the loss curve, which shows their mean */

static const char help[] = "Usage: wlb show [OPTIONS] RUN\n\n"
			   "Tells the story of a run: its attempts and why each ended, where it went on, checkpoints "
			   "and loss. RUN is a job's\n"
			   "id, or ID.2 for the second `wlb run` of a job. Times are local; --json has them in UTC.\n\n"
			   "  --json   everything the coordinator knows, every step included\n"
			   "  --steps  a line for each step as well\n";

static int check_run_name(const char *name, struct wlb_error *error)
{
	size_t length = strlen(name);
	if (length < 1 || length > 63 ||
	    strspn(name, "0123456789._-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != length)
		return wlb_fail(error, "run '%.60s': must be a run's name such as 12 or 12.2; 'wlb runs' lists them",
		                name);
	return 0;
}

/* ---- --json ------------------------------------------------------------------------------------------------------ */

struct printed {
	bool any;
};

static int print_page(const json_t *steps, void *context)
{
	struct printed *printed = context;
	const json_t *step;
	size_t i;
	json_array_foreach(steps, i, step)
	{
		fputs(printed->any ? ",\n    " : "\n    ", stdout);
		printed->any = true;
		if (json_dumpf(step, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER) != 0)
			return -1;
	}
	return 0;
}

/* Page after page, so that no more than one is in memory: the run's object stays open until the last. */
static int print_json(const char *name, json_t *run, struct wlb_error *error)
{
	struct printed printed = {false};
	json_object_del(run, "steps");
	char *text = json_dumps(run, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	char *end = text != NULL ? strrchr(text, '\n') : NULL;
	if (end == NULL) {
		free(text);
		return wlb_fail(error, "no memory for the run");
	}
	*end = '\0';
	printf("%s,\n  \"steps\": [", text);
	free(text);
	int rc = wlb_steps_each_page(name, print_page, &printed, error);
	puts("\n  ]\n}");
	return rc;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static int tell(const json_t *run)
{
	int rc = wlb_show_summary(run);
	if (rc == 0)
		rc = wlb_show_attempts(run);
	if (rc == 0)
		rc = wlb_show_faults(run);
	if (rc == 0)
		rc = wlb_show_checkpoints(run);
	if (rc == 0)
		rc = wlb_show_events(run);
	return rc;
}

static int tell_page(const json_t *steps, void *context)
{
	(void)context;
	return wlb_show_steps(steps);
}

static int print_story(const char *name, json_t *run, bool steps, struct wlb_error *error)
{
	if (tell(run) != 0)
		return wlb_fail(error, "no memory for the story");
	json_t *sample = wlb_steps_sample(name, wlb_terminal_columns() * STEPS_A_COLUMN, error);
	if (sample == NULL)
		return -1;
	int rc = wlb_show_loss(run, sample);
	json_decref(sample);
	if (rc != 0)
		return wlb_fail(error, "no memory for the story");
	return steps ? wlb_steps_each_page(name, tell_page, NULL, error) : 0;
}

static int show_main(const struct wlb_command *self, int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
	                                        {"steps", no_argument, NULL, 's'},
	                                        {"help", no_argument, NULL, WLB_OPTION_HELP},
	                                        {0}};
	char path[128];
	struct wlb_error error;
	int option;
	bool json = false, steps = false;
	while ((option = wlb_command_option(self, argc, argv, options)) != -1) {
		if (option == WLB_OPTION_HELP || option == WLB_OPTION_WRONG)
			return option == WLB_OPTION_HELP ? WLB_EXIT_DONE : WLB_EXIT_USAGE;
		*(option == 'j' ? &json : &steps) = true;
	}
	if (optind + 1 != argc)
		return wlb_command_fail(self, WLB_EXIT_USAGE, "one run is needed: wlb show RUN; 'wlb runs' lists them");
	if (check_run_name(argv[optind], &error) != 0)
		return wlb_command_fail(self, WLB_EXIT_USAGE, error.message);
	snprintf(path, sizeof(path), "/v1/runs/%s", argv[optind]);
	json_t *run = wlb_api_get(path, &error);
	if (run == NULL)
		return wlb_command_fail(self, WLB_EXIT_FAILED, error.message);
	int rc = json ? print_json(argv[optind], run, &error) : print_story(argv[optind], run, steps, &error);
	json_decref(run);
	return rc == 0 ? WLB_EXIT_DONE : wlb_command_fail(self, WLB_EXIT_FAILED, error.message);
}

const struct wlb_command wlb_command_show = {
	.name = "show",
	.summary = "Tell the story of a run",
	.help = help,
	.delivers = true,
	.main = show_main,
};
