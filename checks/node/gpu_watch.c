#include "checks/node/gpu_watch.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "checks/node/gpu_state.h"
#include "checks/node/nvml.h"
#include "checks/node/place_children.h"
#include "common/seconds.h"

enum { POLL_NS = 5000000, WAIT_MS = 20, EVENTS_MOST = 1000 };

/* What the process does: it asks for the state when it is told to. */
enum { STARTS, WATCHES, ASKS };

struct shared {
	atomic_int stage;
	int loaded; /* 0: there is no NVML, for which the process refuses */
	struct wlb_gpu_states states;
	struct wlb_watched_xids xids;
};

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
}

static int open_nvml(struct wlb_nvml *nvml, int *loaded, unsigned *count, struct wlb_error *error)
{
	if (wlb_nvml_load(nvml, error) < 0)
		return -1;
	*loaded = 1;
	int rc = nvml->nvmlInit_v2();
	if (rc == WLB_NVML_DONE)
		rc = nvml->nvmlDeviceGetCount_v2(count);
	if (rc != WLB_NVML_DONE)
		return wlb_fail(error, "NVML: %s", nvml->nvmlErrorString(rc));
	if (*count > WLB_NVML_GPUS_MOST)
		return wlb_fail(error, "NVML: has %u GPUs; %d at most can be checked", *count, WLB_NVML_GPUS_MOST);
	return 0;
}

/* Xid errors that NVML reports. */
struct xid_events {
	struct wlb_nvml_events *set;
	int count; /* of the GPUs on which NVML reports */
	struct wlb_nvml_gpu *gpus[WLB_NVML_GPUS_MOST];
	struct wlb_pci_address addresses[WLB_NVML_GPUS_MOST];
};

/* Adds the GPU where NVML tells of its errors. Returns -1 where the set of events cannot be used any more. */
static int watch_gpu(struct xid_events *events, const struct wlb_nvml *nvml, unsigned index)
{
	struct wlb_nvml_gpu *gpu;
	struct wlb_nvml_pci pci;
	if (nvml->nvmlDeviceGetHandleByIndex_v2(index, &gpu) != WLB_NVML_DONE ||
	    nvml->nvmlDeviceGetPciInfo_v3(gpu, &pci) != WLB_NVML_DONE)
		return 0;
	int rc = nvml->nvmlDeviceRegisterEvents(gpu, WLB_NVML_XID, events->set);
	if (rc == WLB_NVML_DONE) {
		events->gpus[events->count] = gpu;
		events->addresses[events->count++] = (struct wlb_pci_address){pci.domain, pci.bus, pci.device};
	}
	return rc == WLB_NVML_UNKNOWN ? -1 : 0;
}

/* Asks NVML to report the errors of `count` GPUs, WLB_NVML_GPUS_MOST at most, from now on. Those for which it does not
 * are left out. */
static void begin_events(struct xid_events *events, const struct wlb_nvml *nvml, unsigned count)
{
	*events = (struct xid_events){0};
	if (nvml->nvmlEventSetCreate(&events->set) != WLB_NVML_DONE)
		return;
	for (unsigned index = 0; index < count; index++)
		if (watch_gpu(events, nvml, index) < 0) {
			events->count = 0;
			return;
		}
}

static void add_event(const struct xid_events *events, const struct wlb_nvml_event *event, struct wlb_xid_list *list)
{
	for (int i = 0; i < events->count; i++)
		if (events->gpus[i] == event->gpu) {
			int number = (int)event->xid;
			struct wlb_xid xid = {events->addresses[i], number,
			                      wlb_xid_fault(number) != NULL ? WLB_XID_FAULT : WLB_XID_NO_FAULT};
			wlb_xid_list_add(list, &xid, wlb_now_s());
		}
}

/* Adds the errors since then to the list, with the present as their time; waits 20 ms at most for one more. */
static void take_events(struct xid_events *events, const struct wlb_nvml *nvml, struct wlb_xid_list *list)
{
	struct wlb_nvml_event event;
	for (int i = 0; i < EVENTS_MOST && events->count > 0; i++) {
		if (nvml->nvmlEventSetWait_v2(events->set, &event, WAIT_MS) != WLB_NVML_DONE)
			return;
		if (event.kind == WLB_NVML_XID)
			add_event(events, &event, list);
	}
}

static int watch_gpus(int index, const void *context, void *memory, struct wlb_error *error)
{
	struct shared *shared = memory;
	const struct wlb_check_options *options = context;
	struct xid_events events;
	struct wlb_nvml nvml;
	unsigned count = 0;
	const pid_t parent = getppid();
	(void)index;
	if (open_nvml(&nvml, &shared->loaded, &count, error) < 0)
		return -1;
	begin_events(&events, &nvml, count);
	shared->xids.gpus = events.count;
	atomic_store(&shared->stage, WATCHES);
	while (atomic_load(&shared->stage) != ASKS) {
		if (getppid() != parent)
			return wlb_fail(error, "the program that it watches for has ended");
		pause_briefly();
	}
	wlb_gpu_states_read(&nvml, count, options->nvlinks, &shared->states);
	take_events(&events, &nvml, &shared->xids.list);
	return 0;
}

static struct shared *shared_of(const struct wlb_gpu_watch *watch)
{
	return wlb_child_result(&watch->children, 0);
}

static int is_starting(struct wlb_gpu_watch *watch)
{
	return atomic_load(&shared_of(watch)->stage) == STARTS && wlb_children_left(&watch->children) > 0;
}

int wlb_gpu_watch_start(struct wlb_gpu_watch *watch, const struct wlb_check_options *options, struct wlb_error *error)
{
	watch->answer_s = options->answer_s;
	if (wlb_children_start(&watch->children, 1, sizeof(struct shared), watch_gpus, options, error) < 0)
		return -1;
	for (double until_s = wlb_now_s() + watch->answer_s; is_starting(watch) && wlb_now_s() < until_s;)
		pause_briefly();
	return 0;
}

static void report_states(const struct wlb_children *children, const struct shared *shared,
                          struct wlb_check_report *report)
{
	const struct wlb_gpu_states *states = &shared->states;
	char text[WLB_FINDING_BYTES];
	if (children->list[0].end != WLB_CHILD_DONE) {
		int absent = children->list[0].end == WLB_CHILD_REFUSED && !shared->loaded;
		wlb_child_describe(children, 0, text, sizeof(text));
		wlb_report_add(report, "nvml", absent ? WLB_CHECK_NOT_CHECKED : WLB_CHECK_FAILED, "%s", text);
		report->hangs = report->hangs || children->list[0].end == WLB_CHILD_LATE;
	} else if (states->faulty > 0) {
		wlb_report_add(report, "nvml", WLB_CHECK_FAILED, "%s%s", states->fault,
		               wlb_others_text(states->faulty).text);
	} else if (states->gpus == 0) {
		wlb_report_add(report, "nvml", WLB_CHECK_NOT_CHECKED, "NVML shows no GPU to this process");
	} else if (states->links > 0 && states->active == 0) {
		wlb_report_add(
			report, "nvml", WLB_CHECK_OK,
			"%d GPU%s: memory and clocks: no fault reported by the driver; none of their %d links of "
			"NVLink is active",
			states->gpus, states->gpus == 1 ? "" : "s", states->links);
	} else {
		wlb_report_add(report, "nvml", WLB_CHECK_OK,
		               "%d GPU%s: memory, clocks and NVLink: no fault reported by the driver", states->gpus,
		               states->gpus == 1 ? "" : "s");
	}
}

const struct wlb_watched_xids *wlb_gpu_watch_end(struct wlb_gpu_watch *watch, struct wlb_check_report *report)
{
	struct shared *shared = shared_of(watch);
	double limit_s = is_starting(watch) ? 0.0 : watch->answer_s; /* it has had that time already */
	atomic_store(&shared->stage, ASKS);
	wlb_children_finish(&watch->children, limit_s);
	watch->children.limit_s = watch->answer_s;
	report_states(&watch->children, shared, report);
	return &shared->xids;
}

void wlb_gpu_watch_free(struct wlb_gpu_watch *watch)
{
	wlb_children_finish(&watch->children, 0.0);
	wlb_children_free(&watch->children);
}
