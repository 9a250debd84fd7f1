#include "checks/node/calibrated.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/machine_choose.h"
#include "worker/calibrate/elementwise.h"
#include "worker/launch/options.h"

/* The product takes about this long at most: much longer than reading a clock, and short beside the time slices that
 * the kernel gives to others. */
static const double PRODUCT_S = 5e-3;

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Takes the longest product on the diagonal of the grid that is not longer than PRODUCT_S, else the first. */
static void choose_product(const struct wlb_machine *machine, struct wlb_calibrated *calibrated)
{
	const struct wlb_gemm_rates *g = &machine->gemm;
	int count = least(g->rows_count, least(g->depth_count, g->columns_count));
	for (int i = 0; i < count; i++) {
		double product_s = wlb_machine_gemm_s(machine, g->rows[i], g->depth[i], g->columns[i]);
		if (i > 0 && product_s > PRODUCT_S)
			return;
		calibrated->rows = (int64_t)g->rows[i];
		calibrated->depth = (int64_t)g->depth[i];
		calibrated->columns = (int64_t)g->columns[i];
		calibrated->product_s = product_s;
	}
}

/* Returns 1 with the reason where nothing can be compared with the machine. */
static int take(const struct wlb_machine *machine, const struct wlb_check_options *options,
                struct wlb_calibrated *calibrated, struct wlb_error *why)
{
	size_t bytes = wlb_dtype_bytes((enum wlb_dtype)options->dtype);
	/* On CPUs the processors that compute also move messages, which wlb calibrate writes into the file. */
	bool of_cpus = machine->blocking_messages != 0;
	if (machine->gemm.depth_count < 2) {
		wlb_fail(why, "no calibration: measure such a node by srun --mpi=pmix --ntasks-per-node=N wlb "
		              "calibrate, and name the file by --machine, "
		              "WLB_MACHINE or machine = of wlb.conf");
		return 1;
	}
	if (of_cpus != (options->device == WLB_DEVICE_CPU)) {
		wlb_fail(why, "machine %s was measured on %s; name one that was measured on %s by --machine",
		         machine->name, of_cpus ? "CPUs" : "GPUs", of_cpus ? "GPUs" : "CPUs");
		return 1;
	}
	if (wlb_machine_element_bytes(machine) != (double)bytes) {
		wlb_fail(why, "machine %s was measured with elements of %g bytes, not %zu; give its --dtype",
		         machine->name, wlb_machine_element_bytes(machine), bytes);
		return 1;
	}
	snprintf(calibrated->name, sizeof(calibrated->name), "%s", machine->name);
	calibrated->ranks = machine->gpus_per_node;
	calibrated->threads = machine->measured_threads;
	calibrated->traffic_s = wlb_machine_op_s(machine, WLB_OP_ADD, WLB_TRAFFIC_ELEMENTS) +
	                        wlb_machine_op_s(machine, WLB_OP_COPY, WLB_TRAFFIC_ELEMENTS);
	choose_product(machine, calibrated);
	return 0;
}

int wlb_calibrated_read(const struct wlb_check_options *options, struct wlb_calibrated *calibrated,
                        struct wlb_error *why)
{
	const char *from;
	struct wlb_machine *machine = calloc(1, sizeof(*machine));
	if (machine == NULL)
		return wlb_fail(why, "out of memory for the machine");
	/* The types of Slurm's GRES name published machines, which were not measured here: they are left out. */
	int rc = wlb_machine_choose(options->machine, NULL, 1, machine, &from, why);
	if (rc == 0)
		rc = take(machine, options, calibrated, why);
	free(machine);
	return rc;
}
