#include "worker/train/step_times.h"

#include <string.h>

#include "common/seconds.h"

struct counted {
	struct wlb_comm *comm;
	enum wlb_step_part part;
};

enum { COMMUNICATORS = 10 };

static void list(const struct wlb_groups *g, struct counted counted[COMMUNICATORS])
{
	const struct counted all[COMMUNICATORS] = {
		{g->tp, WLB_TIME_TP},
		{g->kv, WLB_TIME_TP},
		{g->cp, WLB_TIME_CP},
		{g->activations_in, WLB_TIME_PP},
		{g->activations_out, WLB_TIME_PP},
		{g->gradients_in, WLB_TIME_PP},
		{g->gradients_out, WLB_TIME_PP},
		{g->ends, WLB_TIME_PP},
		{g->data, WLB_TIME_DP},
		{g->world, WLB_TIME_WORLD},
	};
	memcpy(counted, all, sizeof(all));
}

/* Seconds spent in each communicator so far, at the place of its part; the other parts are 0. */
static void communication(const struct wlb_groups *groups, double s[WLB_STEP_PARTS])
{
	struct counted counted[COMMUNICATORS];
	list(groups, counted);
	memset(s, 0, WLB_STEP_PARTS * sizeof(*s));
	for (int i = 0; i < COMMUNICATORS; i++) {
		double receive_s = wlb_comm_receive_s(counted[i].comm);
		s[counted[i].part] += wlb_comm_blocked_s(counted[i].comm) - receive_s;
		s[WLB_TIME_BUBBLE] += receive_s;
	}
}

/* wlb_comm_busy_s of all communicators. */
static double communication_busy_s(const struct wlb_groups *groups)
{
	struct counted counted[COMMUNICATORS];
	double busy_s = 0.0;
	list(groups, counted);
	for (int i = 0; i < COMMUNICATORS; i++)
		busy_s += wlb_comm_busy_s(counted[i].comm);
	return busy_s;
}

static struct wlb_step_clocks read_clocks(const struct wlb_step_timer *timer)
{
	double parts[WLB_STEP_PARTS];
	struct wlb_step_clocks clocks = {
		.now_s = wlb_now_s(),
		.busy_s = timer->device->ops->busy_s(timer->device) - communication_busy_s(timer->groups),
	};
	communication(timer->groups, parts);
	for (int i = 0; i < WLB_STEP_PARTS; i++)
		clocks.communication_s += parts[i];
	return clocks;
}

void wlb_step_timer_begin(struct wlb_step_timer *timer, struct wlb_device *device, const struct wlb_groups *groups)
{
	*timer = (struct wlb_step_timer){.device = device, .groups = groups};
	communication(groups, timer->communication_before_s);
}

void wlb_step_timer_start(struct wlb_step_timer *timer)
{
	timer->started = read_clocks(timer);
}

void wlb_step_timer_stop(struct wlb_step_timer *timer, enum wlb_step_part part)
{
	struct wlb_step_clocks now = read_clocks(timer), *then = &timer->started;
	timer->times.s[part] += now.now_s - then->now_s - (now.communication_s - then->communication_s);
	if (part == WLB_TIME_FORWARD || part == WLB_TIME_BACKWARD)
		timer->times.compute_s += now.busy_s - then->busy_s;
}

void wlb_step_timer_end(struct wlb_step_timer *timer)
{
	double after_s[WLB_STEP_PARTS];
	communication(timer->groups, after_s);
	for (int i = 0; i < WLB_STEP_PARTS; i++)
		timer->times.s[i] += after_s[i] - timer->communication_before_s[i];
}
