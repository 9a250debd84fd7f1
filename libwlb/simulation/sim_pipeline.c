/*
 * Computes when the passes of every stage run. Their order is fixed (pipeline.c), and a pass starts as soon as the
 * stage is free and its input has arrived: stages are advanced in turn, each as far as possible, and no queue of events
 * is needed.
 */
#include "libwlb/simulation/sim_pipeline.h"

#include "libwlb/cost/plan_sizes.h"

#define NOT_YET (-1.0)

size_t wlb_sim_pipeline_passes(const struct wlb_plan *plan)
{
	return (size_t)plan->layout.pp * (size_t)plan->interleave * (size_t)plan->micro_batches;
}

/* Returns the second at which the input of the pass arrives at its stage, or NOT_YET where it is not known. */
static double ready_s(const struct wlb_sim_pipeline *p, int32_t stage, struct wlb_pass pass)
{
	int32_t pp = p->plan.layout.pp, m = p->plan.micro_batches, q = pass.chunk * pp + stage;
	int32_t last = pp * p->plan.interleave - 1;
	if (!pass.backward && q == 0)
		return 0.0;
	if (pass.backward && q == last)
		return p->forward_end_s[(size_t)q * m + pass.micro_batch];
	/* Activations come from the stage before, gradients from the one after. */
	int32_t from = pass.backward ? q + 1 : q - 1;
	int32_t boundary = (pass.backward ? q : q - 1) % pp;
	const double *ends = pass.backward ? p->backward_end_s : p->forward_end_s;
	double end_s = ends[(size_t)from * m + pass.micro_batch];
	if (end_s == NOT_YET)
		return NOT_YET;
	return pp > 1 ? end_s + p->send_s[(size_t)boundary * m + pass.micro_batch] : end_s;
}

/* Returns for how many seconds sending the output of the pass blocks the stage. */
static double sending_s(const struct wlb_sim_pipeline *p, int32_t stage, struct wlb_pass pass)
{
	int32_t pp = p->plan.layout.pp, q = pass.chunk * pp + stage;
	int32_t last = pp * p->plan.interleave - 1;
	if (p->overlap_pp || pp == 1 || (pass.backward ? q == 0 : q == last))
		return 0.0;
	int32_t boundary = (pass.backward ? q - 1 : q) % pp;
	return p->send_s[(size_t)boundary * p->plan.micro_batches + pass.micro_batch];
}

static void record(struct wlb_sim_pipeline *p, int32_t stage, int64_t n, struct wlb_pass pass, double start_s,
                   double end_s)
{
	int64_t passes = 2 * (int64_t)p->plan.micro_batches * p->plan.interleave;
	if (p->events != NULL)
		p->events[stage * passes + n] = (struct wlb_sim_event){
			.stage = stage,
			.chunk = pass.chunk,
			.micro_batch = pass.micro_batch,
			.backward = pass.backward,
			.start_s = start_s,
			.end_s = end_s,
		};
	if (pass.backward) {
		p->last_start_s[pass.chunk * p->plan.layout.pp + stage] = start_s;
		p->last_end_s[pass.chunk * p->plan.layout.pp + stage] = end_s;
	}
}

/* Runs the stage's passes up to the first that must wait for another stage; returns how many it ran. */
static int64_t advance(struct wlb_sim_pipeline *p, int32_t stage)
{
	int64_t passes = 2 * (int64_t)p->plan.micro_batches * p->plan.interleave, ran = 0;
	for (; p->next[stage] < passes; p->next[stage]++, ran++) {
		struct wlb_pass pass = wlb_plan_pass(&p->plan, stage, p->next[stage]);
		double start_s = ready_s(p, stage, pass);
		if (start_s == NOT_YET)
			return ran;
		if (start_s < p->stage_end_s[stage])
			start_s = p->stage_end_s[stage];
		size_t at = (size_t)(pass.chunk * p->plan.layout.pp + stage) * (size_t)p->plan.micro_batches +
		            (size_t)pass.micro_batch;
		double end_s = start_s + (pass.backward ? p->backward_s : p->forward_s)[at];
		(pass.backward ? p->backward_end_s : p->forward_end_s)[at] = end_s;
		p->stage_end_s[stage] = end_s + sending_s(p, stage, pass);
		record(p, stage, p->next[stage], pass, start_s, end_s);
	}
	return ran;
}

double wlb_sim_pipeline_run(struct wlb_sim_pipeline *p)
{
	int32_t pp = p->plan.layout.pp;
	size_t passes = wlb_sim_pipeline_passes(&p->plan);
	for (size_t i = 0; i < passes; i++)
		p->forward_end_s[i] = p->backward_end_s[i] = NOT_YET;
	for (int32_t s = 0; s < pp; s++) {
		p->stage_end_s[s] = 0.0;
		p->next[s] = 0;
	}
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
	for (int32_t s = 0; s < pp; s++)
		end_s = p->stage_end_s[s] > end_s ? p->stage_end_s[s] : end_s;
	return end_s;
}
