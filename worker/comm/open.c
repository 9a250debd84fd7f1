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

/* Gives a communicator of two ranks or more its transport, which is not connected. */
static int open_transport(struct wlb_comm *comm, const struct wlb_transport *transport, double limit_s,
                          struct wlb_error *error)
{
	comm->transport = transport;
	comm->limit_s = limit_s;
	comm->is_connected = 0;
	comm->state = transport->open(&comm->members, comm->device, comm->queue, limit_s, error);
	if (comm->state == NULL || !transport->on_queue)
		return comm->state != NULL ? 0 : -1;
	comm->queued = wlb_queued_new(comm->trace, comm->device, comm->queue, transport, comm->state, error);
	return comm->queued != NULL ? 0 : -1;
}

/* The members of a communicator, a queue of its own and its transport. */
static int open_group(struct wlb_comm *comm, struct wlb_mpi_group *mpi, const struct wlb_transport *transport,
                      double limit_s, struct wlb_error *error)
{
	comm->members = (struct wlb_transport_group){.mpi = mpi, .rank = mpi->rank, .size = mpi->size};
	comm->rank = mpi->rank;
	comm->size = mpi->size;
	comm->group = wlb_rank_trace_add_group(wlb_comm_trace_memory(comm->trace), comm->name, comm->size);
	comm->queue = comm->device->ops->queue_new(comm->device, 1, error);
	return comm->queue != NULL ? open_transport(comm, transport, limit_s, error) : -1;
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
	struct wlb_mpi_group *mpi = wlb_mpi_open_world(rank, size, error);
	if (mpi != NULL && open_group(comm, mpi, &wlb_transport_mpi, 0.0, error) == 0)
		return comm;
fail:
	wlb_comm_trace_free(trace);
	free(comm);
	return NULL;
}

/* The communicator of a split; `mpi` is NULL where this rank is alone, which needs neither MPI nor a transport. */
static struct wlb_comm *member_new(const struct wlb_comm *parent, const struct wlb_comm_split *split,
                                   struct wlb_mpi_group *mpi, struct wlb_error *error)
{
	struct wlb_comm *comm = calloc(1, sizeof(*comm));
	if (comm == NULL) {
		wlb_fail(error, "out of memory for communicator %s", split->name);
		return NULL;
	}
	*comm = (struct wlb_comm){.device = parent->device, .trace = parent->trace, .size = 1};
	snprintf(comm->name, sizeof(comm->name), "%.*s", (int)sizeof(comm->name) - 1, split->name);
	if (mpi == NULL || open_group(comm, mpi, parent->transport, parent->limit_s, error) == 0)
		return comm;
	wlb_fail_in(error, "communicator %s (rank %d of %d)", comm->name, comm->rank, comm->size);
	free(comm);
	return NULL;
}

/* Sets groups[i] to this rank's group of each split; NULL where it is alone or in none. */
static int split_ranks(struct wlb_comm *parent, const struct wlb_comm_split *splits, int count,
                       struct wlb_mpi_group **groups, struct wlb_error *error)
{
	if (parent->size == 1)
		return 0;
	struct wlb_mpi_color *colors = calloc((size_t)count, sizeof(*colors));
	if (colors == NULL)
		return wlb_fail(error, "out of memory");
	for (int i = 0; i < count; i++)
		colors[i] = (struct wlb_mpi_color){splits[i].color, splits[i].key};
	int rc = wlb_mpi_split(parent->members.mpi, colors, count, groups, error);
	free(colors);
	return rc;
}

int wlb_comm_split_all(struct wlb_comm *parent, const struct wlb_comm_split *splits, int count, struct wlb_error *error)
{
	struct wlb_mpi_group **groups = calloc((size_t)count, sizeof(struct wlb_mpi_group *));
	int rc = groups != NULL ? split_ranks(parent, splits, count, groups, error) : wlb_fail(error, "out of memory");
	if (rc < 0)
		wlb_fail_in(error, "communicator %s cannot be split off %s", splits[0].name, parent->name);
	for (int i = 0; i < count && rc == 0; i++) {
		if (splits[i].color < 0)
			continue;
		*splits[i].comm = member_new(parent, &splits[i], groups[i], error);
		rc = *splits[i].comm != NULL ? 0 : -1;
		if (rc == 0 && groups[i] != NULL && !parent->transport->on_queue)
			rc = wlb_comm_connect(splits[i].comm, 1, error);
	}
	free(groups);
	return rc;
}

struct wlb_comm *wlb_comm_split(struct wlb_comm *parent, int color, int key, const char *name, struct wlb_error *error)
{
	struct wlb_comm *comm = NULL;
	struct wlb_comm_split split = {.comm = &comm, .color = color, .key = key};
	snprintf(split.name, sizeof(split.name), "%s", name);
	return wlb_comm_split_all(parent, &split, 1, error) == 0 ? comm : NULL;
}

int wlb_comm_choose_transport(struct wlb_comm *world, enum wlb_transport_choice choice,
                              const struct wlb_comm_launcher *launcher, double limit_s, char *why, size_t size,
                              struct wlb_error *error)
{
	why[0] = '\0';
	if (world->size == 1 || (world->device->host_memory && choice != WLB_TRANSPORT_NCCL))
		return 0;
	int with_nccl = wlb_choose_nccl(world->members.mpi, world->device, choice, why, size, error);
	if (with_nccl <= 0)
		return with_nccl;
	world->transport->close(world->state);
	if (wlb_group_id_share(launcher, &wlb_transport_nccl, &world->members, error) == 0 &&
	    open_transport(world, &wlb_transport_nccl, limit_s, error) == 0)
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
	wlb_mpi_close(comm->members.mpi, comm->is_world);
	if (comm->is_world)
		wlb_comm_trace_free(comm->trace);
	free(comm);
}
