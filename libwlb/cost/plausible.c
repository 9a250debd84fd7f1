/* Checks that the speeds of a measured machine are possible on an idle device. */
#include "libwlb/wlb.h"

/* A larger product has at least this share of the rate of a smaller one. */
static const double SHARE = 0.1;

/* What is measured beside the bandwidth of memory may come from a cache, or only read. */
static const double TIMES_MEMORY = 10.0;

/* Attention is measured by other kernels than the products that the peak is known from. */
static const double TIMES_PEAK = 2.0;
static const double SLOWEST_RANK_MAX = 3.0;

static int check(double rate, double smaller, struct wlb_error *error)
{
	if (rate > 0.0 && rate >= SHARE * smaller)
		return 0;
	return wlb_fail(
		error,
		"%g FLOP/s, where the next smaller has %g: a larger one must have %g times that at least; measure "
		"on idle nodes",
		rate, smaller, SHARE);
}

static int check_peak(double rate, double most, struct wlb_error *error)
{
	if (rate <= most)
		return 0;
	return wlb_fail(error,
	                "%g FLOP/s: must be at most %g, which follows from peak_flops: the processor has no more; "
	                "measure on idle nodes",
	                rate, most);
}

/* The point at [r][d][c] against its three smaller neighbours. */
static int check_product(const struct wlb_gemm_rates *rates, int r, int d, int c, double most, struct wlb_error *error)
{
	int columns = rates->columns_count, plane = rates->depth_count * columns;
	const double *rate = rates->flops_per_s + r * plane + d * columns + c;
	if (check_peak(*rate, most, error) == 0 && check(*rate, r > 0 ? rate[-plane] : 0.0, error) == 0 &&
	    check(*rate, d > 0 ? rate[-columns] : 0.0, error) == 0 && check(*rate, c > 0 ? rate[-1] : 0.0, error) == 0)
		return 0;
	return wlb_fail_in(error, "product of %g x %g x %g", rates->rows[r], rates->depth[d], rates->columns[c]);
}

static int check_gemm(const struct wlb_gemm_rates *rates, double most, struct wlb_error *error)
{
	for (int r = 0; r < rates->rows_count; r++)
		for (int d = 0; d < rates->depth_count; d++)
			for (int c = 0; c < rates->columns_count; c++)
				if (check_product(rates, r, d, c, most, error) < 0)
					return -1;
	return 0;
}

/* A rate against those of fewer keys and of fewer queries; 0 where there are fewer keys than queries. */
static int check_attention(const struct wlb_attention_rates *rates, const double *all, int i, int j, double most,
                           struct wlb_error *error)
{
	const double *rate = all + i * rates->k_count + j;
	if (rates->k_tokens[j] < rates->q_tokens[i])
		return 0;
	int fewer_keys = j > 0 && rates->k_tokens[j - 1] >= rates->q_tokens[i];
	if (check_peak(*rate, most, error) == 0 && check(*rate, fewer_keys ? rate[-1] : 0.0, error) == 0 &&
	    check(*rate, i > 0 ? rate[-rates->k_count] : 0.0, error) == 0)
		return 0;
	return wlb_fail_in(error, "attention of %g queries, %g keys", rates->q_tokens[i], rates->k_tokens[j]);
}

static int check_attentions(const struct wlb_attention_rates *rates, double most, struct wlb_error *error)
{
	for (int i = 0; i < rates->q_count; i++)
		for (int j = 0; j < rates->k_count; j++)
			if (check_attention(rates, rates->forward_flops_per_s, i, j, most, error) < 0 ||
			    check_attention(rates, rates->backward_flops_per_s, i, j, most, error) < 0)
				return -1;
	return 0;
}

/* `bytes` of a transfer or of an operation that took `seconds`, against the bandwidth of memory. */
static int check_bytes(const struct wlb_machine *machine, double bytes, double seconds, struct wlb_error *error)
{
	double most = TIMES_MEMORY * machine->memory_bytes_per_s;
	if (bytes <= most * seconds)
		return 0;
	return wlb_fail(error,
	                "%g bytes in %g s: must be at most %g bytes/s, %g times memory_bytes_per_s: memory is not that "
	                "fast; measure on idle nodes",
	                bytes, seconds, most, TIMES_MEMORY);
}

/* An operation on each element takes at least the time of its memory traffic, or of one FLOP. */
static int check_operations(const struct wlb_machine *machine, struct wlb_error *error)
{
	double element_bytes = wlb_machine_element_bytes(machine);
	for (int op = 0; op < WLB_OPERATIONS; op++) {
		const char *name = wlb_op_name((enum wlb_op)op);
		double seconds = machine->operations[op].element_s;
		if (seconds == 0.0) /* not measured */
			continue;
		if (check_bytes(machine, element_bytes * wlb_op_traffic((enum wlb_op)op), seconds, error) < 0)
			return wlb_fail_in(error, "operations: %s: of an element", name);
		if (seconds * machine->peak_flops < 1.0)
			return wlb_fail(error,
			                "operations: %s: element_s is %g: must be at least %g, the time of one FLOP at "
			                "peak_flops; measure on idle nodes",
			                name, seconds, 1.0 / machine->peak_flops);
	}
	return 0;
}

static int check_calls(const struct wlb_machine *machine, struct wlb_error *error)
{
	const struct wlb_link_calls *calls = &machine->node_calls;
	const struct {
		const char *name;
		const double *seconds;
	} lists[] = {{"gather_s", calls->gather_s}, {"reduce_s", calls->reduce_s}, {"send_s", calls->send_s}};
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < calls->count; i++)
			if (check_bytes(machine, calls->bytes[i], lists[k].seconds[i], error) < 0)
				return wlb_fail_in(error, "node_calls: %s", lists[k].name);
	return 0;
}

/* A rank that is slower than that is sick, or was measured while something else ran: plans are not made for it. */
static int check_slowest_rank(double slowest_rank, struct wlb_error *error)
{
	if (slowest_rank <= SLOWEST_RANK_MAX)
		return 0;
	return wlb_fail(
		error,
		"slowest_rank is %g: must be at most %g times the time of the median rank; measure on idle nodes",
		slowest_rank, SLOWEST_RANK_MAX);
}

int wlb_machine_plausible(const struct wlb_machine *machine, struct wlb_error *error)
{
	if (check_slowest_rank(machine->slowest_rank, error) < 0)
		return -1;
	if (check_gemm(&machine->gemm, machine->peak_flops, error) < 0)
		return wlb_fail_in(error, "gemm");
	if (check_attentions(&machine->attention, TIMES_PEAK * machine->peak_flops, error) < 0)
		return wlb_fail_in(error, "attention");
	if (check_operations(machine, error) < 0 || check_calls(machine, error) < 0)
		return -1;
	if (machine->gemm.rows_count > 0 && check_bytes(machine, machine->network_link.bytes_per_s, 1.0, error) < 0)
		return wlb_fail_in(error, "network_link");
	if (check_bytes(machine, machine->switch_link.bytes_per_s, 1.0, error) < 0)
		return wlb_fail_in(error, "switch_link");
	return 0;
}
