#include "worker/check_node/gpu_state.h"

#include <stdio.h>

enum { LINKS_MOST = 18 };

/* What there is to know of a GPU. */
struct state {
	unsigned long long ecc, throttled;
	unsigned rows_pending, rows_failed;
	int links;   /* of NVLink that are active */
	int refused; /* the result of NVML where the GPU does not answer */
};

/* Returns 1 where the call has set its values, 0 where this GPU has no such value, -1 where the GPU does not answer. */
static int answered(int rc)
{
	if (rc == WLB_NVML_DONE)
		return 1;
	return rc == WLB_NVML_NOT_SUPPORTED || rc == WLB_NVML_INVALID_ARGUMENT || rc == WLB_NVML_NO_PERMISSION ||
	                       rc == WLB_NVML_FUNCTION_NOT_FOUND
	               ? 0
	               : -1;
}

/* Reads the state; returns the result of NVML where the GPU does not answer, else WLB_NVML_DONE. */
static int read_state(const struct wlb_nvml *nvml, unsigned index, struct state *state)
{
	struct wlb_nvml_gpu *gpu;
	unsigned corrected, uncorrected;
	*state = (struct state){0};
	int rc = nvml->nvmlDeviceGetHandleByIndex_v2(index, &gpu);
	if (rc != WLB_NVML_DONE)
		return rc;
	rc = nvml->nvmlDeviceGetTotalEccErrors(gpu, WLB_NVML_UNCORRECTED, WLB_NVML_SINCE_DRIVER_LOAD, &state->ecc);
	if (answered(rc) < 0)
		return rc;
	rc = nvml->nvmlDeviceGetRemappedRows(gpu, &corrected, &uncorrected, &state->rows_pending, &state->rows_failed);
	if (answered(rc) < 0)
		return rc;
	rc = nvml->nvmlDeviceGetCurrentClocksThrottleReasons(gpu, &state->throttled);
	if (answered(rc) < 0)
		return rc;
	for (unsigned link = 0; link < LINKS_MOST; link++) {
		int active = 0;
		rc = nvml->nvmlDeviceGetNvLinkState(gpu, link, &active);
		if (answered(rc) < 0)
			return rc;
		state->links += answered(rc) == 1 && active == 1;
	}
	return WLB_NVML_DONE;
}

/* Writes what is wrong with the GPU; "" where nothing is. `links` are active on the GPU that has most. */
static void judge_state(const struct state *state, int links, char *fault, size_t size)
{
	const unsigned long long held =
		WLB_NVML_HARDWARE_SLOWDOWN | WLB_NVML_HEAT | WLB_NVML_HARDWARE_HEAT | WLB_NVML_POWER_BRAKE;
	*fault = '\0';
	if (state->ecc > 0)
		snprintf(fault, size, "%llu memory errors were not corrected since the driver was loaded", state->ecc);
	else if (state->rows_failed)
		snprintf(fault, size, "a row of memory could not be replaced; the GPU has to be exchanged");
	else if (state->rows_pending)
		snprintf(fault, size, "a row of memory waits for a reset of the GPU to be replaced");
	else if (state->throttled & held)
		snprintf(fault, size, "its clock is held back (%s, reasons 0x%llx)",
		         state->throttled & (WLB_NVML_HEAT | WLB_NVML_HARDWARE_HEAT) ? "heat" : "power supply",
		         state->throttled);
	else if (state->links < links)
		snprintf(fault, size, "%d links of NVLink are active, of another GPU %d", state->links, links);
}

static void add_fault(struct wlb_gpu_states *states, unsigned gpu, const char *fault)
{
	if (*fault != '\0' && states->faulty++ == 0)
		snprintf(states->fault, sizeof(states->fault), "gpu %u: %.130s", gpu, fault);
}

void wlb_gpu_states_read(const struct wlb_nvml *nvml, unsigned count, struct wlb_gpu_states *states)
{
	struct state list[WLB_NVML_GPUS_MOST];
	char fault[128];
	int links = 0;
	*states = (struct wlb_gpu_states){.gpus = (int)count};
	for (unsigned gpu = 0; gpu < count; gpu++) {
		list[gpu].refused = read_state(nvml, gpu, &list[gpu]);
		links = list[gpu].links > links ? list[gpu].links : links;
	}
	for (unsigned gpu = 0; gpu < count; gpu++) {
		judge_state(&list[gpu], links, fault, sizeof(fault));
		add_fault(states, gpu, list[gpu].refused ? nvml->nvmlErrorString(list[gpu].refused) : fault);
	}
}
