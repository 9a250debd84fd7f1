/* Opens, splits and closes communicators. */
#include <stdio.h>
#include <stdlib.h>

#include "worker/comm/comm.h"
#include "worker/comm/communicator.h"
#include "worker/comm/requests.h"
#include "worker/comm/staging.h"

enum { TRACE_EVENTS = 4096 };

struct wlb_comm *wlb_comm_open_world(struct wlb_device *device, int rank, int size, struct wlb_error *error)
{
	struct wlb_comm *comm = calloc(1, sizeof(*comm));
	struct wlb_comm_trace *trace = wlb_comm_trace_new(TRACE_EVENTS);
	if (comm == NULL || trace == NULL) {
		wlb_fail(error, "out of memory for the communicator of all ranks");
		goto fail;
	}
	*comm = (struct wlb_comm){
		.device = device, .trace = trace, .is_world = 1, .rank = rank, .size = size, .name = "world"};
	if (size == 1)
		return comm;
	comm->transport = &wlb_transport_mpi;
	comm->state = wlb_transport_mpi_open(rank, size, error);
	if (comm->state != NULL)
		return comm;
fail:
	wlb_comm_trace_free(trace);
	free(comm);
	return NULL;
}

/* Makes the group's state with the transport of its parent; a group of one rank needs none. */
static int split_state(struct wlb_comm *comm, const struct wlb_comm *parent, int color, int key,
                       struct wlb_error *error)
{
	comm->size = 1;
	if (parent->size == 1)
		return 0;
	void *state = parent->transport->split(parent->state, color, key, &comm->rank, &comm->size, error);
	if (state == NULL)
		return wlb_fail_in(error, "communicator %s cannot be split off %s", comm->name, parent->name);
	if (comm->size == 1) {
		parent->transport->close(state, 0);
		return 0;
	}
	comm->transport = parent->transport;
	comm->state = state;
	return 0;
}

struct wlb_comm *wlb_comm_split(struct wlb_comm *parent, int color, int key, const char *name, struct wlb_error *error)
{
	struct wlb_comm *comm = calloc(1, sizeof(*comm));
	if (comm == NULL) {
		wlb_fail(error, "out of memory for communicator %s", name);
		return NULL;
	}
	*comm = (struct wlb_comm){.device = parent->device, .trace = parent->trace};
	snprintf(comm->name, sizeof(comm->name), "%s", name);
	if (split_state(comm, parent, color, key, error) == 0)
		return comm;
	free(comm);
	return NULL;
}

void wlb_comm_close(struct wlb_comm *comm)
{
	if (comm == NULL)
		return;
	wlb_comm_requests_free(comm);
	wlb_staging_free(&comm->in);
	wlb_staging_free(&comm->out);
	if (comm->size > 1)
		comm->transport->close(comm->state, comm->is_world);
	if (comm->is_world)
		wlb_comm_trace_free(comm->trace);
	free(comm);
}
