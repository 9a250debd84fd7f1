#include "checks/node/xid_events.h"

#include "common/seconds.h"

enum { WAIT_MS = 20, EVENTS_MOST = 1000 };

/* Adds the GPU where NVML tells of its errors. Returns -1 where the set of events cannot be used any more. */
static int watch(struct wlb_xid_events *events, const struct wlb_nvml *nvml, unsigned index)
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

void wlb_xid_events_begin(struct wlb_xid_events *events, const struct wlb_nvml *nvml, unsigned count)
{
	*events = (struct wlb_xid_events){0};
	if (nvml->nvmlEventSetCreate(&events->set) != WLB_NVML_DONE)
		return;
	for (unsigned index = 0; index < count; index++)
		if (watch(events, nvml, index) < 0) {
			events->count = 0;
			return;
		}
}

static void add(const struct wlb_xid_events *events, const struct wlb_nvml_event *event, struct wlb_xid_list *list)
{
	for (int i = 0; i < events->count; i++)
		if (events->gpus[i] == event->gpu) {
			int number = (int)event->xid;
			struct wlb_xid xid = {events->addresses[i], number,
			                      wlb_xid_fault(number) != NULL ? WLB_XID_FAULT : WLB_XID_NO_FAULT};
			wlb_xid_list_add(list, &xid, wlb_now_s());
		}
}

void wlb_xid_events_take(struct wlb_xid_events *events, const struct wlb_nvml *nvml, struct wlb_xid_list *list)
{
	struct wlb_nvml_event event;
	for (int i = 0; i < EVENTS_MOST && events->count > 0; i++) {
		if (nvml->nvmlEventSetWait_v2(events->set, &event, WAIT_MS) != WLB_NVML_DONE)
			return;
		if (event.kind == WLB_NVML_XID)
			add(events, &event, list);
	}
}
