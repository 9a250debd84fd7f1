/* Opens, splits and closes communicators. */
#include <stdio.h>
#include <stdlib.h>

#include "worker/comm/choose_nccl.h"
#include "worker/comm/comm.h"
#include "worker/comm/communicator.h"
#include "worker/comm/group_id.h"
#include "worker/comm/mpi_group.h"
#include "worker/comm/queued.h"
#include "worker/comm/requests.h"
#include "worker/comm/transport.h"

/* Gives a communicator of two ranks or more its transport. */
static int open_transport(struct wlb_comm *comm, const struct wlb_transport *transport,
                          const struct wlb_transport_group *group, double limit_s, struct wlb_error *error)
{
	comm->transport = transport;
	comm->open_limit_s = limit_s;
	comm->state = transport->open(group, comm->device, comm->queue, limit_s, error);
	if (comm->state == NULL || !transport->on_queue)
		return comm->state != NULL ? 0 : -1;
	comm->queued = wlb_queued_new(comm->trace, comm->device, comm->queue, transport, comm->state, error);
	return comm->queued != NULL ? 0 : -1;
}

/* The same with a queue of its own. */
static int open_queue_and_transport(struct wlb_comm *comm, const struct wlb_transport *transport,
                                    const struct wlb_transport_group *group, double limit_s, struct wlb_error *error)
{
	comm->queue = comm->device->ops->queue_new(comm->device, 1, error);
	return comm->queue != NULL ? open_transport(comm, transport, group, limit_s, error) : -1;
}

struct wlb_comm *wlb_comm_open_world(struct wlb_device *device, int rank, int size, struct wlb_error *error)
{
	struct wlb_comm *comm = calloc(1, sizeof(*comm));
	struct wlb_comm_trace *trace = wlb_comm_trace_new();
	if (comm == NULL || trace == NULL) {
		wlb_fail(error, "out of memory for the communicator of all ranks");
		goto fail;
	}
	*comm = (struct wlb_comm){
		.device = device, .trace = trace, .is_world = 1, .rank = rank, .size = size, .name = "world"};
	if (size == 1)
		return comm;
	comm->group = wlb_rank_trace_add_group(wlb_comm_trace_memory(trace), comm->name, size);
	comm->mpi = wlb_mpi_open_world(rank, size, error);
	struct wlb_transport_group group = {.mpi = comm->mpi, .rank = rank, .size = size};
	if (comm->mpi != NULL && open_queue_and_transport(comm, &wlb_transport_mpi, &group, 0.0, error) == 0)
		return comm;
fail:
	wlb_comm_trace_free(trace);
	free(comm);
	return NULL;
}

/* A group of one rank needs neither MPI nor a transport. */
static int open_group(struct wlb_comm *comm, struct wlb_comm *parent, int color, int key, struct wlb_error *error)
{
	comm->size = 1;
	if (parent->size == 1)
		return 0;
	struct wlb_mpi_group *mpi = wlb_mpi_split(parent->mpi, color, key, &comm->rank, &comm->size, error);
	if (mpi == NULL)
		return wlb_fail_in(error, "communicator %s cannot be split off %s", comm->name, parent->name);
	struct wlb_transport_group group = {.mpi = mpi, .rank = comm->rank, .size = comm->size};
	if (parent->transport->make_id != NULL && wlb_group_id_split(parent, color, &group, error) < 0)
		return wlb_fail_in(error, "communicator %s cannot be split off %s", comm->name, parent->name);
	if (comm->size == 1) {
		wlb_mpi_close(mpi, 0);
		return 0;
	}
	comm->mpi = mpi;
	comm->group = wlb_rank_trace_add_group(wlb_comm_trace_memory(comm->trace), comm->name, comm->size);
	if (open_queue_and_transport(comm, parent->transport, &group, parent->open_limit_s, error) < 0)
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

int wlb_comm_choose_transport(struct wlb_comm *world, enum wlb_transport_choice choice,
                              const struct wlb_comm_launcher *launcher, double limit_s, char *why, size_t size,
                              struct wlb_error *error)
{
	why[0] = '\0';
	if (world->size == 1 || (world->device->host_memory && choice != WLB_TRANSPORT_NCCL))
		return 0;
	int with_nccl = wlb_choose_nccl(world->mpi, world->device, choice, why, size, error);
	if (with_nccl <= 0)
		return with_nccl;
	struct wlb_transport_group all = {.mpi = world->mpi, .rank = world->rank, .size = world->size};
	world->transport->close(world->state);
	if (wlb_group_id_share(launcher, &wlb_transport_nccl, &all, error) == 0 &&
	    open_transport(world, &wlb_transport_nccl, &all, limit_s, error) == 0)
		return 0;
	return wlb_fail_in(error, "communicator %s (rank %d of %d)", world->name, world->rank, world->size);
}

void wlb_comm_close(struct wlb_comm *comm)
{
	if (comm == NULL)
		return;
	wlb_comm_requests_free(comm);
	wlb_queued_free(comm->queued);
	if (comm->state != NULL)
		comm->transport->close(comm->state);
	comm->device->ops->queue_free(comm->device, comm->queue);
	if (comm->size > 1)
		wlb_rank_trace_remove_group(wlb_comm_trace_memory(comm->trace), comm->group);
	if (comm->mpi != NULL)
		wlb_mpi_close(comm->mpi, comm->is_world);
	if (comm->is_world)
		wlb_comm_trace_free(comm->trace);
	free(comm);
}
