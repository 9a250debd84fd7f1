/* Checks the description of a machine, and computes the time of its collectives. */
#include <math.h>
#include <stddef.h>

#include "libwlb/cost/interpolate.h"
#include "libwlb/cost/rates.h"
#include "libwlb/wlb.h"

static int check_seconds(const char *name, const double *seconds, int32_t count, struct wlb_error *error)
{
	for (int32_t i = 0; i < count; i++)
		if (!(seconds[i] > 0.0 && seconds[i] <= 1e3))
			return wlb_fail(error, "%s: value %d is %g: it must be seconds, above 0 and at most 1000", name,
			                i, seconds[i]);
	return 0;
}

/* Returns 0, or -1 with the value and the rule that it breaks. */
static int check_link_calls(const struct wlb_link_calls *calls, struct wlb_error *error)
{
	if (calls->count < 0 || calls->count > WLB_LINK_POINTS)
		return wlb_fail(error, "bytes has %d points: it must have at most %d", calls->count, WLB_LINK_POINTS);
	for (int32_t i = 0; i < calls->count; i++)
		if (!(calls->bytes[i] >= 1.0 && calls->bytes[i] <= 0x1p40) ||
		    (i > 0 && calls->bytes[i] <= calls->bytes[i - 1]))
			return wlb_fail(error, "bytes: point %d is %g: points must rise, from 1 to 2^40", i,
			                calls->bytes[i]);
	if (check_seconds("gather_s", calls->gather_s, calls->count, error) < 0 ||
	    check_seconds("reduce_s", calls->reduce_s, calls->count, error) < 0)
		return -1;
	return check_seconds("send_s", calls->send_s, calls->count, error);
}

/* Returns the seconds of a call in which each rank sends `bytes`; `seconds` is one of the lists of `calls`, whose count
 * is above 0. */
static double link_call_s(const struct wlb_link_calls *calls, const double *seconds, double bytes)
{
	int32_t last = calls->count - 1;
	if (bytes >= calls->bytes[last])
		return seconds[last] * bytes / calls->bytes[last];
	struct wlb_position position = wlb_position_find(calls->bytes, (size_t)calls->count, bytes, wlb_log_share);
	double low = seconds[position.low];
	return position.share > 0.0 ? low * pow(seconds[position.low + 1] / low, position.share) : low;
}

struct range {
	const char *field;
	size_t offset;
	double least, most; /* both allowed */
};

#define RANGE(field, least, most)                                                                                      \
	{                                                                                                              \
#field, offsetof(struct wlb_machine, field), least, most                                               \
	}

/* The ranges are wide: they detect a wrong unit (GB for bytes, ms for s) or sign and accept unusual machines. */
static const struct range ranges[] = {
	RANGE(peak_flops, 1e9, 1e18),
	RANGE(gemm_efficiency, 1e-3, 1.0),
	RANGE(attention_efficiency, 1e-3, 1.0),
	RANGE(attention_backward_efficiency, 1e-3, 1.0),
	RANGE(attention_overhead_keys, 0.0, 1e5),
	RANGE(memory_bytes, 1e8, 1e15),
	RANGE(memory_bytes_per_s, 1e8, 1e15),
	RANGE(node_link.bytes_per_s, 1e6, 1e15),
	RANGE(node_link.latency_s, 0.0, 1.0),
	RANGE(network_link.bytes_per_s, 1e6, 1e15),
	RANGE(network_link.latency_s, 0.0, 1.0),
	RANGE(switch_taper, 1e-3, 1.0),
	RANGE(switch_latency_s, 0.0, 1.0),
	RANGE(switch_link.latency_s, 0.0, 1.0),
	RANGE(operation_s, 0.0, 1.0),
	RANGE(gemm_tile_depth, 0.0, 1e6),
	RANGE(slowest_rank, 0.0, 10.0),
	RANGE(fp8_rate, 0.0, 10.0),
	RANGE(mxfp8_rate, 0.0, 10.0),
};

struct count {
	const char *field;
	size_t offset;
	int32_t least, most; /* both allowed */
};

static const struct count counts[] = {
	RANGE(gpus_per_node, 1, 1024),      RANGE(attention_tile_tokens, 1, 65536), RANGE(element_bytes, 0, 8),
	RANGE(processors, 0, 65536),        RANGE(collective_processors, 0, 65536), RANGE(gemm_tile_rows, 0, 65536),
	RANGE(gemm_tile_columns, 0, 65536), RANGE(blocking_messages, 0, 1),         RANGE(link_nodes, 0, 1024),
};

static int check_counts(const struct wlb_machine *machine, struct wlb_error *error)
{
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const struct count *count = &counts[i];
		int32_t value = *(const int32_t *)((const char *)machine + count->offset);
		if (value < count->least || value > count->most)
			return wlb_fail(error, "%s is %d: it must be between %d and %d", count->field, value,
			                count->least, count->most);
	}
	if (machine->processors > 0 && (machine->gemm_tile_rows < 2 || machine->gemm_tile_columns < 2))
		return wlb_fail(error, "processors is %d: gemm_tile_rows and gemm_tile_columns must then be at least 2",
		                machine->processors);
	if (machine->collective_processors > machine->processors)
		return wlb_fail(error, "collective_processors is %d: it must be at most processors, %d",
		                machine->collective_processors, machine->processors);
	return 0;
}

/* The same ranges as those of the machine's own attention fields. */
static int check_kernels(const struct wlb_machine *machine, struct wlb_error *error)
{
	if (machine->kernel_count < 0 || machine->kernel_count > WLB_ATTENTION_KERNELS)
		return wlb_fail(error, "kernel_count is %d: it must be between 0 and %d", machine->kernel_count,
		                WLB_ATTENTION_KERNELS);
	for (int32_t i = 0; i < machine->kernel_count; i++) {
		const struct wlb_attention_kernel *k = &machine->kernels[i];
		const double shares[] = {k->efficiency, k->backward_efficiency};
		for (int s = 0; s < 2; s++)
			if (!(shares[s] >= 1e-3 && shares[s] <= 1.0))
				return wlb_fail(error, "%s: efficiency is %g: it must be between 0.001 and 1", k->name,
				                shares[s]);
		if (k->tile_tokens < 1 || k->tile_tokens > 65536)
			return wlb_fail(error, "%s: tile_tokens is %d: it must be between 1 and 65536", k->name,
			                k->tile_tokens);
		if (!(k->overhead_keys >= 0.0 && k->overhead_keys <= 1e5))
			return wlb_fail(error, "%s: overhead_keys is %g: it must be between 0 and 100000", k->name,
			                k->overhead_keys);
	}
	return 0;
}

/* Factors that are 0 where nobody measured them. */
static int check_factors(const struct wlb_machine *machine, struct wlb_error *error)
{
	const struct {
		const char *field;
		double value;
	} factors[] = {
		{"slowest_rank", machine->slowest_rank},
		{"fp8_rate", machine->fp8_rate},
		{"mxfp8_rate", machine->mxfp8_rate},
	};
	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++)
		if (factors[i].value > 0.0 && factors[i].value < 1.0)
			return wlb_fail(error, "%s is %g: it must be 0, or 1 at least", factors[i].field,
			                factors[i].value);
	return 0;
}

int wlb_machine_check(const struct wlb_machine *machine, struct wlb_error *error)
{
	if (check_counts(machine, error) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *range = &ranges[i];
		double value = *(const double *)((const char *)machine + range->offset);
		if (!(value >= range->least && value <= range->most))
			return wlb_fail(error, "%s is %g: it must be between %g and %g", range->field, value,
			                range->least, range->most);
	}
	double switch_bytes_per_s = machine->switch_link.bytes_per_s;
	if (switch_bytes_per_s != 0.0 && !(switch_bytes_per_s >= 1e6 && switch_bytes_per_s <= 1e15))
		return wlb_fail(error, "switch_link.bytes_per_s is %g: it must be 0 or between 1e+06 and 1e+15",
		                switch_bytes_per_s);
	if (check_factors(machine, error) < 0)
		return -1;
	if (check_kernels(machine, error) < 0)
		return wlb_fail_in(error, "attention_kernels");
	if (wlb_operations_check(machine->operations, error) < 0)
		return wlb_fail_in(error, "operations");
	if (check_link_calls(&machine->node_calls, error) < 0)
		return wlb_fail_in(error, "node_calls");
	if (wlb_gemm_rates_check(&machine->gemm, error) < 0)
		return wlb_fail_in(error, "gemm");
	if (wlb_attention_rates_check(&machine->attention, error) < 0)
		return wlb_fail_in(error, "attention");
	return 0;
}

int wlb_machine_linked_gpus(const struct wlb_machine *machine)
{
	return machine->gpus_per_node * (machine->link_nodes > 0 ? machine->link_nodes : 1);
}

double wlb_machine_element_bytes(const struct wlb_machine *machine)
{
	return machine->element_bytes > 0 ? machine->element_bytes : 2.0;
}

struct wlb_link wlb_machine_network(const struct wlb_machine *machine, int crosses_switch)
{
	struct wlb_link link = machine->network_link;
	if (!crosses_switch)
		return link;
	if (machine->switch_link.bytes_per_s > 0.0)
		return machine->switch_link;
	link.bytes_per_s *= machine->switch_taper;
	link.latency_s += machine->switch_latency_s;
	return link;
}

/* Returns the seconds of a collective, of which `calls` has the measured ones of two ranks of a node. */
static double collective_s(const struct wlb_machine *machine, const double *calls, int ranks, int ranks_per_node,
                           int crosses_switch, double bytes)
{
	if (ranks <= 1)
		return 0.0;
	double sent = bytes * (double)(ranks - 1) / (double)ranks;
	const struct wlb_link *inside = &machine->node_link;
	const struct wlb_link network = wlb_machine_network(machine, crosses_switch);
	if (ranks <= ranks_per_node && machine->node_calls.count > 0)
		return (double)(ranks - 1) * link_call_s(&machine->node_calls, calls, bytes / (double)ranks);
	if (ranks <= ranks_per_node)
		return (double)(ranks - 1) * inside->latency_s + sent / inside->bytes_per_s;
	double nodes = ceil((double)ranks / (double)ranks_per_node);
	double bytes_per_s = (double)ranks_per_node * network.bytes_per_s;
	if (ranks_per_node > 1 && bytes_per_s > inside->bytes_per_s)
		bytes_per_s = inside->bytes_per_s;
	/* Between nodes NCCL takes trees (PAT), whose depth is the logarithm. */
	return (double)(ranks_per_node - 1) * inside->latency_s + ceil(log2(nodes)) * network.latency_s +
	       sent / bytes_per_s;
}

double wlb_machine_gather_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                            double bytes)
{
	return collective_s(machine, machine->node_calls.gather_s, ranks, ranks_per_node, crosses_switch, bytes);
}

double wlb_machine_reduce_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                            double bytes)
{
	return collective_s(machine, machine->node_calls.reduce_s, ranks, ranks_per_node, crosses_switch, bytes);
}

double wlb_machine_root_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                          double bytes)
{
	const struct wlb_link network = wlb_machine_network(machine, crosses_switch);
	double nodes = ceil((double)ranks / (double)ranks_per_node), bytes_per_s = machine->node_link.bytes_per_s;
	if (nodes > 1.0)
		bytes_per_s = fmin(bytes_per_s, (double)ranks_per_node * network.bytes_per_s);
	return ((double)ranks - nodes) * machine->node_link.latency_s + (nodes - 1.0) * network.latency_s +
	       (ranks > 1 ? bytes / bytes_per_s : 0.0);
}

double wlb_machine_exchange_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                              double near_bytes, double far_bytes)
{
	int near = ranks < ranks_per_node ? ranks : ranks_per_node;
	const struct wlb_link network = wlb_machine_network(machine, crosses_switch);
	double near_s = near > 1 ? wlb_machine_node_send_s(machine, near_bytes) : 0.0;
	double far_s = ranks > near ? network.latency_s + far_bytes / network.bytes_per_s : 0.0;
	return fmax(near_s, far_s);
}

double wlb_machine_node_send_s(const struct wlb_machine *machine, double bytes)
{
	if (machine->node_calls.count > 0)
		return link_call_s(&machine->node_calls, machine->node_calls.send_s, bytes);
	return machine->node_link.latency_s + bytes / machine->node_link.bytes_per_s;
}
