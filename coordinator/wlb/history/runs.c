/* wlb runs: what squeue and sacct are for jobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/wlb/api.h"
#include "coordinator/wlb/command.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/table.h"
#include "coordinator/wlb/output/time_format.h"

static const char help[] =
	"Usage: wlb runs [OPTIONS]\n\n"
	"Lists runs, the newest first. Times are local; --json has them in UTC.\n\n"
	"  --user NAME    only this user's\n"
	"  --state STATE  only those starting, running, restarting, complete, failed, out_of_nodes or cancelled\n"
	"  --limit N      at most N (default 50)\n"
	"  --json         the coordinator's reply as it is\n";

static const char *const states[] = {"starting", "running",      "restarting", "complete",
                                     "failed",   "out_of_nodes", "cancelled"};

static int check_state(const char *state, struct wlb_error *error)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(states[i], state) == 0)
			return 0;
	return wlb_fail(error,
	                "--state '%.40s': must be one of starting, running, restarting, complete, failed, "
	                "out_of_nodes, cancelled",
	                state);
}

static void format_step(const json_t *run, char *text, size_t size)
{
	char step[32], all[32];
	wlb_field_number(run, "last_step", step, sizeof(step));
	wlb_field_number(run, "train_iters", all, sizeof(all));
	if (strcmp(all, "-") == 0)
		snprintf(text, size, "%s", step);
	else
		snprintf(text, size, "%s/%s", step, all);
}

static void format_times(const json_t *run, char *started, char *elapsed, size_t size)
{
	time_t begin = wlb_when_parse(wlb_field_text(run, "started_at", NULL));
	time_t end = wlb_when_parse(wlb_field_text(run, "ended_at", NULL));
	wlb_when_format(begin, started, size);
	if (end == (time_t)-1)
		end = time(NULL);
	wlb_when_duration(begin == (time_t)-1 ? -1 : (long)(end - begin), elapsed, size);
}

static void add_run(struct wlb_table *table, const json_t *run)
{
	char nodes[256], layout[64], step[72], loss[32], attempts[32], started[32], elapsed[32];
	wlb_field_nodes(run, nodes, sizeof(nodes));
	wlb_field_layout(run, layout, sizeof(layout));
	format_step(run, step, sizeof(step));
	wlb_field_real(run, "last_loss", 4, loss, sizeof(loss));
	wlb_field_number(run, "attempts", attempts, sizeof(attempts));
	format_times(run, started, elapsed, sizeof(started));
	wlb_table_add(table,
	              (const char *const[]){wlb_field_text(run, "run_id", "?"), wlb_field_text(run, "job_name", "-"),
	                                    wlb_field_text(run, "user", "-"), wlb_field_text(run, "state", "-"), nodes,
	                                    layout, step, loss, attempts, started, elapsed});
}

static int print_runs(const json_t *reply)
{
	static const char *const titles[] = {"RUN",  "NAME", "USER",     "STATE",   "NODES",  "LAYOUT",
	                                     "STEP", "LOSS", "ATTEMPTS", "STARTED", "ELAPSED"};
	struct wlb_table table = {.columns = 11, .right = "llllllrrrlr"};
	const json_t *run;
	size_t i;
	wlb_table_add(&table, titles);
	json_array_foreach(json_object_get(reply, "runs"), i, run) add_run(&table, run);
	return wlb_table_print(&table, "", stdout);
}

struct request {
	const char *user;
	const char *state;
	int limit;
	int json;
};

static int list_runs(const struct wlb_command *self, const struct request *request)
{
	char path[1024] = "/v1/runs", limit[16];
	struct wlb_error error;
	snprintf(limit, sizeof(limit), "%d", request->limit);
	wlb_api_query(path, sizeof(path), "limit", limit);
	if (request->user != NULL)
		wlb_api_query(path, sizeof(path), "user", request->user);
	if (request->state != NULL)
		wlb_api_query(path, sizeof(path), "state", request->state);
	json_t *reply = wlb_api_get(path, &error);
	if (reply == NULL)
		return wlb_command_fail(self, WLB_EXIT_FAILED, error.message);
	int rc = request->json ? wlb_api_print(reply) : print_runs(reply);
	json_decref(reply);
	return rc == 0 ? WLB_EXIT_DONE : wlb_command_fail(self, WLB_EXIT_FAILED, "no memory for the list");
}

static int runs_main(const struct wlb_command *self, int argc, char **argv)
{
	static const struct option options[] = {
		{"user", required_argument, NULL, 'u'},       {"state", required_argument, NULL, 's'},
		{"limit", required_argument, NULL, 'l'},      {"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, WLB_OPTION_HELP}, {0}};
	struct request request = {.limit = 50};
	struct wlb_error error;
	int option, rc = 0;
	while (rc == 0 && (option = wlb_command_option(self, argc, argv, options)) != -1) {
		if (option == WLB_OPTION_HELP || option == WLB_OPTION_WRONG)
			return option == WLB_OPTION_HELP ? WLB_EXIT_DONE : WLB_EXIT_USAGE;
		if (option == 'u')
			request.user = optarg;
		else if (option == 's')
			rc = check_state(request.state = optarg, &error);
		else if (option == 'l')
			rc = wlb_command_number("--limit", optarg, 1, 100000, &request.limit, &error);
		else
			request.json = 1;
	}
	if (rc == 0 && optind < argc)
		rc = wlb_fail(&error, "'%.60s': takes no argument; 'wlb show RUN' shows one run", argv[optind]);
	if (rc != 0)
		return wlb_command_fail(self, WLB_EXIT_USAGE, error.message);
	return list_runs(self, &request);
}

const struct wlb_command wlb_command_runs = {
	.name = "runs",
	.summary = "List runs",
	.help = help,
	.delivers = true,
	.main = runs_main,
};
