#include "libwlb/wlb.h"

#include <math.h>
#include <stddef.h>

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
};

static int check_curve(const char *field, const struct wlb_curve *curve, struct wlb_error *error)
{
	if (curve->points < 0 || curve->points > WLB_CURVE_POINTS)
		return wlb_fail(error, "%s has %d points: it must have 0 to %d", field, curve->points,
		                WLB_CURVE_POINTS);
	for (int32_t i = 0; i < curve->points; i++) {
		double at = curve->at[i], value = curve->value[i];
		if (!isfinite(at) || at <= (i > 0 ? curve->at[i - 1] : 0.0))
			return wlb_fail(error, "%s: point %d is at %g: points must be positive and rise", field, i, at);
		if (!(value >= 1e-3 && value <= 1.0))
			return wlb_fail(error, "%s: value %d is %g: it must lie between 0.001 and 1", field, i, value);
	}
	return 0;
}

int wlb_machine_check(const struct wlb_machine *machine, struct wlb_error *error)
{
	if (machine->gpus_per_node < 1 || machine->gpus_per_node > 1024)
		return wlb_fail(error, "gpus_per_node is %d: it must be between 1 and 1024", machine->gpus_per_node);
	if (machine->attention_tile_tokens < 1 || machine->attention_tile_tokens > 65536)
		return wlb_fail(error, "attention_tile_tokens is %d: it must be between 1 and 65536",
		                machine->attention_tile_tokens);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *range = &ranges[i];
		double value = *(const double *)((const char *)machine + range->offset);
		if (!(value >= range->least && value <= range->most))
			return wlb_fail(error, "%s is %g: it must be between %g and %g", range->field, value,
			                range->least, range->most);
	}
	return check_curve("gemm_curve", &machine->gemm_curve, error);
}

double wlb_curve_at(const struct wlb_curve *curve, double at, double otherwise)
{
	if (curve->points == 0)
		return otherwise;
	if (at <= curve->at[0])
		return curve->value[0];
	for (int32_t i = 1; i < curve->points; i++)
		if (at < curve->at[i]) {
			double share = log(at / curve->at[i - 1]) / log(curve->at[i] / curve->at[i - 1]);
			return curve->value[i - 1] + share * (curve->value[i] - curve->value[i - 1]);
		}
	return curve->value[curve->points - 1];
}

double wlb_machine_gather_s(const struct wlb_machine *machine, int ranks, int ranks_per_node, int crosses_switch,
                            double bytes)
{
	if (ranks <= 1)
		return 0.0;
	double sent = bytes * (double)(ranks - 1) / (double)ranks;
	const struct wlb_link *inside = &machine->node_link, *network = &machine->network_link;
	if (ranks <= ranks_per_node)
		return (double)(ranks - 1) * inside->latency_s + sent / inside->bytes_per_s;
	double nodes = ceil((double)ranks / (double)ranks_per_node);
	double latency_s = network->latency_s + (crosses_switch ? machine->switch_latency_s : 0.0);
	double bytes_per_s =
		(double)ranks_per_node * network->bytes_per_s * (crosses_switch ? machine->switch_taper : 1.0);
	if (ranks_per_node > 1 && bytes_per_s > inside->bytes_per_s)
		bytes_per_s = inside->bytes_per_s;
	/* Between nodes NCCL takes trees (PAT), whose depth is the logarithm. */
	return (double)(ranks_per_node - 1) * inside->latency_s + ceil(log2(nodes)) * latency_s + sent / bytes_per_s;
}
