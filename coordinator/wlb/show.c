/* wlb show: one run. */
#include <stdio.h>
#include <string.h>

#include "coordinator/wlb/api.h"
#include "coordinator/wlb/command.h"
#include "coordinator/wlb/show.h"

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

static int tell(const json_t *run, int steps)
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
	if (rc == 0)
		rc = wlb_show_loss(run);
	if (rc == 0 && steps)
		rc = wlb_show_steps(run);
	return rc;
}

static int show_main(const struct wlb_command *self, int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
	                                        {"steps", no_argument, NULL, 's'},
	                                        {"help", no_argument, NULL, WLB_OPTION_HELP},
	                                        {0}};
	char path[128];
	struct wlb_error error;
	int option, json = 0, steps = 0;
	while ((option = wlb_command_option(self, argc, argv, options)) != -1) {
		if (option == WLB_OPTION_HELP || option == WLB_OPTION_WRONG)
			return option == WLB_OPTION_HELP ? WLB_EXIT_DONE : WLB_EXIT_USAGE;
		*(option == 'j' ? &json : &steps) = 1;
	}
	if (optind + 1 != argc)
		return wlb_command_fail(self, WLB_EXIT_USAGE, "one run is needed: wlb show RUN; 'wlb runs' lists them");
	if (check_run_name(argv[optind], &error) != 0)
		return wlb_command_fail(self, WLB_EXIT_USAGE, error.message);
	snprintf(path, sizeof(path), "/v1/runs/%s?steps=all", argv[optind]);
	json_t *run = wlb_api_get(path, &error);
	if (run == NULL)
		return wlb_command_fail(self, WLB_EXIT_FAILED, error.message);
	int rc = json ? wlb_api_print(run) : tell(run, steps);
	json_decref(run);
	return rc == 0 ? WLB_EXIT_DONE : wlb_command_fail(self, WLB_EXIT_FAILED, "no memory for the story");
}

const struct wlb_command wlb_command_show = {
	.name = "show",
	.summary = "Tell the story of a run",
	.help = help,
	.main = show_main,
};
