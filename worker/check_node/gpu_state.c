#include "worker/check_node/gpu_state.h"

#include "worker/check_node/bounds.h"
#include "worker/check_node/children.h"
#include "worker/check_node/nvml.h"
#include "worker/check_node/place_children.h"

enum { GPUS_MOST = 64, LINKS_MOST = 18 };

struct result {
	int loaded; /* 0: there is no NVML, for which the child refuses */
	int gpus, faulty;
	char fault[160]; /* the first */
};

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

static void add_fault(struct result *result, unsigned gpu, const char *fault)
{
	if (*fault != '\0' && result->faulty++ == 0)
		snprintf(result->fault, sizeof(result->fault), "gpu %u: %.130s", gpu, fault);
}

static void judge_all(const struct wlb_nvml *nvml, unsigned count, struct result *result)
{
	struct state states[GPUS_MOST];
	char fault[128];
	int links = 0;
	for (unsigned gpu = 0; gpu < count; gpu++) {
		states[gpu].refused = read_state(nvml, gpu, &states[gpu]);
		links = states[gpu].links > links ? states[gpu].links : links;
	}
	for (unsigned gpu = 0; gpu < count; gpu++) {
		judge_state(&states[gpu], links, fault, sizeof(fault));
		add_fault(result, gpu, states[gpu].refused ? nvml->nvmlErrorString(states[gpu].refused) : fault);
	}
}

static int ask(int index, const void *context, void *memory, struct wlb_error *error)
{
	struct result *result = memory;
	struct wlb_nvml nvml;
	unsigned count = 0;
	(void)index, (void)context;
	if (wlb_nvml_load(&nvml, error) < 0)
		return -1;
	result->loaded = 1;
	int rc = nvml.nvmlInit_v2();
	if (rc == WLB_NVML_DONE)
		rc = nvml.nvmlDeviceGetCount_v2(&count);
	if (rc != WLB_NVML_DONE)
		return wlb_fail(error, "NVML: %s", nvml.nvmlErrorString(rc));
	if (count > GPUS_MOST)
		return wlb_fail(error, "NVML: has %u GPUs; %d at most can be checked", count, GPUS_MOST);
	result->gpus = (int)count;
	judge_all(&nvml, count, result);
	return 0;
}

static void judge(const struct wlb_children *children, struct wlb_check_report *report)
{
	const struct result *result = wlb_child_result(children, 0);
	char text[WLB_FINDING_BYTES];
	if (children->list[0].end != WLB_CHILD_DONE) {
		int absent = children->list[0].end == WLB_CHILD_REFUSED && !result->loaded;
		wlb_child_describe(children, 0, text, sizeof(text));
		wlb_report_add(report, "nvml", absent ? WLB_CHECK_NOT_CHECKED : WLB_CHECK_FAILED, "%s", text);
		report->hangs = children->list[0].end == WLB_CHILD_LATE;
	} else if (result->faulty > 0) {
		wlb_report_add(report, "nvml", WLB_CHECK_FAILED, "%s%s", result->fault,
		               wlb_others_text(result->faulty).text);
	} else {
		wlb_report_add(report, "nvml", WLB_CHECK_OK,
		               "%d GPUs: memory, clocks and NVLink are well, as far as they tell", result->gpus);
	}
}

int wlb_check_gpu_state(struct wlb_check_report *report, struct wlb_error *error)
{
	struct wlb_children children = {0};
	int rc = wlb_children_run(&children, 1, sizeof(struct result), ask, NULL, WLB_CHECK_GPU_ANSWER_S, error);
	if (rc == 0)
		judge(&children, report);
	wlb_children_free(&children);
	return rc;
}
