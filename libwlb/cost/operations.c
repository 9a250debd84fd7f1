/* The operations of a device beside matrix products and attention: names, memory traffic, the ranges of their times. */
#include "libwlb/wlb.h"

/* An operation that was not measured reads and writes `traffic` reals of memory for each element. */
static const struct {
	const char *name;
	double traffic;
} operations[WLB_OPERATIONS] = {
	[WLB_OP_EMBEDDING_FORWARD] = {"embedding_forward", 2.0},
	[WLB_OP_EMBEDDING_BACKWARD] = {"embedding_backward", 3.0},
	[WLB_OP_RMSNORM_FORWARD] = {"rmsnorm_forward", 2.0},
	[WLB_OP_RMSNORM_BACKWARD] = {"rmsnorm_backward", 4.0},
	[WLB_OP_ROPE] = {"rope", 2.0},
	[WLB_OP_ROPE_ANGLES] = {"rope_angles", 0.0},
	[WLB_OP_SWIGLU_FORWARD] = {"swiglu_forward", 3.0},
	[WLB_OP_SWIGLU_BACKWARD] = {"swiglu_backward", 6.0},
	[WLB_OP_CROSS_ENTROPY_STATISTICS] = {"cross_entropy_statistics", 2.0},
	[WLB_OP_CROSS_ENTROPY_GRADIENT] = {"cross_entropy_gradient", 2.0},
	[WLB_OP_GATHER_ROWS] = {"gather_rows", 2.0},
	[WLB_OP_ADD] = {"add", 3.0},
	[WLB_OP_SUM_SQUARES] = {"sum_squares", 1.0},
	[WLB_OP_ADAMW] = {"adamw", 7.0},
	[WLB_OP_ZERO] = {"zero", 1.0},
	[WLB_OP_COPY] = {"copy", 2.0},
};

/* The ranges detect a wrong unit. */
static const double most_call_s = 1.0, most_element_s = 1e-3;

const char *wlb_op_name(enum wlb_op op)
{
	return (unsigned)op < WLB_OPERATIONS ? operations[op].name : "unknown";
}

double wlb_op_traffic(enum wlb_op op)
{
	return (unsigned)op < WLB_OPERATIONS ? operations[op].traffic : 0.0;
}

static int check_time(const struct wlb_op_time *time, struct wlb_error *error)
{
	if (!(time->element_s >= 0.0 && time->element_s <= most_element_s))
		return wlb_fail(error, "element_s is %g: it must be between 0 and %g", time->element_s, most_element_s);
	if (!(time->call_s >= 0.0 && time->call_s <= most_call_s))
		return wlb_fail(error, "call_s is %g: it must be between 0 and %g", time->call_s, most_call_s);
	return 0;
}

int wlb_operations_check(const struct wlb_op_time *times, struct wlb_error *error)
{
	for (int op = 0; op < WLB_OPERATIONS; op++)
		if (check_time(&times[op], error) < 0)
			return wlb_fail_in(error, "%s", operations[op].name);
	return 0;
}
