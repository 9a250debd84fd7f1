#include "coordinator/agent/steps.h"

#include <math.h>
#include <stdlib.h>

#include "coordinator/agent/areas.h"

/* The coordinator refuses a report with numbers above these, which no rank has but any process of the user can write.
 */
static const double seconds_max = 1e7, work_max = 1e30, value_max = 1e100;
static const uint64_t calls_max = UINT64_C(1000000000000000), bytes_max = UINT64_C(1000000000000000000);
static const uint64_t lost_max = UINT64_C(1000000000000);
static const int64_t step_max = INT64_C(1000000000000);

/* A length of time in microseconds; null where it is not known. */
static json_t *microseconds(double value_s)
{
	return value_s >= 0.0 && value_s <= seconds_max ? json_integer(llround(1e6 * value_s)) : json_null();
}

static json_t *work_json(double work)
{
	return work > 0.0 && work <= work_max ? json_real(work) : json_null();
}

/* A loss or norm; JSON has no number for one that is not finite. */
static json_t *value_json(int is_known, double value)
{
	if (!is_known)
		return json_null();
	if (isnan(value))
		return json_string("nan");
	if (fabs(value) > value_max)
		return json_string(value > 0.0 ? "inf" : "-inf");
	return json_real(value);
}

static json_t *transfers_json(const struct wlb_trace_step *step, const struct wlb_trace_group *groups, int group_count)
{
	json_t *list = json_array();
	for (int i = 0; i < step->transfer_count; i++) {
		const struct wlb_trace_transfer *transfer = &step->transfers[i];
		if (transfer->group < 0 || transfer->group >= group_count || groups[transfer->group].ranks <= 0)
			continue;
		json_array_append_new(list, json_pack("[s, I, o, I]", groups[transfer->group].name,
		                                      wlb_agent_at_most(transfer->calls, calls_max),
		                                      microseconds(transfer->blocked_s),
		                                      wlb_agent_at_most(transfer->bytes, bytes_max)));
	}
	return list;
}

static json_t *step_json(int rank, const struct wlb_trace_step *step, const struct wlb_trace_group *groups,
                         int group_count)
{
	/* A negative norm is none. */
	int has_norm = step->has_gradient_norm && !(step->gradient_norm < 0.0);
	return json_pack("[i, I, o, o, o, o, o, o, o, o, o]", rank, (json_int_t)step->step, microseconds(step->seconds),
	                 microseconds(step->aside_s), microseconds(step->computed_s), work_json(step->work),
	                 microseconds(step->loader_s), microseconds(step->storage_s),
	                 value_json(step->has_loss, step->loss), value_json(has_norm, step->gradient_norm),
	                 transfers_json(step, groups, group_count));
}

/* Appends up to `max` steps of an area, each later than the one before it. Returns how many are lost. */
static uint64_t report_area(struct wlb_agent_steps_place *place, const struct wlb_rank_trace *trace, int rank,
                            size_t max, json_t *list)
{
	struct wlb_trace_group groups[WLB_TRACE_GROUPS];
	struct wlb_trace_step steps[WLB_TRACE_STEPS];
	size_t count = wlb_rank_trace_read_steps(trace, &place->reported, steps, max), appended = 0;
	int group_count = count > 0 ? wlb_agent_area_groups(trace, groups) : 0;
	int64_t last = -1;
	for (size_t i = 0; i < count; i++) {
		if (steps[i].step <= last || steps[i].step > step_max)
			continue;
		last = steps[i].step;
		appended++;
		json_array_append_new(list, step_json(rank, &steps[i], groups, group_count));
	}
	/* Where another process of the rank has taken the area, nothing is known of the steps before. */
	uint64_t lost = place->reported >= place->accepted ? place->reported - place->accepted - appended : 0;
	return lost < lost_max ? lost : lost_max;
}

static int find_places(struct wlb_agent_steps *steps, const struct wlb_node_page *page)
{
	if (steps->places != NULL)
		return 0;
	steps->areas = wlb_agent_areas_count(page);
	steps->places = calloc((size_t)steps->areas + 1, sizeof(*steps->places));
	return steps->places != NULL ? 0 : -1;
}

static int by_step(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	json_int_t x_step = json_integer_value(json_array_get(x, 1)), y_step = json_integer_value(json_array_get(y, 1));
	if (x_step != y_step)
		return (x_step > y_step) - (x_step < y_step);
	json_int_t x_rank = json_integer_value(json_array_get(x, 0)), y_rank = json_integer_value(json_array_get(y, 0));
	return (x_rank > y_rank) - (x_rank < y_rank);
}

/* Returns a list of the same entries, each step of all ranks before the next, which the caller releases. */
static json_t *in_order(const json_t *list)
{
	json_t *entries[WLB_AGENT_STEPS_MAX];
	size_t count = json_array_size(list);
	json_t *ordered = json_array();
	for (size_t i = 0; i < count; i++)
		entries[i] = json_array_get(list, i);
	qsort(entries, count, sizeof(entries[0]), by_step);
	for (size_t i = 0; i < count; i++)
		json_array_append(ordered, entries[i]);
	return ordered;
}

void wlb_agent_steps_report(struct wlb_agent_steps *steps, const struct wlb_node_page *page,
                            const struct wlb_agent_tasks *tasks, json_t *body)
{
	uint64_t lost = 0;
	json_t *list = json_array();
	if (find_places(steps, page) != 0 || list == NULL) {
		json_decref(list);
		return;
	}
	int ranks = steps->areas > 0 && steps->areas < WLB_AGENT_STEPS_MAX ? steps->areas : WLB_AGENT_STEPS_MAX;
	size_t share = WLB_AGENT_STEPS_MAX / (size_t)ranks;
	int i = 0;
	for (int area = 0; area < steps->areas; area++)
		steps->places[area].reported = steps->places[area].accepted;
	for (; i < steps->areas && json_array_size(list) < WLB_AGENT_STEPS_MAX; i++) {
		int area = (steps->first + i) % steps->areas;
		const struct wlb_agent_task *task = wlb_agent_area_task(page, area, tasks);
		if (task != NULL)
			lost += report_area(&steps->places[area], wlb_node_page_area(page, area), task->rank,
			                    share < WLB_TRACE_STEPS ? share : WLB_TRACE_STEPS, list);
	}
	steps->next = steps->areas > 0 ? (steps->first + i) % steps->areas : 0;
	if (json_array_size(list) > 0)
		json_object_set_new(body, "steps", in_order(list));
	if (lost > 0)
		json_object_set_new(body, "lost_steps", json_integer(wlb_agent_at_most(lost, lost_max)));
	json_decref(list);
}

void wlb_agent_steps_accepted(struct wlb_agent_steps *steps)
{
	for (int i = 0; i < steps->areas; i++)
		steps->places[i].accepted = steps->places[i].reported;
	steps->first = steps->next;
}

void wlb_agent_steps_free(struct wlb_agent_steps *steps)
{
	free(steps->places);
	*steps = (struct wlb_agent_steps){0};
}
