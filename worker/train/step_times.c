#include "worker/train/step_times.h"

#include <string.h>

#include "common/seconds.h"
#include "worker/train/step_comms.h"
#include "worker/train/step_events.h"

/* Seconds spent in each communicator so far, at the place of its part; the other parts are 0. */
static void communication(const struct wlb_groups *groups, double s[WLB_STEP_PARTS])
{
	memset(s, 0, WLB_STEP_PARTS * sizeof(*s));
	for (int i = 0; i < wlb_step_comms_count(groups); i++) {
		const struct wlb_step_comm counted = wlb_step_comms_at(groups, i);
		double receive_s = wlb_comm_receive_s(counted.comm);
		s[counted.part] += wlb_comm_blocked_s(counted.comm) - receive_s;
		s[WLB_TIME_BUBBLE] += receive_s;
	}
}

/* wlb_comm_busy_s of all communicators. */
static double communication_busy_s(const struct wlb_groups *groups)
{
	double busy_s = 0.0;
	for (int i = 0; i < wlb_step_comms_count(groups); i++)
		busy_s += wlb_comm_busy_s(wlb_step_comms_at(groups, i).comm);
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

void wlb_step_timer_begin(struct wlb_step_timer *timer, struct wlb_device *device, const struct wlb_groups *groups,
                          struct wlb_step_events *events)
{
	*timer = (struct wlb_step_timer){.device = device, .groups = groups, .events = events};
	if (events != NULL)
		wlb_step_events_begin(events);
	else
		communication(groups, timer->communication_before_s);
}

void wlb_step_timer_start(struct wlb_step_timer *timer, enum wlb_step_part part)
{
	timer->part = part;
	if (timer->events != NULL)
		wlb_step_events_start(timer->events, part);
	else
		timer->started = read_clocks(timer);
}

void wlb_step_timer_stop(struct wlb_step_timer *timer)
{
	if (timer->events != NULL) {
		wlb_step_events_stop(timer->events);
		return;
	}
	struct wlb_step_clocks now = read_clocks(timer), *then = &timer->started;
	timer->times.s[timer->part] += now.now_s - then->now_s - (now.communication_s - then->communication_s);
	if (timer->part == WLB_TIME_FORWARD || timer->part == WLB_TIME_BACKWARD)
		timer->times.compute_s += now.busy_s - then->busy_s;
}

void wlb_step_timer_end(struct wlb_step_timer *timer)
{
	double after_s[WLB_STEP_PARTS];
	if (timer->events != NULL)
		return;
	communication(timer->groups, after_s);
	for (int i = 0; i < WLB_STEP_PARTS; i++)
		timer->times.s[i] += after_s[i] - timer->communication_before_s[i];
}
