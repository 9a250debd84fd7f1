/* wlb-stacks: the stacks of processes, for wlb-agent and by hand. A program of its own, so that what a user's files
 * make libdw do ends no agent. */
#include <limits.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/command.h"
#include "common/number.h"
#include "coordinator/stacks/gather.h"
#include "coordinator/stacks/options.h"

static int read_pids(const struct wlb_option_list *texts, int64_t pids[WLB_STACKS_RANKS_MAX], struct wlb_error *error)
{
	if (texts->count > WLB_STACKS_RANKS_MAX)
		return wlb_fail(error, "%d PIDs: give at most %d", texts->count, WLB_STACKS_RANKS_MAX);
	for (int i = 0; i < texts->count; i++)
		if (wlb_number_parse("PID", texts->texts[i], 1, INT_MAX, &pids[i], error) != 0)
			return -1;
	return 0;
}

/* Each line is written when it is known, so that a caller that stops waiting has the lines before. */
static int print(json_t *rank, struct wlb_error *error)
{
	int rc = rank != NULL ? json_dumpf(rank, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) : -1;
	json_decref(rank);
	putchar('\n');
	return rc == 0 && fflush(stdout) == 0 ? 0 : wlb_fail(error, "the stacks cannot be written");
}

static int gather(const int64_t *pids, int count, int64_t wait_ms, struct wlb_error *error)
{
	struct wlb_process_list all;
	struct wlb_frame_names *names = wlb_frame_names_new();
	int64_t begin_ms = wlb_clock_ms();
	int rc = names != NULL ? wlb_process_list_read(&all) : -1;
	if (rc != 0) {
		wlb_frame_names_free(names);
		return wlb_fail(error, "/proc cannot be read, or out of memory");
	}
	for (int i = 0; i < count && rc == 0; i++)
		rc = print(wlb_stacks_gather(&all, (pid_t)pids[i], names, begin_ms + wait_ms * (i + 1) / count), error);
	wlb_process_list_free(&all);
	wlb_frame_names_free(names);
	return rc;
}

static int run(void *values, struct wlb_error *error)
{
	const struct wlb_stacks_options *options = values;
	int64_t pids[WLB_STACKS_RANKS_MAX];
	if (read_pids(&options->pids, pids, error) != 0)
		return WLB_EXIT_USAGE;
	int rc = gather(pids, options->pids.count, (int64_t)(options->seconds * 1000), error);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

static const struct wlb_command command = {
	.options = &wlb_stacks_option_table,
	.values_bytes = sizeof(struct wlb_stacks_options),
	.run = run,
};

int main(int argc, char **argv)
{
	return wlb_command_main(&command, argc, argv);
}
