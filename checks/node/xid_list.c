#include "checks/node/xid_list.h"

static bool is_same(const struct wlb_pci_address *a, const struct wlb_pci_address *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}

/* Returns the entry of the GPU, which is made if there is none; NULL where there is no place. */
static struct wlb_xid_gpu *find(struct wlb_xid_list *list, const struct wlb_pci_address *gpu)
{
	for (int i = 0; i < list->count; i++)
		if (is_same(&list->gpus[i].gpu, gpu))
			return &list->gpus[i];
	if (list->count == WLB_XID_GPUS_MOST)
		return NULL;
	list->gpus[list->count] = (struct wlb_xid_gpu){.gpu = *gpu};
	return &list->gpus[list->count++];
}

void wlb_xid_list_add(struct wlb_xid_list *list, const struct wlb_xid *xid, double at_s)
{
	struct wlb_xid_gpu *entry = find(list, &xid->gpu);
	if (entry == NULL)
		return;
	entry->newest = (struct wlb_xid_time){xid->number, at_s};
	if (xid->meaning == WLB_XID_FAULT)
		entry->fault = entry->newest;
	else if (xid->meaning == WLB_XID_RECOVERED)
		entry->fault = (struct wlb_xid_time){0};
}

void wlb_xid_list_join(struct wlb_xid_list *list, const struct wlb_xid_list *newer)
{
	for (int i = 0; i < newer->count; i++) {
		struct wlb_xid_gpu *entry = find(list, &newer->gpus[i].gpu);
		if (entry == NULL)
			continue;
		entry->newest = newer->gpus[i].newest;
		if (newer->gpus[i].fault.number != 0)
			entry->fault = newer->gpus[i].fault;
	}
}

int wlb_xid_list_read(struct wlb_xid_list *list, struct wlb_kernel_log *log, struct wlb_error *error)
{
	struct wlb_kernel_record record;
	struct wlb_xid xid;
	int rc;
	while ((rc = wlb_kernel_log_next(log, &record, error)) > 0) {
		if (wlb_xid_is_driver_start(record.text))
			*list = (struct wlb_xid_list){0};
		else if (wlb_xid_parse(record.text, &xid))
			wlb_xid_list_add(list, &xid, record.at_s);
	}
	return rc;
}
