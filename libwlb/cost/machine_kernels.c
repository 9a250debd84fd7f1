/* Computes the seconds of operations on one GPU of a machine: matrix products, attention, and all others. */
#include "libwlb/cost/rates.h"
#include "libwlb/pairs.h"

#include <math.h>
#include <string.h>

/* A fused kernel's backward pass does 5 matrix products where the forward pass does 2 (Dao 2023). */
static const double backward_products = 2.5;

/* Products of smaller tiles load more for each of their FLOPs: cuBLAS chooses among tiles, and takes smaller ones where
 * large ones leave multiprocessors idle. The efficiencies are assumed. */
static const struct {
	double rows, columns; /* share of the machine's tile */
	double efficiency;    /* of the large tile's */
} tiles[] = {{1.0, 1.0, 1.0}, {1.0, 0.5, 0.9}, {0.5, 0.5, 0.75}};

static double tiled_s(const struct wlb_machine *machine, double count, double rows, double depth, double columns)
{
	double rate = machine->peak_flops * machine->gemm_efficiency / machine->processors, least_s = INFINITY;
	for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++) {
		double tile_rows = machine->gemm_tile_rows * tiles[i].rows;
		double tile_columns = machine->gemm_tile_columns * tiles[i].columns;
		double waves =
			ceil(count * ceil(rows / tile_rows) * ceil(columns / tile_columns) / machine->processors);
		double tile_s = 2.0 * tile_rows * tile_columns * (depth + machine->gemm_tile_depth) /
		                (rate * tiles[i].efficiency);
		least_s = fmin(least_s, waves * tile_s);
	}
	return least_s;
}

double wlb_machine_stream_s(const struct wlb_machine *machine, double bytes)
{
	return machine->operation_s + bytes / machine->memory_bytes_per_s;
}

double wlb_machine_op_s(const struct wlb_machine *machine, enum wlb_op op, double elements)
{
	return wlb_machine_op_call_s(machine, op) + elements * wlb_machine_op_element_s(machine, op);
}

double wlb_machine_op_call_s(const struct wlb_machine *machine, enum wlb_op op)
{
	const struct wlb_op_time *time = &machine->operations[op];
	if (time->element_s > 0.0)
		return time->call_s;
	return wlb_op_traffic(op) > 0.0 ? machine->operation_s : 0.0;
}

double wlb_machine_op_element_s(const struct wlb_machine *machine, enum wlb_op op)
{
	const struct wlb_op_time *time = &machine->operations[op];
	if (time->element_s > 0.0)
		return time->element_s;
	return wlb_op_traffic(op) * wlb_machine_element_bytes(machine) / machine->memory_bytes_per_s;
}

/* `count` products of one shape in one kernel, at `rate` times the machine's, whose factors have so many bytes an
 * element. */
static double gemm_s(const struct wlb_machine *machine, double rate, double factor_bytes, double count, double rows,
                     double depth, double columns)
{
	double flops = count * 2.0 * rows * depth * columns / rate;
	if (machine->gemm.rows_count > 0)
		return fmax(machine->operation_s, flops / wlb_gemm_rate(&machine->gemm, rows, depth, columns));
	if (machine->processors == 0)
		return machine->operation_s + flops / (machine->peak_flops * machine->gemm_efficiency);
	double bytes =
		factor_bytes * (rows * depth + depth * columns) + wlb_machine_element_bytes(machine) * rows * columns;
	return machine->operation_s +
	       fmax(tiled_s(machine, count, rows, depth / rate, columns), count * bytes / machine->memory_bytes_per_s);
}

double wlb_machine_gemm_s(const struct wlb_machine *machine, double rows, double depth, double columns)
{
	return gemm_s(machine, 1.0, wlb_machine_element_bytes(machine), 1.0, rows, depth, columns);
}

double wlb_machine_fp8_rate(const struct wlb_machine *machine, enum wlb_fp8 fp8)
{
	if (fp8 == WLB_FP8_NONE)
		return 1.0;
	return fp8 == WLB_FP8_MXFP8 ? machine->mxfp8_rate : machine->fp8_rate;
}

int wlb_machine_fp8_check(const struct wlb_machine *machine, enum wlb_fp8 fp8, struct wlb_error *error)
{
	if (wlb_machine_fp8_rate(machine, fp8) > 0.0)
		return 0;
	return wlb_fail(error,
	                "%s has no speed of these products: its file must have %s, how many times the rate of bfloat16 "
	                "they have; plan without FP8 or for another machine",
	                machine->name, fp8 == WLB_FP8_MXFP8 ? "mxfp8_rate" : "fp8_rate");
}

double wlb_machine_grouped_gemm_s(const struct wlb_machine *machine, enum wlb_fp8 fp8, double count, double rows,
                                  double depth, double columns)
{
	double factor_bytes = fp8 == WLB_FP8_NONE ? wlb_machine_element_bytes(machine) : 1.0;
	return gemm_s(machine, wlb_machine_fp8_rate(machine, fp8), factor_bytes, count, rows, depth, columns);
}

double wlb_machine_fp8_gemm_s(const struct wlb_machine *machine, enum wlb_fp8 fp8, double rows, double depth,
                              double columns)
{
	return wlb_machine_grouped_gemm_s(machine, fp8, 1.0, rows, depth, columns);
}

double wlb_machine_gemm_most(const struct wlb_machine *machine)
{
	const struct wlb_gemm_rates *rates = &machine->gemm;
	double most = rates->rows_count == 0 ? machine->peak_flops * machine->gemm_efficiency : 0.0;
	for (int32_t i = 0; i < rates->rows_count * rates->depth_count * rates->columns_count; i++)
		most = fmax(most, rates->flops_per_s[i]);
	return most;
}

double wlb_machine_attention_s(const struct wlb_machine *machine, int heads, int head_dim, double window,
                               double q_tokens, double k_tokens, int backward)
{
	double pair_flops = 4.0 * heads * head_dim * (backward ? backward_products : 1.0);
	double pairs = wlb_attention_pairs(window, q_tokens, k_tokens), most = window > 0.0 ? window : k_tokens;
	if (machine->attention.q_count > 0)
		return pair_flops * pairs /
		       wlb_attention_rate(&machine->attention, fmin(q_tokens, most), fmin(k_tokens, most), backward);
	/* The kernel works in tiles of queries, padded to full ones, and its fixed work for a tile takes as long as
	 * attention_overhead_keys more keys. */
	double tile = machine->attention_tile_tokens, keys = pairs / q_tokens;
	double efficiency = backward ? machine->attention_backward_efficiency : machine->attention_efficiency;
	return ceil(q_tokens / tile) * tile * (keys + machine->attention_overhead_keys) * pair_flops /
	       (machine->peak_flops * efficiency);
}

int wlb_machine_use_kernel(struct wlb_machine *machine, const char *name, struct wlb_error *error)
{
	char names[WLB_ATTENTION_KERNELS * (sizeof(machine->kernels[0].name) + 1) + 1] = "";
	if (machine->attention.q_count > 0)
		return wlb_fail(error, "attention of %s was measured: no kernel can take its place", machine->name);
	for (int32_t i = 0; i < machine->kernel_count; i++) {
		const struct wlb_attention_kernel *kernel = &machine->kernels[i];
		if (strcmp(kernel->name, name) == 0) {
			machine->attention_efficiency = kernel->efficiency;
			machine->attention_backward_efficiency = kernel->backward_efficiency;
			machine->attention_tile_tokens = kernel->tile_tokens;
			machine->attention_overhead_keys = kernel->overhead_keys;
			return 0;
		}
		strcat(strcat(names, " "), kernel->name);
	}
	return wlb_fail(error, "attention '%.32s' has no published speed on %s; there is one of:%s", name,
	                machine->name, *names != '\0' ? names : " none");
}

double wlb_machine_attention_most(const struct wlb_machine *machine, int backward)
{
	const struct wlb_attention_rates *rates = &machine->attention;
	double most = 0.0;
	if (rates->q_count == 0)
		return machine->peak_flops *
		       (backward ? machine->attention_backward_efficiency : machine->attention_efficiency);
	for (int32_t i = 0; i < rates->q_count * rates->k_count; i++)
		most = fmax(most, (backward ? rates->backward_flops_per_s : rates->forward_flops_per_s)[i]);
	return most;
}
