#include "checks/node/gpu_state.h"

#include <stdio.h>

enum { LINKS_MOST = 36 };

/* What there is to know of a GPU. */
struct state {
	unsigned long long ecc, throttled;
	unsigned rows_pending, rows_failed, recovery_action;
	int links, active; /* of NVLink, and those that are active */
	struct wlb_nvml_fabric fabric;
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

/* Returns 0 where nothing has to be done with the GPU, or the driver does not tell. */
static unsigned read_recovery_action(const struct wlb_nvml *nvml, struct wlb_nvml_gpu *gpu)
{
	struct wlb_nvml_field field = {.id = WLB_NVML_RECOVERY_ACTION};
	if (nvml->nvmlDeviceGetFieldValues(gpu, 1, &field) != WLB_NVML_DONE || field.result != WLB_NVML_DONE ||
	    field.type != WLB_NVML_UNSIGNED)
		return 0;
	return field.value.number;
}

/* nvmlDeviceGpuRecoveryAction_t */
static const char *recovery_text(unsigned action)
{
	static const char *const texts[] = {"", "a reset", "a restart of the node", "that no other GPU uses it",
	                                    "that no other GPU uses it, and a reset"};
	return action < sizeof(texts) / sizeof(texts[0]) ? texts[action] : "a recovery";
}

static int read_links(const struct wlb_nvml *nvml, struct wlb_nvml_gpu *gpu, struct state *state)
{
	for (unsigned link = 0; link < LINKS_MOST; link++) {
		int active = 0, rc = nvml->nvmlDeviceGetNvLinkState(gpu, link, &active);
		if (answered(rc) < 0)
			return rc;
		state->links += answered(rc) == 1;
		state->active += answered(rc) == 1 && active == 1;
	}
	return WLB_NVML_DONE;
}

/* No answer means that there is none: a GPU that does not answer at all is found by other calls. */
static void read_fabric(const struct wlb_nvml *nvml, struct wlb_nvml_gpu *gpu, struct wlb_nvml_fabric *fabric)
{
	*fabric = (struct wlb_nvml_fabric){.version = sizeof(*fabric) | 2u << 24};
	if (nvml->nvmlDeviceGetGpuFabricInfoV == NULL ||
	    nvml->nvmlDeviceGetGpuFabricInfoV(gpu, fabric) != WLB_NVML_DONE)
		fabric->state = WLB_NVML_FABRIC_NONE;
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
	state->recovery_action = read_recovery_action(nvml, gpu);
	read_fabric(nvml, gpu, &state->fabric);
	return read_links(nvml, gpu, state);
}

static int is_bad(unsigned health, int shift)
{
	return ((health >> shift) & WLB_NVML_HEALTH_MASK) == WLB_NVML_HEALTH_BAD;
}

/* Writes what is wrong with the GPU's place among the switches of NVLink; "" where it is at none, or nothing is. A GPU
 * that is alone on its node may not be registered, as in a virtual machine with one GPU of eight. */
static void judge_fabric(const struct wlb_nvml *nvml, const struct wlb_nvml_fabric *fabric, int gpus, char *fault,
                         size_t size)
{
	*fault = '\0';
	if (fabric->state == WLB_NVML_FABRIC_NONE)
		return;
	if (fabric->state != WLB_NVML_FABRIC_COMPLETED) {
		if (gpus > 1)
			snprintf(fault, size,
			         "not registered with the switches of NVLink (state %d); does Fabric Manager run?",
			         fabric->state);
	} else if (fabric->status != WLB_NVML_DONE) {
		snprintf(fault, size, "registration with the switches of NVLink failed: %s",
		         nvml->nvmlErrorString(fabric->status));
	} else if (is_bad(fabric->health, WLB_NVML_BANDWIDTH_SHIFT)) {
		snprintf(fault, size, "the switches of NVLink have less bandwidth for it than they should");
	} else if (is_bad(fabric->health, WLB_NVML_ROUTE_SHIFT)) {
		snprintf(fault, size, "its route through the switches of NVLink is unhealthy");
	}
}

/* Writes what is wrong with the memory or the clock; "" where nothing is. */
static void judge_chip(const struct state *state, char *fault, size_t size)
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
	else if (state->recovery_action != 0)
		snprintf(fault, size, "the driver asks for %s (recovery action %u)",
		         recovery_text(state->recovery_action), state->recovery_action);
	else if (state->throttled & held)
		snprintf(fault, size, "its clock is held back (%s, reasons 0x%llx)",
		         state->throttled & (WLB_NVML_HEAT | WLB_NVML_HARDWARE_HEAT) ? "heat" : "power supply",
		         state->throttled);
}

/* Writes what is wrong with the links; "" where nothing is. `most` are active on the GPU that has most. */
static void judge_links(const struct state *state, int most, int expected, char *fault, size_t size)
{
	*fault = '\0';
	if (state->active < expected)
		snprintf(fault, size, "%d links of NVLink are active, not %d as --nvlinks says", state->active,
		         expected);
	else if (state->active < most)
		snprintf(fault, size, "%d links of NVLink are active, of another GPU %d", state->active, most);
}

/* NVML counts the GPUs that this process may not use, and refuses to show them. */
static int is_hidden(const struct state *state)
{
	return state->refused == WLB_NVML_NO_PERMISSION;
}

static void add_fault(struct wlb_gpu_states *states, unsigned gpu, const char *fault)
{
	if (*fault != '\0' && states->faulty++ == 0)
		snprintf(states->fault, sizeof(states->fault), "gpu %u: %.130s", gpu, fault);
}

void wlb_gpu_states_read(const struct wlb_nvml *nvml, unsigned count, int nvlinks, struct wlb_gpu_states *states)
{
	struct state list[WLB_NVML_GPUS_MOST];
	char fault[128];
	*states = (struct wlb_gpu_states){0};
	for (unsigned gpu = 0; gpu < count; gpu++) {
		list[gpu].refused = read_state(nvml, gpu, &list[gpu]);
		if (is_hidden(&list[gpu]))
			continue;
		states->gpus++;
		states->links = list[gpu].links > states->links ? list[gpu].links : states->links;
		states->active = list[gpu].active > states->active ? list[gpu].active : states->active;
	}
	for (unsigned gpu = 0; gpu < count; gpu++) {
		if (is_hidden(&list[gpu]))
			continue;
		judge_chip(&list[gpu], fault, sizeof(fault));
		if (*fault == '\0')
			judge_fabric(nvml, &list[gpu].fabric, states->gpus, fault, sizeof(fault));
		if (*fault == '\0')
			judge_links(&list[gpu], states->active, nvlinks, fault, sizeof(fault));
		add_fault(states, gpu, list[gpu].refused ? nvml->nvmlErrorString(list[gpu].refused) : fault);
	}
}
