/* A judgement: every kind of verdict in turn. */
#include <math.h>

#include "libverdict/job_time.h"
#include "libverdict/kinds.h"
#include "libverdict/verdicts.h"
#include "libverdict/wait_for.h"

/* What hangs because a rank is gone is its consequence; a rank outside communication is not. */
static void find_standstills(struct wlb_verdict_detector *detector)
{
	int32_t crashed = verdict_crash_find(detector);
	verdict_waits_find(detector);
	verdict_hang_find(detector);
	if (crashed == 0)
		verdict_hang_collective_find(detector);
}

int32_t wlb_verdict_judge(struct wlb_verdict_detector *detector, double now_s, struct wlb_verdict *verdicts,
                          int32_t most)
{
	if (isfinite(now_s))
		verdict_time_advance(&detector->time, now_s);
	detector->found.count = 0;
	if (detector->time.seen > 0)
		find_standstills(detector);
	/* What spoils the model comes before what slows steps, which may be found of more ranks than there is space
	 * for. */
	verdict_loss_find(detector);
	verdict_corruption_find(detector);
	verdict_compute_find(detector);
	verdict_links_find(detector);
	verdict_loader_find(detector);
	return verdict_settle(detector, verdicts, most);
}
