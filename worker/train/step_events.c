#include "worker/train/step_events.h"

#include <math.h>
#include <stdlib.h>

#include "worker/train/step_comms.h"

struct interval {
	struct wlb_event *from, *to;
	enum wlb_step_part part;
};

/* The parts in which communicators count the waits of a step; waits outside of these are of part 0, which nobody reads.
 */
enum { COUNTED = 3 };
static const enum wlb_step_part COUNTED_PARTS[COUNTED] = {WLB_TIME_FORWARD, WLB_TIME_BACKWARD, WLB_TIME_OPTIMIZER};
_Static_assert(1 + 2 * COUNTED <= WLB_COMM_PARTS, "two steps that are unread at once count their waits apart");

struct wlb_step_events {
	struct wlb_device *device;
	const struct wlb_groups *groups;
	int number;
	struct interval *intervals; /* [most] */
	int most, count;
};

struct wlb_step_events *wlb_step_events_new(struct wlb_device *device, const struct wlb_groups *groups, int number,
                                            int most, struct wlb_error *error)
{
	struct wlb_step_events *e = calloc(1, sizeof(*e));
	if (e != NULL) {
		*e = (struct wlb_step_events){.device = device, .groups = groups, .number = number, .most = most};
		e->intervals = calloc((size_t)most, sizeof(*e->intervals));
	}
	if (e == NULL || e->intervals == NULL) {
		wlb_fail(error, "out of memory for the times of %d passes", most);
		wlb_step_events_free(e);
		return NULL;
	}
	for (int i = 0; i < most; i++) {
		e->intervals[i].from = device->ops->event_new(device, 1, error);
		e->intervals[i].to = e->intervals[i].from != NULL ? device->ops->event_new(device, 1, error) : NULL;
		if (e->intervals[i].to == NULL) {
			wlb_step_events_free(e);
			return NULL;
		}
	}
	return e;
}

void wlb_step_events_free(struct wlb_step_events *e)
{
	if (e == NULL)
		return;
	for (int i = 0; e->intervals != NULL && i < e->most; i++) {
		e->device->ops->event_free(e->device, e->intervals[i].from);
		e->device->ops->event_free(e->device, e->intervals[i].to);
	}
	free(e->intervals);
	free(e);
}

/* Returns the part in which the communicators count the waits of COUNTED_PARTS[i]. */
static int comm_part(const struct wlb_step_events *e, int i)
{
	return 1 + e->number * COUNTED + i;
}

static void set_part(const struct wlb_step_events *e, int part)
{
	for (int i = 0; i < wlb_step_comms_count(e->groups); i++)
		wlb_comm_set_part(wlb_step_comms_at(e->groups, i).comm, part);
}

void wlb_step_events_begin(struct wlb_step_events *e)
{
	e->count = 0;
}

void wlb_step_events_start(struct wlb_step_events *e, enum wlb_step_part part)
{
	for (int i = 0; i < COUNTED; i++)
		if (COUNTED_PARTS[i] == part)
			set_part(e, comm_part(e, i));
	if (e->count == e->most)
		return;
	e->intervals[e->count].part = part;
	e->device->ops->event_record(e->device, e->intervals[e->count].from, NULL);
}

void wlb_step_events_stop(struct wlb_step_events *e)
{
	set_part(e, 0);
	if (e->count < e->most)
		e->device->ops->event_record(e->device, e->intervals[e->count++].to, NULL);
}

/* Moves the waits of all communicators in a part of the step to the parts of the communicators. */
static void move_waits(const struct wlb_step_events *e, int counted, struct wlb_step_times *times,
                       struct wlb_step_transfers *transfers)
{
	double *own_s = &times->s[COUNTED_PARTS[counted]];
	for (int i = 0; i < wlb_step_comms_count(e->groups); i++) {
		const struct wlb_step_comm comm = wlb_step_comms_at(e->groups, i);
		struct wlb_comm_waits waits = wlb_comm_take_waits(comm.comm, comm_part(e, counted));
		*own_s -= waits.all_s;
		times->s[comm.part] += waits.all_s - waits.receives_s;
		times->s[WLB_TIME_BUBBLE] += waits.receives_s;
		wlb_step_transfers_add(transfers, comm.comm, waits.all_s);
	}
	/* The host's clock, where the host waits, is not the device's. */
	*own_s = fmax(*own_s, 0.0);
}

void wlb_step_events_read(struct wlb_step_events *e, struct wlb_event *began, struct wlb_step_times *times,
                          struct wlb_step_transfers *transfers)
{
	const struct wlb_ops *ops = e->device->ops;
	*times = (struct wlb_step_times){0};
	if (e->count > 0)
		times->s[WLB_TIME_LOADER] = ops->event_elapsed_s(e->device, began, e->intervals[0].from);
	for (int i = 0; i < e->count; i++)
		times->s[e->intervals[i].part] +=
			ops->event_elapsed_s(e->device, e->intervals[i].from, e->intervals[i].to);
	for (int i = 0; i < COUNTED; i++)
		move_waits(e, i, times, transfers);
	times->compute_s = times->s[WLB_TIME_FORWARD] + times->s[WLB_TIME_BACKWARD];
}
