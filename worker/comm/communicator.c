#include "worker/comm/communicator.h"

#include "common/seconds.h"
#include "worker/comm/queued.h"

int wlb_comm_rank(const struct wlb_comm *comm)
{
	return comm->rank;
}

int wlb_comm_size(const struct wlb_comm *comm)
{
	return comm->size;
}

int wlb_comm_blocks_host(const struct wlb_comm *comm)
{
	return comm->queued == NULL;
}

const char *wlb_comm_name(const struct wlb_comm *comm)
{
	return comm->name;
}

struct wlb_comm_trace *wlb_comm_get_trace(const struct wlb_comm *comm)
{
	return comm->trace;
}

/* What the compute queue has waited for calls that the host does not wait for. */
static struct wlb_comm_waits queue_waits(const struct wlb_comm *comm)
{
	return comm->queued != NULL ? wlb_queued_waits(comm->queued) : (struct wlb_comm_waits){0};
}

double wlb_comm_blocked_s(const struct wlb_comm *comm)
{
	return comm->blocked_total.now_s + queue_waits(comm).all_s;
}

struct wlb_comm_use wlb_comm_use(const struct wlb_comm *comm)
{
	return (struct wlb_comm_use){
		.calls = comm->seq, .bytes = comm->bytes, .host_blocked_s = comm->blocked_total.now_s};
}

int wlb_comm_traced_group(const struct wlb_comm *comm)
{
	return comm->size > 1 ? comm->group : -1;
}

double wlb_comm_receive_s(const struct wlb_comm *comm)
{
	return comm->receive_s + queue_waits(comm).receives_s;
}

double wlb_comm_busy_s(const struct wlb_comm *comm)
{
	return comm->blocked_total.busy_s + queue_waits(comm).all_s;
}

struct wlb_comm_clock wlb_comm_clock(const struct wlb_comm *comm)
{
	return (struct wlb_comm_clock){.now_s = wlb_now_s(), .busy_s = comm->device->ops->busy_s(comm->device)};
}

double wlb_comm_add_blocked(struct wlb_comm *comm, const struct wlb_comm_clock *since, int in_receive)
{
	struct wlb_comm_clock now = wlb_comm_clock(comm);
	double blocked_s = now.now_s - since->now_s, receive_s = in_receive ? blocked_s : 0.0;
	comm->blocked_total.now_s += blocked_s;
	comm->blocked_total.busy_s += now.busy_s - since->busy_s;
	comm->receive_s += receive_s;
	comm->waits[comm->part].all_s += blocked_s;
	comm->waits[comm->part].receives_s += receive_s;
	return now.now_s;
}

void wlb_comm_set_part(struct wlb_comm *comm, int part)
{
	comm->part = part;
}

struct wlb_comm_waits wlb_comm_take_waits(struct wlb_comm *comm, int part)
{
	struct wlb_comm_waits waits = comm->waits[part];
	comm->waits[part] = (struct wlb_comm_waits){0};
	return comm->queued != NULL ? wlb_queued_take_waits(comm->queued, part) : waits;
}

struct wlb_trace_event wlb_comm_next_call(struct wlb_comm *comm, enum wlb_comm_kind kind, size_t bytes)
{
	comm->bytes += bytes;
	return (struct wlb_trace_event){.kind = kind, .group = comm->group, .seq = ++comm->seq, .bytes = bytes};
}

void wlb_comm_enter(struct wlb_comm *comm, const struct wlb_trace_event *call)
{
	comm->call = *call;
	comm->blocked = wlb_comm_clock(comm);
	comm->call.blocked_s = comm->blocked.now_s;
	if (comm->call.entered_s == 0.0)
		comm->call.entered_s = comm->call.blocked_s;
	wlb_rank_trace_enter(wlb_comm_trace_memory(comm->trace), &comm->call);
}

int wlb_comm_leave(struct wlb_comm *comm, int rc, struct wlb_error *error)
{
	comm->call.left_s = wlb_comm_add_blocked(comm, &comm->blocked, comm->call.kind == WLB_COMM_RECV);
	wlb_rank_trace_leave(wlb_comm_trace_memory(comm->trace), &comm->call);
	return rc < 0 ? wlb_comm_fail(comm, &comm->call, error) : rc;
}

int wlb_comm_fail(const struct wlb_comm *comm, const struct wlb_trace_event *call, struct wlb_error *error)
{
	return wlb_fail_in(error, "%s %llu of communicator %s (rank %d of %d)", wlb_comm_kind_name(call->kind),
	                   (unsigned long long)call->seq, comm->name, comm->rank, comm->size);
}
