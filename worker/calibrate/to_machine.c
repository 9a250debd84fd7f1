#include "worker/calibrate/to_machine.h"

#include <math.h>
#include <string.h>

#include "worker/calibrate/slowest_rank.h"

static double highest(const double *values, int count)
{
	double most = 0.0;
	for (int i = 0; i < count; i++)
		most = values[i] > most ? values[i] : most;
	return most;
}

/* A share of the peak, as the fields of a machine allow it. */
static double share_of(double rate, double peak)
{
	return fmax(1e-3, fmin(1.0, rate / peak));
}

/* Returns the time of the slowest rank over that of the grid, at least 1. */
static double slowest_rank(const struct wlb_calibration *c)
{
	const struct wlb_middle_product middle = wlb_middle_product(&c->gemm);
	return fmax(1.0,
	            c->slowest_product_s * middle.flops_per_s / (2.0 * middle.rows * middle.depth * middle.columns));
}

static void set_rates(const struct wlb_calibration *c, struct wlb_machine *machine)
{
	int products = c->gemm.rows_count * c->gemm.depth_count * c->gemm.columns_count;
	int longest = c->attention.q_count * c->attention.k_count - 1;
	machine->gemm = c->gemm;
	machine->attention = c->attention;
	machine->peak_flops = highest(c->gemm.flops_per_s, products);
	machine->gemm_efficiency = share_of(c->gemm.flops_per_s[products - 1], machine->peak_flops);
	machine->attention_efficiency = share_of(c->attention.forward_flops_per_s[longest], machine->peak_flops);
	machine->attention_backward_efficiency =
		share_of(c->attention.backward_flops_per_s[longest], machine->peak_flops);
	machine->slowest_rank = slowest_rank(c);
	machine->memory_bytes_per_s = c->elementwise.memory_bytes_per_s;
	machine->operation_s = c->elementwise.operation_s;
	memcpy(machine->operations, c->elementwise.operations, sizeof(machine->operations));
}

static void set_link(const struct wlb_link *measured, struct wlb_link *link)
{
	if (measured->bytes_per_s > 0.0)
		*link = *measured;
}

/* A time of 0 would mean in the file that the operation was not measured. */
static int check_measured(const struct wlb_calibration *c, struct wlb_error *error)
{
	for (int op = 0; op < WLB_OPERATIONS; op++)
		if (!(c->elementwise.operations[op].element_s > 0.0))
			return wlb_fail(error,
			                "operations: %s: element_s is %g: must be above 0; measure on idle nodes",
			                wlb_op_name((enum wlb_op)op), c->elementwise.operations[op].element_s);
	return 0;
}

int wlb_calibration_to_machine(const struct wlb_calibration *c, const struct wlb_node_facts *facts,
                               struct wlb_machine *machine, struct wlb_error *error)
{
	memcpy(machine->name, facts->type, sizeof(machine->name));
	machine->gpus_per_node = facts->ranks;
	machine->measured_threads = facts->threads;
	machine->memory_bytes = c->rank_memory_bytes;
	machine->element_bytes = facts->element_bytes;
	machine->blocking_messages = facts->blocking_messages;
	if (c->node_calls.count > 0)
		machine->node_calls = c->node_calls;
	set_rates(c, machine);
	set_link(&c->links[WLB_LINK_NODE], &machine->node_link);
	set_link(&c->links[WLB_LINK_NETWORK], &machine->network_link);
	set_link(&c->links[WLB_LINK_SWITCH], &machine->switch_link);
	if (check_measured(c, error) < 0 || wlb_machine_check(machine, error) < 0)
		return -1;
	return wlb_machine_plausible(machine, error);
}
