/*
 * Computes when the passes of every stage run. Their order is fixed (pipeline.c), and a pass starts as soon as the
 * stage is free and its input has arrived: stages are advanced in turn, each as far as possible, and no queue of events
 * is needed.
 */
#include "libwlb/simulation/sim_pipeline.h"

#include <math.h>
#include <string.h>

#include "libwlb/cost/plan_sizes.h"

#define NOT_YET (-1.0)

size_t wlb_sim_pipeline_passes(const struct wlb_plan *plan)
{
	return (size_t)plan->layout.pp * (size_t)plan->interleave * (size_t)plan->micro_batches;
}

size_t wlb_sim_pipeline_events(const struct wlb_plan *plan)
{
	int32_t last = plan->layout.pp - 1; /* the other stages have equally many */
	return (size_t)last * (size_t)wlb_plan_passes(plan, 0) + (size_t)wlb_plan_passes(plan, last);
}

/* Returns the entry of a lane in a table of lanes. */
static size_t lane_at(const struct wlb_sim_pipeline *p, size_t entry, int32_t lane)
{
	return entry * (size_t)p->lanes + (size_t)lane;
}

/* Returns the second at which a stage has the rows of its share of the head, or NOT_YET. */
static double head_ready_s(const struct wlb_sim_pipeline *p, int32_t stage, int32_t micro_batch, int32_t lane)
{
	size_t last = (size_t)p->plan.layout.pp * (size_t)p->plan.interleave - 1, m = (size_t)p->plan.micro_batches;
	double end_s = p->forward_end_s[lane_at(p, last * m + (size_t)micro_batch, lane)];
	return end_s == NOT_YET ? NOT_YET : end_s + p->head_send_s[(size_t)stage * m + (size_t)micro_batch];
}

/* Returns the second at which the last stage can begin the backward pass that computes the loss, or NOT_YET: the rows
 * are its own; where the head is shared the gradients of the other stages' shares have arrived when its own share has
 * ended. */
static double loss_ready_s(const struct wlb_sim_pipeline *p, size_t q, int32_t micro_batch, int32_t lane)
{
	size_t pp = (size_t)p->plan.layout.pp, m = (size_t)p->plan.micro_batches, j = (size_t)micro_batch;
	double ready_s = p->forward_end_s[lane_at(p, q * m + j, lane)];
	for (size_t s = 0; p->plan.shared_head && s < pp - 1; s++) {
		double end_s = p->head_end_s[lane_at(p, s * m + j, lane)];
		if (end_s == NOT_YET)
			return NOT_YET;
		ready_s = fmax(ready_s, end_s + p->head_send_s[s * m + j] - p->head_s[(pp - 1) * m + j]);
	}
	return ready_s;
}

/* Returns the second at which the input of the pass arrives at its stage, or NOT_YET where it is not known: it is known
 * of all lanes or of none. */
static double ready_s(const struct wlb_sim_pipeline *p, int32_t stage, struct wlb_pass pass, int32_t lane)
{
	int32_t pp = p->plan.layout.pp, m = p->plan.micro_batches, q = pass.chunk * pp + stage;
	int32_t last = pp * p->plan.interleave - 1;
	if (pass.head)
		return head_ready_s(p, stage, pass.micro_batch, lane);
	if (!pass.backward && q == 0)
		return 0.0;
	if (pass.backward && q == last)
		return loss_ready_s(p, (size_t)q, pass.micro_batch, lane);
	/* Activations come from the stage before, gradients from the one after. */
	int32_t from = pass.backward ? q + 1 : q - 1;
	int32_t boundary = (pass.backward ? q : q - 1) % pp;
	const double *ends = pass.backward ? p->backward_end_s : p->forward_end_s;
	double end_s = ends[lane_at(p, (size_t)from * (size_t)m + (size_t)pass.micro_batch, lane)];
	if (end_s == NOT_YET)
		return NOT_YET;
	return pp > 1 ? end_s + p->send_s[(size_t)boundary * m + pass.micro_batch] : end_s;
}

/* Returns for how many seconds sending the output of the pass blocks the stage. */
static double sending_s(const struct wlb_sim_pipeline *p, int32_t stage, struct wlb_pass pass)
{
	int32_t pp = p->plan.layout.pp, q = pass.chunk * pp + stage;
	int32_t last = pp * p->plan.interleave - 1;
	if (pass.head)
		return p->overlap_pp ? 0.0 : p->head_send_s[stage * p->plan.micro_batches + pass.micro_batch];
	if (p->overlap_pp || pp == 1 || (pass.backward ? q == 0 : q == last))
		return 0.0;
	int32_t boundary = (pass.backward ? q - 1 : q) % pp;
	return p->send_s[(size_t)boundary * p->plan.micro_batches + pass.micro_batch];
}

static void record(struct wlb_sim_pipeline *p, int32_t stage, int64_t n, struct wlb_pass pass, int32_t lane,
                   double start_s, double end_s)
{
	if (p->events != NULL && lane == 0)
		p->events[stage * wlb_plan_passes(&p->plan, 0) + n] = (struct wlb_sim_event){
			.stage = stage,
			.chunk = pass.chunk,
			.micro_batch = pass.micro_batch,
			.backward = pass.backward,
			.head = pass.head,
			.start_s = start_s,
			.end_s = end_s,
		};
	if (pass.backward) {
		size_t q = (size_t)pass.chunk * (size_t)p->plan.layout.pp + (size_t)stage;
		p->last_start_s[q] = lane > 0 ? fmax(p->last_start_s[q], start_s) : start_s;
		p->last_end_s[q] = lane > 0 ? fmax(p->last_end_s[q], end_s) : end_s;
	}
}

/* Sets when the lane's pass ends, and returns it. */
static double end_pass(struct wlb_sim_pipeline *p, int32_t stage, struct wlb_pass pass, int32_t lane, double start_s)
{
	size_t m = (size_t)p->plan.micro_batches, row = (size_t)(pass.chunk * p->plan.layout.pp + stage);
	size_t entry = (pass.head ? (size_t)stage : row) * m + (size_t)pass.micro_batch, at = lane_at(p, entry, lane);
	double takes_s = pass.head ? p->head_s[entry] : pass.backward ? p->backward_s[at] : p->forward_s[at];
	double *ends_s = pass.head ? p->head_end_s : pass.backward ? p->backward_end_s : p->forward_end_s;
	ends_s[at] = start_s + takes_s;
	return ends_s[at];
}

/* Returns the lane after those that begin the pass with `lane`. */
static int32_t next_group(const struct wlb_sim_pipeline *p, struct wlb_pass pass, int32_t lane)
{
	int32_t next = lane + 1;
	while (!pass.head && next < p->lanes && p->first_lane[lane_at(p, (size_t)pass.micro_batch, next)] == lane)
		next++;
	return next;
}

/* Runs the stage's n-th pass on all lanes, whose inputs are known. */
static void run_pass(struct wlb_sim_pipeline *p, int32_t stage, int64_t n, struct wlb_pass pass)
{
	double *stage_end_s = p->stage_end_s + lane_at(p, (size_t)stage, 0);
	for (int32_t lane = 0, next; lane < p->lanes; lane = next) {
		double start_s = 0.0;
		next = next_group(p, pass, lane);
		for (int32_t l = lane; l < next; l++)
			start_s = fmax(start_s, fmax(ready_s(p, stage, pass, l), stage_end_s[l]));
		for (int32_t l = lane; l < next; l++) {
			double end_s = end_pass(p, stage, pass, l, start_s);
			stage_end_s[l] = end_s + sending_s(p, stage, pass);
			record(p, stage, n, pass, l, start_s, end_s);
		}
	}
}

/* Runs the stage's passes up to the first that must wait for another stage; returns how many it ran. */
static int64_t advance(struct wlb_sim_pipeline *p, int32_t stage)
{
	int64_t passes = wlb_plan_passes(&p->plan, stage), ran = 0;
	const struct wlb_pass *order = p->order + stage * wlb_plan_passes(&p->plan, 0);
	for (; p->next[stage] < passes; p->next[stage]++, ran++) {
		struct wlb_pass pass = order[p->next[stage]];
		if (ready_s(p, stage, pass, 0) == NOT_YET)
			return ran;
		run_pass(p, stage, p->next[stage], pass);
	}
	return ran;
}

void wlb_sim_pipeline_order(struct wlb_sim_pipeline *p)
{
	struct wlb_pass *next = p->order;
	for (int32_t s = 0; s < p->plan.layout.pp; s++)
		next += wlb_plan_order(&p->plan, s, next);
}

double wlb_sim_pipeline_run(struct wlb_sim_pipeline *p)
{
	int32_t pp = p->plan.layout.pp;
	size_t lanes = (size_t)p->lanes, passes = wlb_sim_pipeline_passes(&p->plan) * lanes;
	for (size_t i = 0; i < passes; i++)
		p->forward_end_s[i] = p->backward_end_s[i] = NOT_YET;
	for (size_t i = 0; i < (size_t)pp * (size_t)p->plan.micro_batches * lanes; i++)
		p->head_end_s[i] = NOT_YET;
	memset(p->stage_end_s, 0, (size_t)pp * lanes * sizeof(*p->stage_end_s));
	memset(p->next, 0, (size_t)pp * sizeof(*p->next));
	/* Forward passes run from the first stage to the last and backward passes in reverse, and stages are advanced
	 * in both directions. The plan's order has no cycle, so that some stage can always advance until all have
	 * ended. */
	for (int64_t ran = 1; ran > 0;) {
		ran = 0;
		for (int32_t s = 0; s < pp; s++)
			ran += advance(p, s);
		for (int32_t s = pp - 2; s >= 0; s--)
			ran += advance(p, s);
	}
	double end_s = 0.0;
	for (size_t i = 0; i < (size_t)pp * lanes; i++)
		end_s = fmax(end_s, p->stage_end_s[i]);
	return end_s;
}
