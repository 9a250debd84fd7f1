#include "coordinator/wlbd/rules/job_range.h"

uint32_t wlbd_job_least_nodes(const struct wlb_slurm_job *job, const struct wlbd_job_range_facts *facts)
{
	int left = facts->total_nodes - facts->lost_nodes;
	int least = facts->min_nodes > left ? facts->min_nodes : left;
	int before = facts->resized_to > 0 ? facts->resized_to : facts->total_nodes;
	if (facts->lost_nodes == 0 || least < 1 || least >= before || (uint32_t)least > job->node_count)
		return 0;
	return (uint32_t)least;
}
