#include "planner/machine_rates.h"

#include <string.h>

static int read_number(const json_t *value, const char *name, double *out, struct wlb_error *error)
{
	if (!json_is_number(value))
		return wlb_fail(error, "%s: each value must be a number", name);
	*out = json_number_value(value);
	return 0;
}

/* Reads the member `name`, a list of 1 to `most` numbers. */
static int read_axis(const json_t *object, const char *name, int32_t most, double *out, int32_t *count,
                     struct wlb_error *error)
{
	const json_t *list = json_object_get(object, name), *value;
	size_t i, size = json_array_size(list);
	if (size < 1 || size > (size_t)most)
		return wlb_fail(error, "%s must be a list of 1 to %d numbers", name, most);
	json_array_foreach(list, i, value) if (read_number(value, name, &out[i], error) < 0) return -1;
	*count = (int32_t)size;
	return 0;
}

/* Reads `rows` lists of `columns` numbers. */
static int read_matrix(const json_t *list, const char *name, int32_t rows, int32_t columns, double *out,
                       struct wlb_error *error)
{
	if (json_array_size(list) != (size_t)rows)
		return wlb_fail(error, "%s must be a list of %d lists", name, rows);
	for (int32_t r = 0; r < rows; r++) {
		const json_t *line = json_array_get(list, (size_t)r);
		if (json_array_size(line) != (size_t)columns)
			return wlb_fail(error, "%s: list %d must have %d numbers", name, r, columns);
		for (int32_t c = 0; c < columns; c++)
			if (read_number(json_array_get(line, (size_t)c), name, out++, error) < 0)
				return -1;
	}
	return 0;
}

static int read_gemm(const json_t *object, struct wlb_gemm_rates *rates, struct wlb_error *error)
{
	if (read_axis(object, "rows", WLB_GEMM_ROWS, rates->rows, &rates->rows_count, error) < 0 ||
	    read_axis(object, "depth", WLB_GEMM_POINTS, rates->depth, &rates->depth_count, error) < 0 ||
	    read_axis(object, "columns", WLB_GEMM_POINTS, rates->columns, &rates->columns_count, error) < 0)
		return -1;
	const json_t *list = json_object_get(object, "flops_per_s");
	if (json_array_size(list) != (size_t)rates->rows_count)
		return wlb_fail(error, "flops_per_s must be a list of %d lists of lists", rates->rows_count);
	int32_t each = rates->depth_count * rates->columns_count;
	for (int32_t r = 0; r < rates->rows_count; r++)
		if (read_matrix(json_array_get(list, (size_t)r), "flops_per_s", rates->depth_count,
		                rates->columns_count, &rates->flops_per_s[r * each], error) < 0)
			return -1;
	return 0;
}

/* {"at": [...], "value": [...]}: shares of the peak, by tokens. */
static int read_curve(const json_t *object, double peak_flops, struct wlb_gemm_rates *rates, struct wlb_error *error)
{
	int32_t values;
	if (read_axis(object, "at", WLB_GEMM_ROWS, rates->rows, &rates->rows_count, error) < 0 ||
	    read_axis(object, "value", WLB_GEMM_ROWS, rates->flops_per_s, &values, error) < 0)
		return -1;
	if (values != rates->rows_count)
		return wlb_fail(error, "at has %d numbers and value %d: they must be as many", rates->rows_count,
		                values);
	for (int32_t i = 0; i < values; i++) {
		if (!(rates->flops_per_s[i] >= 1e-3 && rates->flops_per_s[i] <= 1.0))
			return wlb_fail(error, "value %d is %g: it must lie between 0.001 and 1", i,
			                rates->flops_per_s[i]);
		rates->flops_per_s[i] *= peak_flops;
	}
	rates->depth_count = rates->columns_count = 1;
	rates->depth[0] = rates->columns[0] = 1.0;
	return 0;
}

static int read_attention(const json_t *object, struct wlb_attention_rates *rates, struct wlb_error *error)
{
	if (read_axis(object, "q_tokens", WLB_ATTENTION_POINTS, rates->q_tokens, &rates->q_count, error) < 0 ||
	    read_axis(object, "k_tokens", WLB_ATTENTION_POINTS, rates->k_tokens, &rates->k_count, error) < 0)
		return -1;
	return read_matrix(json_object_get(object, "forward_flops_per_s"), "forward_flops_per_s", rates->q_count,
	                   rates->k_count, rates->forward_flops_per_s, error) < 0
	               ? -1
	               : read_matrix(json_object_get(object, "backward_flops_per_s"), "backward_flops_per_s",
	                             rates->q_count, rates->k_count, rates->backward_flops_per_s, error);
}

/* Reads the member `name`, a list of `count` numbers. */
static int read_list(const json_t *object, const char *name, int32_t count, double *out, struct wlb_error *error)
{
	int32_t read;
	if (read_axis(object, name, WLB_LINK_POINTS, out, &read, error) < 0)
		return -1;
	return read == count
	               ? 0
	               : wlb_fail(error, "bytes has %d numbers and %s %d: they must be as many", count, name, read);
}

static int read_calls(const json_t *object, struct wlb_link_calls *calls, struct wlb_error *error)
{
	if (read_axis(object, "bytes", WLB_LINK_POINTS, calls->bytes, &calls->count, error) < 0 ||
	    read_list(object, "gather_s", calls->count, calls->gather_s, error) < 0 ||
	    read_list(object, "reduce_s", calls->count, calls->reduce_s, error) < 0)
		return -1;
	return read_list(object, "send_s", calls->count, calls->send_s, error);
}

static enum wlb_op find_op(const char *name)
{
	int op = 0;
	while (op < WLB_OPERATIONS && strcmp(name, wlb_op_name((enum wlb_op)op)) != 0)
		op++;
	return (enum wlb_op)op;
}

/* {"rmsnorm_forward": {"call_s": ..., "element_s": ...}, ...} */
static int read_operations(json_t *object, struct wlb_machine *machine, struct wlb_error *error)
{
	const char *name;
	json_t *value;
	if (!json_is_object(object))
		return wlb_fail(error, "it must be an object of operations");
	json_object_foreach(object, name, value)
	{
		enum wlb_op op = find_op(name);
		if (op == WLB_OPERATIONS)
			return wlb_fail(error, "'%.60s' is unknown: the names are those of kernels/ops.h", name);
		struct wlb_op_time *time = &machine->operations[op];
		if (read_number(json_object_get(value, "call_s"), "call_s", &time->call_s, error) < 0 ||
		    read_number(json_object_get(value, "element_s"), "element_s", &time->element_s, error) < 0)
			return wlb_fail_in(error, "%s", name);
		if (!(time->element_s > 0.0))
			return wlb_fail(error,
			                "%s: element_s is %g: it must be above 0; leave out an operation that was not "
			                "measured",
			                name, time->element_s);
	}
	return 0;
}

static json_t *find(const json_t *root, const char *name)
{
	json_t *object = json_object_get(root, name);
	return json_is_null(object) ? NULL : object;
}

int wlb_machine_rates_read(const json_t *root, struct wlb_machine *machine, struct wlb_error *error)
{
	const json_t *gemm = find(root, "gemm"), *curve = find(root, "gemm_curve"),
		     *attention = find(root, "attention"), *calls = find(root, "node_calls");
	json_t *operations = find(root, "operations");
	if (gemm != NULL && curve != NULL)
		return wlb_fail(error, "gemm and gemm_curve are both given: remove gemm_curve");
	if (gemm != NULL && read_gemm(gemm, &machine->gemm, error) < 0)
		return wlb_fail_in(error, "gemm");
	if (curve != NULL && read_curve(curve, machine->peak_flops, &machine->gemm, error) < 0)
		return wlb_fail_in(error, "gemm_curve");
	if (attention != NULL && read_attention(attention, &machine->attention, error) < 0)
		return wlb_fail_in(error, "attention");
	if (calls != NULL && read_calls(calls, &machine->node_calls, error) < 0)
		return wlb_fail_in(error, "node_calls");
	if (operations != NULL && read_operations(operations, machine, error) < 0)
		return wlb_fail_in(error, "operations");
	return 0;
}
