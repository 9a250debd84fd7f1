/* srun, after Slurm laid out the step and before any task has started: refuses a layout that the nodes of the tasks
 * cannot serve. Here the user sees the message and srun exits with 1; slurmstepd can do neither. */
#include "spank/local.h"

#include <stdlib.h>
#include <unistd.h>

#include "spank/step_layout.h"

int wlb_local_user_init(spank_t sp, const struct wlb_spank *plugin)
{
	uint32_t tasks = 0;
	struct wlb_layout layout;
	struct wlb_error error;
	int *tasks_on;
	if (!wlb_spank_options_active(&plugin->options) ||
	    spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS ||
	    !wlb_step_layout(environ, (int)tasks, &layout))
		return 0;
	/* srun has set it to the step's value; with --preserve-env it is the job's, and slurmstepd has the right
	 * one. */
	int count = wlb_step_nodes(environ, "SLURM_TASKS_PER_NODE", (int)tasks, &tasks_on, NULL);
	if (count < 0)
		return 0;
	const struct wlb_nodes nodes = {.count = count, .ranks_on = tasks_on};
	int rc = wlb_layout_check(&layout, &nodes, NULL, &error);
	free(tasks_on);
	if (rc != 0)
		slurm_error("wlb: %s", error.message);
	return rc;
}
