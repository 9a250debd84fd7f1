/* Replaces what each rank measured by the values on which the ranks agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/calibrate/calibration.h"
#include "worker/calibrate/vote.h"

/* Prints the ranks that are left out, with their nodes. For rank 0. */
static void print_outvoted(const struct wlb_launch *launch, const char *what, const double *factor, double deviation)
{
	for (int rank = 0; rank < launch->size; rank++)
		if (factor[rank] > 0.0 && !wlb_vote_counts(factor[rank], deviation))
			fprintf(stderr,
			        "wlb calibrate: rank %d on %s: %s at %.2f times the median of all ranks: left out\n",
			        rank, wlb_launch_node(launch, rank), what, factor[rank]);
}

/* What each rank has measured. */
struct measurement {
	const char *what;
	int count;     /* values */
	int judged;    /* a rank is judged by so many of them, the first ones */
	int is_single; /* 1: times of one short operation, which a moment of other work makes longer: where no majority
	                  agrees, the least is taken. 0: the calibration is then refused */
};

/* Takes the least of all where no majority agrees. */
static void take_least(const struct wlb_launch *launch, const struct wlb_votes *votes, double deviation, double *values)
{
	wlb_vote_least(votes, values);
	if (launch->rank == 0)
		fprintf(stderr,
		        "wlb calibrate: %s: no more than half of the ranks are within %g times of the median: the "
		        "least is taken\n",
		        votes->what, deviation);
}

static int take_medians(const struct wlb_launch *launch, const struct wlb_votes *votes, double deviation,
                        const double *factor, double *values, struct wlb_error *error)
{
	if (launch->rank == 0)
		print_outvoted(launch, votes->what, factor, deviation);
	return wlb_vote_medians(votes, deviation, factor, values, error);
}

/* Replaces values[count], 0 where this rank has not measured, by what the ranks agree on. */
static int agree(const struct wlb_launch *launch, struct wlb_comm *world, double deviation,
                 const struct measurement *measurement, double *values, struct wlb_error *error)
{
	const char *what = measurement->what;
	int count = measurement->count;
	size_t all_count = (size_t)launch->size * (size_t)count;
	double *all = calloc(all_count, sizeof(*all)), *factor = calloc((size_t)launch->size, sizeof(*factor));
	int rc = all != NULL && factor != NULL ? 0 : wlb_fail(error, "out of memory for the values of all ranks");
	if (rc == 0) {
		memcpy(all + (size_t)launch->rank * (size_t)count, values, (size_t)count * sizeof(*values));
		rc = wlb_comm_all_reduce_double(world, all, all_count, WLB_SUM, error);
	}
	const struct wlb_votes votes = {what, all, launch->size, count, measurement->judged};
	int outvoted = rc == 0 ? wlb_vote(&votes, deviation, factor, error) : 0;
	if (rc == 0 && outvoted < 0 && measurement->is_single)
		take_least(launch, &votes, deviation, values);
	else if (rc == 0 && outvoted < 0)
		rc = 1;
	else if (rc == 0)
		rc = take_medians(launch, &votes, deviation, factor, values, error);
	free(all);
	free(factor);
	return rc;
}

/* A link is judged by its bandwidth: latencies are short, and so differ much. */
static int agree_on_link(const struct wlb_launch *launch, struct wlb_comm *world, double deviation,
                         enum wlb_link_kind kind, struct wlb_link *link, struct wlb_error *error)
{
	const struct measurement measurement = {wlb_link_name(kind), 2, 1, 0};
	double values[] = {link->bytes_per_s, link->latency_s};
	int rc = agree(launch, world, deviation, &measurement, values, error);
	*link = (struct wlb_link){.bytes_per_s = values[0], .latency_s = values[1]};
	return rc;
}

/* The times of calls inside a node at each size, of which a rank without a partner has none. A rank is judged for each
 * kind of call. */
static int agree_on_calls(const struct wlb_launch *launch, struct wlb_comm *world, double deviation,
                          struct wlb_link_calls *calls, struct wlb_error *error)
{
	const struct {
		const char *what;
		double *seconds;
	} lists[] = {{"time of all-gathers in a node", calls->gather_s},
	             {"time of reduce-scatters in a node", calls->reduce_s},
	             {"time of messages in a node", calls->send_s}};
	int rc = 0;
	for (int i = 0; rc == 0 && i < 3; i++) {
		const struct measurement measurement = {lists[i].what, WLB_LINK_POINTS, WLB_LINK_POINTS, 1};
		rc = agree(launch, world, deviation, &measurement, lists[i].seconds, error);
	}
	return rc;
}

/* Each operation is judged by itself, by the time of an element: what disturbed a rank during one measurement says
 * nothing of the others. The fixed times of calls are short, and so differ much. */
static int agree_on_operations(const struct wlb_launch *launch, struct wlb_comm *world, double deviation,
                               struct wlb_elementwise *elementwise, struct wlb_error *error)
{
	const struct measurement memory = {"memory", 2, 1, 0};
	double of_all[] = {elementwise->memory_bytes_per_s, elementwise->operation_s};
	int rc = agree(launch, world, deviation, &memory, of_all, error);
	elementwise->memory_bytes_per_s = of_all[0];
	elementwise->operation_s = of_all[1];
	for (int op = 0; rc == 0 && op < WLB_OPERATIONS; op++) {
		struct wlb_op_time *time = &elementwise->operations[op];
		double values[] = {time->element_s, time->call_s};
		char what[64];
		snprintf(what, sizeof(what), "time of %s", wlb_op_name((enum wlb_op)op));
		const struct measurement measurement = {what, 2, 1, 1};
		rc = agree(launch, world, deviation, &measurement, values, error);
		*time = (struct wlb_op_time){.call_s = values[1], .element_s = values[0]};
	}
	return rc;
}

int wlb_calibration_agree(const struct wlb_launch *launch, struct wlb_comm *world, double deviation,
                          struct wlb_calibration *c, struct wlb_error *error)
{
	int products = c->gemm.rows_count * c->gemm.depth_count * c->gemm.columns_count;
	int points = c->attention.q_count * c->attention.k_count;
	const struct measurement of_products = {"matrix products", products, products, 0};
	const struct measurement forward = {"attention, forward,", points, points, 0};
	const struct measurement backward = {"attention, backward,", points, points, 0};
	int rc = agree(launch, world, deviation, &of_products, c->gemm.flops_per_s, error);
	if (rc == 0)
		rc = agree(launch, world, deviation, &forward, c->attention.forward_flops_per_s, error);
	if (rc == 0)
		rc = agree(launch, world, deviation, &backward, c->attention.backward_flops_per_s, error);
	if (rc == 0)
		rc = agree_on_operations(launch, world, deviation, &c->elementwise, error);
	for (int kind = 0; rc == 0 && kind < WLB_LINK_KINDS; kind++)
		rc = agree_on_link(launch, world, deviation, (enum wlb_link_kind)kind, &c->links[kind], error);
	if (rc == 0)
		rc = agree_on_calls(launch, world, deviation, &c->node_calls, error);
	if (rc == 0 && !(c->links[WLB_LINK_NODE].bytes_per_s > 0.0))
		c->node_calls.count = 0;
	return rc;
}
