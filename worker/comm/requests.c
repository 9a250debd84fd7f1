#include "worker/comm/requests.h"

#include <stdlib.h>

#include "worker/comm/communicator.h"
#include "worker/comm/staging.h"

enum state { FAILED = -1, IN_PROGRESS, DONE };

struct wlb_comm_request {
	struct wlb_comm *comm;
	struct wlb_comm_request *next; /* of the idle or the started ones */
	void *handle;                  /* the transport's; NULL where the rank is alone */
	struct wlb_comm_event call;
	struct wlb_comm_clock began;
	enum state state;
	struct wlb_error error; /* of a failure in wlb_comm_progress */
	struct wlb_staging in, out;
	void *out_host; /* where the result arrives, and the buffer it is copied to; NULL where there is none */
	void *out_device;
	size_t out_bytes;
};

static void request_free(struct wlb_comm_request *request)
{
	if (request->handle != NULL)
		request->comm->transport->handle_free(request->handle);
	wlb_staging_free(&request->in);
	wlb_staging_free(&request->out);
	free(request);
}

static struct wlb_comm_request *request_new(struct wlb_comm *comm, struct wlb_error *error)
{
	struct wlb_comm_request *request = calloc(1, sizeof(*request));
	if (request == NULL) {
		wlb_fail(error, "out of memory");
		return NULL;
	}
	request->comm = comm;
	if (comm->size == 1)
		return request;
	request->handle = comm->transport->handle_new(error);
	if (request->handle != NULL)
		return request;
	request_free(request);
	return NULL;
}

/* Returns a request for the next call; the call is counted also on failure. Takes an idle request where there is one,
 * so that a step that needs no more requests than the step before allocates nothing. */
static struct wlb_comm_request *take(struct wlb_comm *comm, enum wlb_comm_kind kind, size_t bytes,
                                     struct wlb_error *error)
{
	struct wlb_comm_clock began = wlb_comm_clock(comm);
	struct wlb_comm_event call = wlb_comm_next_call(comm, kind, bytes);
	struct wlb_comm_request *request = comm->idle;
	if (request != NULL)
		comm->idle = request->next;
	else
		request = request_new(comm, error);
	if (request == NULL) {
		wlb_comm_fail(comm, &call, error);
		return NULL;
	}
	request->call = call;
	request->call.entered_s = began.now_s;
	request->began = began;
	request->state = IN_PROGRESS;
	request->out_bytes = 0;
	return request;
}

/* Adds the request to the list of started ones, or to that of idle ones where the start failed. */
static struct wlb_comm_request *started(struct wlb_comm_request *request, int rc, struct wlb_error *error)
{
	struct wlb_comm *comm = request->comm;
	struct wlb_comm_request **list = rc == 0 ? &comm->started : &comm->idle;
	request->next = *list;
	*list = request;
	if (comm->size > 1)
		wlb_comm_add_blocked(comm, &request->began);
	if (rc == 0)
		return request;
	wlb_comm_fail(comm, &request->call, error);
	return NULL;
}

struct wlb_comm_request *wlb_comm_send_start(struct wlb_comm *comm, const void *buffer, size_t count, int to,
                                             struct wlb_error *error)
{
	size_t bytes = wlb_comm_bytes(comm, count);
	int rc = wlb_comm_finish_device(comm, error);
	struct wlb_comm_request *request = take(comm, WLB_COMM_SEND, bytes, error);
	if (request == NULL)
		return NULL;
	if (comm->size == 1)
		return started(request, wlb_comm_refuse_alone(to, "send to", error), error);
	void *host = NULL;
	if (rc == 0)
		rc = wlb_stage(comm->device, &request->in, buffer, bytes, 1, &host, error);
	if (rc == 0)
		rc = comm->transport->send_start(comm->state, request->handle, host, bytes, to, error);
	return started(request, rc, error);
}

struct wlb_comm_request *wlb_comm_reduce_scatter_start(struct wlb_comm *comm, void *out, const void *in, size_t count,
                                                       struct wlb_error *error)
{
	size_t bytes = wlb_comm_bytes(comm, count), all = bytes * (size_t)comm->size;
	int rc = comm->size == 1 ? 0 : wlb_comm_finish_device(comm, error);
	struct wlb_comm_request *request = take(comm, WLB_COMM_REDUCE_SCATTER, all, error);
	if (request == NULL)
		return NULL;
	if (comm->size == 1)
		return started(request, wlb_comm_copy_alone(comm, out, in, count), error);
	void *in_host = NULL, *out_host = NULL;
	if (rc == 0)
		rc = wlb_stage(comm->device, &request->in, in, all, 1, &in_host, error);
	if (rc == 0)
		rc = wlb_stage(comm->device, &request->out, out, bytes, 0, &out_host, error);
	if (rc == 0)
		rc = comm->transport->reduce_scatter_start(comm->state, request->handle, out_host, in_host, count,
		                                           comm->device->compute, error);
	request->out_host = out_host;
	request->out_device = out;
	request->out_bytes = bytes;
	return started(request, rc, error);
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

int wlb_comm_wait(struct wlb_comm_request *request, struct wlb_error *error)
{
	if (request == NULL)
		return 0;
	struct wlb_comm *comm = request->comm;
	remove_started(request);
	if (comm->size == 1)
		return 0;
	wlb_comm_enter(comm, &request->call);
	int rc = 0;
	if (request->state == FAILED)
		rc = wlb_fail(error, "%s", request->error.message);
	else if (request->state == IN_PROGRESS)
		rc = comm->transport->wait(request->handle, error);
	if (rc == 0 && request->out_bytes > 0)
		wlb_unstage(comm->device, request->out_host, request->out_device, request->out_bytes);
	return wlb_comm_leave(comm, rc, error);
}

void wlb_comm_progress(struct wlb_comm *comm)
{
	if (comm->size == 1 || comm->started == NULL)
		return;
	struct wlb_comm_clock began = wlb_comm_clock(comm);
	for (struct wlb_comm_request *request = comm->started; request != NULL; request = request->next)
		if (request->state == IN_PROGRESS)
			request->state = comm->transport->test(request->handle, &request->error);
	wlb_comm_add_blocked(comm, &began);
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
