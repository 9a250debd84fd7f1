#include "worker/comm/requests.h"

#include <stdlib.h>

#include "common/seconds.h"
#include "worker/comm/communicator.h"
#include "worker/comm/queued.h"

enum state { FAILED = -1, IN_PROGRESS, DONE };

struct wlb_comm_request {
	struct wlb_comm *comm;
	struct wlb_comm_request *next; /* of the idle or the started ones */
	struct wlb_transport_request wanted;
	struct wlb_trace_event event;
	struct wlb_comm_clock began;
	enum state state;
	struct wlb_error error; /* of a failure in wlb_comm_progress */
	/* NULL where the rank is alone: */
	void *handle;            /* the transport's */
	struct wlb_event *ready; /* the end of the work on the compute queue that the call waits for */
	struct wlb_event *done;  /* the end of the call on the communicator's queue */
};

static void request_free(struct wlb_comm_request *request)
{
	struct wlb_device *device = request->comm->device;
	if (request->handle != NULL)
		request->comm->transport->handle_free(request->handle);
	device->ops->event_free(device, request->ready);
	device->ops->event_free(device, request->done);
	free(request);
}

static struct wlb_comm_request *request_new(struct wlb_comm *comm, struct wlb_error *error)
{
	struct wlb_device *device = comm->device;
	struct wlb_comm_request *request = calloc(1, sizeof(*request));
	if (request == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	request->comm = comm;
	if (comm->size == 1)
		return request;
	request->handle = comm->transport->handle_new(comm->state, error);
	if (request->handle != NULL)
		request->ready = device->ops->event_new(device, 0, error);
	if (request->ready != NULL)
		request->done = device->ops->event_new(device, 0, error);
	if (request->done != NULL)
		return request;
	request_free(request);
	return NULL;
}

int wlb_comm_reserve(struct wlb_comm *comm, int count, struct wlb_error *error)
{
	for (int i = 0; i < count; i++) {
		struct wlb_comm_request *request = request_new(comm, error);
		if (request == NULL)
			return wlb_fail_in(error, "%d requests of communicator %s", count, comm->name);
		request->next = comm->idle;
		comm->idle = request;
	}
	return 0;
}

/* Returns the bytes of the call's local buffer: of what it sends, or of what it receives where it only receives. */
static size_t bytes_of(const struct wlb_comm *comm, const struct wlb_transport_request *wanted)
{
	size_t part = wanted->count * wlb_dtype_bytes(wanted->dtype);
	return wanted->kind == WLB_COMM_REDUCE_SCATTER ? part * (size_t)comm->size : part;
}

/* Returns a request for the call; the call is counted also on failure. Takes an idle request where there is one, so
 * that a step that needs no more requests than the step before allocates nothing. */
static struct wlb_comm_request *take(struct wlb_comm *comm, const struct wlb_transport_request *wanted,
                                     struct wlb_error *error)
{
	struct wlb_trace_event event = wlb_comm_next_call(comm, wanted->kind, bytes_of(comm, wanted));
	struct wlb_comm_request *request = comm->idle;
	if (request != NULL)
		comm->idle = request->next;
	else
		request = request_new(comm, error);
	if (request == NULL) {
		wlb_comm_fail(comm, &event, error);
		return NULL;
	}
	request->wanted = *wanted;
	request->event = event;
	request->state = IN_PROGRESS;
	return request;
}

/* A call of a communicator of one rank. */
static int run_alone(struct wlb_comm *comm, const struct wlb_transport_request *wanted, struct wlb_error *error)
{
	if (wanted->kind == WLB_COMM_SEND || wanted->kind == WLB_COMM_RECV)
		return wlb_fail(error, "there is no rank %d to %s: this rank is alone", wanted->peer,
		                wanted->kind == WLB_COMM_SEND ? "send to" : "receive from");
	if (wanted->out != wanted->in)
		comm->device->ops->copy(comm->device, wanted->out, wanted->in, bytes_of(comm, wanted));
	return 0;
}

/* Starts the call behind the work that is on its queue, the compute queue or another. What the host waits for that work
 * is not counted as time in the call, but the watchdog sees it. */
static int start_behind(struct wlb_comm_request *request, struct wlb_error *error)
{
	struct wlb_comm *comm = request->comm;
	const struct wlb_ops *ops = comm->device->ops;
	int rc = 0;
	ops->event_record(comm->device, request->ready, request->wanted.behind);
	ops->queue_wait(comm->device, comm->queue, request->ready);
	struct wlb_rank_trace *trace = wlb_comm_trace_memory(comm->trace);
	if (comm->transport->prepare != NULL) {
		request->event.blocked_s = wlb_now_s();
		wlb_rank_trace_wait_device(trace, &request->event);
		rc = comm->transport->prepare(request->handle, &request->wanted, error);
		wlb_rank_trace_wait_device(trace, NULL);
	}
	request->began = wlb_comm_clock(comm);
	request->event.entered_s = request->began.now_s;
	wlb_rank_trace_started(trace, request->event.group, request->event.seq);
	if (rc == 0)
		rc = comm->transport->start(request->handle, &request->wanted, error);
	if (rc == 0 && comm->queued != NULL) {
		ops->event_record(comm->device, request->done, comm->queue);
		wlb_queued_add(comm->queued, &request->event);
	}
	wlb_comm_add_blocked(comm, &request->began, request->wanted.kind == WLB_COMM_RECV);
	return rc;
}

struct wlb_comm_request *wlb_comm_start(struct wlb_comm *comm, const struct wlb_transport_request *wanted,
                                        struct wlb_error *error)
{
	if (wlb_comm_connect(&comm, 1, error) < 0)
		return NULL;
	struct wlb_comm_request *request = take(comm, wanted, error);
	if (request == NULL)
		return NULL;
	int rc = comm->size == 1 ? run_alone(comm, wanted, error) : start_behind(request, error);
	struct wlb_comm_request **list = rc == 0 ? &comm->started : &comm->idle;
	request->next = *list;
	*list = request;
	if (rc == 0)
		return request;
	wlb_comm_fail(comm, &request->event, error);
	return NULL;
}

static void remove_started(struct wlb_comm_request *request)
{
	struct wlb_comm *comm = request->comm;
	struct wlb_comm_request **link = &comm->started;
	while (*link != request)
		link = &(*link)->next;
	*link = request->next;
	request->next = comm->idle;
	comm->idle = request;
}

/* Looks at the call where the transport does not run it on a queue. */
static void test(struct wlb_comm_request *request)
{
	if (request->state == IN_PROGRESS)
		request->state = request->comm->transport->test(request->handle, &request->error);
}

int wlb_comm_has_ended(struct wlb_comm_request *request)
{
	if (request == NULL || request->comm->size == 1)
		return 1;
	struct wlb_comm *comm = request->comm;
	if (comm->queued != NULL)
		return comm->device->ops->event_done(comm->device, request->done);
	struct wlb_comm_clock began = wlb_comm_clock(comm);
	test(request);
	wlb_comm_add_blocked(comm, &began, 0);
	return request->state != IN_PROGRESS;
}

/* Makes the host wait for the call. */
static int finish(struct wlb_comm_request *request, struct wlb_error *error)
{
	struct wlb_comm *comm = request->comm;
	wlb_comm_enter(comm, &request->event);
	int rc = request->state == FAILED ? wlb_fail(error, "%s", request->error.message)
	                                  : comm->transport->finish(request->handle, &request->wanted, error);
	if (rc == 0)
		comm->device->ops->event_record(comm->device, request->done, comm->queue);
	return wlb_comm_leave(comm, rc, error);
}

int wlb_comm_wait(struct wlb_comm_request *request, struct wlb_error *error)
{
	if (request == NULL)
		return 0;
	struct wlb_comm *comm = request->comm;
	remove_started(request);
	if (comm->size == 1)
		return 0;
	if (comm->queued != NULL) {
		wlb_queued_await(comm->queued, request->done, request->wanted.kind, comm->part);
		return 0;
	}
	int rc = finish(request, error);
	comm->device->ops->queue_wait(comm->device, NULL, request->done);
	return rc;
}

void wlb_comm_progress(struct wlb_comm *comm)
{
	if (comm->size == 1 || comm->started == NULL || comm->transport->test == NULL)
		return;
	struct wlb_comm_clock began = wlb_comm_clock(comm);
	for (struct wlb_comm_request *request = comm->started; request != NULL; request = request->next)
		test(request);
	wlb_comm_add_blocked(comm, &began, 0);
}

static void free_all(struct wlb_comm_request *request)
{
	while (request != NULL) {
		struct wlb_comm_request *next = request->next;
		request_free(request);
		request = next;
	}
}

void wlb_comm_requests_free(struct wlb_comm *comm)
{
	free_all(comm->idle);
	free_all(comm->started);
}
