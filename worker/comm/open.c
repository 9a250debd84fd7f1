/* Opens, splits and closes communicators. */
#include <stdio.h>
#include <stdlib.h>

#include "worker/comm/comm.h"
#include "worker/comm/communicator.h"
#include "worker/comm/mpi_group.h"
#include "worker/comm/requests.h"
#include "worker/comm/transport.h"

enum { TRACE_EVENTS = 4096 };

/* Gives a communicator of two ranks or more its queue and its transport. */
static int open_transport(struct wlb_comm *comm, struct wlb_error *error)
{
	comm->queue = comm->device->ops->queue_new(comm->device, 1, error);
	if (comm->queue == NULL)
		return -1;
	comm->transport = &wlb_transport_mpi;
	comm->state = comm->transport->open(comm->mpi, comm->device, comm->queue, error);
	return comm->state != NULL ? 0 : -1;
}

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
	comm->mpi = wlb_mpi_open_world(rank, size, error);
	if (comm->mpi != NULL && open_transport(comm, error) == 0)
		return comm;
fail:
	wlb_comm_trace_free(trace);
	free(comm);
	return NULL;
}

/* A group of one rank needs neither MPI nor a transport. */
static int open_group(struct wlb_comm *comm, const struct wlb_comm *parent, int color, int key, struct wlb_error *error)
{
	comm->size = 1;
	if (parent->size == 1)
		return 0;
	struct wlb_mpi_group *group = wlb_mpi_split(parent->mpi, color, key, &comm->rank, &comm->size, error);
	if (group == NULL)
		return wlb_fail_in(error, "communicator %s cannot be split off %s", comm->name, parent->name);
	if (comm->size == 1) {
		wlb_mpi_close(group, 0);
		return 0;
	}
	comm->mpi = group;
	if (open_transport(comm, error) < 0)
		return wlb_fail_in(error, "communicator %s (rank %d of %d)", comm->name, comm->rank, comm->size);
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
	if (open_group(comm, parent, color, key, error) == 0)
		return comm;
	free(comm);
	return NULL;
}

void wlb_comm_close(struct wlb_comm *comm)
{
	if (comm == NULL)
		return;
	wlb_comm_requests_free(comm);
	if (comm->state != NULL)
		comm->transport->close(comm->state);
	comm->device->ops->queue_free(comm->device, comm->queue);
	if (comm->mpi != NULL)
		wlb_mpi_close(comm->mpi, comm->is_world);
	if (comm->is_world)
		wlb_comm_trace_free(comm->trace);
	free(comm);
}
