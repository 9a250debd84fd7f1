#include "coordinator/wlbd/liveness/job_range.h"

/* A range, not a number: Slurm gives the job the nodes that it has, up to those that the user requested. Where Slurm
 * names no bound, that is as many as the job asks for at least. */
bool wlbd_job_range_find(const struct wlb_slurm_job *job, const struct wlbd_job_range_facts *facts,
                         struct wlbd_job_range *range)
{
	int left = facts->total_nodes - facts->lost_nodes;
	int least = facts->min_nodes > left ? facts->min_nodes : left;
	int before = facts->resized_to > 0 ? facts->resized_to : facts->total_nodes;
	uint32_t bound = job->most_nodes > 0 ? job->most_nodes : job->least_nodes;
	if (facts->lost_nodes == 0 || least < 1 || least >= before || (uint32_t)least >= job->least_nodes)
		return false;
	range->least = (uint32_t)least;
	range->most = (uint32_t)facts->total_nodes < bound ? (uint32_t)facts->total_nodes : bound;
	return range->least <= range->most;
}
