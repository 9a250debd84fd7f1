#include "coordinator/wlb/run/growth_history.h"

#include <inttypes.h>
#include <stdio.h>

#include "coordinator/wlb/run/job_file.h"
#include "coordinator/wlb/run/print.h"

enum { NUMBER_MOST = 1 << 20 }; /* of nodes and of growths, in a file that can be believed */

static void name_file(const struct wlb_run *run, char name[32])
{
	snprintf(name, 32, "%" PRIu32 ".growth", run->job.job_id);
}

static bool is_number(int value)
{
	return value >= 0 && value <= NUMBER_MOST;
}

void wlb_run_growth_read(struct wlb_run *run)
{
	struct wlb_run_grow *grow = &run->grow;
	char name[32], text[WLB_RUN_JOB_FILE_BYTES];
	int first_nodes, fruitless, nodes_before;
	name_file(run, name);
	if (!wlb_run_job_file_read(run, name, text) ||
	    sscanf(text, "%d %d %d", &first_nodes, &fruitless, &nodes_before) != 3 || !is_number(first_nodes) ||
	    !is_number(fruitless) || !is_number(nodes_before))
		return;
	if (first_nodes > grow->first_nodes)
		grow->first_nodes = first_nodes;
	grow->fruitless = fruitless;
	grow->nodes_before = nodes_before;
}

void wlb_run_growth_write(const struct wlb_run *run)
{
	const struct wlb_run_grow *grow = &run->grow;
	char name[32], text[WLB_RUN_JOB_FILE_BYTES / 2];
	struct wlb_error error;
	name_file(run, name);
	snprintf(text, sizeof(text), "%d %d %d", grow->first_nodes, grow->fruitless, grow->nodes_before);
	if (wlb_run_job_file_write(run, name, text, &error) != 0)
		wlb_run_print("the next wlb run of this job will not know how often the run has grown: %s",
		              error.message);
}
