#include "worker/train/step_transfers.h"

#include "worker/train/step_comms.h"

void wlb_step_transfers_begin(struct wlb_step_transfers *transfers, const struct wlb_groups *groups)
{
	transfers->count = 0;
	for (int i = 0; i < wlb_step_comms_count(groups) && transfers->count < WLB_TRACE_TRANSFERS; i++) {
		const struct wlb_comm *comm = wlb_step_comms_at(groups, i).comm;
		int group = comm != NULL ? wlb_comm_traced_group(comm) : -1;
		if (group < 0)
			continue;
		transfers->before[transfers->count] = wlb_comm_use(comm);
		transfers->list[transfers->count++] = (struct wlb_trace_transfer){.group = group};
	}
}

static struct wlb_trace_transfer *find(struct wlb_step_transfers *transfers, const struct wlb_comm *comm)
{
	int group = comm != NULL ? wlb_comm_traced_group(comm) : -1;
	for (int i = 0; i < transfers->count && group >= 0; i++)
		if (transfers->list[i].group == group)
			return &transfers->list[i];
	return NULL;
}

void wlb_step_transfers_end(struct wlb_step_transfers *transfers, const struct wlb_groups *groups, int host_waits)
{
	for (int i = 0; i < wlb_step_comms_count(groups); i++) {
		const struct wlb_comm *comm = wlb_step_comms_at(groups, i).comm;
		struct wlb_trace_transfer *transfer = find(transfers, comm);
		if (transfer == NULL)
			continue;
		struct wlb_comm_use now = wlb_comm_use(comm);
		const struct wlb_comm_use *before = &transfers->before[transfer - transfers->list];
		transfer->calls = now.calls - before->calls;
		transfer->bytes = now.bytes - before->bytes;
		transfer->blocked_s = host_waits ? now.host_blocked_s - before->host_blocked_s : 0.0;
	}
}

void wlb_step_transfers_add(struct wlb_step_transfers *transfers, const struct wlb_comm *comm, double waited_s)
{
	struct wlb_trace_transfer *transfer = find(transfers, comm);
	if (transfer != NULL)
		transfer->blocked_s += waited_s;
}
