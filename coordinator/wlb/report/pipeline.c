#include "coordinator/wlb/report/pipeline.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlb/output/reply_fields.h"
#include "libwlb/simulation/sim_pipeline.h"

enum { PASSES_MAX = 4096 };

/* The plan is what a user recorded: a schedule is made only of one that libwlb takes. */
static bool read_plan(const json_t *object, struct wlb_plan *plan)
{
	*plan = (struct wlb_plan){0};
	int pp = 0, micro_batches = 0, interleave = 1;
	if (json_unpack((json_t *)object, "{s:{s:i}, s:i, s?i}", "layout", "pp", &pp, "micro_batches", &micro_batches,
	                "interleave", &interleave) != 0 ||
	    pp < 2 || micro_batches < 1 || interleave < 1 || pp > PASSES_MAX || interleave > PASSES_MAX ||
	    (interleave > 1 && micro_batches % pp != 0))
		return false;
	plan->layout = (struct wlb_layout){.tp = 1, .cp = 1, .pp = pp, .dp = 1};
	plan->micro_batches = micro_batches;
	plan->interleave = interleave;
	plan->shared_head = strcmp(wlb_field_text(object, "head_stages", ""), "all") == 0;
	return wlb_sim_pipeline_events(plan) <= PASSES_MAX;
}

static const json_t *newest_plan(const json_t *run)
{
	const json_t *attempts = json_object_get(run, "attempts");
	for (size_t i = json_array_size(attempts); i > 0; i--) {
		const json_t *plan = json_object_get(json_array_get(attempts, i - 1), "plan");
		if (json_is_object(plan))
			return plan;
	}
	return NULL;
}

/* Returns the mean of a part over the run; 0 where it is not known. */
static double mean_s(const json_t *parts, const char *name)
{
	const json_t *names = json_object_get(parts, "names"), *entry, *value;
	double sum_s = 0.0;
	size_t i, k;
	json_array_foreach(names, i, entry)
	{
		const json_t *list = json_array_get(json_object_get(parts, "seconds"), i);
		if (strcmp(json_string_value(entry), name) != 0 || json_array_size(list) == 0)
			continue;
		json_array_foreach(list, k, value) sum_s += json_number_value(value);
		return sum_s / (double)json_array_size(list);
	}
	return 0.0;
}

static json_t *to_json(const struct wlb_sim_pipeline *p, double end, double pass_sum, bool is_measured)
{
	const struct wlb_plan *plan = &p->plan;
	json_t *passes = json_array();
	for (size_t i = 0; passes != NULL && i < wlb_sim_pipeline_events(plan); i++) {
		const struct wlb_sim_event *e = &p->events[i];
		if (e->head)
			continue;
		json_array_append_new(passes, json_pack("[i, i, i, i, f, f]", e->stage, e->chunk, e->micro_batch,
		                                        e->backward, e->start_s, e->end_s));
	}
	return json_pack("{s:i, s:i, s:i, s:s, s:f, s:f, s:o}", "stages", plan->layout.pp, "chunks", plan->interleave,
	                 "micro_batches", plan->micro_batches, "unit", is_measured ? "s" : "forward passes", "end", end,
	                 "bubble", 1.0 - pass_sum / (end * plan->layout.pp), "passes", passes);
}

/* Splits one block into the tables of the pipeline; communication and the shared head take no time. */
static void set_tables(struct wlb_sim_pipeline *p, double *numbers, int64_t *next, double forward, double backward)
{
	size_t passes = wlb_sim_pipeline_passes(&p->plan), stages = (size_t)p->plan.layout.pp;
	double **tables[] = {&p->forward_s,    &p->backward_s, &p->send_s,        &p->head_s,
	                     &p->head_send_s,  &p->head_end_s, &p->forward_end_s, &p->backward_end_s,
	                     &p->last_start_s, &p->last_end_s, &p->stage_end_s};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		*tables[i] = numbers + i * passes;
	for (size_t i = 0; i < passes; i++) {
		p->forward_s[i] = forward;
		p->backward_s[i] = backward;
	}
	memset(next, 0, stages * sizeof(*next));
	p->next = next;
}

json_t *wlb_report_pipeline(const json_t *run, const json_t *parts)
{
	enum { TABLES = 11 };
	struct wlb_sim_pipeline pipeline = {.lanes = 1};
	if (!read_plan(newest_plan(run), &pipeline.plan))
		return json_null();
	size_t passes = wlb_sim_pipeline_passes(&pipeline.plan);
	double of_stage = (double)pipeline.plan.micro_batches * pipeline.plan.interleave;
	double forward = mean_s(parts, "forward_s") / of_stage, backward = mean_s(parts, "backward_s") / of_stage;
	bool is_measured = forward > 0.0 && backward > 0.0;
	double *numbers = calloc(TABLES * passes, sizeof(*numbers));
	int64_t *next = calloc((size_t)pipeline.plan.layout.pp, sizeof(*next));
	pipeline.events = calloc(wlb_sim_pipeline_events(&pipeline.plan), sizeof(*pipeline.events));
	pipeline.order = calloc(wlb_sim_pipeline_events(&pipeline.plan), sizeof(*pipeline.order));
	json_t *schedule = NULL;
	if (numbers != NULL && next != NULL && pipeline.events != NULL && pipeline.order != NULL) {
		forward = is_measured ? forward : 1.0;
		backward = is_measured ? backward : 2.0;
		set_tables(&pipeline, numbers, next, forward, backward);
		wlb_sim_pipeline_order(&pipeline);
		double end = wlb_sim_pipeline_run(&pipeline);
		schedule = to_json(&pipeline, end, (double)passes * (forward + backward), is_measured);
	}
	free(pipeline.order);
	free(pipeline.events);
	free(next);
	free(numbers);
	return schedule;
}
