#include "coordinator/wlb/run/attempt/step_end.h"

#include <signal.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/stop/signals.h"

enum {
	SRUN_GRACE_MS = 5000, /* for srun to notice that its step is gone */
	STEP_GONE_MS = 15000, /* for the end of a step whose srun was killed */
	POLL_MS = 200,        /* between two questions whether it is gone */
};

void wlb_step_end_note(struct wlb_step_end *end, enum wlb_step_end_measure measure, int grace_ms)
{
	end->measure = measure;
	end->next_ms = wlb_clock_ms() + grace_ms;
}

void wlb_step_end_escalate(struct wlb_step_end *end, uint32_t job_id, const struct wlb_srun *srun)
{
	switch (end->measure) {
	case WLB_STEP_END_NOT:
	case WLB_STEP_END_FORCED:
		return;
	case WLB_STEP_END_GRACE:
		if (srun->has_step)
			wlb_slurm_step_kill(job_id, srun->step_id, SIGKILL, NULL);
		wlb_step_end_note(end, WLB_STEP_END_KILLED, SRUN_GRACE_MS);
		return;
	case WLB_STEP_END_KILLED:
		kill(-srun->pid, SIGTERM);
		wlb_step_end_note(end, WLB_STEP_END_TERMINATED, SRUN_GRACE_MS);
		return;
	case WLB_STEP_END_TERMINATED:
		wlb_step_end_force(end, srun);
		return;
	}
}

void wlb_step_end_force(struct wlb_step_end *end, const struct wlb_srun *srun)
{
	kill(-srun->pid, SIGKILL);
	end->measure = WLB_STEP_END_FORCED;
}

void wlb_run_end_orphaned_step(struct wlb_run *run)
{
	int64_t until_ms = wlb_clock_ms() + STEP_GONE_MS;
	uint32_t step_id;
	int found = -1;
	while (run->killed_srun != 0 && wlb_clock_left_ms(until_ms) > 0 &&
	       (found = wlb_slurm_step_of(run->job.job_id, run->killed_srun, &step_id, NULL)) != 0) {
		if (found == 1)
			wlb_slurm_step_kill(run->job.job_id, step_id, SIGKILL, NULL);
		if (!wlb_run_pause(run, POLL_MS))
			break;
	}
	run->killed_srun = 0;
}
