#include "coordinator/wlb/run/check/machine_dtype.h"

#include <stdlib.h>

#include "planner/machine_choose.h"

/* By blocking_messages a machine that was measured on CPUs is told from one of GPUs. */
static const char *dtype_of(const struct wlb_machine *machine, bool on_gpus)
{
	double bytes = wlb_machine_element_bytes(machine);
	if (machine->gemm.depth_count < 2 || (machine->blocking_messages == 0) != on_gpus)
		return NULL;
	if (bytes == 4.0)
		return "float32";
	if (bytes == 8.0 && !on_gpus)
		return "float64";
	return bytes == 2.0 && on_gpus ? "bfloat16" : NULL;
}

const char *wlb_run_machine_dtype(bool on_gpus)
{
	struct wlb_machine *machine = malloc(sizeof(*machine));
	const char *from, *dtype = NULL;
	if (machine != NULL && wlb_machine_choose(NULL, NULL, 1, machine, &from, NULL) == 0)
		dtype = dtype_of(machine, on_gpus);
	free(machine);
	return dtype;
}
