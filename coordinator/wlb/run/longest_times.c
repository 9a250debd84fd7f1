#include "coordinator/wlb/run/longest_times.h"

#include <math.h>
#include <stdio.h>

#include "coordinator/wlb/run/job_file.h"
#include "coordinator/wlb/run/print.h"
#include "coordinator/wlb/run/progress.h"

static const double MOST_S = 24.0 * 3600.0; /* in a file that can be believed */

static void name_file(const struct wlb_run *run, char name[sizeof(run->id) + 8])
{
	snprintf(name, sizeof(run->id) + 8, "%s.times", run->id);
}

static bool is_time(double value_s)
{
	return isfinite(value_s) && value_s >= 0.0 && value_s <= MOST_S;
}

void wlb_run_longest_times_read(struct wlb_run *run)
{
	struct wlb_run_progress *progress = &run->progress;
	char name[sizeof(run->id) + 8], text[WLB_RUN_JOB_FILE_BYTES];
	double save_s, step_s;
	struct wlb_run_longest saves;
	name_file(run, name);
	if (!wlb_run_job_file_read(run, name, text))
		return;
	int fields =
		sscanf(text, "%lf %lf %lf %lf %d", &save_s, &step_s, &saves.before_s, &saves.block_s, &saves.count);
	if (fields < 2 || !is_time(save_s) || !is_time(step_s))
		return;
	if (fields < 5 || !is_time(saves.before_s) || !is_time(saves.block_s) || saves.count < 0)
		saves = (struct wlb_run_longest){.before_s = save_s};
	progress->saves = saves;
	progress->steps = (struct wlb_run_longest){.before_s = step_s};
}

void wlb_run_longest_times_write(const struct wlb_run *run)
{
	const struct wlb_run_progress *progress = &run->progress;
	char name[sizeof(run->id) + 8], text[WLB_RUN_JOB_FILE_BYTES / 2];
	struct wlb_error error;
	name_file(run, name);
	const struct wlb_run_longest *saves = &progress->saves;
	snprintf(text, sizeof(text), "%.3f %.3f %.3f %.3f %d", wlb_run_longest_s(saves),
	         wlb_run_longest_s(&progress->steps), saves->before_s, saves->block_s, saves->count);
	if (wlb_run_job_file_write(run, name, text, &error) != 0)
		wlb_run_print("the next wlb run of this job will not know how long saves take: %s", error.message);
}
