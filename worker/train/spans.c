#include "worker/train/spans.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/seconds.h"
#include "worker/data/file_progress.h"
#include "worker/train/trainer.h"

/* By its whole path, since `wlb trace` is started anywhere. */
static void record_folder(const struct wlb_trainer *t, const char *folder)
{
	char path[PATH_MAX];
	wlb_file_report("reading", folder);
	const char *whole = realpath(folder, path);
	wlb_file_report_end();
	wlb_record_event(t->recorder, "trace", whole != NULL ? whole : folder);
}

int wlb_spans_open(struct wlb_trainer *t, struct wlb_error *error)
{
	char folder[PATH_MAX];
	if (wlb_trace_folder_name(t->options, t->plan->attempt_id, folder, error) < 0)
		return -1;
	if (t->launch->rank == 0)
		record_folder(t, folder);
	t->spans = wlb_span_file_new(
		&(struct wlb_span_file_options){
			.folder = folder,
			.steps = t->options->traced,
			.rank = t->launch->rank,
			.ranks = t->launch->size,
			.node = wlb_launch_node(t->launch, t->launch->rank),
			.coords = t->groups->coords,
			.calls = wlb_comm_get_trace(t->world),
		},
		error);
	return t->spans != NULL ? 0 : -1;
}

static const char *name_of(enum wlb_step_part part)
{
	return part == WLB_TIME_FORWARD ? "forward" : part == WLB_TIME_BACKWARD ? "backward" : "optimizer";
}

void wlb_spans_stop_part(struct wlb_trainer *t)
{
	wlb_step_timer_stop(&t->timer);
	if (!wlb_span_file_is_on(t->spans))
		return;
	if (t->timer.events == NULL)
		wlb_span_file_add(t->spans, WLB_TRACK_PASSES, name_of(t->timer.part), t->timer.started.now_s,
		                  wlb_now_s());
	wlb_span_file_add_calls(t->spans);
}

/* The times of a step that is read late, by the device's clock: it begins a step when that is queued, or where it still
 * computes the one before, when that has ended. Returns when the step began. */
static double end_on_device(struct wlb_trainer *t, const struct wlb_unread_step *step)
{
	double began_s = fmax(step->started_s, t->spans_ended_s);
	t->spans_ended_s = began_s + t->device->ops->event_elapsed_s(t->device, step->began, step->computed);
	return began_s;
}

static void add_parts(struct wlb_trainer *t, const struct wlb_unread_step *step, double began_s)
{
	double from_s, to_s;
	enum wlb_step_part part;
	for (int i = 0; wlb_step_events_interval(step->events, i, step->began, &part, &from_s, &to_s); i++)
		wlb_span_file_add(t->spans, WLB_TRACK_PASSES, name_of(part), began_s + from_s, began_s + to_s);
}

void wlb_spans_end_step(struct wlb_trainer *t, const struct wlb_unread_step *step)
{
	if (!wlb_span_file_is_on(t->spans))
		return;
	double began_s = step->events != NULL ? end_on_device(t, step) : step->started_s;
	const struct wlb_step_range *traced = &t->options->traced;
	if (step->facts.step < traced->first || step->facts.step > traced->last) /* beside them, but read meanwhile */
		return;
	if (step->events != NULL)
		add_parts(t, step, began_s);
	wlb_span_file_end_step(t->spans, step->facts.step, began_s,
	                       step->events != NULL ? t->spans_ended_s : wlb_now_s());
}
