#include "coordinator/agent/strays.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "coordinator/agent/process.h"

enum {
	ENDING_MS = 300, /* helpers of a rank end by themselves just after it, and were not left */
	GRACE_MS = 2000,
	KILLED_MS = 500, /* for the kernel to end them */
	POLL_MS = 50,
};

int wlb_agent_strays_signal(const struct wlb_agent_strays *strays, int number)
{
	char attempt[128], node[320], job[64];
	const char *marks[] = {attempt, node, job, NULL};
	snprintf(attempt, sizeof(attempt), "WLB_ATTEMPT_ID=%s", strays->attempt_id);
	snprintf(node, sizeof(node), "SLURMD_NODENAME=%s", strays->node);
	snprintf(job, sizeof(job), "SLURM_JOB_ID=%lld", strtoll(strays->run_id, NULL, 10));
	return wlb_process_signal_marked(marks, number);
}

void wlb_agent_strays_ask(struct wlb_agent_strays *strays)
{
	int64_t ending_until_ms = wlb_clock_ms() + ENDING_MS;
	while (wlb_agent_strays_signal(strays, 0) > 0 && wlb_clock_left_ms(ending_until_ms) > 0)
		wlb_clock_sleep_ms(POLL_MS);
	strays->count = wlb_agent_strays_signal(strays, SIGTERM);
	strays->until_ms = wlb_clock_ms() + GRACE_MS;
}

void wlb_agent_strays_end(const struct wlb_agent_strays *strays)
{
	int64_t killed_until_ms = strays->until_ms + KILLED_MS;
	if (strays->count == 0)
		return;
	/* They may start others meanwhile. */
	while (wlb_agent_strays_signal(strays, wlb_clock_left_ms(strays->until_ms) > 0 ? 0 : SIGKILL) > 0 &&
	       wlb_clock_left_ms(killed_until_ms) > 0)
		wlb_clock_sleep_ms(POLL_MS);
}
