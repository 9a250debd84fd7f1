/* wlb flush: delivers a spool by hand. */
#include <stdio.h>
#include <unistd.h>

#include "coordinator/client/reporter.h"
#include "coordinator/wlb/command.h"

static const char help[] =
	"Usage: wlb flush [--timeout SECONDS] DIR\n\n"
	"Delivers the records that wait in DIR (a job's .wlb folder) to the coordinator. Records it has already are\n"
	"ignored there, so this may be repeated. Spools that a running job writes are left to it.\n\n"
	"  --timeout SECONDS  give up after this long (default 60)\n";

static int flush_main(const struct wlb_command *self, int argc, char **argv)
{
	static const struct option options[] = {
		{"timeout", required_argument, NULL, 't'}, {"help", no_argument, NULL, WLB_OPTION_HELP}, {0}};
	struct wlb_client_config config;
	struct wlb_error error = {0};
	int option, timeout_s = 60;
	while ((option = wlb_command_option(self, argc, argv, options)) != -1) {
		if (option == WLB_OPTION_HELP || option == WLB_OPTION_WRONG)
			return option == WLB_OPTION_HELP ? WLB_EXIT_DONE : WLB_EXIT_USAGE;
		if (wlb_command_number("--timeout", optarg, 1, 86400, &timeout_s, &error) != 0)
			return wlb_command_fail(self, WLB_EXIT_USAGE, error.message);
	}
	if (optind + 1 != argc)
		return wlb_command_fail(self, WLB_EXIT_USAGE, "one folder is needed: wlb flush DIR");
	if (access(argv[optind], R_OK | X_OK) != 0)
		wlb_fail(&error, "folder %s: cannot be read", argv[optind]);
	else if (wlb_client_config_load(&config, &error) == 0) {
		int64_t left = wlb_spool_deliver(&config, argv[optind], timeout_s * 1000, &error);
		if (left == 0) {
			printf("everything in %s is delivered\n", argv[optind]);
			return WLB_EXIT_DONE;
		}
		if (left > 0)
			wlb_fail_in(&error, "%lld records are left in %s", (long long)left, argv[optind]);
	}
	return wlb_command_fail(self, WLB_EXIT_FAILED, error.message);
}

const struct wlb_command wlb_command_flush = {
	.name = "flush",
	.summary = "Deliver records that wait on disk",
	.help = help,
	.main = flush_main,
};
