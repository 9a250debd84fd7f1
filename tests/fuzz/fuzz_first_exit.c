/* Any bytes on srun's stderr: what is recognised is within its limits, and the same however the bytes are cut. */
#include <string.h>

#include "coordinator/wlb/run/rules/first_exit.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_first_exit_scan whole = {0}, cut = {0};
	wlb_first_exit_feed(&whole, (const char *)data, bytes);
	for (size_t i = 0; i < bytes; i++)
		wlb_first_exit_feed(&cut, (const char *)data + i, 1);
	const struct wlb_first_exit *first = &whole.first;
	must(first->known == cut.first.known && first->rank == cut.first.rank);
	must(strcmp(first->node, cut.first.node) == 0);
	must(whole.fence.known == cut.fence.known && strcmp(whole.fence.nodes, cut.fence.nodes) == 0);
	const struct wlb_launch_failure *launch = &whole.launch;
	must(launch->known == cut.launch.known && launch->rank == cut.launch.rank);
	must(strcmp(launch->node, cut.launch.node) == 0 && strcmp(launch->why, cut.launch.why) == 0);
	must(!launch->known || (launch->why[0] != '\0' && !first->known));
	must(!launch->known || (launch->rank >= 0) == (launch->node[0] == '\0'));
	must(!whole.fence.known || (whole.fence.nodes[0] != '\0' && !first->known));
	const struct wlb_refusal *refusal = &whole.refusal;
	must(refusal->known == cut.refusal.known && strcmp(refusal->why, cut.refusal.why) == 0);
	must(!refusal->known || (refusal->why[0] != '\0' && refusal->remedy != NULL));
	must(refusal->failed_tasks == cut.refusal.failed_tasks && (refusal->failed_tasks == 0 || refusal->known));
	must(whole.slurm_end.known == cut.slurm_end.known && strcmp(whole.slurm_end.why, cut.slurm_end.why) == 0);
	must(!whole.slurm_end.known || (whole.slurm_end.why[0] != '\0' && !launch->known));
	must(strcmp(whole.last_error, cut.last_error) == 0 && whole.ended_processes == cut.ended_processes);
	if (first->known) {
		must(first->rank >= 0 && first->node[0] != '\0');
		must(first->exit_code > 0 && first->exit_code <= 255);
		must(first->signal == 0 || first->exit_code == 128 + first->signal);
	}
	return 0;
}
