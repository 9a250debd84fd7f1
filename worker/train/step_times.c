#include "worker/train/step_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/seconds.h"

/* -- the communicators whose time is counted in a step, each as communication of one part of it -- */

struct step_comm {
	struct wlb_comm *comm;
	enum wlb_step_part part; /* its receives are of WLB_TIME_BUBBLE */
};

enum { OF_EVERY_STAGE = 10 };

/* Returns how many stages this rank's stage shares messages of the head with. */
static int head_edges(const struct wlb_groups *g)
{
	if (g->head_rows == NULL)
		return 0;
	return g->coords.pp == g->layout.pp - 1 ? g->coords.pp : 1;
}

/* Of a shared head the last stage has two communicators with each other stage; dynamic context parallelism has one for
 * each number of ranks; else there are ten. */
static int comms_count(const struct wlb_groups *g)
{
	return OF_EVERY_STAGE + 2 * head_edges(g) + g->key_group_count - 1;
}

static struct step_comm of_head(const struct wlb_groups *g, int i)
{
	int stage = g->coords.pp == g->layout.pp - 1 ? i / 2 : g->coords.pp;
	return (struct step_comm){i % 2 == 0 ? g->head_rows[stage] : g->head_gradients[stage], WLB_TIME_PP};
}

/* Returns communicator i, 0 <= i < comms_count. The groups own it. */
static struct step_comm comm_of(const struct wlb_groups *g, int i)
{
	const struct step_comm all[OF_EVERY_STAGE] = {
		{g->tp, WLB_TIME_TP},
		{g->kv, WLB_TIME_TP},
		{g->cp, WLB_TIME_CP},
		{g->activations_in, WLB_TIME_PP},
		{g->activations_out, WLB_TIME_PP},
		{g->gradients_in, WLB_TIME_PP},
		{g->gradients_out, WLB_TIME_PP},
		{g->tied, WLB_TIME_PP},
		{g->data, WLB_TIME_DP},
		{g->world, WLB_TIME_WORLD},
	};
	if (i < OF_EVERY_STAGE)
		return all[i];
	int beyond = i - OF_EVERY_STAGE, of_heads = 2 * head_edges(g);
	return beyond < of_heads ? of_head(g, beyond)
	                         : (struct step_comm){g->key_groups[1 + beyond - of_heads], WLB_TIME_CP};
}

/* -- the calls of each communicator -- */

void wlb_step_transfers_begin(struct wlb_step_transfers *transfers, const struct wlb_groups *groups)
{
	transfers->count = 0;
	for (int i = 0; i < comms_count(groups) && transfers->count < WLB_TRACE_TRANSFERS; i++) {
		const struct wlb_comm *comm = comm_of(groups, i).comm;
		int group = comm != NULL ? wlb_comm_traced_group(comm) : -1;
		if (group < 0)
			continue;
		transfers->before[transfers->count] = wlb_comm_use(comm);
		transfers->list[transfers->count++] = (struct wlb_trace_transfer){.group = group};
	}
}

static struct wlb_trace_transfer *transfer_of(struct wlb_step_transfers *transfers, const struct wlb_comm *comm)
{
	int group = comm != NULL ? wlb_comm_traced_group(comm) : -1;
	for (int i = 0; i < transfers->count && group >= 0; i++)
		if (transfers->list[i].group == group)
			return &transfers->list[i];
	return NULL;
}

void wlb_step_transfers_end(struct wlb_step_transfers *transfers, const struct wlb_groups *groups, int host_waits)
{
	for (int i = 0; i < comms_count(groups); i++) {
		const struct wlb_comm *comm = comm_of(groups, i).comm;
		struct wlb_trace_transfer *transfer = transfer_of(transfers, comm);
		if (transfer == NULL)
			continue;
		struct wlb_comm_use now = wlb_comm_use(comm);
		const struct wlb_comm_use *before = &transfers->before[transfer - transfers->list];
		transfer->calls = now.calls - before->calls;
		transfer->bytes = now.bytes - before->bytes;
		transfer->blocked_s = host_waits ? now.host_blocked_s - before->host_blocked_s : 0.0;
	}
}

/* The step has waited so long for calls of this communicator. */
static void transfers_add(struct wlb_step_transfers *transfers, const struct wlb_comm *comm, double waited_s)
{
	struct wlb_trace_transfer *transfer = transfer_of(transfers, comm);
	if (transfer != NULL)
		transfer->blocked_s += waited_s;
}

/* -- the parts of a step by events of the device -- */

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
static int waits_part(const struct wlb_step_events *e, int i)
{
	return 1 + e->number * COUNTED + i;
}

static void set_part(const struct wlb_step_events *e, int part)
{
	for (int i = 0; i < comms_count(e->groups); i++)
		wlb_comm_set_part(comm_of(e->groups, i).comm, part);
}

/* What is queued between start and stop is of the part, which is FORWARD, BACKWARD or OPTIMIZER. */
static void events_start(struct wlb_step_events *e, enum wlb_step_part part)
{
	for (int i = 0; i < COUNTED; i++)
		if (COUNTED_PARTS[i] == part)
			set_part(e, waits_part(e, i));
	if (e->count == e->most)
		return;
	e->intervals[e->count].part = part;
	e->device->ops->event_record(e->device, e->intervals[e->count].from, NULL);
}

static void events_stop(struct wlb_step_events *e)
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
	for (int i = 0; i < comms_count(e->groups); i++) {
		const struct step_comm comm = comm_of(e->groups, i);
		struct wlb_comm_waits waits = wlb_comm_take_waits(comm.comm, waits_part(e, counted));
		*own_s -= waits.all_s;
		times->s[comm.part] += waits.all_s - waits.receives_s;
		times->s[WLB_TIME_BUBBLE] += waits.receives_s;
		transfers_add(transfers, comm.comm, waits.all_s);
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

int wlb_step_events_interval(const struct wlb_step_events *e, int i, struct wlb_event *began, enum wlb_step_part *part,
                             double *from_s, double *to_s)
{
	if (i >= e->count)
		return 0;
	*part = e->intervals[i].part;
	*from_s = e->device->ops->event_elapsed_s(e->device, began, e->intervals[i].from);
	*to_s = e->device->ops->event_elapsed_s(e->device, began, e->intervals[i].to);
	return 1;
}

/* -- the parts of a step by the host's clock, or by the events -- */

/* Seconds spent in each communicator so far, at the place of its part; the other parts are 0. */
static void communication(const struct wlb_groups *groups, double s[WLB_STEP_PARTS])
{
	memset(s, 0, WLB_STEP_PARTS * sizeof(*s));
	for (int i = 0; i < comms_count(groups); i++) {
		const struct step_comm counted = comm_of(groups, i);
		double receive_s = wlb_comm_receive_s(counted.comm);
		s[counted.part] += wlb_comm_blocked_s(counted.comm) - receive_s;
		s[WLB_TIME_BUBBLE] += receive_s;
	}
}

/* wlb_comm_busy_s of all communicators. */
static double communication_busy_s(const struct wlb_groups *groups)
{
	double busy_s = 0.0;
	for (int i = 0; i < comms_count(groups); i++)
		busy_s += wlb_comm_busy_s(comm_of(groups, i).comm);
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
		events->count = 0; /* those of the step before have been read */
	else
		communication(groups, timer->communication_before_s);
}

void wlb_step_timer_start(struct wlb_step_timer *timer, enum wlb_step_part part)
{
	timer->part = part;
	if (timer->events != NULL)
		events_start(timer->events, part);
	else
		timer->started = read_clocks(timer);
}

void wlb_step_timer_stop(struct wlb_step_timer *timer)
{
	if (timer->events != NULL) {
		events_stop(timer->events);
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

/* -- which steps are reported -- */

/* Of each rank, a second: wlb_agent reports once a second, and the ring of a rank holds those of 16 seconds. */
static const double reported_per_s = 4.0;
/* Of all ranks of a node, a second: half of what a report takes (coordinator/agent/steps.h). */
static const double reported_of_node_per_s = 128.0;
/* Of all ranks of the run, a second: some 2 MB of reports for the coordinator. */
static const double reported_of_run_per_s = 4096.0;

static const int64_t STRIDE_MAX = INT64_C(1) << 20;
static const double NEWEST_WEIGHT = 0.125;

void wlb_step_stride_init(struct wlb_step_stride *stride, int ranks, int ranks_per_node)
{
	double period_s = fmax(1.0 / reported_per_s, ranks_per_node / reported_of_node_per_s);
	*stride = (struct wlb_step_stride){
		.period_s = fmax(period_s, ranks / reported_of_run_per_s), .chosen = 1, .agreed = 1};
}

void wlb_step_stride_note(struct wlb_step_stride *stride, double step_s)
{
	stride->mean_s = stride->mean_s > 0.0 ? stride->mean_s + NEWEST_WEIGHT * (step_s - stride->mean_s) : step_s;
	double reported_every_s = stride->mean_s * (double)stride->chosen;
	if (reported_every_s < M_SQRT1_2 * stride->period_s && stride->chosen < STRIDE_MAX)
		stride->chosen *= 2;
	else if (reported_every_s > 2.0 * stride->period_s && stride->chosen > 1)
		stride->chosen /= 2;
}

int wlb_step_stride_has(const struct wlb_step_stride *stride, int64_t step)
{
	return step % stride->agreed == 0;
}
