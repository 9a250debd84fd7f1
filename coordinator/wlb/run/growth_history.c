#include "coordinator/wlb/run/growth_history.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/file.h"
#include "coordinator/wlb/run/print.h"

enum {
	FILE_BYTES = 128,
	PATH_BYTES = PATH_MAX + 32,
	NUMBER_MOST = 1 << 20, /* of nodes and of growths, in a file that can be believed */
};

static void name_file(const struct wlb_run *run, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/%" PRIu32 ".growth", run->job.spool_dir, run->job.job_id);
}

static bool is_number(int value)
{
	return value >= 0 && value <= NUMBER_MOST;
}

void wlb_run_growth_read(struct wlb_run *run)
{
	struct wlb_run_grow *grow = &run->grow;
	char path[PATH_BYTES], *text = NULL;
	int64_t submit_time;
	int first_nodes, fruitless, nodes_before;
	name_file(run, path);
	if (wlb_file_read(path, FILE_BYTES, &text, NULL, NULL) != 0)
		return;
	int count = sscanf(text, "%" SCNd64 " %d %d %d", &submit_time, &first_nodes, &fruitless, &nodes_before);
	free(text);
	if (count != 4 || !is_number(first_nodes) || !is_number(fruitless) || !is_number(nodes_before))
		return;
	/* Slurm gives a job that it requeues another submit time; job ids are reused. */
	if (submit_time != run->job.submit_time && run->job.restart_count == 0)
		return;
	if (first_nodes > grow->first_nodes)
		grow->first_nodes = first_nodes;
	grow->fruitless = fruitless;
	grow->nodes_before = nodes_before;
}

void wlb_run_growth_write(const struct wlb_run *run)
{
	const struct wlb_run_grow *grow = &run->grow;
	char path[PATH_BYTES], text[FILE_BYTES];
	struct wlb_error error;
	name_file(run, path);
	int length = snprintf(text, sizeof(text), "%" PRId64 " %d %d %d\n", run->job.submit_time, grow->first_nodes,
	                      grow->fruitless, grow->nodes_before);
	if (wlb_file_write(path, text, (size_t)length, 0600, &error) != 0)
		wlb_run_print("the next wlb run of this job will not know how often the run has grown: %s",
		              error.message);
}
