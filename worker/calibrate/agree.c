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

/* Replaces values[count], 0 where this rank has not measured, by what the ranks agree on. */
static int agree(const struct wlb_launch *launch, struct wlb_comm *world, double deviation, const char *what,
                 double *values, int count, int judged, struct wlb_error *error)
{
	size_t all_count = (size_t)launch->size * (size_t)count;
	double *all = calloc(all_count, sizeof(*all)), *factor = calloc((size_t)launch->size, sizeof(*factor));
	int rc = all != NULL && factor != NULL ? 0 : wlb_fail(error, "out of memory for the values of all ranks");
	if (rc == 0) {
		memcpy(all + (size_t)launch->rank * (size_t)count, values, (size_t)count * sizeof(*values));
		rc = wlb_comm_all_reduce_double(world, all, all_count, WLB_SUM, error);
	}
	const struct wlb_votes votes = {what, all, launch->size, count, judged};
	if (rc == 0 && wlb_vote(&votes, deviation, factor, error) < 0)
		rc = 1;
	if (rc == 0 && launch->rank == 0)
		print_outvoted(launch, what, factor, deviation);
	if (rc == 0)
		rc = wlb_vote_medians(&votes, deviation, factor, values, error);
	free(all);
	free(factor);
	return rc;
}

/* A link is judged by its bandwidth: latencies are short, and so differ much. */
static int agree_on_link(const struct wlb_launch *launch, struct wlb_comm *world, double deviation,
                         enum wlb_link_kind kind, struct wlb_link *link, struct wlb_error *error)
{
	double values[] = {link->bytes_per_s, link->latency_s};
	int rc = agree(launch, world, deviation, wlb_link_name(kind), values, 2, 1, error);
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
	for (int i = 0; rc == 0 && i < 3; i++)
		rc = agree(launch, world, deviation, lists[i].what, lists[i].seconds, WLB_LINK_POINTS, WLB_LINK_POINTS,
		           error);
	return rc;
}

/* Each operation is judged by itself, by the time of an element: what disturbed a rank during one measurement says
 * nothing of the others. The fixed times of calls are short, and so differ much. */
static int agree_on_operations(const struct wlb_launch *launch, struct wlb_comm *world, double deviation,
                               struct wlb_elementwise *elementwise, struct wlb_error *error)
{
	double of_all[] = {elementwise->memory_bytes_per_s, elementwise->operation_s};
	int rc = agree(launch, world, deviation, "memory", of_all, 2, 1, error);
	elementwise->memory_bytes_per_s = of_all[0];
	elementwise->operation_s = of_all[1];
	for (int op = 0; rc == 0 && op < WLB_OPERATIONS; op++) {
		struct wlb_op_time *time = &elementwise->operations[op];
		double values[] = {time->element_s, time->call_s};
		char what[64];
		snprintf(what, sizeof(what), "time of %s", wlb_op_name((enum wlb_op)op));
		rc = agree(launch, world, deviation, what, values, 2, 1, error);
		*time = (struct wlb_op_time){.call_s = values[1], .element_s = values[0]};
	}
	return rc;
}

int wlb_calibration_agree(const struct wlb_launch *launch, struct wlb_comm *world, double deviation,
                          struct wlb_calibration *c, struct wlb_error *error)
{
	int products = c->gemm.rows_count * c->gemm.depth_count * c->gemm.columns_count;
	int points = c->attention.q_count * c->attention.k_count;
	int rc = agree(launch, world, deviation, "matrix products", c->gemm.flops_per_s, products, products, error);
	if (rc == 0)
		rc = agree(launch, world, deviation, "attention, forward,", c->attention.forward_flops_per_s, points,
		           points, error);
	if (rc == 0)
		rc = agree(launch, world, deviation, "attention, backward,", c->attention.backward_flops_per_s, points,
		           points, error);
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
