#include "worker/comm/group_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/seconds.h"
#include "worker/comm/mpi_error.h"
#include "worker/comm/mpi_group.h"

/* What a group's first rank tells the others. */
struct made_id {
	int is_made; /* 0: `why` says why there is none */
	union {
		char id[WLB_GROUP_ID_BYTES];
		char why[WLB_GROUP_ID_BYTES];
	};
};

static struct made_id make(const struct wlb_transport *transport)
{
	struct made_id made = {0};
	struct wlb_error error;
	if (transport->make_id(made.id, &error) == 0)
		made.is_made = 1;
	else
		snprintf(made.why, sizeof(made.why), "%.127s", error.message);
	return made;
}

static int take(struct wlb_transport_group *group, const struct made_id *made, struct wlb_error *error)
{
	if (!made->is_made)
		return wlb_fail(error, "%s", made->why);
	memcpy(group->id, made->id, sizeof(group->id));
	group->has_id = 1;
	return 0;
}

int wlb_group_id_share(const struct wlb_comm_launcher *launcher, const struct wlb_transport *transport,
                       struct wlb_transport_group *group, struct wlb_error *error)
{
	struct made_id made = {0};
	if (group->rank == 0)
		made = make(transport);
	if (launcher->share(launcher->state, "wlb.group_id", &made, sizeof(made), error) < 0)
		return -1;
	return take(group, &made, error);
}

/* The messages of an exchange. */
struct exchange {
	struct made_id *made; /* of each group */
	MPI_Request *requests;
	int count;
};

static int exchange_new(struct exchange *e, struct wlb_transport_group *const *groups, int count,
                        struct wlb_error *error)
{
	size_t messages = 0;
	for (int i = 0; i < count; i++)
		messages += groups[i]->has_id ? 0 : groups[i]->rank == 0 ? (size_t)groups[i]->size - 1 : 1;
	*e = (struct exchange){.made = calloc((size_t)count, sizeof(*e->made)),
	                       .requests = calloc(messages + 1, sizeof(MPI_Request))};
	if (e->made != NULL && e->requests != NULL)
		return 0;
	free(e->made);
	free(e->requests);
	return wlb_fail(error, "out of memory for the ids of %d groups", count);
}

/* Starts the messages of one group. */
static int start(struct exchange *e, const struct wlb_transport *transport, const struct wlb_transport_group *group,
                 struct made_id *made, struct wlb_error *error)
{
	const struct wlb_mpi_group *mpi = group->mpi;
	const int bytes = (int)sizeof(*made);
	if (group->has_id)
		return 0;
	if (group->rank > 0)
		return wlb_mpi_check(MPI_Irecv(made, bytes, MPI_BYTE, mpi->ranks[0], mpi->tag, mpi->parent,
		                               &e->requests[e->count++]),
		                     error);
	*made = make(transport);
	for (int i = 1; i < group->size; i++)
		if (wlb_mpi_check(MPI_Isend(made, bytes, MPI_BYTE, mpi->ranks[i], mpi->tag, mpi->parent,
		                            &e->requests[e->count++]),
		                  error) < 0)
			return -1;
	return 0;
}

static int await_all(struct exchange *e, double limit_s, struct wlb_error *error)
{
	const double began_s = wlb_now_s();
	for (int done = 0; !done;) {
		if (wlb_mpi_check(MPI_Testall(e->count, e->requests, &done, MPI_STATUSES_IGNORE), error) < 0)
			return -1;
		if (!done && wlb_now_s() - began_s > limit_s)
			return wlb_fail(error, "the ids of groups have not arrived after %.1f s: does every rank run?",
			                limit_s);
		if (!done)
			nanosleep(&(struct timespec){.tv_nsec = 100000L}, NULL);
	}
	return 0;
}

int wlb_group_ids_exchange(const struct wlb_transport *transport, struct wlb_transport_group *const *groups, int count,
                           double limit_s, int *which, struct wlb_error *error)
{
	struct exchange e;
	*which = -1;
	if (exchange_new(&e, groups, count, error) < 0)
		return -1;
	for (int i = 0; i < count; i++)
		if (start(&e, transport, groups[i], &e.made[i], error) < 0)
			return -1; /* the memory is still in use */
	if (await_all(&e, limit_s, error) < 0)
		return -1;
	int rc = 0;
	for (int i = 0; i < count && rc == 0; i++) {
		*which = i;
		rc = groups[i]->has_id ? 0 : take(groups[i], &e.made[i], error);
	}
	free(e.made);
	free(e.requests);
	return rc;
}
