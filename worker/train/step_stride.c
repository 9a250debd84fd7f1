#include "worker/train/step_stride.h"

#include <math.h>

/* Of each rank, a second: wlb_agent reports once a second, and the ring of a rank holds those of 16 seconds. */
static const double told_most_per_s = 4.0;
/* Of all ranks of a node, a second: half of what a report takes (coordinator/agent/steps.h). */
static const double told_of_node_per_s = 128.0;
/* Of all ranks of the run, a second: some 2 MB of reports for the coordinator. */
static const double told_of_run_per_s = 4096.0;

static const int64_t STRIDE_MOST = INT64_C(1) << 20;
static const double NEWEST_WEIGHT = 0.125;

void wlb_step_stride_init(struct wlb_step_stride *stride, int ranks, int ranks_per_node)
{
	double period_s = fmax(1.0 / told_most_per_s, ranks_per_node / told_of_node_per_s);
	*stride = (struct wlb_step_stride){
		.period_s = fmax(period_s, ranks / told_of_run_per_s), .chosen = 1, .agreed = 1};
}

void wlb_step_stride_note(struct wlb_step_stride *stride, double step_s)
{
	stride->mean_s = stride->mean_s > 0.0 ? stride->mean_s + NEWEST_WEIGHT * (step_s - stride->mean_s) : step_s;
	double told_every_s = stride->mean_s * (double)stride->chosen;
	if (told_every_s < M_SQRT1_2 * stride->period_s && stride->chosen < STRIDE_MOST)
		stride->chosen *= 2;
	else if (told_every_s > 2.0 * stride->period_s && stride->chosen > 1)
		stride->chosen /= 2;
}

int wlb_step_stride_has(const struct wlb_step_stride *stride, int64_t step)
{
	return step % stride->agreed == 0;
}
