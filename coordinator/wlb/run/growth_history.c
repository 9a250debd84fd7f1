#include "coordinator/wlb/run/growth_history.h"

#include <inttypes.h>
#include <stdio.h>

#include "coordinator/wlb/run/job_file.h"
#include "coordinator/wlb/run/print.h"

enum { NUMBER_MOST = 1 << 20 }; /* of nodes and of growths, in a file that can be believed */

static void name_job_file(const struct wlb_run *run, char name[32])
{
	snprintf(name, 32, "%" PRIu32 ".growth", run->job.job_id);
}

/* It ends unlike the name of the job's file, since the first run of a job has the job's number. */
static void name_run_file(const struct wlb_run *run, char name[sizeof(run->id) + 16])
{
	snprintf(name, sizeof(run->id) + 16, "%s.growth-outcome", run->id);
}

static bool is_number(int value)
{
	return value >= 0 && value <= NUMBER_MOST;
}

/* In a file of an earlier version the outcome follows, and not the run whose outcome it is. */
static void read_first_nodes(struct wlb_run *run)
{
	char name[32], text[WLB_RUN_JOB_FILE_BYTES];
	int first_nodes;
	name_job_file(run, name);
	if (wlb_run_job_file_read(run, name, text) && sscanf(text, "%d", &first_nodes) == 1 && is_number(first_nodes) &&
	    first_nodes > run->grow.first_nodes)
		run->grow.first_nodes = first_nodes;
}

static void read_outcome(struct wlb_run *run)
{
	char name[sizeof(run->id) + 16], text[WLB_RUN_JOB_FILE_BYTES];
	int growths_without_nodes, nodes_before;
	name_run_file(run, name);
	if (!wlb_run_job_file_read(run, name, text) ||
	    sscanf(text, "%d %d", &growths_without_nodes, &nodes_before) != 2 || !is_number(growths_without_nodes) ||
	    !is_number(nodes_before))
		return;
	run->grow.growths_without_nodes = growths_without_nodes;
	run->grow.nodes_before = nodes_before;
}

void wlb_run_growth_read(struct wlb_run *run)
{
	read_first_nodes(run);
	read_outcome(run);
}

void wlb_run_growth_write(const struct wlb_run *run)
{
	const struct wlb_run_grow *grow = &run->grow;
	char job_file[32], run_file[sizeof(run->id) + 16], text[WLB_RUN_JOB_FILE_BYTES / 2];
	struct wlb_error error;
	name_job_file(run, job_file);
	name_run_file(run, run_file);
	snprintf(text, sizeof(text), "%d", grow->first_nodes);
	int rc = wlb_run_job_file_write(run, job_file, text, &error);
	snprintf(text, sizeof(text), "%d %d", grow->growths_without_nodes, grow->nodes_before);
	if (rc == 0)
		rc = wlb_run_job_file_write(run, run_file, text, &error);
	if (rc != 0)
		wlb_run_print("the next wlb run of this job will not know how often the run has grown: %s",
		              error.message);
}
